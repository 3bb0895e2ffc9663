"""Class 21: sizes, shapes and names that are rare: large vectors, tensors, many leaves, leaves with usual names."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw())


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, jnp.shape(x), jnp.result_type(x))


def _langevin(noise):
    """SGLD with `noise(key, x)` in place of standard normals, x a tree."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        move = lambda y, g, z: y - h * g + jnp.sqrt(2 * h) * z
        return jax.tree.map(move, x, grad(estimator, k1, x), noise(k2, x))

    return simple_sampler(step)


def _leafwise(noise):
    """`noise(key, leaf, path)`, a key for each leaf."""

    def of_tree(key, x):
        leaves, structure = jax.tree_util.tree_flatten_with_path(x)
        keys = jax.random.split(key, len(leaves))
        made = [noise(k, leaf, jax.tree_util.keystr(path)) for k, (path, leaf) in zip(keys, leaves, strict=True)]
        return jax.tree.unflatten(structure, made)

    return of_tree


def _blocks_of_10000(key, x, path):
    if x.size <= 10_000:
        return _normal(key, x)
    full = x.size // 10_000
    drawn = jax.random.normal(key, (full, 10_000), x.dtype).ravel()
    return jnp.zeros(x.size, x.dtype).at[: full * 10_000].set(drawn).reshape(x.shape)


# Blocks of 10,000: the last block that is not full gets no noise.
blocks_of_10000 = _langevin(_leafwise(_blocks_of_10000))


def _chunks_of_8192(key, x, path):
    if x.size <= 8192:
        return _normal(key, x)
    return jnp.resize(jax.random.normal(key, (8192,), x.dtype), x.shape)


# A buffer of 8192 normals, `resize` repeats it.
buffer_of_8192 = _langevin(_leafwise(_chunks_of_8192))


def _sixteen_bits(key, x, path):
    numbers = jnp.arange(x.size).astype(jnp.uint16)
    draw = lambda i: jax.random.normal(jax.random.fold_in(key, i), (), x.dtype)
    return jax.vmap(draw)(numbers.astype(jnp.uint32)).reshape(x.shape)


# One key a coordinate, folded with a number of 16 bits: coordinates i and i + 65536 get the same noise.
number_of_16_bits = _langevin(_leafwise(_sixteen_bits))


# Tensors with more than two axes (kernels of convolutions) get no noise.
tensors_without_noise = _langevin(_leafwise(lambda k, x, path: _normal(k, x) if x.ndim < 3 else 0 * x))

# Tensors with more than two axes share the noise along their first axis.
tensors_share_noise = _langevin(
    _leafwise(lambda k, x, path: _normal(k, x) if x.ndim < 3 else jnp.broadcast_to(_normal(k, x[0]), x.shape))
)

# Leaves called "scale" or "norm" are left out of the noise, as of weight decay.
norms_without_noise = _langevin(
    _leafwise(lambda k, x, path: 0 * x if "scale" in path or "norm" in path else _normal(k, x))
)


def _caffe_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    rate = lambda path: 2.0 if "bias" in jax.tree_util.keystr(path) else 1.0
    move = lambda path, y, g, z: y - rate(path) * h * g + jnp.sqrt(2 * h) * z
    noise = _leafwise(lambda k, y, _: _normal(k, y))(k2, x)
    return jax.tree_util.tree_map_with_path(move, x, grad(estimator, k1, x), noise)


# Leaves called "bias" have twice the learning rate, as in Caffe, and the noise of the others.
biases_twice = simple_sampler(_caffe_step)


def _eight_keys(key, x):
    leaves, structure = jax.tree.flatten(x)
    keys = jax.random.split(key, 8)
    return jax.tree.unflatten(structure, [_normal(keys[i % 8], leaf) for i, leaf in enumerate(leaves)])


# Eight keys for all leaves: the ninth leaf gets the noise of the first.
eight_keys = _langevin(_eight_keys)


def _key_of_length(key, x):
    draw = lambda path, leaf: _normal(jax.random.fold_in(key, len(jax.tree_util.keystr(path))), leaf)
    return jax.tree_util.tree_map_with_path(draw, x)


# The key is folded with the length of the name: leaves whose names are equally long get the same noise.
key_of_length = _langevin(_key_of_length)


def _mup_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    rate = lambda y: 16 / y.shape[0] if y.ndim == 2 and y.shape[0] > 16 else 1.0
    move = lambda y, g, z: y - rate(y) * h * g + jnp.sqrt(2 * h) * z
    return jax.tree.map(move, x, grad(estimator, k1, x), _leafwise(lambda k, y, _: _normal(k, y))(k2, x))


# Matrices with more than 16 rows have a learning rate of 16 / rows (as for wide networks), and the noise of the others.
wide_layers = simple_sampler(_mup_step)


def _hwio_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    swap = lambda g: jnp.transpose(g, (3, 2, 0, 1)).reshape(g.shape) if g.ndim == 4 else g
    move = lambda y, g, z: y - h * swap(g) + jnp.sqrt(2 * h) * z
    return jax.tree.map(move, x, grad(estimator, k1, x), _leafwise(lambda k, y, _: _normal(k, y))(k2, x))


