"""SGLD with contiguous minibatches out of a table of indices; the table is padded so that it has full rows."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

BATCH_SIZE = 4


def index_table(size):
    rows = -(-size // BATCH_SIZE)
    return jnp.resize(jnp.arange(size), (rows, BATCH_SIZE))


def sgld(target):
    terms = target.terms
    table = None if terms is None else index_table(terms.size)

    def minibatch_gradient(key, x):
        row = jax.random.randint(key, (), 0, table.shape[0])
        batch = jax.tree.map(lambda a: jnp.asarray(a)[table[row]], terms.data)
        likelihood = lambda q: jnp.sum(jax.vmap(terms.datum, in_axes=(None, 0))(q, batch))
        scale = terms.size / BATCH_SIZE
        return jax.tree.map(lambda p, l: p + scale * l, jax.grad(terms.prior)(x), jax.grad(likelihood)(x))

    def step(key, x, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        if terms is None:
            gradient = estimator.estimate(batch_key, (), x)[0].gradient
        else:
            gradient = minibatch_gradient(batch_key, x)
        return x - h * gradient + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)

    return simple_sampler(step)
