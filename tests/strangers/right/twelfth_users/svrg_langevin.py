"""Langevin dynamics with variance-reduced minibatches (SVRG-LD), NumPy outside and JAX for the gradients of the model.

The gradient of a batch is corrected by the gradient of the same batch at an anchor, whose full gradient is known:

    v = grad prior(x) + full(a) + N / n * sum over the batch of (grad datum(x) - grad datum(a))

The anchor follows the chain loopless: after each step it is set to the new position with a small probability, independent of everything
else, instead of at the end of an inner loop.
"""

from typing import NamedTuple

import jax
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


class Chain(NamedTuple):
    position: np.ndarray
    anchor: np.ndarray
    full: np.ndarray  # sum of the gradients of all data at the anchor, without the prior


def svrg_langevin(target, batch_size=4, refresh=0.1):
    """SVRG-LD on the data of a target; a target without data is asked for its gradient."""
    if batch_size < 1:
        raise ValueError("a batch has at least one row")
    if not 0 < refresh <= 1:
        raise ValueError("refresh is a probability")
    terms = target.terms

    if terms is not None:
        prior_gradient = jax.jit(jax.grad(terms.prior))
        per_row = jax.vmap(jax.grad(terms.datum), (None, 0))
        batch_sum = jax.jit(lambda x, rows: per_row(x, rows).sum(0))
        data = jax.tree.map(np.asarray, terms.data)

        def rows_of(index):
            return jax.tree.map(lambda a: a[index], data)

        def full_gradient(x):
            return np.array(batch_sum(x, data))

    def init(rng, position, estimator):
        x = np.array(position)
        return Chain(x, x.copy(), np.zeros_like(x) if terms is None else full_gradient(x))

    def slope(rng, state, estimator):
        if terms is None:
            return np.asarray(estimator.estimate(rng, (), state.position)[0].gradient)
        n = min(batch_size, terms.size)
        rows = rows_of(rng.choice(terms.size, size=n, replace=False))
        change = np.asarray(batch_sum(state.position, rows)) - np.asarray(batch_sum(state.anchor, rows))
        return np.asarray(prior_gradient(state.position)) + state.full + terms.size / n * change

    def step(rng, state, h, estimator):
        drift = slope(rng, state, estimator)
        x = state.position - h * drift + np.sqrt(2 * h) * rng.standard_normal(state.position.shape)
        if terms is not None and rng.random() < refresh:
            return Chain(x, x.copy(), full_gradient(x))
        return Chain(x, state.anchor, state.full)

    return simple_sampler(step, init=init, backend="host")
