"""Samplers of positive coordinates, densities with respect to Lebesgue measure: mirrored walks and HMC, walks and
Langevin steps of the logarithm (with its Jacobian), gamma proposals, and the mirrored Riemannian SGLD of
Patterson and Teh. The Metropolis ones are exact; the others err by O(h)."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Composite, Diffusion, ExactLaw, Reversal, Source, StationaryLaw

POSITIVE = ("positive",)
EXACT = Claims(Source("", "Metropolis of positive numbers"), ExactLaw(), spaces=POSITIVE)


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _estimate(estimator, key, x):
    estimate = estimator.estimate(key, (), x)[0]
    return estimate.potential, estimate.gradient


def _mirrored_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = jnp.abs(x + jnp.sqrt(2 * h) * _normal(k1, x))
    log_ratio = _estimate(estimator, k2, x)[0] - _estimate(estimator, k3, y)[0]
    return jnp.where(jnp.log(jax.random.uniform(k4, dtype=x.dtype)) < log_ratio, y, x)


# Random walk reflected at zero: q(x, y) = phi(y - x) + phi(y + x) is symmetric.
mirrored_walk = simple_sampler(
    _mirrored_walk,
    needs=("potential",),
    claims=Claims(Source("", "reflected walk"), ExactLaw(), Reversal(lambda z: z), spaces=POSITIVE),
)


def _log_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    z = jnp.sqrt(2 * h) * _normal(k1, x)
    y = x * jnp.exp(z)
    log_ratio = _estimate(estimator, k2, x)[0] - _estimate(estimator, k3, y)[0] + jnp.sum(z)
    return jnp.where(jax.random.bernoulli(k4, jnp.exp(jnp.minimum(log_ratio, 0.0))), y, x)


# Random walk of log x, with the Jacobian prod y / x.
log_walk = simple_sampler(_log_walk, needs=("potential",), claims=EXACT)


def _log_gradient(estimator, key, x):
    """Potential and gradient of log x: U - sum log x, x grad U - 1."""
    U, g = _estimate(estimator, key, x)
    return U - jnp.sum(jnp.log(x)), x * g - 1


def _log_mala(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    a = jnp.log(x)
    U, g = _log_gradient(estimator, k1, x)
    b = a - h * g + jnp.sqrt(2 * h) * _normal(k2, x)
    y = jnp.exp(b)
    V, f = _log_gradient(estimator, k3, y)
    log_ratio = U - V + (jnp.sum((b - a + h * g) ** 2) - jnp.sum((a - b + h * f) ** 2)) / (4 * h)
    return jnp.where(-jax.random.exponential(k4, dtype=x.dtype) < log_ratio, y, x)


# MALA of log x.
log_mala = simple_sampler(_log_mala, needs=("gradient", "potential"), claims=EXACT)


def _log_langevin(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    drift = 1 - x * estimator.estimate(k1, (), x)[0].gradient
    return x * jnp.exp(h * drift + jnp.sqrt(2 * h) * _normal(k2, x))


# SGLD of log x with the Jacobian in the drift.
log_langevin = simple_sampler(
    _log_langevin, claims=Claims(Source("", "SGLD of logarithms"), StationaryLaw(order=1), spaces=POSITIVE)
)


def _mirrored_sgrld(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    drift = 1 - x * estimator.estimate(k1, (), x)[0].gradient
    return jnp.abs(x + h * drift + jnp.sqrt(2 * h * x) * _normal(k2, x))


# Riemannian SGLD with D = diag(x), Gamma = 1, mirrored at zero (Patterson and Teh's expanded mean).
mirrored_sgrld = simple_sampler(
    _mirrored_sgrld, claims=Claims(Source("patterson2013stochastic", "section 4"), StationaryLaw(), spaces=POSITIVE)
)


def _square_root_diffusion(target):
    n = target.size
    return Dynamics(target.flat_potential, jnp.diag, lambda z: jnp.zeros((n, n), z.dtype), coordinate_names(n), n)


# The same with its equation claimed.
mirrored_sgrld_claimed = simple_sampler(
    _mirrored_sgrld,
    claims=Claims(
        Source("patterson2013stochastic", "section 4"),
        StationaryLaw(),
        Diffusion(_square_root_diffusion, weak_order=1),
        conditions=("exact gradient", "density bounded at the boundary"),
        spaces=POSITIVE,
    ),
)


def _mirrored_hmc(key, x, h, estimator, num_steps=3):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    r = _normal(k1, x)

    def leapfrog(carry, key):
        y, s = carry
        a, b = jax.random.split(key)
        s = s - h / 2 * _estimate(estimator, a, y)[1]
        y = y + h * s
        s, y = jnp.where(y < 0, -s, s), jnp.abs(y)
        return (y, s - h / 2 * _estimate(estimator, b, y)[1]), None

    (y, s), _ = jax.lax.scan(leapfrog, (x, r), jax.random.split(k2, num_steps))
    before = _estimate(estimator, k3, x)[0] + 0.5 * jnp.sum(r * r)
    after = _estimate(estimator, k4, y)[0] + 0.5 * jnp.sum(s * s)
    return jnp.where(jax.random.uniform(k5, dtype=x.dtype) < jnp.exp(before - after), y, x)


# HMC with reflections at zero (Neal, section 5.5.1).
mirrored_hmc = simple_sampler(
    _mirrored_hmc,
    needs=("gradient", "potential"),
    claims=Claims(Source("neal2011mcmc", "section 5.5.1"), ExactLaw(), Composite(), spaces=POSITIVE),
)


def _gamma_walk(rng, x, step_size, estimator):
    x = np.asarray(x)
    k = 1 + 1 / (2 * step_size)
    y = rng.gamma(k, x / k).astype(x.dtype)
    U, V = (float(estimator.estimate(estimator_key(rng, estimator), (), z)[0].potential) for z in (x, y))
    log_q = lambda start, end: np.sum((k - 1) * np.log(end) - k * end / start - k * np.log(start))
    log_ratio = U - V + log_q(y, x) - log_q(x, y)
    return y if np.log(rng.random()) < log_ratio else x


# Host: a gamma proposal of mean x, with the ratio of its densities.
gamma_walk = simple_sampler(_gamma_walk, needs=("potential",), backend="host", claims=EXACT)
