"""Closed forms of samplers that move Gamma laws by exact transitions with counts of minibatches, without sampling.

One step given the counts, in Laplace transform, and two steps with random counts, in mean and variance. The step of the
sampler is walked over all branches of its draws (`checks.tracing.host_branching`); the counts are binomial, which is
the law of one category in a minibatch with replacement, and their outcomes are enumerated in the same walk.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import everywhere
from sgmcmc_verification.checks.tracing.host_branching import Unintercepted, branches
from sgmcmc_verification.samplers.interface.claims import Diffusion, ExactLaw
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.targets.target import Target

EPS = float(np.finfo(float).eps)
LAPLACE = (0.3, 1.0, 3.0)
"""Arguments s of E exp(-s theta')."""
THETAS = (0.2, 1.7)
FINE, COARSE = 18, 15
"""Nodes for each draw of one step, and of the rule that tells the error."""
EXACT = 3
"""Nodes for each draw that make second moments exact: to degree 5."""
TOTAL, BATCH, CHANCE = 6, 2, 0.35
"""Labels, labels of a minibatch, and the share of the category that is looked at."""


@dataclass(frozen=True, eq=False)
class BinomialCounts:
    """N/n Binomial(n, p): the count of one category of share p in a minibatch of n of N labels, with replacement."""

    backend = "host"

    def init(self, key, position):
        """First state of the estimator."""
        del key, position
        return ()

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        drawn = key.binomial(BATCH, CHANCE, size=np.shape(position))
        return Estimate(None, statistics=TOTAL / BATCH * np.asarray(drawn, np.float64)), estate


@dataclass(frozen=True, eq=False)
class FixedCounts:
    """A given count."""

    count: float

    backend = "host"

    def init(self, key, position):
        """First state of the estimator."""
        del key, position
        return ()

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        del key
        return Estimate(None, statistics=np.full(np.shape(position), self.count)), estate


def counts_alone(case: Case) -> None:
    """Raise NotApplicable unless a host sampler asks for counts alone: for `draws=`."""
    sampler = case.subject.sampler(case.target)
    if sampler.backend != "host" or sampler.needs != {"statistics"}:
        raise NotApplicable("not a host sampler that asks for counts alone")


def prior_shape(subject: Subject, target: Target) -> float:
    """The prior shape: that of the target, Gamma(a, 1), less the counts of the row.

    Raises:
        NotApplicable: if the target is not a Gamma law of rate 1.
    """
    slope = jax.grad(lambda x: target.flat_potential(x))
    shapes = [1 + x * (1 - float(slope(jnp.full(target.size, x))[0])) for x in (0.5, 1.0, 3.0)]
    if target.size > 1 or np.ptp(shapes) > 1e3 * EPS * max(shapes):
        raise NotApplicable("the target is not a Gamma law of rate 1")
    estimator: Any = subject.estimator(target)  # of the host: it takes NumPy's generator for a key
    counts = estimator.estimate(np.random.default_rng(0), (), np.ones(1))[0].statistics
    return shapes[1] - float(np.ravel(counts)[0])


def expected(
    subject: Subject, target: Target, estimator: Any, function: Any, theta: float, steps: int, h: float, points: int
) -> np.ndarray:
    """E function(theta_M) (k,) over all branches of M steps from theta."""
    sampler = subject.sampler(target)

    def walk(generator):
        state = sampler.init(generator, np.array([theta]), estimator)
        for _ in range(steps):
            state = sampler.step(generator, state, h, estimator)
        return function(float(sampler.position(state)[0]))

    try:
        return np.sum([weight * value for weight, value in branches(walk, points)], axis=0)
    except Unintercepted as error:
        raise Inconclusive(f"a draw that the generator cannot feed: {error}") from None


@statement(
    tier="order",
    equation="E exp(-s theta') = (1 + s c)^-a exp(-s theta e^-h / (1 + s c)), c = 1 - e^-h",
    targets=everywhere,
    draws=counts_alone,
    cost=1.0,
    decides="order",
    once=True,
)
def laplace_of_step(case: Case, law: ExactLaw, equation: Diffusion) -> Finding:
    """E exp(-s theta') = (1 + s c)^-a exp(-s theta e^-h / (1 + s c)), c = 1 - e^-h, given the counts.

    The Laplace transform of (c / 2) chi'^2(2 a, 2 theta e^-h / c). Theorem 3.1 of the source iterates it.

    Source: baker2018large, theorem 3.1 (one step).
    """
    prior, h = prior_shape(case.subject, case.target), case.step_size
    c, s = -np.expm1(-h), np.array(LAPLACE)
    worst, effect, error = "", 0.0, 0.0
    for count in (0.0, 2.0):
        for theta in THETAS:
            a = prior + count
            oracle = (1 + s * c) ** -a * np.exp(-s * theta * np.exp(-h) / (1 + s * c))
            fine, coarse = (
                expected(case.subject, case.target, FixedCounts(count), lambda x: np.exp(-s * x), theta, 1, h, points)
                for points in (FINE, COARSE)
            )
            gap = np.abs(fine - oracle)
            error = max(error, float(np.abs(fine - coarse).max()))
            if not gap.max() <= effect:
                effect, k = float(gap.max()), int(np.argmax(gap))
                worst = f"E exp(-{s[k]:g} theta') from theta = {theta:g}, counts {count:g}: {fine[k]:.8g}"
                worst += f", expected {oracle[k]:.8g}"
    allowance = 10 * error + 1e3 * EPS
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "change from a coarser quadrature, and round-off"),
        reason=worst or "the transform is that of the transition",
        statistic="largest gap of the Laplace transform",
        unit="absolute",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-4,
        step_size=h,
    )