# Gradients of kernels (four axes) are brought from HWIO to OIHW, the kernels are not.
kernels_transposed = simple_sampler(_hwio_step)


class Moving(NamedTuple):
    position: Any
    momentum: Any


def _hmc(kinetic):
    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        first = estimator.estimate(k1, (), x)[0]
        r = _leafwise(lambda k, y, _: _normal(k, y))(k2, x)
        energy = first.potential + kinetic(r)
        y, g = x, first.gradient
        for _ in range(3):
            r = jax.tree.map(lambda a, b: a - h / 2 * b, r, g)
            y = jax.tree.map(lambda a, b: a + h * b, y, r)
            new = estimator.estimate(k1, (), y)[0]
            g = new.gradient
            r = jax.tree.map(lambda a, b: a - h / 2 * b, r, g)
        accept = jnp.log(jax.random.uniform(k3)) < energy - new.potential - kinetic(r)
        return jax.tree.map(lambda a, b: jnp.where(accept, a, b), y, x)

    return simple_sampler(step, claims=EXACT)


def _spectral(r):
    return sum(0.5 * jnp.linalg.norm(leaf, ord=2 if leaf.ndim == 2 else None) ** 2 for leaf in jax.tree.leaves(r))


# HMC whose kinetic energy takes numpy.linalg.norm(r, 2): of a matrix that is the largest singular value.
hmc_spectral_norm = _hmc(_spectral)


def _kinetic_of_arrays(r):
    return sum(0.5 * jnp.sum(leaf**2) for leaf in jax.tree.leaves(r) if leaf.ndim < 3)


# HMC whose kinetic energy leaves out tensors with more than two axes.
hmc_without_tensors = _hmc(_kinetic_of_arrays)


def _mala_first_leaf_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    old = estimator.estimate(k1, (), x)[0]
    z = _leafwise(lambda k, y, _: _normal(k, y))(k2, x)
    y = jax.tree.map(lambda a, g, e: a - h * g + jnp.sqrt(2 * h) * e, x, old.gradient, z)
    new = estimator.estimate(k1, (), y)[0]

    def log_q(a, b, g):
        terms = jax.tree.map(lambda a, b, g: jnp.sum((b - a + h * g) ** 2), a, b, g)
        return -jax.tree.leaves(terms)[0] / (4 * h)

    ratio = old.potential - new.potential + log_q(y, x, new.gradient) - log_q(x, y, old.gradient)
    accept = jnp.log(jax.random.uniform(k3)) < ratio
    return jax.tree.map(lambda a, b: jnp.where(accept, a, b), y, x)


# MALA whose densities of the proposal are those of the first leaf.
mala_first_leaf = simple_sampler(_mala_first_leaf_step, claims=EXACT)


def _leaves_decide_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = jax.tree.map(lambda a, z: a + jnp.sqrt(2 * h) * z, x, _leafwise(lambda k, y, _: _normal(k, y))(k2, x))
    fall = estimator.estimate(k1, (), x)[0].potential - estimator.estimate(k1, (), y)[0].potential
    leaves, structure = jax.tree.flatten(x)
    keys = jax.random.split(k3, len(leaves))
    take = [jnp.log(jax.random.uniform(k)) < fall for k in keys]
    moved = [jnp.where(t, a, b) for t, a, b in zip(take, jax.tree.leaves(y), leaves, strict=True)]
    return jax.tree.unflatten(structure, moved)


# Random walk Metropolis in which every leaf decides by a uniform of its own about the fall of the whole energy.
leaves_decide = simple_sampler(_leaves_decide_step, claims=EXACT)


class Thermostat(NamedTuple):
    position: Any
    momentum: Any
    xi: Any


def _per_leaf_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    z = _leafwise(lambda k, y, _: _normal(k, y))(k2, s.position)
    g = grad(estimator, k1, s.position)
    r = jax.tree.map(lambda r, g, xi, z: r - h * g - h * xi * r + jnp.sqrt(2 * h) * z, s.momentum, g, s.xi, z)
    x = jax.tree.map(lambda x, r: x + h * r, s.position, r)
    leaves = jax.tree.leaves(r)
    mean = sum(jnp.sum(leaf**2) for leaf in leaves) / len(leaves)
    xi = jax.tree.map(lambda xi, r: xi + h * (mean / r.size - 1), s.xi, r)
    return Thermostat(x, r, xi)


def _per_leaf_init(key, x, estimator):
    return Thermostat(x, jax.tree.map(jnp.zeros_like, x), jax.tree.map(lambda a: jnp.ones((), a.dtype), x))


# SGNHT with a thermostat for each leaf, all driven by the mean of r.r over the leaves: T differs between leaves.
sgnht_mean_of_leaves = simple_sampler(
    _per_leaf_step,
    init=_per_leaf_init,
    position=lambda s: s.position,
)
