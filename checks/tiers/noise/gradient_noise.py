"""The noise tier: chains with noisy gradients end in the law that theory gives, and the noise is there.

Where the step is affine the null law is exact, with the noise of the gradient and all that the state carries from one
step to the next; a sampler that compensates the noise has to have the law without it. Elsewhere the limit h -> 0 is
extrapolated, which gradient noise must not change.
"""

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, require_stationary_law, statement
from sgmcmc_verification.checks.core.finding import Finding, absent
from sgmcmc_verification.checks.core.selection import last, several, with_data
from sgmcmc_verification.checks.end_points.chains import EndPoints, end_points
from sgmcmc_verification.checks.end_points.comparison import (
    is_variance,
    judge,
    moment_tests,
    names,
    second_moment_tests,
)
from sgmcmc_verification.checks.end_points.error_rates import CHAINS, Sensitivity, stage_seed
from sgmcmc_verification.checks.end_points.step_size_limit import limit_of_chains
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_variables
from sgmcmc_verification.checks.exact_laws.null_law import NUM_STEPS, NullLaw, null_law
from sgmcmc_verification.checks.tracing.estimator_memory import BATCH, with_memory
from sgmcmc_verification.checks.tracing.noisy_step import compensates, noisy_step
from sgmcmc_verification.checks.tracing.potential_estimator import with_energy
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.interface.claims import ExactLaw
from sgmcmc_verification.targets.target import Target

MOST = CHAINS // 4
"""Chains."""
PROMISED = 0.02
"""Relative error of a variance that is seen."""
FEW = 64
"""Chains that tell whether noise enters at all."""
UNUSED = "does not enter the step: the estimate is not used"


def _require_noisy_gradients(subject: Subject, target: Target) -> None:
    """Raise NotApplicable for samplers that gradient noise is no business of."""
    sampler = subject.sampler(target)
    if ExactLaw in sampler.claims:
        raise NotApplicable("an exact kernel needs exact gradients")
    require_stationary_law(sampler.claims)
    if "statistics" in sampler.needs:
        raise NotApplicable("reads counts, not gradients")


def _ends(step: JaxStep | HostStep, h: float, seed: int, stage: int, count: int) -> EndPoints:
    starts = draw_variables(step, np.random.default_rng(stage_seed(seed, stage, 1)), count)
    return end_points(step, starts, h, NUM_STEPS, stage_seed(seed, stage, 2))


def _enters(first: JaxStep | HostStep, second: JaxStep | HostStep, h: float, seed: int) -> bool:
    """True if a few chains with the same starts and keys end elsewhere with another estimator."""
    starts = draw_variables(first, np.random.default_rng(stage_seed(seed, 0, 3)), FEW)
    ends = [end_points(step, starts, h, 3, stage_seed(seed, 0, 4)).variable for step in (first, second)]
    return not np.array_equal(ends[0], ends[1])


@statement(
    tier="noise",
    equation="E f(z_n) = pi_h(f) with gradient noise N(0, V), which is present",
    targets=last(several),
    cost=6.0,
    decides="law",
    samples=True,
    once=True,
)
def gradient_noise_end_points(case: Case, seed: int) -> Finding:
    """With gradient noise N(0, V), V known and correlated, the end points have their exact law; the noise is there.

    A sampler that compensates the noise is compared with its law without any, one that does not with the law that the
    noise gives it. Where the step is not affine the limit h -> 0 is compared with the target; the bias is then of order
    one, whatever the order with exact gradients.
    """
    _require_noisy_gradients(case.subject, case.target)
    h = case.step_size
    noisy, clean = noisy_step(case.subject, case.target), noisy_step(case.subject, case.target, 0.0)
    if not _enters(noisy, clean, h, seed):
        return absent(case.step_size, f"noise of the gradient {UNUSED}")
    compensated = compensates(noisy.sampler)
    try:
        law, without = null_law(noisy, h), null_law(clean, h)
    except NotApplicable as reason:
        extra = f"; extrapolated, since {reason}"
        return limit_of_chains(case.subject, case.target, seed, noisy, 1, extra)
    gap = float(np.abs(law.expectations - without.expectations).max())
    null = without if compensated else law
    return judge(
        step=noisy,
        law=null,
        ends=lambda stage, n: _ends(noisy, h, seed, stage, n),
        tests=moment_tests,
        num_steps=NUM_STEPS,
        step_size=h,
        promised=Sensitivity(_promised(null), "standardised", MOST, is_variance),
        detail={"compensated": compensated, "change_by_noise": gap},
    )


@statement(
    tier="noise",
    equation="E z_n and E z_n z_n^T are those of the recursion over all minibatches",
    targets=with_data,
    cost=6.0,
    decides="law",
    samples=True,
    once=True,
)
def minibatch_end_points(case: Case, seed: int) -> Finding:
    """With minibatches of a tiny data set the first two moments of the end points are those of the exact recursion.

    The recursion runs over all minibatches. Where the step is not affine the limit h -> 0 is compared with the target.
    """
    _require_noisy_gradients(case.subject, case.target)
    if case.target.terms is None:
        raise NotApplicable("needs a target that is a sum over data")
    h, clean = case.step_size, step_map(case.subject, case.target)
    if clean.sampler.backend == "host":
        raise OutOfReach("a host sampler would draw its minibatches one chain at a time in Python")
    compensated = "covariance" in clean.sampler.needs
    terms = case.target.terms
    of_size = lambda size: with_energy(
        case.subject, case.target, Minibatch(terms, size, replace=False, fisher=compensated)
    )
    noisy, everything = (step_map(case.subject, case.target, of_size(size)) for size in (BATCH, terms.size))
    if not _enters(noisy, everything, h, seed):
        return absent(case.step_size, f"the minibatch {UNUSED}")
    return _against_recursion(case.subject, case.target, seed, noisy, noisy, h)


def _against_recursion(subject, target, seed, step, reference, h: float) -> Finding:
    """The end points of `step` against the exact law of `reference`, else against the target as h -> 0."""
    try:
        law: NullLaw = null_law(reference, h)
    except NotApplicable as reason:
        return limit_of_chains(subject, target, seed, step, 1, f"; extrapolated, since {reason}")
    return judge(
        step=step,
        law=law,
        ends=lambda stage, n: _ends(step, h, seed, stage, n),
        tests=second_moment_tests,
        num_steps=NUM_STEPS,
        step_size=h,
        promised=Sensitivity(_promised(law), "standardised", MOST, is_variance),
    )


def _promised(law: NullLaw) -> float:
    """`PROMISED` of the largest variance that the noise makes."""
    squares = [mu for name, mu in zip(names(law), law.expectations, strict=True) if name.endswith("^2")]
    return PROMISED * max(1.0, *squares)


@statement(
    tier="noise",
    equation="E z_n and E z_n z_n^T are those of the recursion of position and table",
    targets=with_data,
    cost=1.0,
    decides="law",
    samples=True,
    once=True,
)
def estimator_memory(case: Case, seed: int) -> Finding:
    """With minibatches an estimator that remembers gradients gives the law of the recursion that includes its table.

    The noise-free checks rebuild the memory from the position and see none of it. The reference is the sampler with
    `checks.tiers.law.estimator_memory.PointMemory`, whose first two moments follow from a recursion in position and
    points over all minibatches.
    """
    _require_noisy_gradients(case.subject, case.target)
    step, reference, h = with_memory(case.subject, case.target)
    return _against_recursion(case.subject, case.target, seed, step, reference, h)
