"""Random walk Metropolis, with a global move now and then so that the chain does not stay in one mode."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

P_GLOBAL = 0.05
GLOBAL_SCALE = 3.0


def local_move(key, x, h):
    return x + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def global_move(key, x, h):
    return GLOBAL_SCALE * jax.random.normal(key, x.shape, x.dtype)


def step(key, x, h, estimator):
    kind_key, move_key, accept_key, batch_key = jax.random.split(key, 4)
    is_global = jax.random.bernoulli(kind_key, P_GLOBAL)
    y = jax.lax.cond(is_global, global_move, local_move, move_key, x, h)
    u_x = estimator.estimate(batch_key, (), x)[0].potential
    u_y = estimator.estimate(batch_key, (), y)[0].potential
    accept = jax.random.uniform(accept_key) < jnp.exp(jnp.minimum(u_x - u_y, 0.0))
    return jax.lax.cond(accept, lambda: y, lambda: x)


global_local = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
