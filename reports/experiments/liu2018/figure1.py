"""Figure 1 of the RSVGD paper, reduced: logistic regression by SVGD and RSVGD, its predictions by iteration.

    python -m sgmcmc_verification.reports.experiments.liu2018.figure1 [--quick] [--resume] [--out FOLDER]

A hundred particles on Splice (the split of LIBSVM) and on a part of Covertype. Every cell is a JSON line in
FOLDER/liu2018-figure1.jsonl; `--resume` skips what the file has. Needs the data files.

Source: liu2018riemannian, section 5.1 and figure 1; the settings are those of its released code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import jax
import numpy as np

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, results
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.particles.rsvgd import RSVGD
from sgmcmc_verification.samplers.particles.svgd import SVGD
from sgmcmc_verification.samplers.riemannian.logistic_metric import LogisticMetric
from sgmcmc_verification.targets.datasets.covertype import load_covertype
from sgmcmc_verification.targets.datasets.splice import load_splice
from sgmcmc_verification.targets.datasets.table import Split, Table
from sgmcmc_verification.targets.regression.logistic import laplace, logistic_regression, predictive
from sgmcmc_verification.targets.target import Target

NAME = "liu2018-figure1"
VARIANCE = 0.01
"""alpha of the prior N(0, alpha I), from which the particles start."""
KERNELS = (1e-4, 1e-2, 1e-1, 1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
PARTICLES = 100
COVERTYPE_ROWS = 2000
"""Of the training part of Covertype; all of its test part is used."""
EVERY = {"splice": 10, "covertype": 10}
ITERATIONS = {"splice": 400, "covertype": 300}
RSVGD_STEP = {"splice": 0.3, "covertype": 0.05}
SVGD_STEP = {"splice": 3e-3, "covertype": 1e-3}
SEEDS = 1
LAPLACE_DRAWS = 2000


@dataclass(frozen=True)
class Cell(Keyed):
    """Particles of a method on a data set."""

    data: str
    method: str
    iterations: int
    seed: int = 0


class Problem(NamedTuple):
    """A posterior with its tables."""

    target: Target
    train: Table
    test: Table


def with_bias(table: Table) -> Table:
    """A last column of ones."""
    return Table(np.column_stack([table.features, np.ones(len(table.labels))]), table.labels)


@cache
def problem(data: str) -> Problem:
    """Features with a constant column, the posterior of the training rows, the test rows."""
    split: Split = load_splice() if data == "splice" else load_covertype()
    train, test = with_bias(split.train), with_bias(split.test)
    if data == "covertype":
        train = Table(train.features[:COVERTYPE_ROWS], train.labels[:COVERTYPE_ROWS])
    return Problem(logistic_regression(train.features, train.labels, VARIANCE, data), train, test)


def methods(data: str) -> dict[str, tuple[Any, float]]:
    """Name -> (sampler, step size)."""
    metric = LogisticMetric(problem(data).train.features, VARIANCE)
    return {
        "RSVGD": (RSVGD(metric, KERNELS), RSVGD_STEP[data]),
        "RSVGD, volume density": (RSVGD(metric, KERNELS, "volume"), RSVGD_STEP[data]),
        "SVGD": (SVGD(KERNELS, adagrad=True), SVGD_STEP[data]),
        "SVGD, median": (SVGD(adagrad=True), SVGD_STEP[data]),
    }


POSTERIOR = "Laplace approximation"
METHODS = ("RSVGD", "RSVGD, volume density", "SVGD", "SVGD, median")
COLOURS = dict(zip(METHODS, ("#0072B2", "#56B4E9", "#D55E00", "#E69F00"), strict=True))
STYLES = dict(zip(METHODS, ("-", "--", "-", "--"), strict=True))


def measured(cell: Cell) -> dict[str, Any]:
    """Accuracy and mean log-likelihood of the test rows by iteration and by seconds of steps; particles are averaged.

    Seconds of compilation and of the evaluations are left out.
    """
    if cell.method == POSTERIOR:
        return by_laplace(cell.data)
    found, (sampler, h) = problem(cell.data), methods(cell.data)[cell.method]
    estimator = Exact(found.target)
    start = VARIANCE**0.5 * jax.random.normal(cell.random, (PARTICLES, found.target.size))
    every = min(EVERY[cell.data], cell.iterations)
    state = sampler.init(jax.random.key(0), start, estimator)

    @jax.jit
    def advance(state):
        return jax.lax.fori_loop(0, every, lambda t, s: sampler.step(jax.random.key(0), s, h, estimator), state)

    scores = [predictive(np.asarray(start), found.test.features, found.test.labels)]
    seconds = [0.0]
    jax.block_until_ready(advance(state))  # compiles, outside of the time
    for _ in range(cell.iterations // every):
        began = perf_counter()
        state = jax.block_until_ready(advance(state))
        seconds.append(seconds[-1] + perf_counter() - began)
        scores.append(predictive(np.asarray(state.position), found.test.features, found.test.labels))
    return {
        "iterations": [every * i for i in range(len(scores))],
        "seconds": [round(s, 4) for s in seconds],
        "accuracy": [s.accuracy for s in scores],
        "log_likelihood": [s.log_likelihood for s in scores],
    }


def by_laplace(data: str) -> dict[str, float]:
    """Accuracy and log-likelihood of draws of the Laplace approximation of the posterior."""
    found = problem(data)
    law = laplace(found.train.features, found.train.labels, VARIANCE)
    root = np.linalg.cholesky(np.linalg.inv(law.precision))
    draws = law.mean + np.random.default_rng(0).normal(size=(LAPLACE_DRAWS, law.mean.size)) @ root.T
    return predictive(draws, found.test.features, found.test.labels)._asdict()


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    if quick:
        return [Cell("splice", POSTERIOR, 0), *(Cell("splice", m, 20) for m in METHODS)]
    particles = [Cell(d, m, ITERATIONS[d], seed) for d in ITERATIONS for seed in range(SEEDS) for m in METHODS]
    return [*(Cell(d, POSTERIOR, 0) for d in ITERATIONS), *particles]


def curves(lines: Lines, quick: bool) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """(data, method) -> iterations (k,), seconds, accuracy and log-likelihood (seeds, k)."""
    found: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for cell, result in results(lines, plan(quick)).items():
        if cell.method == POSTERIOR:
            continue
        entry = found.setdefault((cell.data, cell.method), {"iterations": np.array(result["iterations"])})
        for name in ("seconds", "accuracy", "log_likelihood"):
            entry[name] = np.vstack([*([entry[name]] if name in entry else []), result[name]])
    return found


CLOSE = 0.01
"""Log-likelihood of a test row within which particles count as having reached the posterior."""

RESOLVED = 1e-3
"""Differences below it are not told apart with one start."""


def reached(curve: dict[str, np.ndarray], limit: float) -> int | None:
    """Index from which on the log-likelihood stays within CLOSE of the limit; None if it does not."""
    near = np.abs(curve["log_likelihood"].mean(axis=0) - limit) < CLOSE
    if not near[-1]:
        return None
    return int(np.flatnonzero(~near)[-1] + 1) if not near.all() else 0


def posterior(lines: Lines, data: str) -> dict[str, float]:
    """Accuracy and log-likelihood of the posterior, nearly."""
    return lines[Cell(data, POSTERIOR, 0).key]["result"]


def claims(lines: Lines, quick: bool) -> list[str]:
    """The paper's claims beside what was measured, rows of a table."""
    rows, found = [], curves(lines, quick)
    for d in dict.fromkeys(d for d, _ in found):
        limit = posterior(lines, d)["log_likelihood"]
        ours, other, median = (found[d, m] for m in ("RSVGD", "SVGD", "SVGD, median"))
        first, second = (reached(c, limit) for c in (ours, other))
        when = ["never" if i is None else str(c["iterations"][i]) for i, c in ((first, ours), (second, other))]
        fewer = first is not None and (second is None or ours["iterations"][first] < other["iterations"][second])
        rows.append(
            f"| {d} | RSVGD needs fewer iterations than SVGD | within {CLOSE:g} from iteration {when[0]} on, "
            f"SVGD {when[1]} | {'as in the paper' if fewer else 'not so'} |"
        )
        gaps = [abs(c["log_likelihood"][:, -1].mean() - limit) for c in (ours, other)]
        rows.append(
            f"| {d} | its results are more precise | {gaps[0]:.4f} from the posterior's at the end, SVGD "
            f"{gaps[1]:.4f} | {_ahead(gaps[1] - gaps[0])} |"
        )
        ends = [c["log_likelihood"][:, -1].mean() for c in (other, median)]
        rows.append(
            f"| {d} | for SVGD the summed kernel is slightly better than the median | {ends[0]:.4f} and "
            f"{ends[1]:.4f} | {_ahead(ends[0] - ends[1])} |"
        )
    return rows


