"""Stationary laws of the code, computed."""

from sgmcmc_verification.checks.tiers.law.compensation import compensated_step
from sgmcmc_verification.checks.tiers.law.contour import contour_force, contour_weights
from sgmcmc_verification.checks.tiers.law.cycles import cycle_law
from sgmcmc_verification.checks.tiers.law.detailed_balance import detailed_balance
from sgmcmc_verification.checks.tiers.law.epochs import epoch_law
from sgmcmc_verification.checks.tiers.law.estimator_memory import estimator_recursion
from sgmcmc_verification.checks.tiers.law.finite_space import (
    balance_on_states,
    every_state_reached,
    stationary_on_states,
)
from sgmcmc_verification.checks.tiers.law.gaussian import (
    gaussian_limit,
    gradient_noise_limit,
    minibatch_limit,
    stability,
    stationary_covariance,
)
from sgmcmc_verification.checks.tiers.law.preconditioner import preconditioner_by_definition
from sgmcmc_verification.checks.tiers.law.reflection import mirror_at_zero
from sgmcmc_verification.checks.tiers.law.replica_exchange import exchange_balance, exchange_rate
from sgmcmc_verification.checks.tiers.law.skew_balance import skew_detailed_balance
from sgmcmc_verification.checks.tiers.law.successive_noise import noise_of_successive_steps
from sgmcmc_verification.checks.tiers.law.transfer_operator import transfer_operator

__all__ = [
    "balance_on_states",
    "compensated_step",
    "contour_force",
    "contour_weights",
    "cycle_law",
    "detailed_balance",
    "epoch_law",
    "estimator_recursion",
    "every_state_reached",
    "exchange_balance",
    "exchange_rate",
    "gaussian_limit",
    "gradient_noise_limit",
    "minibatch_limit",
    "mirror_at_zero",
    "noise_of_successive_steps",
    "preconditioner_by_definition",
    "skew_detailed_balance",
    "stability",
    "stationary_covariance",
    "stationary_on_states",
    "transfer_operator",
]
