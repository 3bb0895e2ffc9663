"""The invariance tier: independent chains from the claimed law end in the law that theory gives.

The chains are independent and start exactly from the claimed law, so their end points are an i.i.d. sample whatever the
autocorrelation of a chain. The null law is `checks.exact_laws.null_law`: the scheme's own exact discrete law, of which
only the part that vanishes as h -> 0 is granted; for an exact kernel, the target itself.
"""

from collections.abc import Callable, Sequence

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.selection import informative, last
from sgmcmc_verification.checks.end_points.chains import sample
from sgmcmc_verification.checks.end_points.comparison import (
    directions,
    is_variance,
    judge,
    ks_tests,
    levels,
    moment_tests,
)
from sgmcmc_verification.checks.end_points.error_rates import (
    CHAINS,
    Sensitivity,
    chains_for,
    decide_statistically,
    for_kurtosis,
    not_finite,
)
from sgmcmc_verification.checks.exact_laws.null_law import NUM_STEPS, NullLaw, null_law
from sgmcmc_verification.checks.numerics.observables import observable_names
from sgmcmc_verification.checks.statistics.distribution import anderson_darling_test
from sgmcmc_verification.checks.statistics.mmd import fourier_frequencies, mmd_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.targets.target import Target

VARIANCE, DISTANCE, WEIGHTED, DISCREPANCY = 0.01, 0.005, 0.01, 0.015
"""Promised: relative error of a variance, KS distance, its weighted L2 relative, and MMD."""
LEAST_MOVEMENT = 1e-3
MOVING = 1 << 16
"""Chains for the test of movement, which is about effects of order one."""
JOINT = 1 << 17
"""Chains for the MMD, whose features take 80 numbers a chain."""
FEWEST = 64
"""Chains that an Anderson-Darling test has at least."""


def _judge(
    subject: Subject,
    target: Target,
    seed: int,
    tests: Callable[[NullLaw, np.ndarray], Sequence[Outcome]],
    promised: Sensitivity,
) -> Finding:
    """Run `tests(law, y)` on the end points."""
    step, h = step_map(subject, target), subject.step_size(target)
    return judge(
        step=step,
        law=null_law(step, h),
        ends=lambda stage, n: sample(step, h, NUM_STEPS, seed, stage, n)[1],
        tests=tests,
        num_steps=NUM_STEPS,
        step_size=h,
        promised=promised,
    )


@statement(
    tier="invariance",
    equation="E f(z_n) = pi_h(f) for means, second to fourth moments and waves f",
    targets=informative,
    cost=6.0,
    decides="law",
    samples=True,
)
def end_point_moments(case: Case, seed: int) -> Finding:
    """z tests of means, second to fourth moments and waves of the end points, standardised by the claimed law.

    A relative error of `VARIANCE` in a variance is promised for a normal law, a larger one for heavier tails; it is
    beyond the numerical error of the null law, as long as that is smaller itself.
    """
    law = null_law(step_map(case.subject, case.target), case.step_size)
    kurtosis = float(law.expectations[fourth_moments(law)].max())
    seen = for_kurtosis(VARIANCE, kurtosis) + min(law.error, VARIANCE)
    promised = Sensitivity(seen, "standardised", primary=is_variance)
    return _judge(case.subject, case.target, seed, moment_tests, promised)


def fourth_moments(law: NullLaw) -> slice:
    """Slice of the fourth moments of the coordinates among the expectations of a null law."""
    end = len(observable_names(("",) * law.size)) - 2  # the waves come last
    return slice(end - law.size, end)


def _require_directions(law: NullLaw) -> None:
    """Raise NotApplicable where no distribution function of a coordinate or projection is known."""
    if not directions(law):
        raise OutOfReach("no distribution function of a coordinate is known: see closed_form_marginals")


