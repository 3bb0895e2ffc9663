"""Underdamped Langevin dynamics in NumPy with a loader of its own: shuffled epochs, or rows drawn by their size.

The splitting is ABOBA, with one gradient at the middle of a step. `draw="epochs"` goes through a permutation of the rows in
batches, the last of which may be shorter, and shuffles again at its end. `draw="weighted"` draws rows with replacement,
large ones more often, and weighs each by the inverse of its expected number.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class EpochLangevin:
    backend = "host"
    claims = Claims(Source("", "Leimkuhler and Matthews 2013, ABOBA"), StationaryLaw(order=2))

    def __init__(self, target, friction=1.5, mass=1.0, batch=4, draw: Literal["epochs", "weighted"] = "epochs"):
        if batch < 1:
            raise ValueError("a batch has at least one row")
        self.friction, self.mass, self.draw = friction, mass, draw
        self.terms = target.terms
        if self.terms is not None:
            self.size = int(self.terms.size)
            self.batch = min(batch, self.size)
            self.data = jax.tree.map(np.asarray, self.terms.data)
            self.chances = self._chances()
            self._prior_slope = jax.jit(jax.grad(self.terms.prior))
            self._data_slope = jax.jit(jax.grad(self._weighted_sum))

    def _weighted_sum(self, x, rows, weights):
        return jnp.sum(weights * jax.vmap(self.terms.datum, (None, 0))(x, rows))

    def _chances(self):
        score = np.ones(self.size)
        for leaf in jax.tree.leaves(self.data):
            score += np.abs(leaf.reshape(self.size, -1)).mean(axis=1)
        return score / score.sum()

    def init(self, rng, position, estimator):
        order = np.arange(0) if self.terms is None else rng.permutation(self.size)
        return {
            "position": jax.tree.map(np.array, position),
            "momentum": self._maxwell(rng, position),
            "order": order,
            "cursor": 0,
        }

    def _maxwell(self, rng, like):
        return jax.tree.map(lambda a: np.sqrt(self.mass) * rng.standard_normal(np.shape(a)), like)

    def _rows(self, rng, state):
        """Indices of the next batch, and the weight of each row in an unbiased estimate of the sum over all."""
        if self.draw == "weighted":
            index = rng.choice(self.size, size=self.batch, p=self.chances)
            return index, 1 / (self.batch * self.chances[index])
        if state["cursor"] >= self.size:
            state["order"] = rng.permutation(self.size)
            state["cursor"] = 0
        index = state["order"][state["cursor"] : state["cursor"] + self.batch]
        state["cursor"] += self.batch
        return index, np.full(len(index), self.size / len(index))

    def _slope(self, rng, state, estimator):
        x = state["position"]
        if self.terms is None:
            return estimator.estimate(rng, (), x)[0].gradient
        index, weights = self._rows(rng, state)
        rows = jax.tree.map(lambda a: a[index], self.data)
        of_prior, of_data = self._prior_slope(x), self._data_slope(x, rows, weights)
        return jax.tree.map(lambda a, b: np.asarray(a) + np.asarray(b), of_prior, of_data)

    def step(self, rng, state, h, estimator):
        kept = np.exp(-self.friction * h)
        drift = lambda x, p: x + h / (2 * self.mass) * p
        kick = lambda p, g: p - h / 2 * g
        state = dict(state, position=jax.tree.map(drift, state["position"], state["momentum"]))
        slope = self._slope(rng, state, estimator)
        p = jax.tree.map(kick, state["momentum"], slope)
        p = jax.tree.map(lambda a, n: kept * a + np.sqrt(1 - kept**2) * n, p, self._maxwell(rng, p))
        state["momentum"] = jax.tree.map(kick, p, slope)
        state["position"] = jax.tree.map(drift, state["position"], state["momentum"])
        return state
