"""Class 19: the classics of issue trackers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _sgld(move):
    """A sampler with the step `move(x, gradient, z, h)`, z a standard normal."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return move(x, grad(estimator, k1, x), _normal(k2, x), h)

    return simple_sampler(step)


# Noise h instead of sqrt(2 h): T = h / 2.
noise_lr = _sgld(lambda x, g, z, h: x - h * g + h * z)

# Noise is added to the gradient before the learning rate multiplies: T = h.
noise_before_lr = _sgld(lambda x, g, z, h: x - h * (g + jnp.sqrt(2.0) * z))

# Noise sqrt(2 / h) on the gradient is right; here sqrt(h / 2): T = h^2 / 4.
noise_inverse_forgotten = _sgld(lambda x, g, z, h: x - h * (g + jnp.sqrt(h / 2) * z))

# Half of the drift with all of the noise (the convention of Welling and Teh on one side only): T = 2.
half_drift = _sgld(lambda x, g, z, h: x - h / 2 * g + jnp.sqrt(2 * h) * z)

# All of the drift with half of the variance: T = 1/2.
half_noise = _sgld(lambda x, g, z, h: x - h * g + jnp.sqrt(h) * z)

# Weight decay in the optimiser besides the prior in U: the law is exp(-U - x^2 / 2).
weight_decay_twice = _sgld(lambda x, g, z, h: (1 - h) * x - h * g + jnp.sqrt(2 * h) * z)

# Sign of the gradient: climbs U, diverges.
gradient_ascent = _sgld(lambda x, g, z, h: x + h * g + jnp.sqrt(2 * h) * z)

# Half of the variance, and a part of the noise proportional to the gradient: T = 1/2.
multiplicative_noise = _sgld(lambda x, g, z, h: x - h * g * (1 + z) + jnp.sqrt(h) * z)

# sqrt outside: 2 sqrt(h), T = 2.
two_outside_sqrt = _sgld(lambda x, g, z, h: x - h * g + 2 * jnp.sqrt(h) * z)

# Gradient clipped at 1, as in training: Laplace tails.
clip_at_1 = _sgld(lambda x, g, z, h: x - h * jnp.clip(g, -1, 1) + jnp.sqrt(2 * h) * z)

# Sign of the gradient only (signSGD).
sign_sgld = _sgld(lambda x, g, z, h: x - h * jnp.sign(g) + jnp.sqrt(2 * h) * z)

# Absolute value of the noise (a guard against negative scales in the wrong place).
absolute_noise = _sgld(lambda x, g, z, h: x - h * g + jnp.abs(jnp.sqrt(2 * h) * z))


def _twice_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    noisy = grad(estimator, k1, x) + jnp.sqrt(2 / h) * _normal(k2, x)
    return x - h * noisy + jnp.sqrt(2 * h) * _normal(k3, x)


# Noise is added twice, once to the gradient and once to the position: T = 2.
noise_twice = simple_sampler(_twice_step)


class Momentum(NamedTuple):
    position: Any
    velocity: Any


def _init(key, x, estimator):
    return Momentum(x, jnp.zeros_like(x))


def _momentum(move, **more):
    """A sampler with the step `move(x, v, gradient(x), z, h) -> (x, v)`."""

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, v = move(*state, grad(estimator, k1, state.position), _normal(k2, state.position), h)
        return Momentum(x, v)

    return simple_sampler(step, init=_init, position=lambda s: s.position, unpack=lambda s: s,
                          pack=lambda key, z, estimator: Momentum(*z), **more)


def _no_dampening(x, v, g, z, h):
    v = 0.9 * v + g
    return x - h * v + jnp.sqrt(2 * h) * z, v


# SGD with momentum 0.9 and no dampening (torch's default) plus the noise of SGLD: T = 0.1 as h -> 0.
momentum_no_dampening = _momentum(_no_dampening)


def _naive_hmc(x, v, g, z, h):
    v = v - h * g + jnp.sqrt(2 * h) * z
    return x + h * v, v


# Momentum noise without friction (the naive SGHMC): the temperature grows without bound.
noise_without_friction = _momentum(_naive_hmc)


def _friction_without_noise(x, v, g, z, h):
    v = v - h * g - h * v
    return x + h * v + 0 * z, v


# Friction without noise: gradient descent with momentum.
friction_without_noise = _momentum(_friction_without_noise)


def _alpha_noise(x, v, g, z, h):
    v = 0.9 * v - h * g + jnp.sqrt(2 * 0.9 * h) * z
    return x + v, v


