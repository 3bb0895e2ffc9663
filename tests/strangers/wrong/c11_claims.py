"""Class 11: right schemes with claims that they do not keep: orders, closed forms, dynamics, exactness."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import langevin_dynamics
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import (
    Claims,
    Diffusion,
    ExactFreeMotion,
    ExactLaw,
    IndependentNoise,
    ShearingForce,
    Source,
    StationaryLaw,
    StationaryMoments,
)

WELLING = Source("welling2011bayesian", "equation (4)")


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _sgld_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)


def _sgld(*claims):
    return simple_sampler(_sgld_step, claims=Claims(WELLING, *claims))


# SGLD claims an invariant law of order 2; on a Gaussian its variance is 1 / (k (1 - h k / 2)).
sgld_order_2 = _sgld(StationaryLaw(order=2))

# SGLD claims weak order 2.
sgld_weak_order_2 = _sgld(StationaryLaw(order=1), Diffusion(overdamped_dynamics, weak_order=2))

# SGLD with the closed form 1 / (k (1 - h k)): twice the bias.
sgld_wrong_moments = _sgld(StationaryLaw(order=1), StationaryMoments(lambda h, k: {"position": 1 / (k * (1 - h * k))}))

# SGLD with a closed form that agrees to first order only, (1 + h k / 2) / k.
sgld_linearised_moments = _sgld(
    StationaryLaw(order=1), StationaryMoments(lambda h, k: {"position": (1 + h * k / 2) / k})
)

# ULA claims that the target is invariant at every step size.
ula_exact = _sgld(ExactLaw())

# SGLD claims that its step does not change volume with the Hessian; det = det(1 - h Hess U).
sgld_shearing = _sgld(StationaryLaw(order=1), ShearingForce())


def _hot_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return x - h * grad(estimator, k1, x) + 2.0 * jnp.sqrt(2 * h) * _normal(k2, x)


# SGLD claims exp(-U / 2) and multiplies its noise by 2 instead of sqrt(2): T = 4.
sgld_temperature_2 = simple_sampler(_hot_step, claims=Claims(WELLING, StationaryLaw(order=1, temperature=2.0)))


def _exponential_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    noise = jax.random.exponential(k2, x.shape, x.dtype) - 1
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * noise


# Noise with unit variance and skewness 2: claims order 1, has order 1/2 (third moments).
skewed_noise_order_1 = simple_sampler(
    _exponential_step,
    claims=Claims(WELLING, StationaryLaw(order=1), Diffusion(overdamped_dynamics, weak_order=1)),
)


def _midpoint_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    z = _normal(k3, x)
    middle = x - h / 2 * grad(estimator, k1, x) + jnp.sqrt(h / 2) * z
    return x - h * grad(estimator, k2, middle) + jnp.sqrt(2 * h) * z


# Explicit stochastic midpoint claims invariant order 2: true on Gaussians, order 1 elsewhere.
midpoint_order_2 = simple_sampler(
    _midpoint_step, claims=Claims(Source("", "explicit stochastic midpoint"), StationaryLaw(order=2))
)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _momentum_sampler(step, claims):
    return simple_sampler(
        step, init=lambda key, x, estimator: Phase(x, _normal(key, x)), position=lambda s: s.position,
        unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z), claims=claims,
    )


def _sghmc_step(key, state, h, estimator, friction=1.0):
    k1, k2 = jax.random.split(key)
    x, r = state
    r = r - h * grad(estimator, k1, x) - h * friction * r + jnp.sqrt(2 * friction * h) * _normal(k2, x)
    return Phase(x + h * r, r)


# SGHMC with friction 2 claims the Langevin equation with friction 1. (Its law of positions is right.)
sghmc_other_friction = _momentum_sampler(
    lambda key, state, h, e: _sghmc_step(key, state, h, e, 2.0),
    Claims(Source("chen2014stochastic", "(13)"), StationaryLaw(order=1),
           Diffusion(lambda target: langevin_dynamics(target, 1.0), weak_order=1)),
)

# Semi-implicit Euler (SGHMC) claims weak order 2.
sghmc_weak_order_2 = _momentum_sampler(
    _sghmc_step,
    Claims(Source("chen2014stochastic", "(13)"), StationaryLaw(order=1),
           Diffusion(lambda target: langevin_dynamics(target, 1.0), weak_order=2)),
)


def _explicit_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    new = r - h * grad(estimator, k1, x) - 2 * h * r + jnp.sqrt(4 * h) * _normal(k2, x)
    return Phase(x + h * r, new)


# Explicit Euler with friction 2 claims invariant order 2: the variance of positions is 1 / (k (1 - h k / 2)) + O(h^2).
sghmc_explicit_order_2 = _momentum_sampler(_explicit_step, Claims(Source("", ""), StationaryLaw(order=2)))


def _baoab_step(key, state, h, estimator, linear=False):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = state
    c = 1 - h if linear else jnp.exp(-h)
    scale = jnp.sqrt(2 * h) if linear else jnp.sqrt(1 - c**2)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = c * r + scale * _normal(k2, x)
    x = x + h / 2 * r
    return Phase(x, r - h / 2 * grad(estimator, k3, x))


# BAOAB with 1 - h for exp(-h) and sqrt(2 h) noise claims invariant order 2: T = 1 / (1 - h / 2).
baoab_linear_friction_order_2 = _momentum_sampler(
    lambda key, state, h, e: _baoab_step(key, state, h, e, True),
    Claims(Source("leimkuhler2013rational", "BAOAB"), StationaryLaw(order=2)),
)

# BAOAB claims Var r = 1 beside Var x = 1 / k. The second is exact; the first is 1 - h^2 k / 4.
baoab_momentum_exact = _momentum_sampler(
    _baoab_step,
    Claims(Source("leimkuhler2013rational", "BAOAB"), StationaryLaw(order=2),
           StationaryMoments(lambda h, k: {"position": 1 / k, "momentum": 1.0})),
)

# BAOAB claims invariant order 4, which holds in the limit of high friction only (and on Gaussians).
baoab_order_4 = _momentum_sampler(
    _baoab_step, Claims(Source("leimkuhler2013rational", "BAOAB"), StationaryLaw(order=4))
)

# BAOAB claims to be exact for U = 0: A O A is not the exact free motion.
baoab_exact_free_motion = _momentum_sampler(
    _baoab_step,
    Claims(Source("leimkuhler2013rational", "BAOAB"), StationaryLaw(order=2),
           Diffusion(lambda target: langevin_dynamics(target, 1.0), weak_order=2), ExactFreeMotion()),
)


class Carried(NamedTuple):
    position: Any
    noise: Any


def _carried_init(key, x, estimator):
    return Carried(x, _normal(key, x))


def _leimkuhler_matthews_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    z = _normal(k2, state.position)
    x = state.position - h * grad(estimator, k1, state.position) + jnp.sqrt(h / 2) * (state.noise + z)
    return Carried(x, z)


# Leimkuhler-Matthews (right) claims that the noise of successive steps is independent (it carries a draw).
leimkuhler_matthews_independent = simple_sampler(
    _leimkuhler_matthews_step, init=_carried_init, position=lambda s: s.position, unpack=lambda s: s.position,
    pack=_carried_init, claims=Claims(Source("leimkuhler2013rational", ""), StationaryLaw(order=2), IndependentNoise()),
)


class Cached(NamedTuple):
    position: Any
    potential: Any


def _rwm_init(key, x, estimator):
    return Cached(x, estimator.estimate(key, (), x)[0].potential)


def _rwm_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = state.position + jnp.sqrt(h) * _normal(k1, state.position)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jax.random.uniform(k3, ()) < jnp.exp(state.potential - new)
    return Cached(jnp.where(accept, y, state.position), jnp.where(accept, new, state.potential))


# Random walk Metropolis with variance h (exact law) claims the Langevin equation of the time h; it has that of h / 2.
rwm_half_time = simple_sampler(
    _rwm_step, init=_rwm_init, position=lambda s: s.position, unpack=lambda s: s.position, pack=_rwm_init,
    needs=("potential",), claims=Claims(Source("", ""), ExactLaw(), Diffusion(overdamped_dynamics)),
)
