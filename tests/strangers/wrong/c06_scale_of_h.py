"""Class 6: wrong in the dependence on the step size: floors, epsilons, powers, precision of h."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _sgld_with_scale(scale):
    """SGLD whose noise has the standard deviation `scale(h)`."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return x - h * grad(estimator, k1, x) + scale(h) * jax.random.normal(k2, x.shape, x.dtype)

    return step


# Floor of 2e-6 in the variance: right above h = 1e-6, T = 1e-6 / h below.
floor_2e_6 = simple_sampler(_sgld_with_scale(lambda h: jnp.sqrt(jnp.maximum(2 * h, 2e-6))))

# eps = 1e-5 added within the square root: T = 1 + 5e-6 / h, which grows as h -> 0 (5 % at h = 1e-4).
eps_in_sqrt = simple_sampler(_sgld_with_scale(lambda h: jnp.sqrt(2 * h + 1e-5)))

# eps = 1e-3 added to the standard deviation.
eps_on_scale = simple_sampler(_sgld_with_scale(lambda h: jnp.sqrt(2 * h) + 1e-3))

# The noise has a smallest step size of 1e-4, the drift has not.
min_step_in_noise = simple_sampler(_sgld_with_scale(lambda h: jnp.sqrt(2 * jnp.maximum(h, 1e-4))))

# The noise has a largest step size of 0.01, the drift has not: T = 0.01 / h above.
max_step_in_noise = simple_sampler(_sgld_with_scale(lambda h: jnp.sqrt(2 * jnp.minimum(h, 0.01))))

# 2 h + h^1.0: a typo for a correction h^2. T = 3/2.
three_h = simple_sampler(_sgld_with_scale(lambda h: jnp.sqrt(2 * h + h**1.0)))

# sqrt(2) typed as 1.41: T = 0.99405.
sqrt2_is_1_41 = simple_sampler(_sgld_with_scale(lambda h: 1.41 * jnp.sqrt(h)))

# Exponent 0.55 instead of 0.5 (a "tuned" decay of the noise): T = h^0.1 2^0.1.
exponent_0_55 = simple_sampler(_sgld_with_scale(lambda h: (2 * h) ** 0.55))

# The scale is computed in bfloat16: the variance is wrong by up to 0.8 %, at every size of h.
bfloat16_scale = simple_sampler(
    _sgld_with_scale(lambda h: jnp.sqrt(2 * jnp.asarray(h, jnp.bfloat16)).astype(jnp.result_type(float)))
)

# 2 h / sqrt(2 h + 1e-6) for sqrt(2 h), to be safe at h = 0: half a per cent at h = 1e-4, half of the variance at 5e-7.
safe_rsqrt = simple_sampler(_sgld_with_scale(lambda h: 2 * h / jnp.sqrt(2 * h + 1e-6)))

# Rounded to three decimals (a step size from a log file): 0.0447 becomes 0.045, 4e-4 becomes 0.
rounded_scale = simple_sampler(_sgld_with_scale(lambda h: jnp.round(jnp.sqrt(2 * h), 3)))


def _step_grid(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    n = jnp.maximum(jnp.round(h / 1e-3), 1.0)  # whole milliseconds
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2e-3 * n) * jax.random.normal(k2, x.shape, x.dtype)


# The noise counts time in whole units of 1e-3: wrong for every other h, and T = 1e-3 / h below.
noise_in_milliseconds = simple_sampler(_step_grid)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _init(key, x, estimator):
    return Phase(x, jax.random.normal(key, x.shape, x.dtype))


def _sghmc_with(scale):
    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, r = state
        r = r - h * grad(estimator, k1, x) - h * r + scale(h) * jax.random.normal(k2, x.shape, x.dtype)
        return Phase(x + h * r, r)

    return simple_sampler(step, init=_init, position=lambda s: s.position, unpack=lambda s: s,
                          pack=lambda key, z, estimator: Phase(*z))


# SGHMC with noise sqrt(2 C) h: T = h.
sghmc_noise_h = _sghmc_with(lambda h: jnp.sqrt(2.0) * h)

# SGHMC with a floor of 1e-3 in the standard deviation: right above h = 5e-7, T = 5e-7 / h below.
sghmc_floor = _sghmc_with(lambda h: jnp.maximum(jnp.sqrt(2 * h), 1e-3))


def _oba_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    c = 1 - jnp.minimum(h, 0.02)  # "the friction must not overshoot"
    r = c * r + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
    r = r - h * grad(estimator, k1, x)
    return Phase(x + h * r, r)


# The friction per step is at most 0.02, its noise is not limited: T = h / 0.02 above h = 0.02.
friction_limited = simple_sampler(_oba_step, init=_init, position=lambda s: s.position, unpack=lambda s: s,
                                  pack=lambda key, z, estimator: Phase(*z))
