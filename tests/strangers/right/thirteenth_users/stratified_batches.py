"""Underdamped Langevin dynamics with stratified minibatches.

The rows of the data are cut into `strata` runs of neighbours, as equal as they can be. A batch has `draws` rows of each
run, drawn with replacement within it, and a row stands for (rows in its run) / draws rows. For data that are sorted, by
time or by class, this has less noise than a batch from the whole, and the gradient is unbiased for any cut.

    p <- c (p - h g) + sqrt(1 - c^2) xi,      c = exp(-friction h)
    x <- x + h p
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class Phase(NamedTuple):
    position: Any
    momentum: Any


class Strata:
    """A cut of `size` rows into at most `count` runs, none of them empty."""

    def __init__(self, size, count):
        count = min(count, size)
        edges = np.arange(count + 1) * size // count
        self.start, self.stop = edges[:-1], edges[1:]

    def draw(self, key, draws):
        """Row numbers, and of how many rows each is the representative."""
        rows = jax.random.randint(key, (draws, len(self.start)), jnp.asarray(self.start), jnp.asarray(self.stop))
        weights = np.tile((self.stop - self.start) / draws, (draws, 1))
        return rows.ravel(), weights.ravel()


def white(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


class StratifiedLangevin:
    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def __init__(self, target, strata=3, draws=2, friction=1.0):
        if strata < 1 or draws < 1 or friction <= 0:
            raise ValueError("strata and draws are at least one, friction is positive")
        self.terms = target.terms
        self.draws = draws
        self.friction = friction
        self.strata = None if self.terms is None else Strata(self.terms.size, strata)

    def init(self, key, position, estimator):
        return Phase(position, white(key, position))

    def step(self, key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        slope = self._gradient(batch_key, state.position, estimator)
        kept = jnp.exp(-self.friction * step_size)
        spread = jnp.sqrt(-jnp.expm1(-2 * self.friction * step_size))
        momentum = jax.tree.map(
            lambda p, g, xi: kept * (p - step_size * g) + spread * xi, state.momentum, slope, white(noise_key, slope)
        )
        return Phase(jax.tree.map(lambda x, p: x + step_size * p, state.position, momentum), momentum)

    def _gradient(self, key, x, estimator):
        if self.strata is None:
            return estimator.estimate(key, (), x)[0].gradient
        rows, weights = self.strata.draw(key, self.draws)
        batch = jax.tree.map(lambda a: jnp.asarray(a)[rows], self.terms.data)

        def potential(q):
            each = jax.vmap(self.terms.datum, (None, 0))(q, batch)
            return self.terms.prior(q) + jnp.sum(jnp.asarray(weights, each.dtype) * each)

        return jax.grad(potential)(x)