@statement(
    tier="invariance",
    equation="a . z_n has the distribution function of pi_h",
    targets=informative,
    cost=2.0,
    decides="law",
    samples=True,
)
def end_point_ks(case: Case, seed: int) -> Finding:
    """Kolmogorov-Smirnov distances of the marginals and of random projections of the end points."""
    _require_directions(null_law(step_map(case.subject, case.target), case.step_size))
    return _judge(case.subject, case.target, seed, ks_tests, Sensitivity(DISTANCE, "KS distance"))


@statement(
    tier="invariance",
    equation="a . z_n has the distribution function of pi_h, tails included",
    targets=informative,
    cost=2.0,
    decides="law",
    samples=True,
    once=True,
)
def end_point_anderson_darling(case: Case, seed: int) -> Finding:
    """Anderson-Darling distances of the marginals and of random projections of the end points."""

    law = null_law(step_map(case.subject, case.target), case.step_size)
    _require_directions(law)
    # The statistic has no allowance: it is given no more chains than would see the numerical error of the null law.
    most = int(min(CHAINS, 0.01 / max(law.cdf_error, 1e-9) ** 2))
    if most < FEWEST:
        raise Inconclusive(f"the distribution function of the null law is known to {law.cdf_error:.2g} only")

    def tests(law, y):
        return [anderson_darling_test(u, name=name) for name, u in levels(law, y[:most])]

    return _judge(case.subject, case.target, seed, tests, Sensitivity(WEIGHTED, "weighted L2 distance"))


@statement(
    tier="invariance",
    equation="E exp(i w . z_n) is that of the joint law pi_h",
    targets=informative,
    cost=2.0,
    decides="law",
    samples=True,
)
def end_point_mmd(case: Case, seed: int) -> Finding:
    """Maximum mean discrepancy of the joint law of the end points, a mixture of Gaussian kernels of five bandwidths.

    The mean features are exact values of the characteristic function of the null law, and the tail of the statistic is
    that of a weighted sum of chi-squares: nothing is resampled.
    """

    def tests(law, y):
        # the median distance of two points of a standard normal law; the frequencies do not depend on the data
        frequencies = fourier_frequencies(law.size, law.size, np.sqrt(2 * law.size), count=8)
        values = law.characteristic(frequencies) / np.sqrt(len(frequencies))
        return [mmd_test(y, frequencies, np.concatenate([values.real, values.imag]), allowance=law.error)]

    return _judge(case.subject, case.target, seed, tests, Sensitivity(DISCREPANCY, "MMD", JOINT))


@statement(
    tier="invariance",
    equation="E (x_n - x_0)^2 > 0",
    targets=last(informative),
    cost=1.0,
    decides="conduct",
    samples=True,
)
def chains_move(case: Case, seed: int) -> Finding:
    """The chains leave their starts: the identity map leaves every law invariant.

        LEAST_MOVEMENT <= E (x_n - x_0)^2 / (2 Var x) <= 2

    for every coordinate of the position: one minus an autocorrelation. The lower bound is far below that of any claimed
    law: the slowest direction of the catalogue relaxes in some fifty times the time that the chains have.
    """
    step, h = step_map(case.subject, case.target), case.step_size
    count = chains_for(step, MOVING)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        starts, ends = sample(step, h, NUM_STEPS, seed, stage, n)
        before = starts[:, : case.target.size]
        with np.errstate(over="ignore"):  # a chain that runs away is reported below
            moved = (ends.position - before) ** 2 / (2 * before.var(axis=0))
        if not np.isfinite(moved).all():
            return [not_finite("end points that are not finite", n, "of twice the variance")]
        half = LEAST_MOVEMENT / 2
        return [
            mean_test(moved[:, i], 1 + half, name=f"x[{i}]", unit="of twice the variance", allowance=1 - half)
            for i in range(case.target.size)
        ]

    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(1.5),
        allowance_source="an autocorrelation lies between -1 and 1 - LEAST_MOVEMENT",
        reason=lambda o: f"{o.name} has a mean square displacement of {o.measured:.4g} in {NUM_STEPS} steps",
        steps=NUM_STEPS,
        step_size=h,
    )
