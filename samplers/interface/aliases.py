"""Type aliases of the arguments of samplers and estimators, beside the protocols of `samplers.interface.sampler`."""

from samplers.interface.sampler import Estimate, Estimator, Need
from samplers.interface.trees import Builder, EstimatorState, Key, Options, Position, Scalar, State, Tree

__all__ = [
    "Builder",
    "Estimate",
    "Estimator",
    "EstimatorState",
    "Key",
    "Need",
    "Options",
    "Position",
    "Scalar",
    "State",
    "Tree",
]
