"""Stationary laws of the code, computed."""

from checks.core.check import Check
from checks.tiers.law.compensation import compensated_step
from checks.tiers.law.contour import contour_force, contour_weights
from checks.tiers.law.cycles import cycle_law
from checks.tiers.law.detailed_balance import detailed_balance
from checks.tiers.law.estimator_memory import estimator_recursion
from checks.tiers.law.gaussian import (
    gaussian_limit,
    gradient_noise_limit,
    minibatch_limit,
    stability,
    stationary_covariance,
)
from checks.tiers.law.preconditioner import preconditioner_by_definition
from checks.tiers.law.reflection import mirror_at_zero
from checks.tiers.law.replica_exchange import exchange_balance, exchange_rate
from checks.tiers.law.skew_balance import skew_detailed_balance
from checks.tiers.law.successive_noise import noise_of_successive_steps
from checks.tiers.law.transfer_operator import transfer_operator

CHECKS: tuple[Check, ...] = (
    stationary_covariance,
    gaussian_limit,
    stability,
    gradient_noise_limit,
    compensated_step,
    preconditioner_by_definition,
    minibatch_limit,
    estimator_recursion,
    cycle_law,
    mirror_at_zero,
    detailed_balance,
    contour_force,
    contour_weights,
    skew_detailed_balance,
    exchange_balance,
    exchange_rate,
    transfer_operator,
    noise_of_successive_steps,
)
