"""A row of the registry of samplers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.published import PublishedDiffusion
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Builder, Options
from sgmcmc_verification.targets.target import Target

DETERMINISTIC_TIERS = ("contract", "recipe", "generator", "order", "law")
STATISTICAL_TIERS = ("invariance", "noise", "geometry", "convergence", "workload")
TIERS = (*DETERMINISTIC_TIERS, *STATISTICAL_TIERS)
WORKLOAD = "workload"
"""The tier of kernels of workloads; they have rows of their own, which have no other tier."""
SAMPLED_TIERS = ("invariance", "noise", "convergence")
"""The statistical tiers that apply to a sampler on a flat space without latent variables."""
USUAL_TIERS = (*DETERMINISTIC_TIERS, *SAMPLED_TIERS)
"""Tiers of a sampler on a flat space without latent variables."""
LAW_TIERS = ("contract", "law", *SAMPLED_TIERS)
"""Tiers of a sampler without declared dynamics."""
PARTICLE_TIERS = ("contract", "law", "convergence")
"""Tiers of a particle method."""
MANIFOLD_TIERS = (*USUAL_TIERS, "geometry")
"""Tiers of a sampler on a manifold, an open subset of R^n such as the positive numbers included."""


@dataclass(frozen=True, eq=False)
class Row:
    """A sampler under a name, with what the checks need to know to exercise it.

    Attributes:
        name: `sgld`, or `library/name` for an adapter.
        build: `(target, **options) -> Sampler`.
        tiers: the deterministic and statistical tiers that apply. Losing one fails the suite's own tests.
        unsupported: tier -> the reason why it does not apply.
        targets: names of the targets that the law of this sampler is checked on.
        variants: option settings that the checks run besides the defaults; together they put every option at two
            non-default values.
        step_size: a usual step size on a target of unit curvature; a target of curvature k divides it by
            k ** `step_power`.
        step_power: 1.0 for overdamped samplers (h lambda is dimensionless), 0.5 for those with a momentum.
        estimator: target -> the estimator that the noise-free checks use (the exact gradient, as a rule).
        diffusion: the diffusion matrix that the method's paper prints; None where none is on file.
        notes: what will not be examined whatever comes out, such as an option that cannot be varied.
        foreign: no registry knows it. It may run on arrays alone, and the values of `variants` are made up.
        left_out: usual targets of a foreign one that the user has left out by naming others.
        off: names of options that are off by default and that the last one of `variants` turns on.
        fixed: options that belong to the object, without which it is not found again.
        reading: the convention that was read of an optimiser, in the user's terms.
        place: file and first line of the step of a foreign one, `src/mine.py:12`; empty where it is not Python.
        tags: what it says that it is not made for, names of `checks.runner.tags`.
    """

    name: str
    build: Callable[..., Sampler]
    tiers: tuple[str, ...] = USUAL_TIERS
    unsupported: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ("gaussian-correlated-2d", "anharmonic", "double-well")
    variants: tuple[Options, ...] = ()
    step_size: float = 0.1
    step_power: float = 1.0
    estimator: Callable[[Target], Estimator] = Exact
    diffusion: PublishedDiffusion | None = None
    notes: tuple[str, ...] = ()
    foreign: bool = False
    left_out: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    fixed: Options = field(default_factory=dict)
    reading: str = ""
    place: str = ""
    tags: tuple[str, ...] = ()

    @property
    def is_kernel(self) -> bool:
        """True for a kernel of a workload, which is no sampler on a target."""
        return WORKLOAD in self.tiers


_EXACT = "exact at every step size, without declared dynamics"
NO_DYNAMICS = {"recipe": _EXACT, "generator": _EXACT, "order": _EXACT}
"""Reasons why some tiers do not apply to an exact kernel without declared dynamics."""

# Targets and options that rows share ---------------------------------------------------------------------------------

TEMPERATURES = ({"temperature": 0.5}, {"temperature": 2.0})
FRICTIONS = ({"friction": 2.0, "temperature": 0.5}, {"friction": 0.4, "temperature": 2.0})
DIFFUSIONS = ({"diffusion": 2.0, "temperature": 0.5}, {"diffusion": 0.4, "temperature": 2.0})
# Euler's method with the old momentum is stable for h curvature < friction only.
EXPLICIT = ({"friction": 2.0, "temperature": 0.5}, {"friction": 1.5, "temperature": 2.0})
SPLITTING = (
    {"friction": 2.0, "temperature": 0.5, "fresh_gradients": True},
    {"friction": 0.4, "temperature": 2.0},
)
# The coefficients of an exact Ornstein-Uhlenbeck flow have a formula of their own where friction x step size exceeds 1.
OVERDAMPED = ({"friction": 30.0, "temperature": 0.5}, {"friction": 0.4, "temperature": 2.0})
THERMAL = (
    {"diffusion": 2.0, "temperature": 0.5, "thermal_mass": 2.5},
    {"diffusion": 0.4, "temperature": 2.0, "thermal_mass": 0.6},
)
TRAJECTORIES = ({"num_steps": 1, "temperature": 0.5}, {"num_steps": 2, "temperature": 2.0})
# The usual Gaussian, oscillator and double well, and one-dimensional data whose minibatches can be enumerated.
FLAT = ("gaussian-1d-scaled", "gaussian-correlated-2d", "anharmonic", "double-well", "tiny-gaussian-data")
# Data with Hessians of their own, without which a corrected gradient has no noise.
REGRESSION = ("tiny-regression",)
POSITIVE = ("gamma",)
CURVED = ("vmf-s1", "gaussian-correlated-2d", "vmf-s2")
# A product of spheres in one array, and V_2(R^3).
EMBEDDED = (*CURVED, "vmf-s1^2", "matrix-langevin-3-2")
# A product of a sphere and a plane as a tuple, and the flat simplex with reflections.
OTHERS = ("vmf-s2-and-gaussian", "dirichlet-concentrated")
PLANE = ("gaussian-correlated-2d",)


# Builders that rows share -----------------------------------------------------------------------------------------


def known_noise(target: Target) -> KnownNoise:
    """Exact gradients plus N(0, V) with a correlated V of the size of the target's own scale, reported."""
    n = target.size
    return KnownNoise(target, target.curvature * (0.5 * np.eye(n) + 0.2 * np.ones((n, n))))


