"""Proposals that keep a Gaussian prior, for Bayesian inverse problems."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())
PRIOR_SCALE, TRIES = 3.0, 40


def pcn_step(key, position, step_size, estimator):
    """Preconditioned Crank-Nicolson with the prior N(0, 9 I)."""
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, unravel = ravel_pytree(position)
    rho = jnp.exp(-jnp.asarray(step_size, x.dtype) / PRIOR_SCALE**2)
    y = rho * x + PRIOR_SCALE * jnp.sqrt(1 - rho**2) * jax.random.normal(k1, x.shape, x.dtype)
    old = estimator.estimate(k2, (), position)[0].potential
    new = estimator.estimate(k3, (), unravel(y))[0].potential
    accept = jnp.log(jax.random.uniform(k4, (), x.dtype)) < old - new
    return unravel(jnp.where(accept, y, x))


def elliptical_step(key, position, step_size, estimator):
    """Elliptical slice sampling; the reference measure is N(0, step_size I)."""
    noise_key, level_key, angle_key, data_key = jax.random.split(key, 4)
    x, unravel = ravel_pytree(position)
    variance = jnp.asarray(step_size, x.dtype)
    nu = jnp.sqrt(variance) * jax.random.normal(noise_key, x.shape, x.dtype)
    shares = jax.random.uniform(angle_key, (TRIES,), x.dtype)

    def misfit(y):
        return estimator.estimate(data_key, (), unravel(y))[0].potential - y @ y / (2 * variance)

    level = misfit(x) + jax.random.exponential(level_key, (), x.dtype)
    point = lambda angle: x * jnp.cos(angle) + nu * jnp.sin(angle)

    def shrink(carry):
        i, low, high, angle = carry
        low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
        return i + 1, low, high, low + (high - low) * shares[i]

    full = jnp.asarray(2 * jnp.pi, x.dtype)
    start = (1, jnp.zeros_like(full), full, full * shares[0])
    outside = lambda carry: (carry[0] < TRIES) & ~(misfit(point(carry[3])) <= level)
    y = point(jax.lax.while_loop(outside, shrink, start)[3])
    return unravel(jnp.where(misfit(y) <= level, y, x))


pcn = simple_sampler(pcn_step, claims=EXACT)
elliptical = simple_sampler(elliptical_step, claims=EXACT)
