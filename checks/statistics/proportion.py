"""Exact test of the probability of an event."""

import math

import scipy

from sgmcmc_verification.checks.statistics.outcome import Outcome


def proportion_test(successes: int, n: int, expected: float, *, name: str = "proportion") -> Outcome:
    """Test of P(event) = p from n independent trials, by the binomial tails.

        p-value = 2 min(P(X <= k), P(X >= k)),   X ~ Binomial(n, p)

    Power: the measured proportion is within sqrt(log(1/(1 - power))/(2n)) of the true one on the side that matters
    (hoeffding1963probability, theorem 1), so that a difference of that beyond the threshold is seen.

    Args:
        successes: k.
        n: number of trials, at least 1.
        expected: p, in (0, 1).
        name: what was tested.

    Raises:
        ValueError: if k is not in 0..n, or p not in (0, 1).
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"successes is {successes} of {n}: give 0 <= successes <= n, n >= 1")
    if not 0 < expected < 1:
        raise ValueError(f"expected is {expected}: give a probability in (0, 1)")
    law = scipy.stats.binom(n, expected)
    log_tail = min(float(law.logcdf(successes)), float(law.logsf(successes - 1)))

    def threshold(alpha: float) -> float:
        above = (float(law.isf(alpha / 2)) + 1) / n - expected
        low = float(law.ppf(alpha / 2)) - 1
        below = expected - low / n if low >= 0 else 0.0  # where even no success at all is no surprise
        return max(above, below)

    return Outcome(
        name,
        abs(successes / n - expected),
        "probability",
        math.sqrt(expected * (1 - expected) / n),
        0.0,
        min(0.0, math.log(2) + log_tail),
        n,
        threshold,
        lambda alpha, power: threshold(alpha) + math.sqrt(-math.log1p(-power) / (2 * n)),
        measured=successes / n,
        expected=expected,
    )
