"""Elliptical slice sampling (Murray et al., 2010) with a pseudo-prior N(0, SCALE^2): exp(-U) is it times a "likelihood"."""
import math

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

SCALE = 1.5


def elliptical(key, position, step_size, estimator):  # there is no step size to tune
    x, unravel = ravel_pytree(position)
    k_batch, k_ellipse, k_level, k_angle, k_shrink = jax.random.split(key, 5)

    def log_likelihood(q):
        return jnp.sum(q**2) / (2 * SCALE**2) - estimator.estimate(k_batch, (), unravel(q))[0].potential

    nu = SCALE * jax.random.normal(k_ellipse, x.shape, x.dtype)
    level = log_likelihood(x) + jnp.log(jax.random.uniform(k_level, dtype=x.dtype))
    on_ellipse = lambda t: x * jnp.cos(t) + nu * jnp.sin(t)
    theta = 2 * math.pi * jax.random.uniform(k_angle, dtype=x.dtype)

    def outside(carry):
        return log_likelihood(on_ellipse(carry[1])) < level

    def shrink(carry):
        k, t, low, high = carry
        k, now = jax.random.split(k)
        low, high = jnp.where(t < 0, t, low), jnp.where(t < 0, high, t)
        return k, low + (high - low) * jax.random.uniform(now, dtype=x.dtype), low, high

    carry = jax.lax.while_loop(outside, shrink, (k_shrink, theta, theta - 2 * math.pi, theta))
    return unravel(on_ellipse(carry[1]))


slice_sampler = simple_sampler(elliptical, claims=Claims(Source("", "own"), ExactLaw()))
