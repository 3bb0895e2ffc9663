"""Planted bugs of microcanonical samplers: the force for the wrong dimension, a volume that is forgotten."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.microcanonical.mams import MAMS
from sgmcmc_verification.samplers.microcanonical.mclmc import MCLMC


@dataclass(frozen=True)
class ForceByDimension(MCLMC):
    """The force is grad U / d for grad U / (d - 1): the law of the temperature d / (d - 1), 2 in the plane."""

    def step(self, key, state, step_size, estimator):
        size = sum(leaf.size for leaf in jax.tree.leaves(state.position))
        weaker = lambda held: held._replace(
            gradient=jax.tree.map(lambda g: (g * (size - 1) / size).astype(g.dtype), held.gradient)
        )
        after = super().step(key, weaker(state), step_size, Altered(estimator, lambda e, _: weaker(e)))
        stronger = lambda g: (g * size / (size - 1)).astype(g.dtype)
        return after._replace(gradient=jax.tree.map(stronger, after.gradient))


@dataclass(frozen=True)
class VolumeForgotten(MAMS):
    """log a = (U(x) - U(y)) / T, as if the flow of the directions kept their volume."""

    def trajectory(self, key, state, direction, step_size, estimator):
        end, u, work = super().trajectory(key, state, direction, step_size, estimator)
        return end, u, jnp.zeros_like(work)


RUNS = "time averages of f along runs from the target -> pi(f)"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "mclmc-force-by-dimension",
        "mclmc",
        ForceByDimension,
        "grad U / d for grad U / (d - 1)",
        Kill("law_of_runs", "gaussian-correlated-2d", RUNS),
        "dimension",
        "variance",
    ),
    planted(
        "mams-volume-forgotten",
        "mams",
        VolumeForgotten,
        "accepted by the potentials alone: the change of the volume of the directions is missing",
        Kill("law_of_runs", "gaussian-correlated-2d", RUNS),
        "metropolis",
    ),
)
