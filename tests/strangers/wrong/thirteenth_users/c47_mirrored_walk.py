"""Metropolis-Hastings on positive numbers, by a mirrored walk whose steps shrink towards zero.

    y = |x + s sqrt(x) xi|,    xi ~ N(0, 1)

The variance of a step is proportional to x, as in a Cox-Ingersoll-Ross process, so that rates and variances move slowly where they
are small; a step across zero is mirrored. Since the scale depends on x, the density q(y | x) of a step enters the acceptance
ratio, as well as q(x | y). No gradient is asked for, and no transform of the target. `scale` is s, for one number; it is divided by
the root of the dimension. There is no step size.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def _scale(x, s):
    """Standard deviation of a step from x."""
    return s * jnp.sqrt(x)


def _log_density(y, x, s):
    """Log density of a step from x to y, summed over coordinates, without constants."""
    deviation = _scale(x, s)
    return -jnp.sum(((y - x) / deviation) ** 2 / 2 + jnp.log(deviation))


def _total(tree):
    return sum(jax.tree.leaves(tree))


@dataclasses.dataclass(frozen=True)
class MirroredWalk:
    """A random walk for arrays, or trees of arrays, of positive numbers."""

    scale: float = 1.0

    claims = Claims(Source("", "own"), ExactLaw(), spaces=("positive",))

    def __post_init__(self):
        if self.scale <= 0:
            raise ValueError("scale has to be positive")

    def init(self, key, position, estimator):
        del key, estimator
        return position

    def position(self, state: Any) -> Any:
        return state

    def propose(self, key, x, s):
        """A mirrored step in every leaf."""
        leaves, structure = jax.tree.flatten(x)
        keys = jax.random.split(key, len(leaves))
        moved = [
            jnp.abs(leaf + _scale(leaf, s) * jax.random.normal(k, leaf.shape, leaf.dtype))
            for k, leaf in zip(keys, leaves, strict=True)
        ]
        return structure.unflatten(moved)

    def step(self, key, state, step_size, estimator):
        del step_size
        batch_key, move_key, accept_key = jax.random.split(key, 3)
        s = self.scale / sum(leaf.size for leaf in jax.tree.leaves(state)) ** 0.5

        def potential(q):
            return estimator.estimate(batch_key, (), q)[0].potential

        proposal = self.propose(move_key, state, s)
        forward = _total(jax.tree.map(lambda y, x: _log_density(y, x, s), proposal, state))
        backward = _total(jax.tree.map(lambda y, x: _log_density(x, y, s), proposal, state))
        log_ratio = potential(state) - potential(proposal) + backward - forward
        accept = jnp.log(jax.random.uniform(accept_key, dtype=log_ratio.dtype)) < log_ratio
        return jax.tree.map(lambda y, x: jnp.where(accept, y, x), proposal, state)
