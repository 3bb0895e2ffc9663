"""Power of the suite's tests of moments, by statsmodels: the minimum detectable effect by number of chains."""

import math

import scipy.optimize
from statsmodels.stats.power import NormalIndPower

from sgmcmc_verification.checks.end_points.error_rates import ALPHA, CHAINS, HOST_CHAINS, POWER, STAGES
from sgmcmc_verification.checks.statistics.sequential import stage_levels
from sgmcmc_verification.reports.records.frames import markdown

TESTS = (1, 10)
"""Outcomes of a check, which share its level by Bonferroni's inequality."""
SIZES = (HOST_CHAINS, 100_000, CHAINS)
FURTHEST = 50.0
"""Standard errors, beyond which no minimum detectable effect of a test at level 1e-100 is."""


def minimum_detectable_mean(chains: int, tests: int = 1) -> float:
    """Smallest error of a mean, in standard deviations, that the first stage of a check rejects.

    A two-sided z test of one sample at the level of a stage, divided by the number of tests, with the power that a
    check promises divided over its stages.

    Args:
        chains: independent chains of the first stage.
        tests: outcomes of the check.
    """
    _, level = stage_levels(ALPHA, STAGES)
    law = NormalIndPower(ddof=0)

    def excess(effect: float) -> float:
        # ratio 0: one sample, whose null value is exact
        power = law.power(effect, chains, level / tests, ratio=0, alternative="two-sided")
        return float(power) - (1 - (1 - POWER) / STAGES)

    # its own search for the effect ends where the power is right to 1e-4
    return scipy.optimize.root_scalar(excess, bracket=(0, FURTHEST / math.sqrt(chains)), xtol=1e-12).root


def power_table() -> list[str]:
    """Lines of a Markdown table of minimum detectable effects."""
    rows = []
    for chains in SIZES:
        for tests in TESTS:
            mean = minimum_detectable_mean(chains, tests)
            # a sample variance of a normal law has the relative standard deviation sqrt(2 / n), a mean 1 / sqrt(n)
            rows.append((f"{chains:,}", tests, f"{mean:.2g}", f"{math.sqrt(2) * mean:.2g}"))
    header = ("chains of the first stage", "tests that share the level", "error of a mean, in sd", "relative, variance")
    return markdown(header, rows)
