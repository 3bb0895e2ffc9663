"""SAGA Langevin dynamics (Dubey et al., 2016): SGLD with a table of the last gradient of each datum.

    g = prior'(x) + total + N/n sum_{i in batch} (l_i'(x) - table_i),     total = sum_i table_i

after which the rows of the batch are replaced by the new gradients.  `total` is carried along, so that a step costs n gradients.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


class SagaState(NamedTuple):
    position: Any
    table: Any  # the tree of a position with a leading axis of length N
    total: Any


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def saga_langevin(target, batch_size=4):
    terms = target.terms
    if terms is not None:
        data = jax.tree.map(jnp.asarray, terms.data)
        size, batch = terms.size, min(batch_size, terms.size)
        per_datum = jax.vmap(jax.grad(terms.datum), (None, 0))

    def init(key, position, estimator):
        if terms is None:
            return SagaState(position, None, None)
        table = per_datum(position, data)
        return SagaState(position, table, jax.tree.map(lambda a: a.sum(0), table))

    def draw(key):
        return jax.random.randint(key, (batch,), 0, size)

    def gradient_and_memory(key, state):
        x, table, total = state
        index = draw(key)
        new = per_datum(x, jax.tree.map(lambda a: a[index], data))
        change = jax.tree.map(lambda a, b: jnp.sum(a - b[index], 0), new, table)
        gradient = jax.tree.map(
            lambda prior, whole, part: prior + whole + size / batch * part, jax.grad(terms.prior)(x), total, change
        )
        table = jax.tree.map(lambda b, a: b.at[index].set(a), table, new)
        total = jax.tree.map(jnp.add, total, change)
        return gradient, table, total

    def step(key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        if terms is None:
            gradient, table, total = estimator.estimate(batch_key, (), state.position)[0].gradient, None, None
        else:
            gradient, table, total = gradient_and_memory(batch_key, state)
        noise = normal_like(noise_key, state.position)
        moved = jax.tree.map(
            lambda x, g, n: x - step_size * g + jnp.sqrt(2 * step_size) * n, state.position, gradient, noise
        )
        return SagaState(moved, table, total)

    return simple_sampler(step, init=init)
