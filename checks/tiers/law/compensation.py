"""Compensated gradient noise: a step that is told the covariance of its gradients has the law of one without noise."""

import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import last, several
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.tracing.noisy_step import compensates, noisy_step


@statement(
    tier="law",
    equation="E z' and Cov z' with gradient noise of reported covariance are those of exact gradients",
    targets=last(several),
    cost=0.1,
    decides="dynamics",
)
def compensated_step(case: Case) -> Finding:
    """Mean and covariance of one step are the same with gradient noise N(0, V), V reported, as with exact gradients.

    The injected noise is that of exact gradients less what the gradient brings along (ma2015complete, Algorithm 1:
    2 D h - h^2 B^), so the sum is normal with the covariance of exact gradients, at any step size that leaves the
    difference positive. It is an identity: what is not compensated shows in full, not as a bias of the order claimed.
    """
    if "covariance" not in case.subject.sampler(case.target).needs:
        raise NotApplicable("does not read the covariance of the gradient noise")
    if not compensates(case.subject.sampler(case.target)):
        raise NotApplicable("reads the covariance of the gradient noise, and does not claim to compensate it")
    h = case.step_size
    noisy, clean = noisy_step(case.subject, case.target), noisy_step(case.subject, case.target, 0.0)
    points = generic_points(clean)
    covariances, means = [], []
    for step in (noisy, clean):
        moments = step.moments(points, h)
        means.append(moments.increment)
        covariances.append(moments.square - np.einsum("pi,pj->pij", moments.increment, moments.increment))
    spread = np.abs(covariances[1]).max(axis=(1, 2))
    mean_gap = np.abs(means[0] - means[1]).max(axis=1) / np.sqrt(spread)
    gap = np.abs(covariances[0] - covariances[1]).max(axis=(1, 2)) / spread
    effect = float(np.maximum(mean_gap, gap).max())
    p = int(np.argmax(np.maximum(mean_gap, gap)))
    size = 1 + np.abs(means[1]).max() ** 2 / spread.min()  # a covariance is a difference of second moments
    allowance = 1e3 * np.finfo(float).eps * float(size)
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off of a difference of second moments"),
        reason=(
            f"at z = {np.round(points[p], 3).tolist()} the covariance of a step is off by {gap[p]:.3g} and its mean by "
            f"{mean_gap[p]:.3g} from those with exact gradients"
        ),
        statistic="largest gap of the mean and of the covariance of one step",
        unit="relative to the covariance of the step",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )
