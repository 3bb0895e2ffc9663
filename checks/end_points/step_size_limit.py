"""Limit of expectations at the end of chains as the step size tends to zero."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.end_points.chains import EndPoints, end_points
from sgmcmc_verification.checks.end_points.comparison import is_variance
from sgmcmc_verification.checks.end_points.error_rates import (
    CHAINS,
    Sensitivity,
    chains_for,
    decide_statistically,
    for_kurtosis,
    not_finite,
    stage_seed,
)
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import position_rule
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_variables
from sgmcmc_verification.checks.numerics.observables import observable_names, observables
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, ExactLaw
from sgmcmc_verification.targets.target import Target

NUM_STEPS = 20
"""Steps of the largest size; the smaller ones take 2 and 4 times as many, 4 and 16 times with a full refresh."""


MOST = CHAINS // 4
"""Chains of each step size."""


PROMISED = 0.1
"""Relative error of a variance that is seen: the extrapolation costs a factor of up to 3.3 in the standard error."""


def extrapolation(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (3,) on the means at h, h/2, h/4 of the limit and of its last correction.

    With A(h) = (2^q m(h/2) - m(h)) / (2^q - 1) the power h^q cancels; C = (2^(q+1) A(h/2) - A(h)) / (2^(q+1) - 1) has
    the error O(h^(q+2)). The correction C - A(h/2) is the term of order h^(q+1): an estimate of the size of the terms
    that were cancelled last, hence a bound of those that follow once h is in the asymptotic regime.
    """
    lead = np.array([[-1.0, 2.0**order, 0.0], [0.0, -1.0, 2.0**order]]) / (2.0**order - 1)
    limit = (2.0 ** (order + 1) * lead[1] - lead[0]) / (2.0 ** (order + 1) - 1)
    return limit, limit - lead[1]


