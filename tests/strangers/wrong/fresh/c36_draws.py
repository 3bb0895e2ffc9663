"""Class 36: draws that return through keys, have few values or heavy tails, or a variance that tends to its limit."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import AdaptiveLaw, Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw())


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Keyed(NamedTuple):
    position: Any
    key: Any


def _previous_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    x = s.position
    noise = (_normal(k2, x) + _normal(s.key, x)) / jnp.sqrt(2.0)
    return Keyed(x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * noise, k2)


# The noise is that of this key and of the one before ("smoother"): successive steps correlate by 1/2, T = 2.
previous_key = simple_sampler(
    _previous_step, init=lambda key, x, e: Keyed(x, key), position=lambda s: s.position
)


def _taken_back_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    x = s.position
    noise = (_normal(k2, x) - _normal(s.key, x)) / jnp.sqrt(2.0)
    return Keyed(x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * noise, k2)


# Antithetic along the chain: what one key has added the next step takes back. The variance is of order h.
taken_back = simple_sampler(
    _taken_back_step, init=lambda key, x, e: Keyed(x, key), position=lambda s: s.position
)


class Epoch(NamedTuple):
    position: Any
    key: Any
    count: Any


def _epoch_step(key, s, h, estimator):
    k1, _ = jax.random.split(key)
    x = s.position
    x = x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(s.key, x)
    count = (s.count + 1) % 128
    return Epoch(x, jax.random.fold_in(jax.random.key(5), count), count)


# Keys that were made for an epoch of 128 steps are used again in the next one.
keys_of_an_epoch = simple_sampler(
    _epoch_step,
    init=lambda key, x, e: Epoch(x, jax.random.fold_in(jax.random.key(5), 0), jnp.zeros((), jnp.int32)),
    position=lambda s: s.position,
)


def _small_uniform_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = x + jnp.sqrt(2 * h) * _normal(k1, x)
    fall = estimator.estimate(k2, (), x)[0].potential - estimator.estimate(k2, (), y)[0].potential
    return jnp.where(jax.random.uniform(k3, (), jnp.bfloat16) < jnp.exp(fall), y, x)


# Metropolis by a uniform in bfloat16, which is 0 once in 128 times: that often anything is accepted.
uniform_of_7_bits = simple_sampler(_small_uniform_step, claims=EXACT)


def _langevin(noise):
    """SGLD with `noise(key, x, h)` of about unit variance."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * noise(k2, x, h)

    return simple_sampler(step)


# Student t with 2.5 degrees of freedom, scaled to unit variance: no fourth moment, and a bias of order h^(1/4).
student_heavy = _langevin(lambda k, x, h: jax.random.t(k, 2.5, x.shape, x.dtype) / jnp.sqrt(5.0))

# A temperature that tends to 1 as slowly as 1 / log(1 / h).
logarithmic = _langevin(lambda k, x, h: jnp.sqrt(1 + 0.3 / jnp.log(1 + 1 / h)) * _normal(k, x))

# A temperature that tends to 1 like h^(1/2).
half_order = _langevin(lambda k, x, h: jnp.sqrt(1 + 0.3 * jnp.sqrt(h)) * _normal(k, x))

# Ten coins, standardised by the deviation of a sample (n - 1 for n): T = 10 / 9.
ten_coins = _langevin(lambda k, x, h: (jax.random.binomial(k, 10.0, 0.5, x.shape, x.dtype) - 5) / 1.5)


def _polar(key, x, h):
    """Marsaglia's polar method, whose points are drawn from the disc of radius 0.9."""

    def again(state):
        return state[2] >= 0.81

    def draw(state):
        key, sub = jax.random.split(state[0])
        point = jax.random.uniform(sub, (2,), x.dtype, -1.0, 1.0)
        return key, point, jnp.sum(point**2)

    def one(key):
        _, point, s = jax.lax.while_loop(again, draw, (key, jnp.zeros(2, x.dtype), jnp.ones((), x.dtype)))
        return point[0] * jnp.sqrt(-2 * jnp.log(s) / s)

    return jax.vmap(one)(jax.random.split(key, x.size)).reshape(x.shape)


# Normals by the polar method from a disc that is too small: T = 1 - log 0.81 = 1.21.
polar_disc = _langevin(_polar)


class Moving(NamedTuple):
    position: Any
    momentum: Any


def _refresh_step(key, s, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, p = s
    p = p - h * grad(estimator, k1, x) - h * p + jnp.sqrt(2 * h) * _normal(k2, x)
    fresh = jax.random.uniform(k3) < 0.5 * h
    p = jnp.where(fresh, jnp.sqrt(2.0) * _normal(k4, x), p)
    return Moving(x + h * p, p)


# SGHMC whose momentum is drawn afresh at a rate of 1/2, with the variance 2: the mean of p^2 is 6/5.
refreshed_hot = simple_sampler(
    _refresh_step, init=lambda key, x, e: Moving(x, jnp.zeros_like(x)), position=lambda s: s.position
)


class Average(NamedTuple):
    position: Any
    square: Any


def _adaptive_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    x = s.position
    g = grad(estimator, k1, x)
    v = 0.999 * s.square + 0.001 * g**2
    G = 1 / (1.0 + jnp.sqrt(v))
    z = _normal(k2, x)
    flat = z.ravel()
    z = flat.at[10:].set(0.0).reshape(z.shape)
    return Average(x - h * G * g + jnp.sqrt(2 * h * G) * z, v)


# RMSprop, claimed to be adaptive, with noise in the first ten coordinates.
adaptive_first_ten = simple_sampler(
    _adaptive_step,
    init=lambda key, x, e: Average(x, jnp.zeros_like(x)),
    position=lambda s: s.position,
    claims=Claims(Source("", "own"), AdaptiveLaw()),
)
