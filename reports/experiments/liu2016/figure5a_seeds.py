"""Figure 5(a) of the SGGMC paper with several seeds and longer runs: does the order of the methods hold?

    python -m sgmcmc_verification.reports.experiments.liu2016.figure5a_seeds [--quick] [--resume] [--out FOLDER]

Every method has the same time and every seed. Each run is a JSON line in FOLDER/liu2016-figure5-seeds.jsonl;
`--resume` skips what the file has. Needs the data (`targets.datasets.newsgroups_different`). About 50 minutes.

Source: liu2016stochastic, section 5.3 and figure 5(a); settings as in `liu2016_figure5`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, results
from sgmcmc_verification.reports.experiments.common.sam import Cell, evaluated, frame
from sgmcmc_verification.reports.experiments.liu2016.figure5a import (
    LABELS,
    MEAN_DOCUMENT,
    STEP,
    STYLES,
    mark_mean_document,
    table_of_words,
)

NAME = "liu2016-figure5-seeds"
SECONDS, QUICK, SEEDS = 120.0, 2.0, 3
FULL, BLOCKS, MEANS = (3e-4, 0.1), (4e-5, 25), (4e-5, 10)
"""Step size and friction times step size with all documents; step size and steps of a trajectory of GMC-bGibbs and
GMC-apprMH."""
SETTINGS = {
    "sggmc": STEP,
    "gsgnht": STEP,
    "sggmc-full": FULL,
    "gsgnht-full": FULL,
    "gmc-bgibbs": BLOCKS,
    "gmc-apprmh": MEANS,
}


def plan(quick: bool) -> list[Cell]:
    """Seed by seed, so that a run that is interrupted has all methods."""
    seconds, seeds = (QUICK, 2) if quick else (SECONDS, SEEDS)
    names = ("sggmc",) if quick else tuple(LABELS)
    return [Cell(name, seconds, SETTINGS.get(name), seed=seed) for seed in range(seeds) for name in names]


def of_methods(lines: Lines, quick: bool) -> dict[str, list[dict]]:
    """The results of each method, seed by seed."""
    found: dict[str, list[dict]] = {}
    for cell, result in results(lines, plan(quick)).items():
        found.setdefault(cell.method, []).append(result)
    return found


AUTHORS = {30: 4907, 70: 4797, 110: 4750}
"""Seconds -> log-perplexity of the authors' program on 20News-different, on another machine of two cores."""


def claims(ends: dict[str, tuple[float, np.ndarray]]) -> list[str]:
    """Order of the methods in the paper and as measured: differences of means over seeds.

    Args:
        ends: method -> (mean, log-perplexity of each seed).
    """
    if len(ends) < len(LABELS):
        return []
    mean = {name: value for name, (value, _) in ends.items()}
    batch, full, gmc = ("sggmc", "gsgnht"), ("sggmc-full", "gsgnht-full"), ("gmc-apprmh", "gmc-bgibbs")
    worst, best = (lambda names: max(names, key=mean.__getitem__)), (lambda names: min(names, key=mean.__getitem__))
    above = (
        ("every sampler ends below variational inference", worst((*batch, *full, *gmc)), best(("vi", "stovi"))),
        ("batches end below all documents", worst(batch), best(full)),
        ("gSGNHT ends below SGGMC", "gsgnht", "sggmc"),
        ("with all documents they end below GMC", worst(full), best(gmc)),
    )
    rows = []
    for claim, low, high in above:
        a, b = ends[low][1], ends[high][1]
        error = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)) if min(len(a), len(b)) > 1 else np.nan
        gap = mean[high] - mean[low]
        holds = "yes" if gap > 2 * error else "no" if gap < -2 * error else "not decided"
        rows.append(f"| {claim} | {LABELS[high]} - {LABELS[low]} = {gap:.0f} ± {error:.0f} | {holds} |")
    return [
        "## The paper's claims",
        "",
        "Of each claim its closest pair of methods; ± is the standard error over seeds, *yes* and *no* mean two of "
        "them.",
        "",
        "| the paper says | measured | holds |",
        "|---|---|---|",
        *rows,
        f"| StoVI has the limit of VI | {LABELS['stovi']} - {LABELS['vi']} = {mean['stovi'] - mean['vi']:.0f} | |",
        "",
        "What is compared is the *mean density over samples*. Of the last topics alone the log-perplexity is higher "
        "with batches than with all documents (column above): the noise of batches heats the topics to some twenty "
        "times their temperature. The mean over many spread topics predicts better than one set of sharp ones.",
        "",
    ]


