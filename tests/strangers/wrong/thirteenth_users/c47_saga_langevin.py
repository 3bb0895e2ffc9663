"""Langevin dynamics with SAGA gradients (Dubey et al., NeurIPS 2016).

A table holds the last gradient that was seen of each datum, and their sum is kept beside it. A step looks at `batch_size` data, and
estimates the gradient by

    grad U_0(x) + total + (N / n) sum_{i in batch} (grad L_i(x) - table_i),

which costs n gradients and has a variance that falls with the distance to the points of the table.
"""

import jax
import jax.numpy as jnp
import numpy as np


class SagaLangevin:
    backend = "host"

    def __init__(self, target, batch_size=4):
        if batch_size < 1:
            raise ValueError("a batch has at least one datum")
        self.terms = target.terms
        self.batch_size = batch_size
        if self.terms is not None:
            self._rows = jax.tree.map(np.asarray, self.terms.data)
            self._prior_slope = jax.jit(jax.grad(self.terms.prior))
            self._slopes = jax.jit(jax.vmap(jax.grad(self.terms.datum), (None, 0)))

    def _data_gradients(self, x, index):
        """Gradients of the terms of the data `index`, one a row."""
        rows = jax.tree.map(lambda column: column[index], self._rows)
        return np.array(self._slopes(jnp.asarray(x), rows))

    def init(self, rng, position, estimator):
        x = np.array(position)
        if self.terms is None:
            return {"position": x}
        table = self._data_gradients(x, np.arange(self.terms.size))
        return {"position": x, "table": table, "total": table.sum(axis=0)}

    def step(self, rng, state, h, estimator):
        x = state["position"]
        if self.terms is None:
            gradient = estimator.estimate(rng, (), x)[0].gradient
            return {"position": self._move(rng, x, gradient, h)}
        table, total = state["table"].copy(), state["total"].copy()
        size = self.terms.size
        index = rng.integers(0, size, self.batch_size)
        new = self._data_gradients(x, index)
        change = new - table[index]
        gradient = np.asarray(self._prior_slope(jnp.asarray(x))) + total
        gradient = gradient + (size / self.batch_size) * change.sum(axis=0)
        table[index] = new
        total += change.sum(axis=0)
        return {"position": self._move(rng, x, gradient, h), "table": table, "total": total}

    @staticmethod
    def _move(rng, x, gradient, h):
        return x - h * gradient + np.sqrt(2 * h) * rng.standard_normal(x.shape)
