import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def step(key, x, h, estimator):
    kg, ki, kn = jax.random.split(key, 3)
    g = estimator.estimate(kg, (), x)[0].gradient
    i = jax.random.randint(ki, (), 0, x.shape[0])
    return x.at[i].add(-h * g[i] + jnp.sqrt(2 * h) * jax.random.normal(kn, x.shape[1:], x.dtype))


one_at_a_time = simple_sampler(lambda key, x, h, e: step(key, x, h, e))
