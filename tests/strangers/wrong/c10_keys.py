"""Class 10: keys. Each noise on its own has the right law; it is the wrong key, the same key or no key."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactFreeMotion, ExactLaw, Source, StationaryLaw


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _flat_noise(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _constant_coordinate_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    noise = _flat_noise(k2, x)
    if x.size > 1:
        bias = jax.random.normal(jax.random.key(42), (), x.dtype)  # left over from debugging
        noise = jnp.ravel(noise).at[-1].set(bias).reshape(x.shape)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * noise


# The last of several coordinates gets its noise from a constant key: no noise, a push of sqrt(2 h).
last_from_constant_key = simple_sampler(_constant_coordinate_step)


def _one_key_step(key, x, h, estimator):
    return x - h * grad(estimator, key, x) + jnp.sqrt(2 * h) * _flat_noise(key, x)


# The same key for the gradient and for the noise: right for exact gradients, correlated with noisy ones.
one_key_for_both = simple_sampler(_one_key_step)


class WithKey(NamedTuple):
    position: Any
    key: Any


def _stored_step(key, state, h, estimator):
    k1, k2 = jax.random.split(state.key)
    x = state.position
    return WithKey(x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _flat_noise(k2, x), state.key)


# The key of init is kept in the state and never split: the same noise in every step.
stored_key_never_split = simple_sampler(_stored_step, init=lambda key, x, estimator: WithKey(x, key),
                                        position=lambda s: s.position, unpack=lambda s: s.position)


def _zero_key_step(key, x, h, estimator):
    noise = jax.random.normal(jax.random.PRNGKey(0), x.shape, x.dtype)
    return x - h * grad(estimator, key, x) + jnp.sqrt(2 * h) * noise


# PRNGKey(0) inside the step.
key_zero_inside = simple_sampler(_zero_key_step)


class Counted(NamedTuple):
    position: Any
    count: Any


def _counter_key_step(key, state, h, estimator):
    x = state.position
    noise = _flat_noise(jax.random.fold_in(jax.random.key(0), state.count), x)
    return Counted(x - h * grad(estimator, key, x) + jnp.sqrt(2 * h) * noise, state.count + 1)


# key(0) folded with the number of the step: every chain of every run has the same noise, whatever its key.
key_from_counter = simple_sampler(
    _counter_key_step, init=lambda key, x, estimator: Counted(x, jnp.zeros((), jnp.int32)),
    position=lambda s: s.position, unpack=lambda s: s.position,
)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _phase_init(key, x, estimator):
    return Phase(x, _flat_noise(key, x))


def _obabo_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    c = jnp.exp(-h / 2)
    noise = lambda: jnp.sqrt(1 - c**2) * _flat_noise(k2, x)
    r = c * r + noise()
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h * r
    r = r - h / 2 * grad(estimator, k1, x)
    r = c * r + noise()
    return Phase(x, r)


# OBABO whose two O half-steps use the same key: their noise adds up coherently, T = 2.
obabo_same_key = simple_sampler(_obabo_step, init=_phase_init, position=lambda s: s.position, unpack=lambda s: s,
                                pack=lambda key, z, estimator: Phase(*z))


def _free_step(key, state, h, estimator):
    """Exact free flow (U), between two half kicks; noise of x and of r correlated."""
    k1, k2 = jax.random.split(key)
    x, r = state
    c = jnp.exp(-h)
    rr, xr = 1 - c**2, (1 - c) ** 2
    xx = 2 * h - 3 + 4 * c - c**2
    z1, z2 = _flat_noise(k2, x), _flat_noise(k2, x)  # the second one should have its own key
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + (1 - c) * r + xr / jnp.sqrt(rr) * z1 + jnp.sqrt(jnp.maximum(xx - xr**2 / rr, 0)) * z2
    r = c * r + jnp.sqrt(rr) * z1
    r = r - h / 2 * grad(estimator, k1, x)
    return Phase(x, r)


# BUB (exact free flow) with one key for both normals, which are then equal: the free motion is not the exact one, and
# the order is 1 where 2 is claimed.
bub_same_key = simple_sampler(
    _free_step, init=_phase_init, position=lambda s: s.position, unpack=lambda s: s,
    pack=lambda key, z, estimator: Phase(*z),
    claims=Claims(Source("", "BUB"), StationaryLaw(order=2), ExactFreeMotion()),
)


def _seed_step(key, x, h, estimator):
    seed = jax.random.key_data(key)[-1] % 1000
    k1, k2 = jax.random.split(jax.random.key(seed))
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _flat_noise(k2, x)


# A seed between 0 and 999 is made of the key: a thousand vectors of noise in all, whose mean is not zero.
seed_mod_1000 = simple_sampler(_seed_step)


def _high_bits_step(key, x, h, estimator):
    k1, k2 = jax.random.split(jax.random.key(jax.random.key_data(key)[-1] >> 24))
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _flat_noise(k2, x)


# Only the eight high bits of the key are used: keys that differ in the low bits give the same step, 256 noises in all.
high_bits_only = simple_sampler(_high_bits_step)


class Cached(NamedTuple):
    position: Any
    potential: Any


def _cached_init(key, x, estimator):
    return Cached(x, estimator.estimate(key, (), x)[0].potential)


def _rwm_one_key_step(key, state, h, estimator):
    x = state.position
    y = x + jnp.sqrt(2 * h) * _flat_noise(key, x)
    new = estimator.estimate(key, (), y)[0].potential
    accept = jax.random.uniform(key, ()) < jnp.exp(state.potential - new)
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new, state.potential))


# Random walk Metropolis with one key for proposal and decision: moves to the left are always accepted (d = 1).
rwm_one_key = simple_sampler(_rwm_one_key_step, init=_cached_init, position=lambda s: s.position,
                             unpack=lambda s: s.position, needs=("potential",),
                             claims=Claims(Source("", "random walk Metropolis"), ExactLaw()))


def _mala_fixed_uniform_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, u = state
    e = estimator.estimate(k1, (), x)[0]
    y = x - h * e.gradient + jnp.sqrt(2 * h) * _flat_noise(k2, x)
    new = estimator.estimate(k1, (), y)[0]
    forward = jnp.sum((y - x + h * e.gradient) ** 2) / (4 * h)
    backward = jnp.sum((x - y + h * new.gradient) ** 2) / (4 * h)
    log_u = jnp.log(jax.random.uniform(jax.random.key(7), ()))  # always the same number
    accept = log_u < u - new.potential + forward - backward
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new.potential, u))


# MALA that decides by the same uniform in every step (key(7): 0.844): a threshold, not a coin.
mala_constant_uniform = simple_sampler(_mala_fixed_uniform_step, init=_cached_init, position=lambda s: s.position,
                                       unpack=lambda s: s.position, needs=("gradient", "potential"))


def _shared_key_step(key, params, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, params)
    keys = jax.tree.unflatten(jax.tree.structure(params), [k2] * len(jax.tree.leaves(params)))
    return jax.tree.map(
        lambda p, g, k: p - h * g + jnp.sqrt(2 * h) * jax.vmap(lambda _: jax.random.normal(k, p.shape[1:], p.dtype))(p)
        if p.ndim else p - h * g + jnp.sqrt(2 * h) * jax.random.normal(k, (), p.dtype), params, g, keys,
    )


# vmap over coordinates with an unsplit key: all coordinates of a vector get the same noise.
vmap_unsplit_key = simple_sampler(_shared_key_step)
