"""SGLD over a data set that is read in order, batch after batch, epoch after epoch.

The rows are assumed to be shuffled on disk; reading contiguous slices is much faster on an accelerator than gathering random
rows.  The last batch of an epoch is filled up where the number of rows is no multiple of the batch size, since slices
need a static size.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


class LoaderState(NamedTuple):
    position: jax.Array
    cursor: jax.Array  # number of the next batch in its epoch


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def take_batch(data, number, batch):
    """Rows number * batch, ..., a slice of static size."""
    return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(jnp.asarray(a), number * batch, batch), data)


def sequential_sgld(target, batch_size=4):
    """SGLD of `target`, x' = x - h g + N(0, 2 h)."""
    terms = target.terms
    if terms is not None:
        batch = min(batch_size, terms.size)
        batches = -(-terms.size // batch)

    def init(key, position, estimator):
        return LoaderState(position, jnp.zeros((), jnp.int32))

    def data_gradient(x, rows):
        of_rows = lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows))
        return jax.grad(of_rows)(x)

    def step(key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, cursor = state
        if terms is None:
            gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        else:
            data_part = data_gradient(x, take_batch(terms.data, cursor, batch))
            scale = terms.size / batch
            gradient = jax.tree.map(lambda a, b: a + scale * b, jax.grad(terms.prior)(x), data_part)
            cursor = (cursor + 1) % batches
        noise = normal_like(noise_key, x)
        x = jax.tree.map(lambda a, g, n: a - step_size * g + jnp.sqrt(2 * step_size) * n, x, gradient, noise)
        return LoaderState(x, cursor)

    return simple_sampler(step, init=init)
