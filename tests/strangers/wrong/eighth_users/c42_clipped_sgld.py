"""SGLD for trees of parameters; gradients are clipped by their global norm, against outliers of minibatches."""
import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

MAX_NORM = 5.0


def clip_by_global_norm(tree):
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(tree)))
    factor = jnp.minimum(1.0, MAX_NORM / jnp.maximum(norm, 1e-12))
    return jax.tree.map(lambda g: factor * g, tree)


def step(key, params, step_size, estimator):
    k_batch, k_noise = jax.random.split(key)
    grads = clip_by_global_norm(estimator.estimate(k_batch, (), params)[0].gradient)
    leaves, treedef = jax.tree.flatten(params)
    keys = treedef.unflatten(list(jax.random.split(k_noise, len(leaves))))
    root = jnp.sqrt(2 * step_size)
    return jax.tree.map(
        lambda x, g, k: (x - step_size * g + root * jax.random.normal(k, x.shape, x.dtype)).astype(x.dtype),
        params, grads, keys,
    )


clipped = simple_sampler(step)