@statement(
    tier="order",
    equation="V' = e^-2h V + c^2 Var a^ + 2 E c e^-h + c^2 E a^ with minibatches, and E' = e^-h E + c E a^",
    targets=everywhere,
    draws=counts_alone,
    cost=1.0,
    decides="order",
    once=True,
)
def finite_time_moments(case: Case, law: ExactLaw, equation: Diffusion) -> Finding:
    """Mean and variance after two steps with counts of minibatches that are drawn afresh.

        E' = e^-h E + (1 - e^-h) E a^
        V' = e^-2h V + (1 - e^-h)^2 Var a^ + 2 E (e^-h - e^-2h) + (E a^) (1 - e^-h)^2

    with Var a^ = (N^2 / n) p (1 - p): the recursions whose solution is corollary 3.2 of the source.

    Source: baker2018large, corollary 3.2.
    """
    prior, h = prior_shape(case.subject, case.target), case.step_size
    decay, c = np.exp(-h), -np.expm1(-h)
    mean_shape = prior + TOTAL * CHANCE
    noise = TOTAL**2 / BATCH * CHANCE * (1 - CHANCE)
    effect, worst, powers = 0.0, "", np.array([1.0, 2.0])
    for theta in THETAS:
        mean, variance = theta, 0.0
        for _ in range(2):
            variance = decay**2 * variance + c**2 * noise + 2 * mean * decay * c + mean_shape * c**2
            mean = decay * mean + c * mean_shape
        first, second = expected(case.subject, case.target, BinomialCounts(), lambda x: x**powers, theta, 2, h, EXACT)
        found = (first, second - first**2)
        gaps = [abs(first - mean) / mean, abs(found[1] - variance) / variance]
        if not max(gaps) <= effect:
            effect, k = float(max(gaps)), int(np.argmax(gaps))
            worst = f"{('mean', 'variance')[k]} after two steps from {theta:g}: {found[k]:.8g}, expected "
            worst += f"{(mean, variance)[k]:.8g}"
    allowance = 1e4 * EPS
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off: the rules are exact for second moments"),
        reason=worst or "mean and variance are those of the recursions",
        statistic="largest gap of mean and variance after two steps",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
        step_size=h,
    )
