"""Judgement of the draws of one problem: statements about the law, at once for all step sizes.

Each statement tests expectations E f that are known exactly. Runs at h, h / 2 (and h / 4) have
E_h f = E f + c_1 h + c_2 h^2 + ..; the combination of them that removes c_1 (and c_2) is tested, and it is granted the
last correction that it made: for an error c h^p of one order p >= 1 that is more than what is left of it.

    two sizes      2 f(h/2) - f(h)                        granted |f(h/2) - f(h)|
    three sizes    (8 f(h/4) - 6 f(h/2) + f(h)) / 3       granted its distance to 2 f(h/4) - f(h/2)

Draws of a chain depend on each other, so that standard errors are estimates, and levels hold to some per cent of the
standard error (`checks.draws.independent`), not exactly as for the independent chains of the other statements.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy import special

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.check import Inconclusive
from sgmcmc_verification.checks.core.finding import Finding, Significance, Tolerance
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.draws import functions
from sgmcmc_verification.checks.draws.answers import Draws
from sgmcmc_verification.checks.draws.functions import Function
from sgmcmc_verification.checks.draws.independent import (
    FEWEST_CHAINS,
    LARGEST_RHAT,
    LEAST_SIZE,
    batches,
    changes,
    effective_size,
    rhat,
    thinned,
)
from sgmcmc_verification.checks.draws.problems import Run
from sgmcmc_verification.checks.statistics.distribution import ks_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome, bonferroni
from sgmcmc_verification.targets.target import Target

WEIGHTS = {
    1: ((1.0,), (1.0,)),
    2: ((-1.0, 2.0), (0.0, 1.0)),
    3: ((1 / 3, -2.0, 8 / 3), (0.0, -1.0, 2.0)),
}
"""Number of step sizes, the largest first -> weights of the limit, and of the limit with one term less."""
POWER = 0.99
DEVIATIONS = 0.2
"""Standard deviations of f by which E f may be wrong unseen: a temperature that is 28% off in a Gaussian coordinate."""
DISTANCE = 0.15
"""Kolmogorov-Smirnov distance that may stay unseen."""
SLOPE = 0.25
"""Relative error of the slope of the energy ratio that may stay unseen."""


class Family(NamedTuple):
    """Runs at one temperature: one without a step size, or two or three whose step sizes halve.

    Attributes:
        temperature: T.
        step_sizes: the largest first; () for a run without one.
        draws: of each run.
    """

    temperature: float
    step_sizes: tuple[float, ...]
    draws: tuple[Draws, ...]

    @property
    def name(self) -> str:
        """In words."""
        sizes = ", ".join(f"{h:g}" for h in self.step_sizes)
        return f"T = {self.temperature:g}, " + (f"h = {sizes}" if sizes else "no step size")


def families(runs: Sequence[tuple[Run, Draws]]) -> list[Family]:
    """The runs by temperature and kind.

    Raises:
        BadInput: for step sizes that do not halve, or chains that differ from run to run.
    """
    found = []
    for temperature, exact in dict.fromkeys((run.temperature, run.step_size is None) for run, _ in runs):
        same = [(r, d) for r, d in runs if r.temperature == temperature and (r.step_size is None) == exact]
        same.sort(key=lambda pair: -(pair[0].step_size or 0.0))
        sizes = tuple(run.step_size for run, _ in same if run.step_size is not None)
        names = ", ".join(run.file for run, _ in same)
        if exact and len(same) > 1:
            raise BadInput(f"runs {names}: two without a step size at temperature {temperature:g}; keep one")
        halves = all(math.isclose(a, 2 * b, rel_tol=1e-6) for a, b in itertools.pairwise(sizes))
        if not exact and not (len(sizes) in WEIGHTS and len(sizes) > 1 and halves):
            raise BadInput(f"runs {names}: have the step sizes {sizes}; give two or three, each half of the one before")
        draws = tuple(draws for _, draws in same)
        shapes = {d.x.shape for d in draws}
        if len(shapes) > 1:
            raise BadInput(f"runs {names}: have the shapes {sorted(shapes)}; give as many chains and draws of each")
        if len({(d.p is None, d.work is None) for d in draws}) > 1:
            raise BadInput(f"runs {names}: some have momenta or work, and others have none")
        found.append(Family(temperature, sizes, draws))
    return found


def judge(name: str, target: Target, found: Sequence[Family], level: float) -> list[Result]:
    """The results of all statements about the draws of one problem.

    Args:
        name: under which they are reported.
        target: of the problem.
        found: what there is of it.
        level: probability of a violation that is none, all statements together; approximate.
    """
    planned = [(family, *each) for family in found for each in _statements(target, family)]
    pairs = [(a, b) for a in found for b in found if a.temperature < b.temperature and a.step_sizes == b.step_sizes]
    for cold, hot in pairs:
        if cold.draws[0].x.shape != hot.draws[0].x.shape:
            raise BadInput(f"{name}: {cold.name} and {hot.name} differ in shape; give as many chains and draws of each")
    alpha = level / (len(planned) + len(pairs))
    mixed = {id(family): _unmixed(target, family, alpha) for family in found}
    results = []
    for family, statement, equation, promised, outcomes in planned:
        why = mixed[id(family)]
        results.append(
            _result(name, target, family.name, statement, equation, _decided(outcomes, alpha, promised, why))
        )
    for cold, hot in pairs:
        equation = "log p_2(E) / p_1(E) = const - (1 / T_2 - 1 / T_1) E"
        where = f"{cold.name}, and T = {hot.temperature:g}"
        why = mixed[id(cold)] or mixed[id(hot)]
        ratio = lambda cold=cold, hot=hot: [_energy_ratio(target, cold, hot)]
        results.append(_result(name, target, where, "energy_ratio", equation, _decided(ratio, alpha, SLOPE, why)))
    return results


Statement = tuple[str, str, float, Callable[[], list[Outcome]]]
"""Name, equation, what may stay unseen, and the tests."""


def _statements(target: Target, family: Family) -> list[Statement]:
    law, t = functions.law_at(target, family.temperature), family.temperature
    tests = lambda fs: lambda: [expectation(f, family) for f in fs()]
    found: list[Statement] = [
        ("moments", "E f(x) is that of exp(-U / T)", DEVIATIONS, tests(lambda: functions.moments(law))),
        (
            "configurational_temperature",
            "E (d_i U)^2 = T E d_i d_i U",
            DEVIATIONS,
            tests(lambda: functions.configurational(law, t)),
        ),
    ]
    if law.cdfs:
        found.append(("deciles", "P(F(s) <= q) = q", DEVIATIONS, tests(lambda: functions.deciles(law))))
    if law.cdfs and not family.step_sizes:
        ks = lambda: [ks_test(thinned(u(family.draws[0])), name=name) for name, u in functions.levels(law)]
        found.append(("distribution", "sup |F_n - F| -> 0", DISTANCE, ks))
    if family.draws[0].p is not None:
        each = tests(lambda: functions.kinetic(law.size, t))
        found.append(("kinetic_temperature", "p ~ N(0, T I), independent of x", DEVIATIONS, each))
    if family.draws[0].work is not None and family.step_sizes:
        found.append(("shadow_work", "E work / h -> 0 as h -> 0", DEVIATIONS, lambda: [_work(family)]))
    return found


def expectation(f: Function, family: Family) -> Outcome:
    """Test of lim E_h f = E f, in standard deviations of f.

    Raises:
        Inconclusive: if there are too few effective draws.
    """
    values = [f.values(draws) for draws in family.draws]
    scale = float(values[-1].std()) if f.scale is None else f.scale
    return _limit(f.name, values, f.expected, f.error, scale, "standard deviations")


def _limit(name: str, values: Sequence[np.ndarray], expected: float, error: float, scale: float, unit: str) -> Outcome:
    """Test of the limit h -> 0 of the means of values (chains, draws), one array for each step size."""
    if not scale > 0:
        raise Inconclusive(f"{name} is constant over all draws")
    return _limit_of_batches(name, batches(values), expected, error, scale, unit)


def _limit_of_batches(
    name: str, means: Sequence[np.ndarray], expected: float, error: float, scale: float, unit: str
) -> Outcome:
    weights, fewer = WEIGHTS[len(means)]
    limit = sum(w * m for w, m in zip(weights, means, strict=True))
    last = sum((w - v) * float(m.mean()) for w, v, m in zip(weights, fewer, means, strict=True))
    return mean_test(limit, expected, name=name, allowance=(abs(last) + error) / scale, unit=unit, scale=scale)


def _energy_ratio(target: Target, cold: Family, hot: Family) -> Outcome:
    """Test of the slope of the log ratio of the densities of the energy E = U at two temperatures.

        p_i(E) = g(E) exp(-E / T_i) / Z_i,   so P(i = 2 | E) = sigma(c - b E),   b = 1 / T_2 - 1 / T_1

    of pooled draws, as many of each: a logistic regression, whatever the density of states g is. With c fitted at the
    claimed b, one Newton step for the slope is the mean over both temperatures of

        (y - s(E)) (E - E_w) / mean(s (1 - s) (E - E_w)^2),   s = sigma(c - b E),   y = 1 for the second,

    with E_w the mean of E with weights s (1 - s). Its expectation is zero if the ratio has the slope -b.

    Source: shirts2013simple (the slope by maximum likelihood); mccullagh1989generalized, section 2.5 (the step).
    """
    b = 1 / hot.temperature - 1 / cold.temperature
    u = functions.energy(target)
    first, second = [], []
    for one, two in zip(cold.draws, hot.draws, strict=True):
        energies = [u(one), u(two)]
        pooled = np.concatenate([e.ravel() for e in energies])
        scaled = b * pooled
        excess = lambda c, scaled=scaled: float(np.mean(special.expit(c - scaled))) - 0.5
        c = scipy.optimize.root_scalar(excess, bracket=(scaled.min() - 1, scaled.max() + 1)).root
        s = special.expit(c - scaled)
        centre = float(np.average(pooled, weights=s * (1 - s)))
        information = float(np.mean(s * (1 - s) * (pooled - centre) ** 2))
        terms = [(y - special.expit(c - b * e)) * (e - centre) / information / 2 for y, e in enumerate(energies)]
        first.append(terms[0] / b)
        second.append(terms[1] / b)
    means = batches([*first, *second])  # together, so that there are as many batches of each
    means = [a + c for a, c in zip(means[: len(first)], means[len(first) :], strict=True)]
    return _limit_of_batches("relative error of the slope", means, 0.0, 0.0, 1.0, "relative")


def _work(family: Family) -> Outcome:
    """Test of a mean energy error per unit of time that vanishes as h -> 0, in its root mean square at the largest h.

    Source: sivak2013using (the shadow work of a step, whose mean rate vanishes with h).
    """
    rates = [d.work / h for d, h in zip(family.draws, family.step_sizes, strict=True) if d.work is not None]
    scale = float(np.sqrt(np.mean(rates[0] ** 2)))
    return _limit("work / h", rates, 0.0, 0.0, scale, "root mean squares at h")


def _unmixed(target: Target, family: Family, alpha: float) -> str:
    """Reason why the chains of a family do not represent one law; empty if they do."""
    for draws in family.draws:
        chains = draws.x.shape[0]
        if chains < FEWEST_CHAINS:
            return f"{chains} chains cannot show that they forgot their starts: give at least {FEWEST_CHAINS}"
        for i in range(target.size):
            values = draws.x[..., i]
            if not np.ptp(values) > 0:
                return f"x_{i + 1} does not move"
            found, size = rhat(values), effective_size(values)
            if not found <= LARGEST_RHAT:
                return f"chains disagree about x_{i + 1} (R-hat {found:.3f}, at most {LARGEST_RHAT}): run them longer"
            if not size >= LEAST_SIZE:
                return f"x_{i + 1} has {size:.0f} effective draws of {values.size}: at least {LEAST_SIZE} are needed"
            drift = mean_test(changes(values), 0.0, scale=float(values.std()))
            if drift.rejects(alpha / target.size):
                return f"x_{i + 1} drifts by {drift.effect:.2g} standard deviations: discard more of the beginning"
    return ""


def _decided(tests: Callable[[], Iterable[Outcome]], alpha: float, promised: float, why: str) -> Finding | str:
    """The finding of a statement, or the reason why there is none."""
    if why:
        return why
    try:
        outcomes = list(tests())
    except Inconclusive as reason:
        return str(reason)
    worst = bonferroni("all", outcomes)
    # what is most wrong of what is rejected: the coordinate, and not the sum that it is a part of
    rejected = [o for o in outcomes if o.rejects(alpha / len(outcomes))]
    shown = max(rejected, key=lambda o: o.effect) if rejected else min(outcomes, key=lambda o: o.log_p)
    # The skewness of a fourth power keeps samples of usual size from rejecting at such levels: it promises nothing.
    main = [o for o in outcomes if not o.name.endswith("^4")]
    bluntest = max(main, key=lambda o: o.detectable(alpha / len(outcomes), POWER))
    seen = bluntest.detectable(alpha / len(outcomes), POWER)
    if not rejected and not math.isfinite(seen):
        return f"{bluntest.name} has too few effective draws for a rejection at this level: give several times as many"
    reason = f"{shown.name}: {shown.effect:.3g} {shown.unit}"
    if shown.measured is not None:
        reason = f"{shown.name} is {shown.measured:.5g}, expected {shown.expected:.5g}"
    return Finding(
        effect=shown.effect,
        tolerance=Tolerance(shown.allowance, "the last correction of the extrapolation h -> 0"),
        minimum_detectable_effect=seen,
        required_sensitivity=promised,
        reason=reason,
        statistic=shown.name,
        unit=shown.unit,
        samples=shown.n,
        significance=Significance(worst.rejects(alpha), worst.p, alpha, POWER, shown.standard_error),
    )


def _result(name: str, target: Target, where: str, statement: str, equation: str, found: Finding | str) -> Result:
    facts: dict[str, Any] = {"statement": statement, "equation": equation, "sampler": name, "check": "draws"}
    facts["tier"] = "draws"
    if isinstance(found, str):
        return Result(**facts, verdict="inconclusive", reason=found, target=target.name, detail={"runs": where})
    significance = found.significance
    assert significance is not None  # all statements are statistical
    return Result(
        **facts,
        verdict=found.verdict,
        reason=found.explanation,
        target=target.name,
        statistic=found.statistic,
        effect=found.effect,
        unit=found.unit,
        standard_error=significance.standard_error,
        allowance=found.tolerance.value,
        allowance_source=found.tolerance.source,
        p_value=significance.p_value,
        alpha=significance.alpha,
        power=significance.power,
        detectable=found.minimum_detectable_effect,
        n=found.samples,
        detail={"runs": where},
        decides="law",
    )
