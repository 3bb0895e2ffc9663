"""Statements that are decided for every smooth potential, by reading the program of a step; see `checks.proof`."""

from sgmcmc_verification.checks.tiers.proofs.for_every_potential import (
    balance_for_every_potential,
    estimator_for_every_potential,
    generator_for_every_potential,
    invariant_law_for_every_potential,
    velocity_for_every_potential,
    weak_order_for_every_potential,
)

__all__ = [
    "balance_for_every_potential",
    "estimator_for_every_potential",
    "generator_for_every_potential",
    "invariant_law_for_every_potential",
    "velocity_for_every_potential",
    "weak_order_for_every_potential",
]
