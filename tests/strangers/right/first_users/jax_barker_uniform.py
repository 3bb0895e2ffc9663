import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def step(key, x, step_size, estimator):
    gradient_key, size_key, sign_key = jax.random.split(key, 3)
    g = estimator.estimate(gradient_key, (), x)[0].gradient
    # uniform moves of variance 2 h
    z = jnp.sqrt(6 * step_size) * jax.random.uniform(size_key, x.shape, x.dtype, -1, 1)
    forward = jax.random.uniform(sign_key, x.shape, x.dtype) < jax.nn.sigmoid(-z * g)
    return x + jnp.where(forward, z, -z)


barker = simple_sampler(step)
