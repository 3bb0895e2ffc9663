"""Gradient estimators with a memory: their law by definition, from the points at which they evaluated each datum."""

import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance, absent
from sgmcmc_verification.checks.core.selection import with_data
from sgmcmc_verification.checks.exact_laws.affine_chain import end_law
from sgmcmc_verification.checks.exact_laws.exact_draws import gaussian_start
from sgmcmc_verification.checks.tracing.estimator_memory import with_memory
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.estimators.basic import Exact

NUM_STEPS = 10
"""Steps of a chain whose moments are compared: three epochs of the rows with a snapshot, and one step of the fourth."""


@statement(
    tier="law",
    equation="E z_n and Cov z_n are those of grad U_0 + (N/n) sum_S (grad U_i(x) - grad U_i(phi_i))"
    " + sum_i grad U_i(phi_i)",
    targets=with_data,
    cost=1.5,
    decides="law",
    once=True,
    about=(
        "sgmcmc_verification.samplers.overdamped.saga",
        "sgmcmc_verification.samplers.overdamped.svrg",
    ),
)
def estimator_recursion(case: Case) -> Finding:
    """With all minibatches enumerated, mean and covariance after some steps are those of the estimator's definition.

    Both follow without sampling from a recursion in position and memory. It is an identity, so that a memory that is
    filled, moved or summed wrongly shows in full, also where the estimate stays unbiased and the limit h -> 0 right.
    """
    step, reference, h = with_memory(case.subject, case.target)
    start, full = gaussian_start(step), step_map(case.subject, case.target, Exact(case.target))
    laws = [end_law(s, h, NUM_STEPS, start) for s in (step, reference, full)]
    size, spread = step.size, np.sqrt(np.diag(start.covariance))

    def gap(one, other):
        mean = np.abs(one.mean - other.mean)[:size] / spread
        covariance = np.abs(one.covariance - other.covariance)[:size, :size] / np.outer(spread, spread)
        return float(max(mean.max(), covariance.max()))

    effect, noise = gap(laws[0], laws[1]), gap(laws[1], laws[2])
    # Sums of some hundred terms a step; the moments stay of the size of the start's.
    magnitude = 1 + float(np.abs(ravel_pytree(case.target.example)[0]).max() / spread.min()) ** 2
    allowance = 1e3 * np.finfo(float).eps * NUM_STEPS * magnitude
    if noise <= allowance:
        raise NotApplicable("minibatches of this estimator have no noise on this target")
    if gap(laws[0], laws[2]) <= allowance:
        return absent(case.step_size, "the minibatch does not enter the step: the law is that of all data")
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off of two recursions of moments"),
        reason=f"after {NUM_STEPS} steps the moments are off by {effect:.3g}; minibatches change them by {noise:.3g}",
        statistic="largest gap of mean and covariance of the position",
        unit="standard deviations of the target",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )
