"""A row of the registry of samplers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from samplers.estimators.basic import Exact
from samplers.interface.sampler import Estimator, Sampler
from targets.target import Target

DETERMINISTIC_TIERS = ("contract", "recipe", "generator", "order", "law")
STATISTICAL_TIERS = ("invariance", "noise", "geometry", "convergence", "workload")
TIERS = (*DETERMINISTIC_TIERS, *STATISTICAL_TIERS)
WORKLOAD = "workload"
"""The tier of kernels that are no sampler on a target; they have rows of their own, which have no other tier."""
SAMPLED_TIERS = ("invariance", "noise", "convergence")
"""The statistical tiers that apply to a sampler on a flat space without latent variables."""
USUAL_TIERS = (*DETERMINISTIC_TIERS, *SAMPLED_TIERS)
"""What applies to a sampler on a flat space without latent variables."""
PARTICLE_TIERS = ("contract", "law", "convergence")
"""What applies to a particle method."""
MANIFOLD_TIERS = (*USUAL_TIERS, "geometry")
"""What applies on a manifold, an open subset of R^n such as the positive numbers included."""


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
        diffusion: name of the published diffusion matrix in `checks.tiers.generator.published_diffusion.DIFFUSIONS`;
        empty where none is on file.
    """

    name: str
    build: Callable[..., Sampler]
    tiers: tuple[str, ...] = USUAL_TIERS
    unsupported: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ("gaussian-correlated-2d", "anharmonic", "double-well")
    variants: tuple[Mapping[str, Any], ...] = ()
    step_size: float = 0.1
    step_power: float = 1.0
    estimator: Callable[[Target], Estimator] = Exact
    diffusion: str = ""
