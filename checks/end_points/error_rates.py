"""From the outcomes of statistical tests to a verdict: error rates, sample sizes, escalation, in one place.

The family-wise error rate of a whole run is 1e-6: each case (a check of a sampler at given options on a target) has the
level 1e-6 / `FAMILY`, whatever was selected, where `FAMILY` bounds the number of cases of the full registry, adapters
included (a test counts them). Inside a case the outcomes share the level by Bonferroni, and the stages by
`checks.statistics.sequential`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.check import Inconclusive
from sgmcmc_verification.checks.core.finding import Finding, Significance, Tolerance
from sgmcmc_verification.checks.end_points.budget import is_spent
from sgmcmc_verification.checks.statistics.outcome import Outcome, normal_quantile
from sgmcmc_verification.checks.statistics.sequential import decide_sequentially, detectable, stage_levels
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep
from sgmcmc_verification.samplers.interface.capabilities import SimultaneousChains

FAMILY_WISE = 1e-6
FAMILY = 24_000
"""An upper bound of the number of statistical cases of all rows of the registries."""
ALPHA = FAMILY_WISE / FAMILY
POWER = 0.99
STAGES = 3
ENDED = "the budget (--budget) ended"
IN_DOUBT = f"{ENDED} while what was seen was in doubt, neither likely nor impossible for a right sampler"
CHAINS = 5 << 18
"""Chains of the first stage (1,310,720): a relative error of 1% in a variance and a KS distance of 0.005 are seen."""
HOST_CHAINS = 8_000
"""The same for a host sampler that moves one chain at a time in Python: its promises are wider by the square root."""


_fraction: ContextVar[float] = ContextVar("fraction of the chains", default=1.0)


@contextmanager
def fraction_of_chains(fraction: float) -> Iterator[None]:
    """Run every statistical check with this fraction of its chains, and with promises that are wider accordingly.

    For calibration, kill matrices and tests, whose many runs are about error rates and not about one sampler.
    """
    token = _fraction.set(fraction)
    try:
        yield
    finally:
        _fraction.reset(token)


def current_fraction() -> float:
    """The fraction of the chains with which checks run now: 1.0 outside of `fraction_of_chains`."""
    return _fraction.get()


def chains_for(step: JaxStep | HostStep, most: int = CHAINS) -> int:
    """Number of chains of the first stage for this kind of sampler."""
    fast = isinstance(step, JaxStep) or isinstance(step.sampler, SimultaneousChains)
    return max(256, int(_fraction.get() * (most if fast else min(most, HOST_CHAINS))))


class Sensitivity(NamedTuple):
    """The effect that a statistical check promises to see.

    Attributes:
        effect: its size; a run that is blunter is inconclusive, not a pass.
        unit: of the effect.
        chains: number of chains that see it.
        primary: the outcomes, all in one unit, whose detectable effect is promised and printed.
    """

    effect: float
    unit: str = ""
    chains: int = CHAINS
    primary: Callable[[Outcome], bool] = lambda outcome: True

    def of(self, count: int) -> "Sensitivity":
        """The same promise for another number of chains."""
        return self._replace(effect=promise(self.effect, count, self.chains))


def promise(at_full_size: float, count: int, full: int = CHAINS) -> float:
    """The effect that `count` chains have to see if `full` chains have to see `at_full_size`."""
    return at_full_size * math.sqrt(full / count)


def for_kurtosis(promised: float, kurtosis: float) -> float:
    """The relative error of a variance that is promised at this kurtosis, if `promised` is for a normal law.

    The variance of a sample variance is (kurtosis - 1) / n, which is 2 / n for a normal law.
    """
    return promised * max(1.0, (kurtosis - 1) / 2) ** 0.5


def stage_seed(seed: int, stage: int, stream: int = 0) -> int:
    """Seeds of the stages of a check: independent of each other, and of those of other seeds."""
    return int(np.random.SeedSequence([seed, stage, stream]).generate_state(1)[0]) >> 1


def decide_statistically(
    run: Callable[[int, int], Sequence[Outcome]],
    *,
    first_n: int,
    promised: Sensitivity,
    allowance_source: str,
    reason: Callable[[Outcome], str],
    steps: int = 1,
    step_size: float | None = None,
    detail: dict[str, Any] | None = None,
) -> Finding:
    """Run a statistical test in stages and judge it.

    Args:
        run: (stage, n) -> outcomes from n fresh chains.
        first_n: chains of the first stage.
        promised: the effect that `first_n` chains have to see among the primary outcomes.
        allowance_source: what the null law or the allowance is derived from.
        reason: the worst outcome -> one sentence on what was found.
        steps: gradient evaluations per chain, for the count.
        step_size: at which the chains ran, or None.
        detail: numbers for the report.
    """
    missing: dict[int, int] = {}

    def counted(stage: int, n: int) -> Sequence[Outcome]:
        if missing:
            raise Inconclusive(IN_DOUBT)
        outcomes = run(stage, n)
        if is_spent() and outcomes[0].n < n:
            missing[stage] = n - outcomes[0].n
        return outcomes

    decision = decide_sequentially(counted, ALPHA, first_n, STAGES)
    if missing and decision.stages > 1 and not decision.rejected:
        raise Inconclusive(IN_DOUBT)
    # the budget has nothing to do with what was seen: fewer values are a test of the same level
    made = first_n - missing.get(0, 0)
    samples = decision.n_total - sum(missing.values())
    worst = min(decision.outcomes, key=lambda o: o.log_p)
    # values that are not finite are one outcome, of which nothing was promised
    main = [o for o in decision.outcomes if promised.primary(o)] or [worst]
    return Finding(
        effect=worst.effect,
        tolerance=Tolerance(worst.allowance, allowance_source),
        # Later stages hold more chains, so what the first one sees is what the run promised.
        minimum_detectable_effect=detectable(main, ALPHA, POWER, STAGES) * math.sqrt(main[0].n / made),
        required_sensitivity=promised.effect,
        reason=reason(worst) + (f" ({ENDED} after {made} of {first_n})" if made < first_n else ""),
        statistic=worst.name,
        unit=worst.unit,
        step_size=step_size,
        measurements={
            "stages": decision.stages,
            "tests": len(decision.outcomes),
            "log_p": worst.log_p,
            **(detail or {}),
        },
        samples=samples,
        gradients=samples * steps,
        significance=Significance(
            rejected=decision.rejected,
            p_value=min(1.0, len(decision.outcomes) * worst.p),
            alpha=ALPHA,
            power=POWER,
            standard_error=worst.standard_error,
        ),
    )


def enough(spread: float, effect: float, tests: int) -> int:
    """Number of values whose mean shows an effect, one of several tests, if they are normal: for plans from pilots.

    Pilots are too few for the skewness that they show. What is found by that many values is judged by `detectable`.

    Args:
        spread: standard deviation of a value.
        effect: that the first stage is to see at the level and with the power of every case.
        tests: made of them.
    """
    _, gamma = stage_levels(ALPHA, STAGES)
    z = normal_quantile(math.log(gamma / 2 / tests)) + normal_quantile(math.log((1 - POWER) / STAGES))
    return math.ceil((z * spread / effect) ** 2)


def not_finite(name: str, n: int, unit: str) -> Outcome:
    """The outcome of a sample with values that are not finite: rejected at every level."""
    never = lambda alpha: 0.0
    return Outcome(name, math.inf, unit, None, 0.0, -math.inf, n, never, lambda alpha, power: 0.0)
