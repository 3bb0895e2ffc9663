"""Helpers of samplers with `backend == "host"`: random numbers from NumPy, estimators of either kind."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.samplers.estimators.basic import Exact, compiled_gradient
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Estimate


class Unintercepted(Exception):
    """The step drew from a law that the given generator cannot feed; the message names it."""


def estimator_key(generator: np.random.Generator, estimator: Estimator) -> Any:
    """Key for `estimator`: the generator if it has `backend == "host"`, else a typed JAX key from it."""
    if on_host(estimator):
        return generator
    return jax.random.key(int(generator.integers(2**63)))


@dataclass(frozen=True, eq=False)
class HostExact(Exact):
    """`Exact` for host samplers: it takes their generator, and draws nothing from it."""

    backend = "host"

    def estimate(self, key: Any, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        del key
        value, gradient = compiled_gradient(self.target)(position)
        return Estimate(gradient, value), estate


def is_exact(estimator: Estimator) -> bool:
    """True for the exact gradient itself; subclasses may add noise to it."""
    return type(estimator) in (Exact, HostExact)