def _ahead(gain: float) -> str:
    if abs(gain) < RESOLVED:
        return "not told apart"
    return "as in the paper" if gain > 0 else "not so"


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found = curves(lines, quick)
    missing = sorted({c.data for c in plan(quick) if c.key not in lines})
    rows = []
    for d in dict.fromkeys(d for d, _ in found):
        limit = posterior(lines, d)
        rows.append(f"| {d} | {POSTERIOR} | – | {limit['accuracy']:.4f} | {limit['log_likelihood']:.4f} | – | – | – |")
        for m in METHODS:
            c = found[d, m]
            at, seconds = reached(c, limit["log_likelihood"]), c["seconds"].mean(axis=0)
            each = 1e3 * seconds[-1] / c["iterations"][-1]
            until = "not reached | –" if at is None else f"{c['iterations'][at]} | {seconds[at]:.1f}"
            rows.append(
                f"| {d} | {m} | {c['iterations'][-1]} | {c['accuracy'][:, -1].mean():.4f} | "
                f"{c['log_likelihood'][:, -1].mean():.4f} | {until} | {each:.0f} |"
            )
    return experiment_page(
        NAME,
        lines,
        particles=PARTICLES,
        covertype_rows=COVERTYPE_ROWS,
        claims=claims(lines, quick),
        close=f"{CLOSE:g}",
        rows=rows,
        missing=[f"Not run yet: {', '.join(missing)}.", ""] if missing else [],
        laplace_draws=LAPLACE_DRAWS,
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """A column a data set: accuracy above, log-likelihood below."""
    found = curves(lines, quick)
    data = list(dict.fromkeys(d for d, _ in found))
    figure, axes = new_figure(2, len(data), (5.2 * len(data), 6.4), sharex="col")
    for column, d in enumerate(data):
        for row, (name, label) in enumerate((("accuracy", "test accuracy"), ("log_likelihood", "test log-likelihood"))):
            axis = axes[row, column]
            for m in METHODS:
                c = found[d, m]
                axis.plot(c["iterations"], c[name].mean(axis=0), STYLES[m], color=COLOURS[m], lw=1.6, label=m)
            axis.axhline(posterior(lines, d)[name], color="black", lw=0.9, ls=":", label=POSTERIOR)
            axis.grid(alpha=0.25, lw=0.4)
            if column == 0:
                axis.set_ylabel(label)
            if row == 0:
                axis.set_title(d.capitalize(), fontsize=10)
            else:
                axis.set_xlabel("iteration")
    axes[1, 0].legend(fontsize=8)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw, duration="a minute")


if __name__ == "__main__":
    raise SystemExit(main())
