"""Figure 5(b) of the SGGMC paper, reduced: log-perplexity of articles of Wikipedia against the time of the samples.

    python -m sgmcmc_verification.reports.experiments.liu2016.figure5b [--quick] [--resume] [--out FOLDER]

150,000 training and 1,000 test articles, K = 50, batches of 100. Every run is a JSON line in
FOLDER/liu2016-figure5b.jsonl; `--resume` skips what the file has. Needs the words of Wikipedia
(`targets.datasets.wikipedia`) and about 3 GB of memory. About 30 minutes.

Source: liu2016stochastic, section 5.3 and figure 5(b); settings of its released program, but for those that the page
names.
"""

from collections.abc import Sequence
from pathlib import Path

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, results
from sgmcmc_verification.reports.experiments.common.sam import (
    LARGE_DATA,
    LARGE_PRIOR,
    LARGE_TOPICS,
    SHORTEST,
    LargeCell,
    evaluated,
    frame,
    lowest,
    plot_run,
    run_row,
)
from sgmcmc_verification.reports.experiments.liu2016.figure5a import LABELS, STYLES, table_of_words

NAME = "liu2016-figure5b"
SECONDS, QUICK = 240.0, 2.0
STEPS = (1e-5, 3e-5)
"""Step sizes of SGGMC and gSGNHT here."""
DECAY = 0.5
"""Friction times step size, the paper's."""
METHODS = ("sggmc", "gsgnht", "stovi")
WIDTHS = {STEPS[0]: 1.0, STEPS[1]: 2.0}


def plan(quick: bool) -> list[LargeCell]:
    """All cells: both samplers at each step, stochastic VI, then SGGMC with the paper's step."""
    if quick:
        return [LargeCell("sggmc", QUICK, (STEPS[0], DECAY), documents=200, test=20)]
    own = [LargeCell(name, SECONDS, (step, DECAY)) for name in METHODS[:2] for step in STEPS]
    return [*own, LargeCell("stovi", SECONDS), LargeCell("sggmc", SECONDS, ((0.1 / 150_000) ** 0.5, DECAY))]


def label(cell: LargeCell) -> str:
    """Of a line."""
    if cell.step is None:
        return "StoVI, batch 100"
    name = LABELS[cell.method].split(",")[0]
    return f"{name}, step {cell.step[0]:.2g}" + ("" if cell.step[0] in STEPS else " (the paper's)")


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found = results(lines, plan(quick))
    best, first = lowest(found), next(iter(found))
    return experiment_page(
        NAME,
        lines,
        seconds=f"{first.seconds:g}",
        documents=f"{first.documents:,}",
        test=f"{first.test:,}",
        shortest=SHORTEST,
        large_topics=LARGE_TOPICS,
        large_prior=f"{LARGE_PRIOR:g}",
        large_data=f"{LARGE_DATA:g}",
        batch=first.batch,
        rows=[run_row(label(cell), result) for cell, result in found.items()],
        holds=holds(found),
        steps=" and ".join(f"{s:g}" for s in STEPS),
        best=label(best),
        table_of_words=table_of_words(found[best]["words"]),
    )


def holds(found: dict[LargeCell, dict]) -> str:
    """Evidence on the paper's claim."""
    end = {label(cell): r["points"][-1][2] for cell, r in found.items()}
    own = {name: value for name, value in end.items() if "StoVI" not in name and "paper" not in name}
    if len(own) == len(end):
        return "not run here"
    least = min(end["StoVI, batch 100"] - value for value in own.values())
    printed = [value for name, value in end.items() if "paper" in name]
    return f"{'seen' if least > 0 else 'not seen'} at the step sizes of this page (by {least:.0f} at least)" + "".join(
        f"; at the paper's step SGGMC ends {v - end['StoVI, batch 100']:+.0f} from it" for v in printed
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Log-perplexity against seconds, one line a run."""
    figure, axes = new_figure(1, 1, (9, 4.8))
    axis = axes[0, 0]
    for cell, result in results(lines, plan(quick)).items():
        step = cell.step[0] if cell.step else None
        colour, style = STYLES[cell.method]
        width = WIDTHS.get(step, 1.6) if step else 1.6
        plot_run(axis, result, style if step in (None, *STEPS) else ":", colour, width, label(cell))
    frame(axis, "150,000 articles of Wikipedia, K = 50; reduced: one seed, short runs")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, evaluated, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
