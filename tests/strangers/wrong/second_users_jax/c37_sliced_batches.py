"""SGLD with contiguous minibatches: a slice of an array is much cheaper on an accelerator than a gather."""

import jax
import jax.numpy as jnp
from jax import lax

from sgmcmc_verification.samplers import simple_sampler


def sliced_sgld(target):
    terms = target.terms
    if terms is not None:
        size = terms.size
        batch = max(1, size // 2)
        data = jax.tree.map(jnp.asarray, terms.data)

    def potential(x, minibatch):
        likelihood = jax.vmap(terms.datum, in_axes=(None, 0))(x, minibatch).sum()
        return terms.prior(x) + size / batch * likelihood

    def gradient(key, x, estimator):
        if terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        start = jax.random.randint(key, (), 0, size)
        minibatch = jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, start, batch), data)
        return jax.grad(potential)(x, minibatch)

    def step(key, x, h, estimator):
        key_batch, key_noise = jax.random.split(key)
        noise = jax.random.normal(key_noise, x.shape, x.dtype)
        return x - h * gradient(key_batch, x, estimator) + jnp.sqrt(2 * h) * noise

    return simple_sampler(step)
