"""SGLD on parameters of a transformer: embeddings take no noise, their rows are too rarely visited."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def step(key, params, h, estimator):
    k_gradient, k_noise = jax.random.split(key)
    gradient = estimator.estimate(k_gradient, (), params)[0].gradient
    paths, tree = jax.tree_util.tree_flatten_with_path(params)
    keys = jax.tree.unflatten(tree, list(jax.random.split(k_noise, len(paths))))

    def move(path, x, g, k):
        scale = 0.0 if "embed" in jax.tree_util.keystr(path).lower() else 1.0
        return (x - h * g + scale * jnp.sqrt(2 * h) * jax.random.normal(k, x.shape, x.dtype)).astype(x.dtype)

    return jax.tree_util.tree_map_with_path(move, params, gradient, keys)


sgld = simple_sampler(step)
