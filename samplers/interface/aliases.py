"""Type aliases of the arguments of samplers and estimators, beside the protocols of `samplers.interface.sampler`."""

from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator, Need
from sgmcmc_verification.samplers.interface.trees import (
    Builder,
    EstimatorState,
    Key,
    Options,
    Position,
    Scalar,
    State,
    Tree,
)

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
