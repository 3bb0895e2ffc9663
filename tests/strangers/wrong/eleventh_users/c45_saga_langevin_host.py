"""SAGA-LD (Dubey et al. 2016): Langevin dynamics with minibatches whose variance is reduced by a table of gradients.

The table holds the last gradient of each datum, and `total` is its sum, kept up to date so that a step costs a batch
and not a sweep over the data.  Rows of a batch are drawn independently and uniformly, which makes

    grad prior + total + N / n * sum_{i in batch} (grad_i(x) - table_i)

unbiased whatever the table holds.
"""

import jax
import numpy as np


class GradientsOfData:
    """Gradients of single terms of the potential, as NumPy arrays."""

    def __init__(self, terms):
        self.size = terms.size
        self._data = jax.tree.map(np.asarray, terms.data)
        self._prior = jax.jit(jax.grad(terms.prior))
        self._rows = jax.jit(jax.vmap(jax.grad(terms.datum), (None, 0)))

    def prior(self, x):
        return np.asarray(self._prior(x))

    def rows(self, x, index):
        return np.asarray(self._rows(x, jax.tree.map(lambda a: a[index], self._data)))


class SagaLangevin:
    backend = "host"

    def __init__(self, target, batch_size=4):
        if batch_size < 1:
            raise ValueError("an empty batch")
        self.batch_size = batch_size
        self.gradients = None if target.terms is None else GradientsOfData(target.terms)

    def init(self, rng, position, estimator):
        x = np.array(position)
        if self.gradients is None:
            return {"position": x}
        table = np.array(self.gradients.rows(x, np.arange(self.gradients.size)))
        return {"position": x, "table": table, "total": table.sum(axis=0)}

    def _estimate(self, rng, state, estimator):
        x = state["position"]
        if self.gradients is None:
            return np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        size, table, total = self.gradients.size, state["table"], state["total"]
        index = rng.integers(size, size=self.batch_size)
        fresh = self.gradients.rows(x, index)
        change = (fresh - table[index]).sum(axis=0)
        estimate = self.gradients.prior(x) + total + size / self.batch_size * change
        table[index] = fresh
        total += change
        return estimate

    def step(self, rng, state, step_size, estimator):
        gradient = self._estimate(rng, state, estimator)
        x = state["position"]
        x -= step_size * gradient
        x += np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
        return state
