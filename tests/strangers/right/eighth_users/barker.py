"""Barker proposal (Livingstone and Zanella, 2022) with its Metropolis-Hastings correction."""
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def barker_step(key, position, step_size, estimator):
    k_batch, k_size, k_side, k_accept = jax.random.split(key, 4)
    x, unravel = ravel_pytree(position)

    @jax.jit
    def energy_and_slope(q):
        value = estimator.estimate(k_batch, (), unravel(q))[0]
        return value.potential, ravel_pytree(value.gradient)[0]

    u_x, g_x = energy_and_slope(x)
    z = (jnp.sqrt(2 * step_size) * jax.random.normal(k_size, x.shape, x.dtype)).astype(x.dtype)
    forward = jax.random.uniform(k_side, x.shape, x.dtype) < jax.nn.sigmoid(-z * g_x)
    w = jnp.where(forward, z, -z)
    y = x + w
    u_y, g_y = energy_and_slope(y)
    correction = jnp.sum(jax.nn.softplus(w * g_x) - jax.nn.softplus(-w * g_y))
    ok = jnp.log(jax.random.uniform(k_accept, dtype=x.dtype)) < u_x - u_y + correction
    return unravel(jnp.where(ok, y, x))


barker = simple_sampler(barker_step, claims=Claims(Source("", "own"), ExactLaw()))
