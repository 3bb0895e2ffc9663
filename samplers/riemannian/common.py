"""Needs and claims of the samplers with a state-dependent metric."""

from collections.abc import Callable
from typing import ClassVar

from samplers.dynamics.complete_recipe import Dynamics
from samplers.interface.sampler import Claims, Source
from samplers.typing import Need
from targets.target import Target


class RiemannianMixin:
    """`needs` and `claims` of a first-order sampler with the options temperature, compensate and reflect."""

    source: ClassVar[Source]
    temperature: float
    compensate: bool
    reflect: bool
    dynamics: Callable[[Target], Dynamics]

    @property
    def needs(self) -> frozenset[Need]:
        """Parts of an estimate that a step reads."""
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
