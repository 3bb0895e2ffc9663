"""SAGA-LD (Dubey et al., 2016): Langevin dynamics with the variance of its minibatches reduced, in NumPy.

A table keeps the last gradient of each datum, and `total` the sum of its rows. With a batch S of n rows

    gradient = prior'(x) + total + N / n * sum over S of (datum'(x) - table row),

after which the rows of S and the total are renewed. Without data the gradient of the estimator is taken.
"""

import jax
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


class Table:
    """The gradients of single data where each was last seen, and their sum."""

    def __init__(self, rows, total):
        self.rows = rows
        self.total = total

    @classmethod
    def at(cls, x, gradients, data):
        rows = np.array(gradients(x, data))
        return cls(rows, rows.sum(0))

    def renew(self, index, fresh):
        """Put fresh gradients into the table; what the total has changed by is returned."""
        change = (fresh - self.rows[index]).sum(0)
        self.rows[index] = fresh
        self.total = self.total + change
        return change


def rows_of(data, index):
    return jax.tree.map(lambda column: np.asarray(column)[index], data)


def saga_langevin(target, batch_size=4):
    if batch_size < 1:
        raise ValueError("batch_size must be at least 1")
    terms = target.terms
    if terms is not None:
        prior_gradient = jax.jit(jax.grad(terms.prior))
        gradients = jax.jit(jax.vmap(jax.grad(terms.datum), (None, 0)))

    def init(rng, position, estimator):
        x = np.array(position)
        return {"position": x, "table": None if terms is None else Table.at(x, gradients, terms.data)}

    def slope(rng, x, table, estimator):
        if table is None:
            return estimator.estimate(rng, (), x)[0].gradient
        index = rng.integers(terms.size, size=batch_size)
        fresh = np.asarray(gradients(x, rows_of(terms.data, index)))
        before = table.total
        change = table.renew(index, fresh)
        return np.asarray(prior_gradient(x)) + before + terms.size / batch_size * change

    def step(rng, state, step_size, estimator):
        x = state["position"]
        drift = slope(rng, x, state["table"], estimator)
        noise = np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
        return {"position": x - step_size * drift + noise, "table": state["table"]}

    return simple_sampler(step, init=init, backend="host")
