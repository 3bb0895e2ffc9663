"""SGLD that goes through its data in epochs, in NumPy.

At the start of an epoch the rows are put into a new random order, and each step takes the next batch of that order, as
a data loader with `shuffle=True` does. The gradient of the potential is estimated by that of the prior plus that of
the batch, scaled up to all rows; steps are those of Welling and Teh (2011).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


class State(NamedTuple):
    position: np.ndarray
    order: np.ndarray
    cursor: int


@partial(jax.jit, static_argnums=0)
def _gradient_of_prior(prior, x):
    return jax.grad(prior)(x)


@partial(jax.jit, static_argnums=0)
def _gradient_of_batch(datum, x, batch):
    return jax.grad(lambda q: jnp.sum(jax.vmap(datum, (None, 0))(q, batch)))(x)


class EpochGradient:
    """Gradients of the summed potential, from batches of the rows of a target."""

    def __init__(self, terms, batch_size):
        self.terms = terms
        self.size = terms.size
        self.batch_size = min(batch_size, terms.size)
        self.scale = self.size / self.batch_size
        self.rows = jax.tree.map(np.asarray, terms.data)

    def __call__(self, x, index):
        batch = jax.tree.map(lambda a: a[index], self.rows)
        of_prior = np.asarray(_gradient_of_prior(self.terms.prior, x))
        of_batch = np.asarray(_gradient_of_batch(self.terms.datum, x, batch))
        return of_prior + self.scale * of_batch


def epoch_sgld(target, batch_size=4):
    """SGLD on a target, with batches of `batch_size` rows; exact gradients where the target has no data."""
    if batch_size < 1:
        raise ValueError("batch_size is at least 1")
    gradient = None if target.terms is None else EpochGradient(target.terms, batch_size)

    def init(rng, position, estimator):
        x = np.array(position)
        if gradient is None:
            return State(x, np.arange(0), 0)
        return State(x, rng.permutation(gradient.size), 0)

    def step(rng, state, step_size, estimator):
        x, order, cursor = state
        if gradient is None:
            slope = estimator.estimate(rng, (), x)[0].gradient
        else:
            if cursor >= len(order):
                order, cursor = rng.permutation(gradient.size), 0
            slope = gradient(x, order[cursor : cursor + gradient.batch_size])
            cursor += gradient.batch_size
        noise = rng.standard_normal(x.shape)
        return State(x - step_size * slope + np.sqrt(2 * step_size) * noise, order, cursor)

    return simple_sampler(step, init=init, backend="host")
