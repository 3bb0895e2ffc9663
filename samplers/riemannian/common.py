"""Needs and claims of the samplers with a state-dependent metric."""

from collections.abc import Callable
from typing import ClassVar

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    IndependentNoise,
    ReflectsAtZero,
    Source,
    StationaryLaw,
)
from sgmcmc_verification.samplers.interface.estimates import CompensationMixin
from sgmcmc_verification.targets.target import Target


class RiemannianMixin(CompensationMixin):
    """`needs` and `claims` of a first-order sampler with the options temperature, compensate and reflect."""

    source: ClassVar[Source]
    temperature: float
    reflect: bool
    dynamics: Callable[[Target], Dynamics]

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        smooth = ("exact gradient or compensated noise",)
        return Claims(
            self.source,
            StationaryLaw(order=1, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=1),
            IndependentNoise(),
            ReflectsAtZero(self) if self.reflect else None,
            conditions=(*smooth, "density bounded at the boundary") if self.reflect else smooth,
            spaces=("positive",) if self.reflect else ("euclidean",),
        )
