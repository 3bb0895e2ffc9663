"""Euler's method on the Cox-Ingersoll-Ross process: what SCIR is without its exact transition."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.cox_ingersoll_ross import CountedShape, cir_dynamics
from sgmcmc_verification.samplers.entry import POSITIVE, Row, plain
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.interface.aliases import Estimator
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState
from sgmcmc_verification.samplers.positive.scir import ExactCounts
from sgmcmc_verification.samplers.validation import require


@dataclass(frozen=True, eq=False)
class CIREuler(PositionMixin, CountedShape):
    """Euler-Maruyama on independent CIR processes whose shapes are estimated afresh in every step, mirrored at zero.

        theta' = |theta + h (a^ - theta) + sqrt(2 h theta) Z|,   a^ = alpha + n^

    The ablation of `samplers.positive.scir`: the same equation and the same counts, discretised. It acts on each number
    by itself, so that positions may have any leading axes that the counts have.

    Source: baker2018large, equation (2.1), discretised as patterson2013stochastic do.

    Args:
        alpha: prior shape, positive, a scalar or (K,).

    Error: weak order 1 inside, and invariant law O(h), for exact counts of shapes above 1; O(h^a) for a shape a < 1.

    Raises:
        ValueError: if `alpha` or the step size is not positive, or the estimator returns no counts.
    """

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("baker2018large", "equation (2.1)"),
            StationaryLaw(order=1),
            Diffusion(cir_dynamics, weak_order=1),
            conditions=("exact counts", "density bounded at the boundary"),
            spaces=("positive",),
        )

    def step(
        self, key: np.random.Generator, state: PositionState, step_size: float, estimator: Estimator
    ) -> PositionState:
        """Take one step."""
        require(step_size > 0, "step_size: must be positive", step_size)
        theta = np.asarray(state.position, np.float64)
        estimate, estate = estimator.estimate(estimator_key(key, estimator), state.estate, theta)
        if estimate.statistics is None:
            raise ValueError("estimator: CIREuler needs unbiased counts; use one that returns `statistics`")
        noise = np.sqrt(2 * step_size * theta) * key.standard_normal(theta.shape)
        drift = self.alpha + np.asarray(estimate.statistics) - theta
        return PositionState(np.abs(theta + step_size * drift + noise), estate)


ENTRIES: tuple[Row, ...] = (
    Row(
        "cir-euler",
        plain(CIREuler, alpha=1.5),
        tiers=("contract", "recipe", "generator", "order", "invariance", "geometry"),
        unsupported={"law": "a host sampler on a target that is not Gaussian"},
        targets=POSITIVE,
        step_size=0.02,
        estimator=lambda target: ExactCounts(np.ones(target.size)),
        diffusion=published.SQUARE_ROOT,
    ),
)