# SGHMC with N(0, 2 (1 - alpha) eta) instead of N(0, 2 alpha eta): momentum 0.9 taken for the friction 0.1. T = 9.
alpha_noise_wrong = _momentum(_alpha_noise)


def _baoab_full_kicks(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = state
    c = jnp.exp(-h)
    r = r - h * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = c * r + jnp.sqrt(1 - c**2) * _normal(k2, x)
    x = x + h / 2 * r
    return Momentum(x, r - h * grad(estimator, k3, x))


# BAOAB with two full kicks: the law is exp(-2 U).
baoab_full_kicks = simple_sampler(_baoab_full_kicks, init=_init, position=lambda s: s.position, unpack=lambda s: s,
                                  pack=lambda key, z, estimator: Momentum(*z))


def _baoab_no_sqrt(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = state
    c = jnp.exp(-h)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = c * r + (1 - c**2) * _normal(k2, x)
    x = x + h / 2 * r
    return Momentum(x, r - h / 2 * grad(estimator, k3, x))


# BAOAB with 1 - c^2 instead of its root in front of the noise: T = 2 h.
baoab_no_sqrt = simple_sampler(_baoab_no_sqrt, init=_init, position=lambda s: s.position, unpack=lambda s: s,
                               pack=lambda key, z, estimator: Momentum(*z))


def _baoab_one_minus_c(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = state
    c = jnp.exp(-h)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = c * r + jnp.sqrt(1 - c) * _normal(k2, x)
    x = x + h / 2 * r
    return Momentum(x, r - h / 2 * grad(estimator, k3, x))


# BAOAB with sqrt(1 - c) for sqrt(1 - c^2): T = 1/2.
baoab_one_minus_c = simple_sampler(_baoab_one_minus_c, init=_init, position=lambda s: s.position, unpack=lambda s: s,
                                   pack=lambda key, z, estimator: Momentum(*z))


class Ema(NamedTuple):
    iterate: Any
    average: Any


def _ema_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x = state.iterate - h * grad(estimator, k1, state.iterate) + jnp.sqrt(2 * h) * _normal(k2, state.iterate)
    return Ema(x, 0.99 * state.average + 0.01 * x)


# The samples reported are an exponential average of the iterates (EMA weights): their variance is too small.
ema_reported = simple_sampler(_ema_step, init=lambda key, x, estimator: Ema(x, x), position=lambda s: s.average)


def _reported_noise_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, _ = state
    x = x - h * grad(estimator, k1, x)
    return x, x + jnp.sqrt(2 * h) * _normal(k2, x)


# The noise is added to a copy that is reported, and not to the iterate: the mode plus N(0, 2 h).
noise_on_the_copy = simple_sampler(_reported_noise_step, init=lambda key, x, estimator: (x, x),
                                   position=lambda s: s[1])


def _no_refresh_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h * r
    return Momentum(x, r - h / 2 * grad(estimator, k2, x))


# HMC that draws its momentum in init and never again: it stays on one level of the energy.
no_refreshment = simple_sampler(
    _no_refresh_step, init=lambda key, x, estimator: Momentum(x, _normal(key, x)), position=lambda s: s.position,
    unpack=lambda s: s, pack=lambda key, z, estimator: Momentum(*z),
)


def _refresh_scale_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    r = _normal(k2, x) * jnp.sqrt(2.0)
    for k in jax.random.split(k1, 5):
        r = r - h / 2 * grad(estimator, k, x)
        x = x + h * r
        r = r - h / 2 * grad(estimator, k, x)
    return x


# Unadjusted HMC whose momentum is drawn with the variance 2: T = 2.
uhmc_momentum_2 = simple_sampler(_refresh_scale_step)


def _jump_mean_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    new = x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    return 0.5 * (x + new)


# Under-relaxed step: the mean of the old and the new position. Drift 1/2, variance 1/4: T = 1/2.
under_relaxed = simple_sampler(_jump_mean_step)


def _heun_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    g = grad(estimator, k1, x)
    guess = x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)
    return x - h / 2 * (g + grad(estimator, k1, guess)) + jnp.sqrt(h) * (_normal(k2, x) + _normal(k3, x)) / 2


# Heun whose corrector averages two draws: (z1 + z2) / 2 with sqrt(h): a quarter of the variance. T = 1/4.
heun_averaged_noise = simple_sampler(_heun_step)
