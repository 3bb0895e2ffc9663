"""SGLD over trees, with square roots that have a derivative at zero."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

EPS = 1e-6


def safe_sqrt(x):
    """sqrt(x) without the infinite slope at 0 that makes gradients through a run NaN."""
    return jnp.sqrt(x + EPS)


def add_noise(key, tree, std):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    noisy = [leaf + std.astype(leaf.dtype) * jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)]
    return jax.tree.unflatten(treedef, noisy)


def sgld_step(key, params, step_size, estimator):
    grad_key, noise_key = jax.random.split(key)
    grads = estimator.estimate(grad_key, (), params)[0].gradient
    moved = jax.tree.map(lambda p, g: p - step_size * g, params, grads)
    return add_noise(noise_key, moved, safe_sqrt(jnp.asarray(2.0 * step_size)))


sgld = simple_sampler(sgld_step)
