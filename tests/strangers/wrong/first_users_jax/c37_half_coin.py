"""Random-walk Metropolis; the uniform is drawn in bfloat16, as everything in our training code."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(key, x, h, estimator):
    k_move, k_old, k_new, k_coin = jax.random.split(key, 4)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k_move, x.shape, x.dtype)
    u_x = estimator.estimate(k_old, (), x)[0].potential
    u_y = estimator.estimate(k_new, (), y)[0].potential
    coin = jax.random.uniform(k_coin, dtype=jnp.bfloat16)
    return jnp.where(coin.astype(x.dtype) < jnp.exp(u_x - u_y), y, x)


walk = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
