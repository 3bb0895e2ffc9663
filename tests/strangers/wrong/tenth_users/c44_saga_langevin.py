"""SAGA Langevin dynamics (Dubey et al. 2016): minibatches with the last gradient of each datum as control variate.

The state keeps one gradient for each datum, and their sum, which is kept up to date instead of being added up in every step: a step
then costs as many gradients as a minibatch has rows, however many data there are.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


class State(NamedTuple):
    position: Any
    table: jax.Array  # (number of data, dimension): the last gradient of each datum
    total: jax.Array  # the sum of the table over the data


def saga_langevin(target, batch_size=4):
    """A sampler of the posterior of `target`; without data it is plain Langevin dynamics."""
    terms = target.terms

    def of_data(position, rows):
        """Gradients of the potential of each of some rows, as a matrix."""
        return jax.vmap(lambda row: ravel_pytree(jax.grad(terms.datum)(position, row))[0])(rows)

    def all_rows():
        return jax.tree.map(jnp.asarray, terms.data)

    def init(key, position, estimator):
        if terms is None:
            empty = jnp.zeros_like(ravel_pytree(position)[0])
            return State(position, empty[None], empty)
        table = of_data(position, all_rows())
        return State(position, table, jnp.sum(table, axis=0))

    def estimate(key, state):
        """The estimated gradient of U, with the table and its sum after the visit."""
        index = jax.random.randint(key, (batch_size,), 0, terms.size)
        batch = jax.tree.map(lambda a: a[index], all_rows())
        new = of_data(state.position, batch)
        change = new - state.table[index]
        prior = ravel_pytree(jax.grad(terms.prior)(state.position))[0]
        gradient = prior + state.total + terms.size / batch_size * jnp.sum(change, axis=0)
        return gradient, state.table.at[index].set(new), state.total + jnp.sum(change, axis=0)

    def step(key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(state.position)
        if terms is None:
            gradient = ravel_pytree(estimator.estimate(batch_key, (), state.position)[0].gradient)[0]
            table, total = state.table, state.total
        else:
            gradient, table, total = estimate(batch_key, state)
        h = jnp.asarray(step_size, x.dtype)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return State(unravel(x - h * gradient + jnp.sqrt(2 * h) * noise), table, total)

    return simple_sampler(step, init=init)
