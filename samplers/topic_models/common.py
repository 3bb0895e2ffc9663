"""Shared by the runs of topic models: an estimator for the start of a sampler, and the error for divergence."""

from typing import Any

import jax
import numpy as np

from samplers.interface.sampler import Estimate, Position


class NoEstimator:
    """An estimator without a state and without estimates, for the start of a sampler."""

    def init(self, key: jax.Array, position: Position) -> Any:
        """Return the empty state."""
        del key, position
        return ()

    def estimate(self, key: jax.Array, estate: Any, position: Position) -> tuple[Estimate, Any]:
        """Refuse: there is nothing to estimate yet."""
        raise NotImplementedError


def finite_topics(topics: np.ndarray, taken: str) -> np.ndarray:
    """Return the topics as they are.

    Args:
        topics: any shape.
        taken: how far the run is, such as "3 steps".

    Raises:
        FloatingPointError: if an entry is not finite.
    """
    if not np.all(np.isfinite(topics)):
        raise FloatingPointError(f"the topics are not finite after {taken}; reduce step_size")
    return topics
