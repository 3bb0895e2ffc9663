"""Stochastic gradient Langevin dynamics with loopless variance reduction (L-SVRG).

The gradient is that at an anchor, over all data, plus a minibatch estimate of the difference. In each step the anchor
moves to the present position with probability `refresh`, after it was used: there is no outer loop and no clock. A
minibatch is a cyclic window of the data at a uniform offset, in which each datum is with the same probability.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


class Anchored(NamedTuple):
    position: Any
    anchor: Any
    anchor_slope: Any  # of the data term at the anchor, summed over all data


def window(key, size, batch):
    """Indices of `batch` neighbours among `size` data, the last followed by the first."""
    return (jax.random.randint(key, (), 0, size) + jnp.arange(batch)) % size


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def loopless_svrg(target, batch=3, refresh=0.2):
    if not (batch >= 1 and 0 < refresh <= 1):
        raise ValueError("batch is a positive number, refresh a probability above 0")
    terms = target.terms

    def data_slope(x, rows):
        return jax.grad(lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows)))(x)

    def full(x):
        if terms is None:
            return jax.tree.map(jnp.zeros_like, x)
        return data_slope(x, jax.tree.map(jnp.asarray, terms.data))

    def gradient(key, state, estimator):
        x = state.position
        if terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        count = min(batch, terms.size)
        index = window(key, terms.size, count)
        rows = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
        scale = terms.size / count
        return jax.tree.map(
            lambda prior, base, here, there: prior + base + scale * (here - there),
            jax.grad(terms.prior)(x),
            state.anchor_slope,
            data_slope(x, rows),
            data_slope(state.anchor, rows),
        )

    def init(key, position, estimator):
        return Anchored(position, position, full(position))

    def step(key, state, step_size, estimator):
        batch_key, noise_key, coin_key = jax.random.split(key, 3)

        def move(x, g, xi):
            h = jnp.asarray(step_size, x.dtype)
            return x - h * g + jnp.sqrt(2 * h) * xi

        x = state.position
        new = jax.tree.map(move, x, gradient(batch_key, state, estimator), normal_like(noise_key, x))
        anchor, slope = jax.lax.cond(
            jax.random.bernoulli(coin_key, refresh),
            lambda: (x, full(x)),
            lambda: (state.anchor, state.anchor_slope),
        )
        return Anchored(new, anchor, slope)

    return simple_sampler(step, init=init)
