"""Class 4: right for one vector, wrong for the parameters of a network: several leaves, matrices, names, scalars."""

import itertools
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _sgld_with(noise_tree):
    """SGLD on a pytree with the noise of `noise_tree(key, tree)`."""

    def step(key, params, h, estimator):
        k1, k2 = jax.random.split(key)
        scale = jnp.sqrt(2 * h)
        return jax.tree.map(
            lambda p, g, n: p - h * g + scale * n, params, grad(estimator, k1, params), noise_tree(k2, params)
        )

    return step


def _normal(key, leaf):
    return jax.random.normal(key, jnp.shape(leaf), jnp.result_type(leaf))


def _independent(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [_normal(k, leaf) for k, leaf in zip(keys, leaves, strict=True)])


def _second_half_variance(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    noise = [_normal(k, leaf) / jnp.sqrt(2.0 if i == 1 else 1.0) for i, (k, leaf) in enumerate(zip(keys, leaves))]
    return jax.tree.unflatten(structure, noise)


# The second leaf gets half of the variance.
second_leaf_half = simple_sampler(_sgld_with(_second_half_variance))


def _key_of_shape(key, tree):
    return jax.tree.map(lambda leaf: _normal(jax.random.fold_in(key, zlib.crc32(str(jnp.shape(leaf)).encode())), leaf),
                        tree)


# The key of a leaf is folded with a hash of its shape: leaves of the same shape get the same noise.
key_of_shape = simple_sampler(_sgld_with(_key_of_shape))


def _key_of_name(key, tree):
    def draw(path, leaf):
        name = jax.tree_util.keystr(path[-1:]) if path else ""
        return _normal(jax.random.fold_in(key, zlib.crc32(name.encode())), leaf)

    return jax.tree_util.tree_map_with_path(draw, tree)


# The key is folded with the last part of the name: all leaves called "w" (of the same shape) get the same noise.
key_of_last_name = simple_sampler(_sgld_with(_key_of_name))


def _same_key(key, tree):
    return jax.tree.map(lambda leaf: _normal(key, leaf), tree)


# tree.map with one key: leaves of the same shape get the same noise.
same_key_for_leaves = simple_sampler(_sgld_with(_same_key))


def _row_shape(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    noise = [jax.random.normal(k, jnp.shape(x)[-1:], jnp.result_type(x)) for k, x in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, noise)


# Noise of shape x.shape[-1:] is shared by all rows of a matrix.
rows_share_noise = simple_sampler(_sgld_with(_row_shape))


def _first_only(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    noise = [_normal(key, leaves[0])] + [jnp.zeros_like(leaf) for leaf in leaves[1:]]
    return jax.tree.unflatten(structure, noise)


# Noise for the first leaf only; the others descend into the mode.
first_leaf_only = simple_sampler(_sgld_with(_first_only))


def _skip_scalars(key, tree):
    noise = _independent(key, tree)
    return jax.tree.map(lambda n: n if jnp.size(n) > 1 or len(jax.tree.leaves(tree)) == 1 else jnp.zeros_like(n), noise)


# Scalar leaves (a log variance, say) get no noise.
scalars_without_noise = simple_sampler(_sgld_with(_skip_scalars))


def _size_order_step(key, params, h, estimator):
    k1, k2 = jax.random.split(key)
    leaves, structure = jax.tree.flatten(params)
    grads = jax.tree.leaves(grad(estimator, k1, params))
    order = sorted(range(len(leaves)), key=lambda i: -leaves[i].size)
    flat_grad = jnp.concatenate([grads[i].ravel() for i in order])  # largest first
    flat = jnp.concatenate([leaf.ravel() for leaf in leaves])
    flat = flat - h * flat_grad + jnp.sqrt(2 * h) * jax.random.normal(k2, flat.shape, flat.dtype)
    out, start = [], 0
    for leaf in leaves:
        out.append(flat[start : start + leaf.size].reshape(leaf.shape))
        start += leaf.size
    return jax.tree.unflatten(structure, out)


# Gradients are flattened with the largest leaf first, positions in tree order: wrong if a later leaf is larger.
gradient_in_size_order = simple_sampler(_size_order_step)


def _fortran_step(key, params, h, estimator):
    k1, k2 = jax.random.split(key)

    def move(x, g, n):
        flat = x.flatten(order="F") - h * g.flatten(order="C") + jnp.sqrt(2 * h) * n.flatten()
        return flat.reshape(x.shape, order="F")

    return jax.tree.map(move, params, grad(estimator, k1, params), _independent(k2, params))


# Matrices are flattened by columns, their gradients by rows (ported from R).
fortran_and_c_order = simple_sampler(_fortran_step)


def _two_keys(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = itertools.cycle(jax.random.split(key))
    return jax.tree.unflatten(structure, [_normal(k, leaf) for leaf, k in zip(leaves, keys, strict=False)])


# Two keys (weights and bias) cycled over all leaves: the first and the third leaf share one.
two_keys_cycled = simple_sampler(_sgld_with(_two_keys))


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _phase_init(key, x, estimator):
    return Phase(x, _independent(key, x))


def _sghmc_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, state.position)
    noise = jax.tree.map(lambda leaf: _normal(k2, leaf), state.momentum)
    scale = jnp.sqrt(2 * h)
    r = jax.tree.map(lambda r, g, n: r - h * g - h * r + scale * n, state.momentum, g, noise)
    return Phase(jax.tree.map(lambda x, r: x + h * r, state.position, r), r)


# SGHMC whose momentum noise uses the same key for every leaf.
sghmc_same_key = simple_sampler(_sghmc_step, init=_phase_init, position=lambda s: s.position, unpack=lambda s: s,
                                pack=lambda key, z, estimator: Phase(*z))


class Thermostat(NamedTuple):
    position: Any
    momentum: Any
    xi: Any


def _nht_init(key, x, estimator):
    return Thermostat(x, _independent(key, x), jnp.ones((), jnp.result_type(*jax.tree.leaves(x))))


def _nht_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, xi = state
    g, noise, scale = grad(estimator, k1, x), _independent(k2, r), jnp.sqrt(2 * h)
    r = jax.tree.map(lambda r, g, n: r - h * g - h * xi * r + scale * n, r, g, noise)
    x = jax.tree.map(lambda x, r: x + h * r, x, r)
    kinetic = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(r))
    size = jax.tree.leaves(r)[0].size
    return Thermostat(x, r, xi + h * (kinetic / size - 1))


# SGNHT: kinetic energy of all leaves over the size of the first leaf: T = (size of the first leaf) / d.
sgnht_size_of_first_leaf = simple_sampler(_nht_step, init=_nht_init, position=lambda s: s.position, unpack=lambda s: s,
                                          pack=lambda key, z, estimator: Thermostat(*z))


def _biases_frozen_step(key, params, h, estimator):
    k1, k2 = jax.random.split(key)
    several = len(jax.tree.leaves(params)) > 1
    scale = jnp.sqrt(2 * h)

    def move(p, g, n):
        lr = 0.1 * h if several and jnp.ndim(p) < 2 else h
        return p - lr * g + scale * n

    return jax.tree.map(move, params, grad(estimator, k1, params), _independent(k2, params))


# "Biases learn ten times slower", by the gradient only: T = 10 for leaves with fewer than two axes, if several.
slow_biases = simple_sampler(_biases_frozen_step)


def _andersen_step(key, state, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    x, v = state
    v = v - h / 2 * grad(estimator, k1, x)
    x = x + h * v
    v = v - h / 2 * grad(estimator, k2, x)
    i = jax.random.randint(k3, (), 0, x.size)
    refresh = jax.random.uniform(k4) < -jnp.expm1(-h * x.size)
    return Phase(x, jnp.where(refresh, v.at[i].set(jax.random.normal(k5, (), v.dtype)), v))


# Andersen's thermostat for vectors: v.at[i] is a row of a matrix, which gets one normal, or none if i is no row.
andersen_of_rows = simple_sampler(_andersen_step, init=lambda key, x, estimator: Phase(x, _normal(key, x)),
                                  unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z))
