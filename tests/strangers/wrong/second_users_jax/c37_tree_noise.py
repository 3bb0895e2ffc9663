import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def normal_like(key, tree):
    """Standard normal numbers in the shape of a tree; every leaf gets a key of its own."""
    return jax.tree.map(lambda leaf: jax.random.normal(jax.random.fold_in(key, leaf.size), leaf.shape, leaf.dtype), tree)


def make_sgld():
    def step(rng, params, lr, estimator):
        rng_batch, rng_noise = jax.random.split(rng)
        grads = estimator.estimate(rng_batch, (), params)[0].gradient
        noise = normal_like(rng_noise, params)
        return jax.tree.map(lambda p, g, n: p - lr * g + jnp.sqrt(2 * lr) * n, params, grads, noise)

    return simple_sampler(step)


sgld = make_sgld()
