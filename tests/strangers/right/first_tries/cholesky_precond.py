import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def step(key, params, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grads = estimator.estimate(grad_key, (), params)[0].gradient
    flat, unravel = ravel_pytree(params)
    g, _ = ravel_pytree(grads)
    d = flat.size
    # a fixed positive definite matrix, 0.5 on the diagonal and 0.2 beside it
    beside = jnp.eye(d, k=1, dtype=flat.dtype) + jnp.eye(d, k=-1, dtype=flat.dtype)
    C = 0.5 * jnp.eye(d, dtype=flat.dtype) + 0.2 * beside
    noise = jax.random.multivariate_normal(noise_key, jnp.zeros(d, flat.dtype), C, dtype=flat.dtype)
    return unravel(flat - step_size * C @ g + jnp.sqrt(2 * step_size) * noise)


preconditioned = simple_sampler(step)
