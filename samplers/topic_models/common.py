"""Shared by the runs of topic models: an estimator for the start, the error for divergence, rows."""

import jax
import numpy as np

from sgmcmc_verification.samplers.entry import WORKLOAD, Row
from sgmcmc_verification.samplers.interface.aliases import Builder, EstimatorState, Options
from sgmcmc_verification.samplers.interface.sampler import Estimate, Position, Stateless


class NoEstimator(Stateless):
    """An estimator without a state and without estimates, for the start of a sampler."""

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
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


def kernel_row(
    name: str,
    build: Builder,
    *targets: str,
    step_size: float = 1.0,
    variants: tuple[Options, ...] = (),
) -> Row:
    """A row of the tier `workload`, whose step sizes are meant as they stand although a target may have a curvature."""
    return Row(name, build, (WORKLOAD,), targets=targets, step_size=step_size, step_power=0.0, variants=variants)
