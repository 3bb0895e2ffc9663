"""Elliptical slice sampling (Murray et al. 2010). The prior of all my models is N(0, 2^2); the rest of U is the likelihood."""

import math

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

PRIOR_STD = 2.0


def ess(key, f, step_size, estimator):
    del step_size  # there is none
    k_nu, k_u, k_theta, k_loop, k_batch = jax.random.split(key, 5)
    x, unravel = ravel_pytree(f)

    def loglik(z):
        u = estimator.estimate(k_batch, (), unravel(z))[0].potential
        return -u + 0.5 * jnp.sum(z**2) / PRIOR_STD**2

    nu = PRIOR_STD * jax.random.normal(k_nu, x.shape, x.dtype)
    log_y = loglik(x) + jnp.log(jax.random.uniform(k_u, (), x.dtype))
    theta = jax.random.uniform(k_theta, (), x.dtype, maxval=2 * math.pi)

    def on_ellipse(t):
        return x * jnp.cos(t) + nu * jnp.sin(t)

    def below(carry):
        _, theta, _, _ = carry
        return loglik(on_ellipse(theta)) <= log_y

    def shrink(carry):
        k, theta, lo, hi = carry
        lo = jnp.where(theta < 0, theta, lo)
        hi = jnp.where(theta < 0, hi, theta)
        k, sub = jax.random.split(k)
        theta = jax.random.uniform(sub, (), x.dtype, minval=lo, maxval=hi)
        return k, theta, lo, hi

    _, theta, _, _ = jax.lax.while_loop(below, shrink, (k_loop, theta, theta - 2 * math.pi, theta))
    return unravel(on_ellipse(theta))


elliptical = simple_sampler(ess, claims=Claims(Source("", "own"), ExactLaw()))