def beside_the_authors(runs: Sequence[dict]) -> list[str]:
    """SGGMC after the seconds at which the authors' program was read."""
    at = {s: [np.interp(s, [p[1] for p in r["points"]], [p[2] for p in r["points"]]) for r in runs] for s in AUTHORS}
    if not runs or min(r["points"][-1][1] for r in runs) < max(AUTHORS):
        return []
    return [
        "## Beside the authors' program",
        "",
        "| seconds | " + " | ".join(map(str, AUTHORS)) + " |",
        "|---|" + "---|" * len(AUTHORS),
        "| authors' C++ program, batches of 50, its own step, two cores | "
        + " | ".join(map(str, AUTHORS.values()))
        + " |",
        "| SGGMC here, one core | " + " | ".join(f"{np.mean(values):.0f}" for values in at.values()) + " |",
        "",
    ]


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found = of_methods(lines, quick)
    rows, ends = [], {}
    for name, runs in found.items():
        last = ends[name] = np.array([r["points"][-1][2] for r in runs])
        spread = f"{last.std(ddof=1):.1f}" if len(last) > 1 else "–"
        alone = np.mean([r["points"][-1][5] for r in runs])
        samples, cosine = np.mean([r["samples"] for r in runs]), np.mean([r["cosine"] for r in runs])
        rows.append(
            f"| {LABELS[name]} | {len(last)} | {samples:.0f} | {last.mean():.0f} | {spread} | {last.min():.0f} to "
            f"{last.max():.0f} | {alone:.0f} | {cosine:.2f} |"
        )
    best = min(ends, key=lambda name: ends[name].mean())
    order = sorted(ends, key=lambda name: ends[name].mean())
    seconds = plan(quick)[0].seconds
    return experiment_page(
        NAME,
        lines,
        seconds=f"{seconds:g}",
        rows=rows,
        order=", ".join(LABELS[name] for name in order),
        mean_document=f"{MEAN_DOCUMENT:g}",
        claims=claims({name: (values.mean(), values) for name, values in ends.items()}),
        beside_the_authors=beside_the_authors(found.get("sggmc", [])),
        first_step=f"{STEP[0]:g}",
        full=f"{FULL[0]:g}",
        second_step=f"{STEP[1]:g}",
        block_step=f"{BLOCKS[0]:g}",
        block_noise=f"{BLOCKS[0] * 15:.0e}",
        num_blocks=BLOCKS[1],
        means=MEANS[1],
        labels=LABELS[best],
        table_of_words=table_of_words(found[best][0]["words"]),
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Log-perplexity against seconds: a thin line a seed, a thick one for the mean of seeds."""
    figure, axes = new_figure(1, 1, (9, 4.8))
    axis = axes[0, 0]
    for name, runs in of_methods(lines, quick).items():
        colour, style = STYLES[name]
        curves = [np.array(r["points"])[:, 1:3] for r in runs]
        for curve in curves:
            axis.plot(*curve.T, style, color=colour, lw=0.6, alpha=0.5)
        low, high = max(c[0, 0] for c in curves), min(c[-1, 0] for c in curves)
        if high > low:
            times = np.linspace(low, high, 200)
            mean = np.mean([np.interp(times, *curve.T) for curve in curves], axis=0)
            axis.plot(times, mean, style, color=colour, lw=2.0, label=LABELS[name])
        else:  # a sweep that takes as long as the run: one point a seed
            axis.plot(*np.mean([c[-1] for c in curves], axis=0), "o", color=colour, ms=5, label=LABELS[name])
    mark_mean_document(axis)
    frame(axis, "20News-different, K = 20, V = 5,000; thin: seeds, thick: their mean")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, evaluated, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
