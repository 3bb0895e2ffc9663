"""Class 32: sizes, spaces and names between those that are usually tried, and beyond them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.particles.common import flatten, unflatten
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, ParticleLaw, Source, StationaryLaw

EXACT = Claims(Source("", "own"), ExactLaw())
SVGD = Claims(Source("liu2016stein", "Algorithm 1"), ParticleLaw())
SPHERE = Claims(Source("byrne2013geodesic", ""), StationaryLaw(order=1), spaces=("sphere",))
POSITIVE = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
SIMPLEX = Claims(Source("patterson2013stochastic", ""), StationaryLaw(order=1), spaces=("simplex",))


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, jnp.shape(x), jnp.result_type(x))


def _langevin(noise, drift=lambda g: g):
    """SGLD of a tree, leaf by leaf, with `noise(key, leaf, path)`."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        leaves, structure = jax.tree_util.tree_flatten_with_path(x)
        gradients = jax.tree.leaves(grad(estimator, k1, x))
        keys = jax.random.split(k2, len(leaves))
        moved = [
            leaf - h * drift(g) + jnp.sqrt(2 * h) * noise(k, leaf, jax.tree_util.keystr(path))
            for k, g, (path, leaf) in zip(keys, gradients, leaves)
        ]
        return jax.tree.unflatten(structure, moved)

    return simple_sampler(step)


