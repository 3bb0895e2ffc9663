"""What the samplers with a state-dependent metric share: their needs and their claims."""

from collections.abc import Callable
from typing import Any, ClassVar

from samplers.interface.sampler import Claims, Source


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
            kind="fixed-step",
            source=self.source,
            weak_order=1,
            invariant_order=1,
            temperature=self.temperature,
            dynamics=self.dynamics,
            conditions=(*smooth, "density bounded at the boundary") if self.reflect else smooth,
            spaces=("positive",) if self.reflect else ("euclidean",),
        )
