"""Bias of the law by the order in which minibatches come, exact and enumerated.

    python -m sgmcmc_verification.reports.experiments.original.batch_orders [--quick] [--resume] [--out FOLDER]

The posterior of a linear regression with five data (`tiny-regression`), whose Hessians differ, and batches of one
datum. A step with one batch is affine, so that the stationary law is that of a map of the first two moments
(`checks.exact_laws.epochs`), for four ways to draw the batches:

    independent     each step draws one of the five
    one order       the same order in every epoch; the largest bias of all 120 orders is shown
    drawn anew      an order of its own in every epoch: the mean over all 120
    forth and back  the order of an epoch drawn anew, and then backwards

The law is that at the end of an epoch; its bias is the largest entry of that of mean and covariance of the position.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.checks.exact_laws.epochs import Batches, batches, mean_of, word
from sgmcmc_verification.checks.exact_laws.lyapunov import MomentMap
from sgmcmc_verification.checks.tiers.law.gaussian import whitened
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, number
from sgmcmc_verification.targets.registry import target

NAME = "batch-orders"
TARGET = "tiny-regression"
SAMPLERS = {
    "sgld": "SGLD",
    "leimkuhler-matthews": "Leimkuhler-Matthews",
    "sghmc-symmetric": "SGHMC, symmetric splitting",
    "baoab": "BAOAB",
    "ubu": "UBU",
}
LEVELS = 6
"""Step sizes: half of the usual one and its halvings."""
STYLES = {
    "independent": ("#D55E00", "o", "-"),
    "one order": ("#E69F00", "s", "--"),
    "drawn anew": ("#0072B2", "^", "-"),
    "forth and back": ("#009E73", "v", ":"),
}


@dataclass(frozen=True)
class Cell(Keyed):
    """A sampler of the registry, with all ways to draw its batches."""

    sampler: str
    levels: int
    seed: int = 0


def turns(drawn: Batches, maps: list[MomentMap]) -> dict[str, list[MomentMap]]:
    """Way to draw the batches -> the maps of an epoch, of whose laws the one that errs most is taken."""
    words = {order: word(maps, order) for order in drawn.orders}
    return {
        "independent": [mean_of(maps)],
        "one order": list(words.values()),
        "drawn anew": [mean_of(list(words.values()))],
        "forth and back": [mean_of([words[order[::-1]].after(there) for order, there in words.items()])],
    }


def measured(cell: Cell) -> dict[str, Any]:
    """Step sizes, and the largest bias of each way at each of them; None where there is no stationary law."""
    law, subject = target(TARGET), resolve(cell.sampler)[0]
    drawn = batches(subject, law)
    temperature = drawn.steps[0].sampler.claims.temperature
    sizes = subject.step_size(law) / 2.0 ** np.arange(1, cell.levels + 1)
    found: dict[str, list[float | None]] = {way: [] for way in STYLES}
    for h in map(float, sizes):
        for way, epochs in turns(drawn, drawn.moments(h)).items():
            entries = [_entries(drawn, epoch, h, temperature) for epoch in epochs]
            found[way].append(None if None in entries else max(e for e in entries if e is not None))
    return {"step sizes": sizes.tolist(), "bias": found}


def _entries(drawn: Batches, epoch: MomentMap, h: float, temperature: float) -> float | None:
    mean, covariance, law = drawn.position(epoch, h)
    if not law.radius < 1:
        return None
    return float(np.abs(whitened(target(TARGET), mean, covariance, temperature)).max())


def orders(result: dict[str, Any]) -> dict[str, float]:
    """Way to draw the batches -> the power of h by which the bias goes down at the last halving."""
    last: Callable[[str], list[float]] = lambda way: result["bias"][way][-2:]
    return {way: float(np.log2(last(way)[0] / last(way)[1])) for way in STYLES}


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    return [Cell(name, 3 if quick else LEVELS) for name in (list(SAMPLERS)[::4] if quick else SAMPLERS)]


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    rows = []
    for cell in plan(quick):
        result = lines[cell.key]["result"]
        powers = orders(result)
        for i in (0, -1):
            values = [result["bias"][way][i] for way in STYLES]
            shown = " | ".join("none" if v is None else number(v) for v in values)
            rows.append(f"| {SAMPLERS[cell.sampler]} | {number(result['step sizes'][i])} | {shown} |")
        rows.append(f"| {SAMPLERS[cell.sampler]} | order | " + " | ".join(f"{p:.2f}" for p in powers.values()) + " |")
    return experiment_page(NAME, lines, ways=" | ".join(STYLES), rows=rows)


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """The bias against the step size, for each sampler."""
    cells = plan(quick)
    figure, axes = new_figure(1, len(cells), (2.9 * len(cells), 3.4), sharey=True)
    for cell, axis in zip(cells, np.ravel(axes), strict=True):
        result = lines[cell.key]["result"]
        for way, (colour, marker, line) in STYLES.items():
            values = [np.nan if v is None else v for v in result["bias"][way]]
            axis.loglog(
                result["step sizes"], values, color=colour, marker=marker, linestyle=line, label=way, markersize=4
            )
        axis.set_title(SAMPLERS[cell.sampler], fontsize=9)
        axis.set_xlabel("step size")
        axis.tick_params(axis="x", which="minor", labelbottom=False)
        axis.grid(alpha=0.25, lw=0.4)
    first = np.ravel(axes)[0]
    first.set_ylabel("bias, standard deviations")
    first.legend(fontsize=7)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
