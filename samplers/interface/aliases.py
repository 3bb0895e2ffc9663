"""Type aliases of the arguments of samplers and estimators, beside the protocols of `samplers.interface.sampler`."""

from typing import Any

import jax

from samplers.interface.sampler import Estimate, Estimator, Need, Position, State

Tree = Any
"""A pytree of arrays, as a rule like a position: a momentum, a gradient, a full variable z."""
EstimatorState = Any
"""The pytree that an estimator carries from step to step; `()` if it has none."""
Scalar = float | jax.Array
"""A real number, traced or not: a step size, a time, a friction."""

__all__ = ["Estimate", "Estimator", "EstimatorState", "Need", "Position", "Scalar", "State", "Tree"]
