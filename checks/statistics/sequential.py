"""A sequential test that is cheap on a correct sampler and never wrong more often than its level."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sgmcmc_verification.checks.statistics.outcome import Outcome


@dataclass(frozen=True)
class Decision:
    """Result of `decide_sequentially`.

    Attributes:
        rejected: True if the null hypothesis was rejected.
        outcomes: of the last stage that was run.
        n_total: samples used, all stages together.
        stages: number of stages run.
        level: level at which the last of them decided, all its outcomes together.
    """

    rejected: bool
    outcomes: tuple[Outcome, ...]
    n_total: int
    stages: int
    level: float


def stage_levels(alpha: float, stages: int) -> tuple[float, float]:
    """(beta, gamma): the level of the first stage and the probability of going on; beta = alpha/k, gamma = beta^(1/k).

    Raises:
        ValueError: a level outside of (0, 1), or no stage.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}: give a level between 0 and 1")
    if stages < 1:
        raise ValueError(f"stages is {stages}: give at least 1")
    beta = alpha / stages
    return beta, beta ** (1 / stages)


def decide_sequentially(
    run: Callable[[int, int], Sequence[Outcome]], alpha: float, first_n: int, stages: int = 3, factor: int = 4
) -> Decision:
    """Test at level alpha, with more and fresh samples only where there is doubt.

    With k stages, beta_1 = alpha/k and gamma = (alpha/k)^(1/k), stage i = 1, .., k takes n_i = first_n factor^(i-1)
    fresh samples, and q_i = min(1, m min_j p_j) over its m outcomes (Bonferroni). It

        rejects if q_i <= beta_i;    accepts if q_i > gamma + beta_i, or if i = k;
        and otherwise goes on with beta_(i+1) = beta_i/gamma.

    Level. Let the p-values be super-uniform, and R_i the probability of rejecting at stage i or later once it is
    reached; R_k <= beta_k. Stage i rejects with probability a <= beta_i and goes on with probability r, where
    a + r <= gamma + beta_i, so R_i <= a + (gamma + beta_i - a) R_(i+1), as later stages are independent. This grows
    with a, so if R_(i+1) <= (k - i) beta_(i+1) <= 1 then R_i <= beta_i + gamma (k - i) beta_i/gamma, which is
    (k - i + 1) beta_i, and in the end R_1 <= k beta_1 = alpha. Since beta_i = gamma^(k-i+1), the condition is
    (k - i) gamma^(k-i) <= 1, which holds for gamma <= 1/2, that is for alpha <= k 2^(-k).

    Cost. For one exact p-value a correct sampler goes on with probability gamma, so the expected number of samples is
    first_n sum_i (gamma factor)^(i-1): 1.001 first_n at alpha = 1e-10 and k = 3, where gamma = 3e-4.

    Power. Going wrong takes an acceptance at some stage, each of which needs q_i > gamma: an effect that is seen
    with first_n samples at the level gamma, not alpha, with probability 1 - (1 - power)/k is seen overall with `power`
    (`detectable`).

    Source: gandy2020unit, section 3 (the sequential procedure).
    Differs from the source in: (1) the sample size grows at every stage.

    Args:
        run: (stage, n) -> outcomes from n samples that are independent of those of other stages; stage = 0, 1, ..
            selects the seed. The null hypotheses and their number may not depend on the data.
        alpha: level, at most stages 2^(-stages).
        first_n: samples of the first stage.
        stages: k.
        factor: growth of the sample size.

    Raises:
        ValueError: alpha, first_n, stages or factor out of range; a stage without outcomes.
    """
    beta, gamma = stage_levels(alpha, stages)
    if alpha > stages * 0.5**stages:
        raise ValueError(
            f"alpha is {alpha}: the level of {stages} stages is derived for at most {stages * 0.5**stages}"
        )
    if first_n < 1 or factor < 1:
        raise ValueError(f"first_n is {first_n} and factor {factor}: give at least 1")
    n, total = first_n, 0
    for stage in range(stages):
        outcomes = tuple(run(stage, n))
        if not outcomes:
            raise ValueError(f"run({stage}, {n}) returned no outcomes: nothing was tested")
        total += n
        log_q = min(0.0, math.log(len(outcomes)) + min(o.log_p for o in outcomes))
        if log_q <= math.log(beta):
            return Decision(True, outcomes, total, stage + 1, beta)
        if stage == stages - 1 or log_q > math.log(gamma + beta):
            return Decision(False, outcomes, total, stage + 1, beta)
        beta, n = beta / gamma, n * factor
    raise AssertionError("unreachable")


def detectable(outcomes: Sequence[Outcome], alpha: float, power: float, stages: int = 3) -> float:
    """The smallest true effect that `decide_sequentially` rejects with probability `power`, from its first stage.

    It is the largest over the outcomes, which must be in one unit, of what the first stage sees at level gamma/m with
    probability 1 - (1 - power)/k; later stages have more samples and the same or a smaller distance to go.

    Raises:
        ValueError: no outcomes, or different units.
    """
    if len({o.unit for o in outcomes}) != 1:
        raise ValueError("outcomes: give at least one, all in one unit")
    _, gamma = stage_levels(alpha, stages)
    return max(o.detectable(gamma / len(outcomes), 1 - (1 - power) / stages) for o in outcomes)
