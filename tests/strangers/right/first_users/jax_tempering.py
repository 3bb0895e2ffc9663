import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

BETA = 0.5  # of the hot chain


def init(key, position, estimator):
    return {"cold": position, "hot": position}


def step(key, state, h, estimator):
    ku, kc, kh, ks = jax.random.split(key, 4)
    U = lambda x: estimator.estimate(ku, (), x)[0].potential

    def walk(k, x, beta):
        k1, k2 = jax.random.split(k)
        y = x + jnp.sqrt(2 * h / beta) * jax.random.normal(k1, x.shape, x.dtype)
        return jnp.where(jnp.log(jax.random.uniform(k2, dtype=x.dtype)) < beta * (U(x) - U(y)), y, x)

    cold, hot = walk(kc, state["cold"], 1.0), walk(kh, state["hot"], BETA)
    swap = jnp.log(jax.random.uniform(ks, dtype=cold.dtype)) < (1 - BETA) * (U(cold) - U(hot))
    return {"cold": jnp.where(swap, hot, cold), "hot": jnp.where(swap, cold, hot)}


tempering = simple_sampler(step, init=init, position=lambda state: state["cold"])
