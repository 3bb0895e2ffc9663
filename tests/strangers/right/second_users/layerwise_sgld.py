"""SGLD for the MLPs of the paper: params is a dict of layers {"w": ..., "b": ...}, weights get half the learning rate."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

LR_MULT_WEIGHT = 0.5
LR_MULT_BIAS = 1.0


def lr_mult(p):
    # kernels are matrices, biases (and everything else) vectors
    return LR_MULT_WEIGHT if p.ndim >= 2 else LR_MULT_BIAS


def noise_like(rng, params):
    leaves, treedef = jax.tree.flatten(params)
    rngs = jax.random.split(rng, len(leaves))
    noise = [jax.random.normal(r, p.shape, p.dtype) for r, p in zip(rngs, leaves)]
    return jax.tree.unflatten(treedef, noise)


def train_step(rng, params, lr, estimator):
    rng_data, rng_noise = jax.random.split(rng)
    grads = estimator.estimate(rng_data, (), params)[0].gradient

    def update(p, g, n):
        eta = lr * lr_mult(p)
        return p - eta * g + jnp.sqrt(2.0 * eta) * n

    return jax.tree.map(update, params, grads, noise_like(rng_noise, params))


layerwise_sgld = simple_sampler(train_step)
