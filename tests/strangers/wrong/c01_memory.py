"""Class 1: memory that is not in the full variable z. `unpack` gives the position (or position and momentum) only,
`pack` builds the rest anew, and the next step reads it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


class OptState(NamedTuple):
    position: Any
    square: Any


def _opt_init(key, x, estimator):
    return OptState(x, grad(estimator, key, x) ** 2)


def _rmsprop_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, state.position)
    v = 0.9 * state.square + 0.1 * g**2
    precondition = 1 / (0.1 + jnp.sqrt(v))
    noise = jax.random.normal(k2, g.shape, g.dtype)
    x = state.position - h * precondition * g + jnp.sqrt(2 * h * precondition) * noise
    return OptState(x, v)


# pSGLD with the RMSprop average in the state but not in unpack, no Gamma: the law is exp(-U) (0.1 + |U'|) as h -> 0.
rmsprop_hidden = simple_sampler(
    _rmsprop_step, init=_opt_init, position=lambda s: s.position, unpack=lambda s: s.position, pack=_opt_init
)


def _rmsprop_plain_noise_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, state.position)
    v = 0.99 * state.square + 0.01 * g**2
    x = state.position - h * g / (1e-5 + jnp.sqrt(v)) + jnp.sqrt(2 * h) * jax.random.normal(k2, g.shape, g.dtype)
    return OptState(x, v)


# RMSprop divides the gradient but not the noise: sign-like drift with unit noise, roughly a Laplace law.
rmsprop_noise_unscaled = simple_sampler(_rmsprop_plain_noise_step, init=_opt_init, unpack=lambda s: s.position)


class AdamState(NamedTuple):
    position: Any
    mean: Any
    square: Any


def _adam_init(key, x, estimator):
    g = grad(estimator, key, x)
    return AdamState(x, g, g**2)


def _adam_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, state.position)
    m = 0.9 * state.mean + 0.1 * g
    v = 0.999 * state.square + 0.001 * g**2
    scale = 1 / (jnp.sqrt(v) + 1e-3)
    x = state.position - h * scale * m + jnp.sqrt(2 * h) * scale * jax.random.normal(k2, g.shape, g.dtype)
    return AdamState(x, m, v)


# Adam-SGLD: noise is multiplied by the whole preconditioner instead of its square root: temperature 1 / sqrt(v).
adam_hidden = simple_sampler(_adam_step, init=_adam_init, position=lambda s: s.position, unpack=lambda s: s.position,
                             pack=_adam_init)


class MalaState(NamedTuple):
    position: Any
    potential: Any
    gradient: Any


def _mala_init(key, x, estimator):
    e = estimator.estimate(key, (), x)[0]
    return MalaState(x, e.potential, e.gradient)


def _mala_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, u, g = state
    y = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k1, x.shape, x.dtype)
    e = estimator.estimate(k2, (), y)[0]
    forward = jnp.sum((y - x + h * g) ** 2) / (4 * h)
    backward = jnp.sum((x - y + h * e.gradient) ** 2) / (4 * h)
    accept = jnp.log(jax.random.uniform(k3)) < u - e.potential + forward - backward
    # the gradient is not put back when the proposal is rejected
    return MalaState(jnp.where(accept, y, x), jnp.where(accept, e.potential, u), e.gradient)


# MALA keeps the gradient of the rejected proposal (not in z, pack computes it anew). Shows where moves are rejected.
mala_stale_gradient = simple_sampler(
    _mala_step, init=_mala_init, position=lambda s: s.position, unpack=lambda s: s.position, pack=_mala_init,
    needs=("gradient", "potential"), claims=Claims(Source("roberts1996exponential", ""), ExactLaw()),
)


def _hmc_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, u, g = state
    r = jax.random.normal(k1, x.shape, x.dtype)
    start = u + jnp.sum(r**2) / 2
    q = x
    for _ in range(3):
        r = r - h / 2 * g
        q = q + h * r
        e = estimator.estimate(k1, (), q)[0]
        g = e.gradient
        r = r - h / 2 * g
    accept = jnp.log(jax.random.uniform(k2)) < start - e.potential - jnp.sum(r**2) / 2
    return MalaState(jnp.where(accept, q, x), jnp.where(accept, e.potential, u), g)


# HMC with a gradient cache that is overwritten by the end of the trajectory whether it was accepted or not.
hmc_stale_gradient = simple_sampler(
    _hmc_step, init=_mala_init, position=lambda s: s.position, unpack=lambda s: s.position, pack=_mala_init,
    needs=("gradient", "potential"),
)


class NoiseState(NamedTuple):
    position: Any
    noise: Any
    used: Any


def _antithetic_init(key, x, estimator):
    return NoiseState(x, jax.random.normal(key, x.shape, x.dtype), jnp.asarray(False))


def _antithetic_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    fresh = jax.random.normal(k2, state.noise.shape, state.noise.dtype)
    z = jnp.where(state.used, -state.noise, fresh)
    x = state.position - h * grad(estimator, k1, state.position) + jnp.sqrt(2 * h) * z
    return NoiseState(x, z, ~state.used)


# Antithetic pairs along one chain: every second step takes the noise back, the variance is h / 2 instead of 1 / k.
antithetic = simple_sampler(_antithetic_step, init=_antithetic_init, position=lambda s: s.position,
                            unpack=lambda s: s.position, pack=_antithetic_init)


class Coloured(NamedTuple):
    position: Any
    noise: Any


def _coloured_init(key, x, estimator):
    return Coloured(x, jax.random.normal(key, x.shape, x.dtype))


def _coloured_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    z = 0.5 * state.noise + jnp.sqrt(0.75) * jax.random.normal(k2, state.noise.shape, state.noise.dtype)
    x = state.position - h * grad(estimator, k1, state.position) + jnp.sqrt(2 * h) * z
    return Coloured(x, z)


# Noise with unit variance but correlation 1/2 from step to step: temperature (1 + 1/2) / (1 - 1/2) = 3 as h -> 0.
coloured_noise = simple_sampler(_coloured_step, init=_coloured_init, position=lambda s: s.position,
                                unpack=lambda s: s.position, pack=_coloured_init)


def _lm_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    z = jax.random.normal(k2, state.noise.shape, state.noise.dtype)
    x = state.position - h * grad(estimator, k1, state.position) + jnp.sqrt(h) * (state.noise + z)
    return Coloured(x, z)


# Leimkuhler-Matthews with the two draws scaled so that one step has variance 2 h; sums of steps have twice that: T = 2.
leimkuhler_matthews_scaled = simple_sampler(_lm_step, init=_coloured_init, position=lambda s: s.position,
                                            unpack=lambda s: s.position, pack=_coloured_init)


class Block(NamedTuple):
    position: Any
    noise: Any
    count: Any


def _block_init(key, x, estimator):
    return Block(x, jax.random.normal(key, x.shape, x.dtype), jnp.zeros((), jnp.int32))


def _block_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    fresh = jax.random.normal(k2, state.noise.shape, state.noise.dtype)
    z = jnp.where(state.count % 10 == 0, fresh, state.noise)
    x = state.position - h * grad(estimator, k1, state.position) + jnp.sqrt(2 * h) * z
    return Block(x, z, state.count + 1)


# The noise is cached and renewed every tenth step only: ten equal increments in a row, T = 10 as h -> 0.
noise_every_ten = simple_sampler(_block_step, init=_block_init, position=lambda s: s.position,
                                 unpack=lambda s: s.position, pack=_block_init)


class Tuned(NamedTuple):
    position: Any
    potential: Any
    log_scale: Any


def _tuned_init(key, x, estimator):
    return Tuned(x, estimator.estimate(key, (), x)[0].potential, jnp.zeros((), x.dtype))


def _tuned_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    scale = jnp.exp(state.log_scale) * jnp.sqrt(2 * h)
    y = state.position + scale * jax.random.normal(k1, state.position.shape, state.position.dtype)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < state.potential - new
    log_scale = state.log_scale + 0.5 * (accept - 0.44)
    return Tuned(jnp.where(accept, y, state.position), jnp.where(accept, new, state.potential), log_scale)


# Random walk Metropolis that never stops tuning its scale with a constant gain of 1/2: the chain is biased.
rwm_tuned_forever = simple_sampler(
    _tuned_step, init=_tuned_init, position=lambda s: s.position, unpack=lambda s: s.position, pack=_tuned_init,
    needs=("potential",), claims=Claims(Source("", "adaptive random walk"), ExactLaw()),
)


class Phase(NamedTuple):
    position: Any
    momentum: Any
    noise: Any


def _phase_init(key, x, estimator):
    return _phase_pack(key, (x, jnp.zeros_like(x)), estimator)


def _phase_pack(key, z, estimator):
    return Phase(z[0], z[1], jax.random.normal(key, z[0].shape, z[0].dtype))


def _recycled_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, old = state
    z = jax.random.normal(k2, x.shape, x.dtype)
    c = jnp.exp(-h)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = c * r + jnp.sqrt(1 - c**2) * (z + old) / jnp.sqrt(2.0)
    x = x + h / 2 * r
    r = r - h / 2 * grad(estimator, k1, x)
    return Phase(x, r, z)


# BAOAB that recycles half of the last draw ("smoother" noise): successive draws correlate by 1/2, T = 2 as h -> 0.
baoab_recycled_noise = simple_sampler(_recycled_step, init=_phase_init, position=lambda s: s.position,
                                      unpack=lambda s: (s.position, s.momentum), pack=_phase_pack)
