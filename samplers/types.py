"""The interface of a sampler, as users import it; defined in `samplers.interface.sampler`."""

from samplers.interface.sampler import (
    Claims,
    ContourClaims,
    CycleClaims,
    Estimate,
    Estimator,
    ExchangeClaims,
    Kind,
    Need,
    ParticleClaims,
    Position,
    Sampler,
    Source,
    State,
    TrajectoryClaims,
)

__all__ = [
    "Claims",
    "ContourClaims",
    "CycleClaims",
    "Estimate",
    "Estimator",
    "ExchangeClaims",
    "Kind",
    "Need",
    "ParticleClaims",
    "Position",
    "Sampler",
    "Source",
    "State",
    "TrajectoryClaims",
]
