"""Time and memory of Stein discrepancies between all pairs of a sample.

    python -m benchmarks.stein [--sizes 1000 10000 100000] [--out FILE.md]

Each size is a process of its own, so that its peak of memory is its own. Samples are exact draws, for which the
U-statistic is zero in the mean with a standard deviation of order 1 / n. Times are processor times: take ratios.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sgmcmc_verification.checks.statistics.ksd import ksd
from sgmcmc_verification.checks.statistics.rksd import rksd
from sgmcmc_verification.reports.records.jsonl import commit

DIM = 5


def normal(n: int) -> float:
    """KSD of n draws of N(0, I) in R^5."""
    x = np.random.default_rng(0).standard_normal((n, DIM))
    return ksd(x, -x)


def uniform(n: int) -> float:
    """RKSD of n draws of the uniform law on S^4, whose score is zero."""
    x = np.random.default_rng(0).standard_normal((n, DIM))
    return rksd(x / np.linalg.norm(x, axis=1, keepdims=True), np.zeros_like(x))


CASES = {f"KSD, R^{DIM}": normal, f"RKSD, S^{DIM - 1}": uniform}


def measured(task: tuple[str, int]) -> tuple[float, float, float]:
    """(value, processor seconds, MiB by which the peak of memory rose)."""
    name, n = task
    CASES[name](64)  # what is imported late
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    value = CASES[name](n)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return value, time.process_time() - began, (after - before) / 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stein")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="write a page too")
    given = parser.parse_args(arguments)
    page = [
        "# Stein discrepancies of large samples",
        "",
        f"Written by `python -m benchmarks.stein`, commit {commit()[:12]}. U-statistics over all pairs, in tiles of "
        "1024 x 1024; processor time of a shared machine; memory is the rise of the peak of the process.",
        "",
        "| discrepancy | n | value | s | ns a pair | MiB |",
        "|---|---|---|---|---|---|",
    ]
    for name in CASES:
        for n in given.sizes:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                value, seconds, memory = pool.map(measured, [(name, n)])[0]
            pairs = n * (n - 1) / 2
            page.append(
                f"| {name} | {n:,} | {value:.1e} | {seconds:.1f} | {1e9 * seconds / pairs:.1f} | {memory:.0f} |"
            )
            print(page[-1], flush=True)
    if given.out is not None:
        given.out.write_text("\n".join([*page, ""]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
