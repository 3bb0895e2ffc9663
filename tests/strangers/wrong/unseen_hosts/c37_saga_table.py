"""SAGA-LD: a table of the gradient of each datum takes most of the variance out of a minibatch."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.types import Estimator, Position, Sampler
from sgmcmc_verification.targets.target import Target


class Table(NamedTuple):
    """Position, the last gradient that was seen of each datum (N, d), and their sum (d,)."""

    position: Position
    rows: jax.Array
    total: jax.Array


def saga(target: Target, batch_size: int = 2) -> Sampler:
    """SGLD with SAGA's gradient; without data it is plain SGLD."""
    terms = target.terms
    size = 0 if terms is None else min(batch_size, terms.size)

    def rows_at(position: Position, batch: Position) -> jax.Array:
        return jax.vmap(lambda datum: ravel_pytree(jax.grad(terms.datum)(position, datum))[0])(batch)

    def init(key: jax.Array, position: Position, estimator: Estimator) -> Table:
        del key, estimator
        x = ravel_pytree(position)[0]
        if terms is None:
            return Table(position, jnp.zeros((0, x.size), x.dtype), jnp.zeros_like(x))
        rows = rows_at(position, jax.tree.map(jnp.asarray, terms.data))
        return Table(position, rows, rows.sum(axis=0))

    def step(key: jax.Array, state: Table, step_size: float, estimator: Estimator) -> Table:
        batch_key, noise_key = jax.random.split(key)
        position, rows, total = state
        x, unravel = ravel_pytree(position)
        if terms is None:
            slope = ravel_pytree(estimator.estimate(batch_key, (), position)[0].gradient)[0]
        else:
            indices = jax.random.choice(batch_key, terms.size, (size,), replace=False)
            fresh = rows_at(position, jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data))
            change = jnp.mean(fresh - rows[indices], axis=0)
            slope = ravel_pytree(jax.grad(terms.prior)(position))[0] + total + terms.size * change
            rows, total = rows.at[indices].set(fresh), total + change
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return Table(unravel(x - step_size * slope + jnp.sqrt(2 * step_size) * noise), rows, total)

    return simple_sampler(step, init=init)
