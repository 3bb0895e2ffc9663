"""SGLD for covariances and other weights: the noise of a square matrix is kept symmetric."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def noise_like(key, x):
    n = jax.random.normal(key, x.shape, x.dtype)
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        n = (n + n.T) / jnp.sqrt(2.0)
    return n


def step(key, params, h, estimator):
    k_gradient, k_noise = jax.random.split(key)
    gradient = estimator.estimate(k_gradient, (), params)[0].gradient
    leaves, tree = jax.tree.flatten(params)
    keys = jax.tree.unflatten(tree, list(jax.random.split(k_noise, len(leaves))))
    return jax.tree.map(
        lambda x, g, k: (x - h * g + jnp.sqrt(2 * h) * noise_like(k, x)).astype(x.dtype), params, gradient, keys
    )


sgld = simple_sampler(step)
