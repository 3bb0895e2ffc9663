"""What the samplers with a state-dependent metric share: their needs and their claims."""

from collections.abc import Callable
from typing import Any, ClassVar

from samplers.interface.claims import Claims, Diffusion, IndependentNoise, ReflectsAtZero, Source, StationaryLaw


class RiemannianMixin:
    """`needs` and `claims` of a first-order sampler with the options temperature, compensate and reflect."""

    source: ClassVar[Source]
    temperature: float
    compensate: bool
    reflect: bool
    dynamics: Callable[..., Any]

    @property
    def needs(self):
        return frozenset({"gradient", "covariance"} if self.compensate else {"gradient"})

    @property
    def claims(self):
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
