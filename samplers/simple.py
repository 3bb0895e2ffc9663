"""Samplers from a step alone, as users import it; defined in `samplers.interface.from_step`."""

from sgmcmc_verification.samplers.interface.from_step import (
    PositionMixin,
    PositionState,
    complete,
    default_claims,
    simple_sampler,
)

__all__ = ["PositionMixin", "PositionState", "complete", "default_claims", "simple_sampler"]
