"""P-values of a file of results, adjusted for their number by statsmodels.

    python -m sgmcmc_verification.reports.statistics.multiple_tests RESULTS.jsonl [--method holm]
        [--alpha 0.01] [--csv FILE]

The verdicts of `pytest checks` rest on a level that is fixed before the run (`checks.end_points.error_rates`); this
table is for a reader with another level in mind. Methods are those of `statsmodels.stats.multitest.multipletests`:
`holm` bounds the family-wise error rate under any dependence, `fdr_by` the false discovery rate.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from statsmodels.stats.multitest import multipletests

from sgmcmc_verification.reports.records.frames import markdown, results_frame
from sgmcmc_verification.reports.records.results import ResultsError

METHODS = ("bonferroni", "sidak", "holm-sidak", "holm", "simes-hochberg", "hommel", "fdr_bh", "fdr_by")
COLUMNS = ("sampler", "statement", "target", "verdict", "p_value", "adjusted", "rejected")


def adjusted(results: pd.DataFrame, method: str = "holm", alpha: float = 0.01) -> pd.DataFrame:
    """Results that have a p-value, the smallest first, with `adjusted` p-values and what is `rejected` at `alpha`.

    Args:
        results: a frame of `reports.records.frames.results_frame`.
        method: one of `METHODS`.
        alpha: level of the whole file, in (0, 1).

    Raises:
        ValueError: an unknown method, a level outside of (0, 1), or no p-value at all.
    """
    if method not in METHODS:
        raise ValueError(f"method {method}: give one of {', '.join(METHODS)}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha {alpha}: give a level between 0 and 1")
    tested = results.loc[results.p_value.notna()].sort_values(by="p_value", kind="stable")
    if tested.empty:
        raise ValueError("no result has a p-value: run a statistical tier")
    rejected, values, *_ = multipletests(tested.p_value.astype(float), alpha=alpha, method=method)
    return tested.assign(adjusted=values, rejected=rejected).reset_index(drop=True).loc[:, list(COLUMNS)]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns 1 if a hypothesis is rejected, 4 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.statistics.multiple_tests", description=__doc__
    )
    parser.add_argument("results", type=Path, metavar="RESULTS.jsonl")
    parser.add_argument("--method", choices=METHODS, default="holm")
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--rows", type=int, default=20, help="smallest p-values that are printed")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="all of them")
    given = parser.parse_args(arguments)
    try:
        table = adjusted(results_frame(given.results), given.method, given.alpha)
    except (ResultsError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 4
    if given.csv:
        table.to_csv(given.csv, index=False)
    count = int(table.rejected.sum())
    print(f"{len(table)} p-values, {count} rejected at {given.alpha:g} by {given.method}\n")
    shown = table.head(given.rows).assign(
        p_value=lambda t: t.p_value.map("{:.3g}".format), adjusted=lambda t: t.adjusted.map("{:.3g}".format)
    )
    print("\n".join(markdown(COLUMNS, shown.itertuples(index=False))))
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
