"""Figure 5(a) of the SGGMC paper, reduced: log-perplexity of 20News-different against the time of the samples.

    python -m sgmcmc_verification.reports.experiments.liu2016.figure5a [--quick] [--resume] [--out FOLDER]

Every method has the same time. Each is a JSON line in FOLDER/liu2016-figure5.jsonl; `--resume` skips
what the file has. Needs the data (`targets.datasets.newsgroups_different`).

Source: liu2016stochastic, section 5.3 and figure 5(a); settings of its released program, but for those that the page
names.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, results
from sgmcmc_verification.reports.experiments.common.sam import Cell, evaluated, frame, lowest, plot_run, run_row

NAME = "liu2016-figure5"
SECONDS, QUICK = 40.0, 2.0
STEP = (3e-5, 0.1)
"""Step size, and friction times step size, of SGGMC and gSGNHT here."""
LABELS = {
    "sggmc": "SGGMC, batch 50",
    "gsgnht": "gSGNHT, batch 50",
    "sggmc-full": "SGGMC, full",
    "gsgnht-full": "gSGNHT, full",
    "gmc-apprmh": "GMC-apprMH",
    "gmc-bgibbs": "GMC-bGibbs",
    "vi": "VI",
    "stovi": "StoVI",
}
STYLES = {
    "sggmc": ("#0072B2", "-"),
    "gsgnht": ("#D55E00", "-"),
    "sggmc-full": ("#0072B2", "--"),
    "gsgnht-full": ("#D55E00", "--"),
    "gmc-apprmh": ("#009E73", "-."),
    "gmc-bgibbs": ("#009E73", ":"),
    "vi": ("#000000", "-"),
    "stovi": ("#000000", "--"),
}
MEAN_DOCUMENT = 5092.6
"""Log-perplexity of twenty copies of the mean training document."""


def plan(quick: bool) -> list[Cell]:
    """All cells: each method, then SGGMC with the paper's step, then on the flat simplex."""
    seconds = QUICK if quick else SECONDS
    own = [Cell(name, seconds, STEP if name.startswith(("sggmc", "gsgnht")) else None) for name in LABELS]
    if quick:
        return own[:1]
    return [*own, Cell("sggmc", seconds), Cell("sggmc", seconds, STEP, "flat")]


def label(cell: Cell) -> str:
    """Of a line."""
    note = "" if cell.form == "sphere" else ", flat simplex"
    if cell.method in ("sggmc", "gsgnht") and cell.step is None:
        note += ", step of the paper"
    return LABELS[cell.method] + note


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found = results(lines, plan(quick))
    best, seconds = lowest(found), next(iter(found)).seconds
    return experiment_page(
        NAME,
        lines,
        seconds=f"{seconds:g}",
        rows=[run_row(label(cell), result) for cell, result in found.items()],
        mean_document=f"{MEAN_DOCUMENT:g}",
        first_step=f"{STEP[0]:g}",
        second_step=f"{STEP[1]:g}",
        best=label(best),
        words=table_of_words(found[best]["words"]),
    )


def table_of_words(words: Sequence[Sequence[str]]) -> list[str]:
    """The words of each topic as lines of Markdown."""
    return ["| topic | words |", "|---|---|", *(f"| {k + 1} | {', '.join(w)} |" for k, w in enumerate(words)), ""]


def mark_mean_document(axis: Any) -> None:
    """A line at the log-perplexity of topics that are all the mean document."""
    axis.axhline(MEAN_DOCUMENT, color="#999999", lw=0.8)
    axis.annotate(
        "all topics the mean document",
        (0.99, MEAN_DOCUMENT),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        fontsize=7,
        color="#555555",
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Log-perplexity against seconds, one line a method."""
    figure, axes = new_figure(1, 1, (9, 4.8))
    axis = axes[0, 0]
    for cell, result in results(lines, plan(quick)).items():
        if cell.form != "flat" and (cell.step is not None or cell.method not in ("sggmc", "gsgnht")):
            colour, style = STYLES[cell.method]
            plot_run(axis, result, style, colour, 1.6, label(cell))
    mark_mean_document(axis)
    frame(axis, "20News-different, K = 20, V = 5,000; reduced: one seed, short runs")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, evaluated, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
