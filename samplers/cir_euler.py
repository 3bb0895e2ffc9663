"""Euler's method on the Cox-Ingersoll-Ross process: what SCIR is without its exact transition."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from samplers.dynamics import Dynamics, coordinate_names
from samplers.host import estimator_key
from samplers.simple import PositionMixin, PositionState
from samplers.types import Claims, Source
from samplers.validate import require
from targets.target import Target


def cir_dynamics(target: Target) -> Dynamics:
    """H = U, D = diag(theta), Q = 0: for U = sum_j theta_j - (a_j - 1) log theta_j the drift is a - theta.

    Source: baker2018large, equation (2.1).
    """
    n = target.size
    return Dynamics(
        H=target.flat_potential,
        D=lambda z: jnp.diag(z),
        Q=lambda z: jnp.zeros((n, n), z.dtype),
        names=coordinate_names(n),
        size=n,
    )


@dataclass(frozen=True, eq=False)
class CIREuler(PositionMixin):
    """Euler-Maruyama on independent CIR processes whose shapes are estimated afresh in every step, mirrored at zero.

        theta' = |theta + h (a^ - theta) + sqrt(2 h theta) Z|,   a^ = alpha + n^

    The ablation of `samplers.scir`: the same equation and the same counts, discretised. It acts on each number by
    itself, so that positions may have any leading axes that the counts have.

    Source: baker2018large, equation (2.1), discretised as patterson2013stochastic do.

    Args:
        alpha: prior shape, positive, a scalar or (K,).

    Error: weak order 1 inside, and invariant law O(h), for exact counts of shapes above 1; O(h^a) for a shape a < 1.

    Raises:
        ValueError: if `alpha` or the step size is not positive, or the estimator returns no counts.
    """

    alpha: Any = 1.0

    backend = "host"
    needs = frozenset({"statistics"})

    def __post_init__(self):
        require(bool(np.all(np.asarray(self.alpha) > 0)), "alpha: must be positive", self.alpha)

    @property
    def claims(self):
        return Claims(
            kind="fixed-step",
            source=Source("baker2018large", "equation (2.1)"),
            weak_order=1,
            invariant_order=1,
            dynamics=cir_dynamics,
            conditions=("exact counts", "density bounded at the boundary"),
            spaces=("positive",),
        )

    def step(self, key, state, step_size, estimator):
        require(step_size > 0, "step_size: must be positive", step_size)
        theta = np.asarray(state.position, np.float64)
        estimate, estate = estimator.estimate(estimator_key(key, estimator), state.estate, theta)
        if estimate.statistics is None:
            raise ValueError("estimator: CIREuler needs unbiased counts; use one that returns `statistics`")
        noise = np.sqrt(2 * step_size * theta) * key.standard_normal(theta.shape)
        drift = self.alpha + np.asarray(estimate.statistics) - theta
        return PositionState(np.abs(theta + step_size * drift + noise), estate)