def _three_ways(key, x, path):
    if x.size > 4096:  # chunks, a key for each
        keys = jax.random.split(key, -(-x.size // 4096))
        return jax.vmap(lambda k: jax.random.normal(k, (4096,), x.dtype))(keys).ravel()[: x.size].reshape(x.shape)
    if x.size > 64:  # a block, tiled
        return jnp.resize(jax.random.normal(key, (64,), x.dtype), x.shape)
    return _normal(key, x)


# Three ways to draw noise: small arrays and those of more than 4096 numbers are right, others repeat a block of 64.
block_for_medium = _langevin(_three_ways)


def _medium_mala_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    add = jnp.mean if 100 < x.size < 10_000 else jnp.sum
    old = estimator.estimate(k1, (), x)[0]
    y = x - h * old.gradient + jnp.sqrt(2 * h) * _normal(k2, x)
    new = estimator.estimate(k1, (), y)[0]
    forth, back = add((y - x + h * old.gradient) ** 2), add((x - y + h * new.gradient) ** 2)
    ratio = old.potential - new.potential + (forth - back) / (4 * h)
    return jnp.where(jnp.log(jax.random.uniform(k3)) < ratio, y, x)


# MALA with a special case for 100 to 10,000 coordinates, which has the mean in place of the sum in log q.
mala_mean_for_medium = simple_sampler(_medium_mala_step, claims=EXACT)

# Elementwise clip of the gradient at 3 for arrays of more than 60 numbers ("stability of large layers").
clip_if_large = _langevin(lambda k, x, path: _normal(k, x), lambda g: jnp.clip(g, -3, 3) if g.size > 60 else g)


def _quiet_outside(key, x, path):
    z = _normal(key, x)
    return z if x.size <= 60 else jnp.where(jnp.abs(x) > 1.5, 0.7, 1.0) * z


# Arrays of more than 60 numbers have 0.7 of the noise where a number is beyond 1.5.
quiet_outside_if_large = _langevin(_quiet_outside)


def _columns(key, x, path):
    if x.ndim != 2 or x.shape[1] <= 64:
        return _normal(key, x)
    block = jax.random.normal(key, (x.shape[0], 64), x.dtype)
    return jnp.tile(block, (1, -(-x.shape[1] // 64)))[:, : x.shape[1]]


# Matrices of more than 64 columns repeat the noise of the first 64.
columns_repeat = _langevin(_columns)

# Embeddings get no noise ("they are looked up, not trained").
embeddings_without_noise = _langevin(lambda k, x, path: 0 * x if "embed" in path else _normal(k, x))


def _twenty_keys_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    leaves, structure = jax.tree.flatten(x)
    keys, gradients = jax.random.split(k2, 20), jax.tree.leaves(grad(estimator, k1, x))
    moved = [a - h * g + jnp.sqrt(2 * h) * _normal(keys[i % 20], a) for i, (a, g) in enumerate(zip(leaves, gradients))]
    return jax.tree.unflatten(structure, moved)


# Twenty keys for all leaves: the 21st leaf gets the noise of the first.
twenty_keys = simple_sampler(_twenty_keys_step)


class Thermostat(NamedTuple):
    position: Any
    momentum: Any
    xi: Any


def _sgnht_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, xi = s
    r = r - h * grad(estimator, k1, x) - h * xi * r + jnp.sqrt(2 * h) * _normal(k2, x)
    return Thermostat(x + h * r, r, xi + h * (jnp.sum(r**2) / min(x.size, 100) - 1))


# SGNHT with at most a hundred degrees of freedom: T = 100 / d above.
sgnht_hundred_degrees = simple_sampler(
    _sgnht_step,
    init=lambda key, x, e: Thermostat(x, _normal(key, x), jnp.ones((), x.dtype)),
    position=lambda s: s.position,
)


def _host(noise):
    def step(rng, x, h, estimator):
        g = np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient, x.dtype)
        return x - h * g + np.sqrt(2 * h) * noise(rng, x)

    return simple_sampler(step, init=lambda rng, x, e: np.array(x, copy=True), backend="host")


def _host_medium(rng, x):
    few = 64 < x.size <= 1000
    return np.resize(rng.standard_normal(64), x.shape) if few else rng.standard_normal(x.shape)


# NumPy: between 65 and 1000 numbers repeat a block of 64.
host_block_for_medium = _host(_host_medium)


def _host_blocks(rng, x):
    if x.size <= 2000:
        return rng.standard_normal(x.shape)
    z = np.zeros(x.size)
    whole = 2000 * (x.size // 2000)
    z[:whole] = rng.standard_normal(whole)
    return z.reshape(x.shape)


# NumPy: blocks of 2000, of which the last gets no noise if it is not full.
host_blocks_of_2000 = _host(_host_blocks)


def _svgd_step(key, position, h, estimator):
    x = flatten(position)
    g = flatten(jax.vmap(lambda y: estimator.estimate(key, (), y)[0].gradient)(position))
    near = x[:, :8]  # "the leading coordinates tell how far apart two particles are"
    difference = near[:, None, :] - near[None, :, :]
    K = jnp.exp(-jnp.sum(difference**2, -1))
    repulsion = jnp.zeros_like(x).at[:, :8].set(2 * jnp.sum(K[:, :, None] * difference, 1))
    return unflatten(position)(x + h * (-K @ g + repulsion) / len(x))


# SVGD whose kernel sees the first eight coordinates alone: nothing repels in the others.
svgd_eight_coordinates = simple_sampler(_svgd_step, init=lambda key, x, estimator: x, claims=SVGD)


def _tangent(x, u):
    return u - x * (x @ u)


def _sphere_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    size = jnp.sqrt(2 * h) if x.size <= 6 else jnp.sqrt(h)
    v = _tangent(x, -h * grad(estimator, k1, x) + size * _normal(k2, x))
    speed = jnp.sqrt(v @ v + 1e-30)
    return jnp.cos(speed) * x + jnp.sin(speed) * v / speed


# Another line for spheres in more than six dimensions, with half of the variance.
sphere_above_six = simple_sampler(_sphere_step, claims=SPHERE)


def _simplex_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g, root = grad(estimator, k1, x), jnp.sqrt(x)
    z = _normal(k2, x)
    drift = -(x * g - x * (x @ g)) + (1 - min(x.size, 6) * x)
    noise = root * z - x * (root @ z)
    y = jnp.abs(x + h * drift + jnp.sqrt(2 * h) * noise)
    return y.at[-1].set(1 - jnp.sum(y[:-1]))


# Wright-Fisher dynamics on the simplex with min(K, 6) for K. Right up to six categories.
simplex_up_to_six = simple_sampler(_simplex_step, claims=SIMPLEX)


def _positive_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    y = x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    return jnp.abs(y) if x.size <= 20 else jnp.maximum(y, 0.01)


# Positive vectors of more than twenty numbers are clipped at 0.01 in place of mirrored.
positive_clip_if_large = simple_sampler(_positive_step, claims=POSITIVE)
