"""Places that a run comes to, and how often it goes to and fro between them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.targets.target import Target

LEVELS = np.arange(-1.5, 1.6, 0.5)
"""Levels of a coordinate, in standard deviations from its mean: what is between the first and the last is the bulk."""


class Passes(NamedTuple):
    """Places of a run, for each of d coordinates in standard deviations from its mean.

    Attributes:
        lowest: value (d,).
        highest: value (d,).
        up: whether it was above the upper of two neighbouring levels since it was below the lower, (d, 6).
        count: times that it went from below the lower to above the upper, (d, 6).
    """

    lowest: Any
    highest: Any
    up: Any
    count: Any

    @classmethod
    def at(cls, u: Any) -> "Passes":
        """Of the first position (d,)."""
        up = u[:, None] > LEVELS[:-1]  # only what was below the lower one goes up
        return cls(u, u, up, 0 * up.astype(int))

    def after(self, u: Any) -> "Passes":
        """With another position (d,)."""
        xp = jnp if isinstance(u, jax.Array) else np
        up = (u[:, None] >= LEVELS[1:]) | (self.up & (u[:, None] > LEVELS[:-1]))
        return Passes(xp.minimum(self.lowest, u), xp.maximum(self.highest, u), up, self.count + (up & ~self.up))


def units_of(target: Target) -> Callable[[Any], Any]:
    """Position -> distances (d,) from the mean in standard deviations; nothing for a law that is not Gaussian."""
    law = target.gaussian
    mean = np.zeros(0) if law is None else np.asarray(law.mean)
    deviation = np.ones(0) if law is None else np.sqrt(np.diag(np.linalg.inv(law.precision)))

    def units(position: Any) -> Any:
        leaves = jax.tree.leaves(position)
        if any(isinstance(leaf, jax.Array) for leaf in leaves):
            flat = ravel_pytree(position)[0]
        else:
            flat = np.concatenate([np.ravel(np.asarray(leaf, float)) for leaf in leaves])
        return (flat[: mean.size] - mean) / deviation

    return units