def coarse_extrapolation(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (2,) on the means at h, h/4 of the limit and of its correction, for runs that show little.

    With A = (4^q m(h/4) - m(h)) / (4^q - 1) the power h^q cancels. The correction A - m(h/4) is that power itself; of
    an error c h^p alone, p > q, A keeps (4^q - 4^p) / (1 - 4^p) < 1 times the correction. Independent means of one
    variance leave A one of 17/9 for q = 1, at the cost of 5 means, where `extrapolation` leaves 101/9 at the cost of 7.
    """
    factor = 4.0**order
    return np.array([-1.0, factor]) / (factor - 1), np.array([-1.0, 1.0]) / (factor - 1)


EXTRAPOLATIONS = {2: coarse_extrapolation, 3: extrapolation}


def limit_test(
    values: np.ndarray, order: int, expected: float, name: str, error: float = 0.0, unit: str = "standardised"
) -> Outcome:
    """Test that `expected` lies within one correction of the extrapolated mean.

    With a = E[C] - mu and b = E[correction], the null is |a| <= |b|, that is, a - b and a + b do not have the same
    sign. Both are means of independent values, and the null is rejected if both z tests reject on the same side: an
    intersection-union test, whose p-value is the larger of the two.

    Source: berger1982multiparameter, theorem 1.

    Args:
        values: (3, n), f at the end points of n chains with step sizes h, h/2, h/4; or (2, n) with h, h/4.
        order: q.
        expected: mu.
        name: of f.
        error: numerical error of `expected`, granted on top.
        unit: of f.
    """
    limit, correction = EXTRAPOLATIONS[len(values)](order)
    below, above = (
        mean_test((limit + sign * correction) @ values, expected, name=name, unit=unit, allowance=error)
        for sign in (-1, 1)
    )
    measured, bound = float(limit @ values.mean(axis=1)), abs(float(correction @ values.mean(axis=1)))
    assert below.measured is not None
    assert above.measured is not None
    same = (below.measured > expected) == (above.measured > expected)
    blunt = max(below, above, key=lambda o: o.standard_error or 0.0)
    return dataclasses.replace(
        blunt,
        effect=abs(measured - expected),
        allowance=bound + error,
        log_p=max(below.log_p, above.log_p) if same else 0.0,
        threshold=lambda alpha: bound + blunt.threshold(alpha),
        detectable=lambda alpha, power: bound + blunt.detectable(alpha, power),
        measured=measured,
    )


def outcomes_of(
    values: np.ndarray, order: int, expected: np.ndarray, names: Sequence[str], unit: str = "standardised"
) -> list[Outcome]:
    """Tests of expectations at one step size, as of an exact kernel, or of their limits h -> 0.

    Args:
        values: (1, n, K), (2, n, K) or (3, n, K), K functions of n chains at the step size h, at h, h/4 or h, h/2, h/4.
        order: at which the bias vanishes.
        expected: (K,).
        names: of the functions.
        unit: of all of them.
    """
    named = zip(values.transpose(2, 0, 1), expected, names, strict=True)
    if len(values) == 1:
        return [mean_test(v[0], float(mu), name=name, unit=unit) for v, mu, name in named]
    return [limit_test(v, order, float(mu), name, unit=unit) for v, mu, name in named]


def order_of(claims: Claims) -> int:
    """The order q at which the bias of the invariant law vanishes; 1 for an exact kernel, which has none."""
    return 1 if ExactLaw in claims else (claims.invariant_order or claims.weak_order or 1)


class Statistics(NamedTuple):
    """Statistic that is extrapolated.

    Attributes:
        functions: end points -> values (n, K).
        expected: under the claimed law (K,).
        names: of the functions.
        promised: the effect that is seen among the primary outcomes with all chains.
        primary: the outcomes that this is promised of.
    """

    functions: Callable[[EndPoints], np.ndarray]
    expected: np.ndarray
    names: Sequence[str]
    promised: float
    primary: Callable[[Outcome], bool]


def standard_statistics(target: Target, temperature: float) -> Statistics:
    """Observables of the standardised position and their expectations; NotApplicable without a quadrature rule."""
    points, weights = position_rule(target, temperature)
    centre = weights @ points
    spread = np.sqrt(weights @ (points - centre) ** 2)
    functions = lambda x: observables((x - centre) / spread)
    kurtosis = float((weights @ ((points - centre) / spread) ** 4).max())
    return Statistics(
        lambda ends: np.asarray(functions(ends.position)),
        weights @ functions(points),
        observable_names(tuple(f"y[{i}]" for i in range(target.size))),
        for_kurtosis(PROMISED, kurtosis),
        is_variance,
    )


def limit_of_chains(
    subject: Subject,
    target: Target,
    seed: int,
    step: JaxStep | HostStep,
    order: int,
    extra: str = "",
    statistics: Statistics | None = None,
) -> Finding:
    """Judge the extrapolated end points of the chains of `step`, whose bias has the order `order`."""
    claims, h = step.sampler.claims, subject.step_size(target)
    what = statistics or standard_statistics(target, claims.temperature)
    # A momentum that is drawn afresh in every step carries the position as far as a time of order h^2 does: in n / h
    # steps such a chain would stand still as h -> 0, and have the law of its start.
    more = 4 if Composite in claims else 2
    count = chains_for(step, MOST)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        values = []
        for k in range(3):
            starts = draw_variables(step, np.random.default_rng(stage_seed(seed, stage, 10 + k)), n)
            ends = end_points(step, starts, h / 2**k, NUM_STEPS * more**k, stage_seed(seed, stage, 20 + k))
            if not np.isfinite(ends.position).all():
                return [not_finite("end points that are not finite", n, "standardised")]
            values.append(np.asarray(what.functions(ends)))
        # Chain i of each step size makes one independent value of the extrapolated statistic.
        return outcomes_of(np.stack(values), order, what.expected, what.names)

    return decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(what.promised, chains=MOST, primary=what.primary).of(count),
        allowance_source="the correction of order h^(q+1), extrapolated away last",
        reason=lambda o: (
            (
                f"the limit h -> 0 of {o.name} is {o.measured:.5g}, exact {o.expected:.5g}"
                if o.measured is not None
                else o.name
            )
            + f" (T = {NUM_STEPS * h:.3g}, order {order} assumed){extra}"
        ),
        steps=(1 + more + more**2) * NUM_STEPS,
        step_size=h,
    )
