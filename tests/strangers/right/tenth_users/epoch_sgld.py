"""SGLD over epochs, NumPy: a data loader with ``shuffle=True`` inside the sampler.

Each epoch is one permutation of the rows, cut into batches of one size; rows that do not fill a batch are left out of that
epoch (``drop_last``). Gradients of the prior and of a batch are compiled once; everything random comes from the generator of
the step. Without data the estimator's gradient is taken.
"""

import jax
import jax.numpy as jnp
import numpy as np


class Batches:
    """Rows of a data set, and the gradient of the potential estimated from some of them."""

    def __init__(self, terms, batch_size):
        self.data = jax.tree.map(np.asarray, terms.data)
        self.size = int(terms.size)
        self.batch_size = min(int(batch_size), self.size)
        self.per_epoch = self.size // self.batch_size
        weight = self.size / self.batch_size

        def potential(x, rows):
            return terms.prior(x) + weight * jnp.sum(jax.vmap(terms.datum, (None, 0))(x, rows))

        self._gradient = jax.jit(jax.grad(potential))

    def shuffle(self, rng):
        return rng.permutation(self.size)

    def gradient(self, x, index):
        return self._gradient(x, jax.tree.map(lambda column: column[index], self.data))


class EpochSGLD:
    backend = "host"

    def __init__(self, target, batch_size=2):
        if batch_size < 1:
            raise ValueError("batch_size must be at least 1")
        self.batches = None if target.terms is None else Batches(target.terms, batch_size)

    def init(self, rng, position, estimator):
        state = {"position": jax.tree.map(np.array, position)}
        if self.batches is not None:
            state["order"] = self.batches.shuffle(rng)
            state["batch"] = 0
        return state

    def step(self, rng, state, step_size, estimator):
        x = state["position"]
        following = {}
        if self.batches is None:
            gradient = estimator.estimate(rng, (), x)[0].gradient
        else:
            order, batch = state["order"], state["batch"]
            if batch == self.batches.per_epoch:
                order, batch = self.batches.shuffle(rng), 0
            first = batch * self.batches.batch_size
            gradient = self.batches.gradient(x, order[first : first + self.batches.batch_size])
            following = {"order": order, "batch": batch + 1}

        def move(leaf, slope):
            noise = rng.standard_normal(leaf.shape)
            return leaf - step_size * np.asarray(slope) + np.sqrt(2.0 * step_size) * noise

        return {"position": jax.tree.map(move, x, gradient), **following}
