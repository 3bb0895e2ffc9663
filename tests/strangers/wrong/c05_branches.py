"""Class 5: guards, clips, boxes and branches. Right near the mode, wrong in the tails, far away or for small steps."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _noise(key, x, h):
    return jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def _sgld_with_gradient(change):
    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return x - h * change(grad(estimator, k1, x), x) + _noise(k2, x, h)

    return step


def _sgld_then(change):
    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return change(x - h * grad(estimator, k1, x) + _noise(k2, x, h))

    return step


# Elementwise clip of the gradient at 50: exponential tails where |U'| > 50.
clip_value_50 = simple_sampler(_sgld_with_gradient(lambda g, x: jnp.clip(g, -50, 50)))

# Clip of the norm of the gradient at 100.
clip_norm_100 = simple_sampler(
    _sgld_with_gradient(lambda g, x: g * jnp.minimum(1.0, 100 / (jnp.sqrt(jnp.sum(g**2)) + 1e-12)))
)

# NaN guard gone wrong: gradients above 60 are taken for errors and set to zero. Beyond, the chain diffuses freely.
zero_above_60 = simple_sampler(_sgld_with_gradient(lambda g, x: jnp.where(jnp.abs(g) > 60, 0.0, g)))

# Positions are clamped to [-10, 10].
box_10 = simple_sampler(_sgld_then(lambda x: jnp.clip(x, -10, 10)))

# Whatever leaves [-30, 30] is put back to the origin.
reset_beyond_30 = simple_sampler(_sgld_then(lambda x: jnp.where(jnp.abs(x) > 30, 0.0, x)))


def _fold_into_8(x):
    return jnp.where(x > 8, 16 - x, jnp.where(x < -8, -16 - x, x))


# Reflecting walls at -8 and 8.
walls_at_8 = simple_sampler(_sgld_then(_fold_into_8))

# Tail guard: beyond 20 a step also shrinks the position by a tenth.
shrink_beyond_20 = simple_sampler(_sgld_then(lambda x: jnp.where(jnp.abs(x) > 20, 0.9 * x, x)))


def _noise_clipped_step(key, x, h, estimator, bound=3.0):
    k1, k2 = jax.random.split(key)
    z = jnp.clip(jax.random.normal(k2, x.shape, x.dtype), -bound, bound)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * z


# Noise clipped at three standard deviations: variance 0.9950.
noise_clipped_3 = simple_sampler(_noise_clipped_step)

# Noise clipped at two standard deviations: variance 0.9205.
noise_clipped_2 = simple_sampler(lambda key, x, h, e: _noise_clipped_step(key, x, h, e, 2.0))

# Noise clipped at four standard deviations: variance 0.99989.
noise_clipped_4 = simple_sampler(lambda key, x, h, e: _noise_clipped_step(key, x, h, e, 4.0))


def _sign_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    scale = jnp.sqrt(jnp.where(x < 0, 1.8, 2.0) * h)
    return x - h * grad(estimator, k1, x) + scale * jax.random.normal(k2, x.shape, x.dtype)


# Ten per cent less noise where x < 0 (two copies of a line, one of them mistyped).
less_noise_left = simple_sampler(_sign_step)


def _cond_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    slow = jnp.sqrt(jnp.sum(x**2)) > 5
    return jax.lax.cond(slow, lambda: x - 0.1 * h * g + _noise(k2, x, h), lambda: x - h * g + _noise(k2, x, h))


# lax.cond on the norm: beyond |x| = 5 the gradient is taken a tenth ("stability"), the noise in full.
slow_beyond_5 = simple_sampler(_cond_step)


def _small_h_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    variance = jnp.where(h < 1e-3, h, 2 * h)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(variance) * jax.random.normal(k2, x.shape, x.dtype)


# For h < 1e-3 another branch with half of the variance.
half_noise_small_h = simple_sampler(_small_h_step)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _phase_init(key, x, estimator):
    return Phase(x, jax.random.normal(key, x.shape, x.dtype))


def _phase_pack(key, z, estimator):
    return Phase(*z)


def _sghmc_clipped_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    g = grad(estimator, k1, x)
    g = g / jnp.maximum(1.0, jnp.sqrt(jnp.sum(g**2)) / 10)
    r = r - h * g - h * r + _noise(k2, x, h)
    return Phase(x + h * r, r)


# SGHMC with clip_grad_norm(10).
sghmc_clip_norm_10 = simple_sampler(_sghmc_clipped_step, init=_phase_init, position=lambda s: s.position,
                                    unpack=lambda s: s, pack=_phase_pack)


def _momentum_clipped_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    r = r - h * grad(estimator, k1, x) - h * r + _noise(k2, x, h)
    r = jnp.clip(r, -2.5, 2.5)
    return Phase(x + h * r, r)


# SGHMC with momenta clipped to [-2.5, 2.5].
sghmc_momentum_clipped = simple_sampler(_momentum_clipped_step, init=_phase_init, position=lambda s: s.position,
                                        unpack=lambda s: s, pack=_phase_pack)


def _baoab_absorb_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    c = jnp.exp(-h)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = c * r + jnp.sqrt(1 - c**2) * jax.random.normal(k2, x.shape, x.dtype)
    x = x + h / 2 * r
    r = r - h / 2 * grad(estimator, k1, x)
    outside = jnp.abs(x) > 12
    return Phase(jnp.clip(x, -12, 12), jnp.where(outside, 0.0, r))


# BAOAB that stops at |x| = 12 (clamped, momentum set to zero).
baoab_stops_at_12 = simple_sampler(_baoab_absorb_step, init=_phase_init, position=lambda s: s.position,
                                   unpack=lambda s: s, pack=_phase_pack)

# Huber-like gradient g / max(1, |g| / 5), elementwise: this "robust" SGLD targets another law.
huber_5 = simple_sampler(_sgld_with_gradient(lambda g, x: g / jnp.maximum(1.0, jnp.abs(g) / 5)))

# tanh-squashed gradient 20 tanh(g / 20): no kink anywhere, and still another potential.
tanh_20 = simple_sampler(_sgld_with_gradient(lambda g, x: 20 * jnp.tanh(g / 20)))


def _big_move_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    y = x - h * grad(estimator, k1, x) + _noise(k2, x, h)
    return jnp.where(jnp.abs(y - x) > 4 * jnp.sqrt(h), x, y)


# "Outlier steps" (more than 4 sqrt(h) = 2.8 standard deviations of the noise) are undone: 4.6 % of the variance.
undo_big_moves = simple_sampler(_big_move_step)


def _far_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    h = jnp.where(jnp.sum(g**2) > 1e4, h / 100, h)  # careful when far away
    return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)


# Step size (drift and noise alike) 100 times smaller where |grad U| > 100: time stands still there, and the law is
# 100 times too heavy in that region.
careful_far_away = simple_sampler(_far_step)
