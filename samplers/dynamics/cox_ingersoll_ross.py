"""Dynamics of the Cox-Ingersoll-Ross process, and a prior shape to which counts are added."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import reversible_dynamics
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.numerics.arrays import AnyArray
from sgmcmc_verification.targets.target import Target


def cir_dynamics(target: Target) -> Dynamics:
    """H = U, D = diag(theta), Q = 0: for U = sum_j theta_j - (a_j - 1) log theta_j the drift is a - theta.

    Source: baker2018large, equation (2.1).
    """
    return reversible_dynamics(target, lambda z: jnp.diag(z))


@dataclass(frozen=True, eq=False)
class CountedShape:
    """A host sampler of Gamma laws whose shapes are a prior's plus counts.

    Args:
        alpha: prior shape, positive, a scalar or (K,).

    Raises:
        ValueError: if `alpha` is not positive.
    """

    alpha: float | Float[AnyArray, " K"] = 1.0

    backend = "host"
    needs = frozenset({"statistics"})

    def __post_init__(self) -> None:
        require(bool(np.all(np.asarray(self.alpha) > 0)), "alpha: must be positive", self.alpha)