def plain(method: Builder, **fixed: Any) -> Builder:
    """A builder for a method that does not depend on the target."""
    return lambda target, **options: method(**fixed, **options)


def on_manifold(method: Builder, **fixed: Any) -> Builder:
    """A builder for a method that takes the manifold of the target."""
    return lambda target, **options: method(target.manifold, **fixed, **options)


def with_metric(method: Builder, metric: Callable[[Target], Any], size: int | None = None, **fixed: Any) -> Builder:
    """A builder for a method with a metric made for the target; `size` where the metric needs that many coordinates."""

    def build(target: Target, **options: Any):
        if size is not None and target.size != size:
            raise ValueError(f"target: the metric is for {size} coordinates, {target.name} has {target.size}")
        return method(metric(target), **fixed, **options)

    return build


def cyclical(method: Builder, row_size: float, power: float) -> Builder:
    """A builder whose steps explore above four and a half times the usual step size of the row, `row_size`."""
    return lambda target, **options: method(explore_above=4.5 * row_size / target.curvature**power, **options)


# Rows that have more in common --------------------------------------------------------------------------------------


def langevin_row(name: str, build: Builder, **more: Any) -> Row:
    """A row of a sampler of the overdamped Langevin equation, with the usual targets and temperatures unless told."""
    given: dict[str, Any] = {"targets": FLAT, "variants": TEMPERATURES, "diffusion": published.LANGEVIN, **more}
    return Row(name, build, **given)


def momentum_row(
    name: str, build: Builder, variants: tuple[Options, ...] = (), targets: tuple[str, ...] = FLAT, **more: Any
) -> Row:
    """A row of a sampler with a momentum, with the usual targets unless told."""
    return Row(name, build, targets=targets, variants=variants, step_power=0.5, **more)
