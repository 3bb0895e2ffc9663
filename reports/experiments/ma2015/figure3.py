"""Figure 3 of the recipe paper: SGLD, SGHMC, SGRLD and SGRHMC on LDA, perplexity against documents. Reduced.

    python -m sgmcmc_verification.reports.experiments.ma2015.figure3 [--quick] [--resume] [--out FOLDER]

Wikipedia text of 2014 in place of the stream of random articles, and 20 Newsgroups. The step size of each method is
the best of three in short runs; then two seeds. Every run is a JSON line in FOLDER/ma2015-figure3.jsonl; a command that
is started again skips what the file has. Needs the files of `targets.datasets.wikipedia` and of
`targets.datasets.newsgroups`, `--quick` does not.

Source: ma2015complete, section 4.2 and figure 3; its step sizes are not stated. alpha = 0.01, beta = 1e-4, K = 50 and
minibatches of 50 are those of patterson2013stochastic's program.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.runner.execute import versions
from sgmcmc_verification.reports.experiments.common.grid import Lines, append, command_line, load
from sgmcmc_verification.reports.experiments.common.lda import Cell, best, corpora, curves, final, measured, title
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page
from sgmcmc_verification.reports.records.jsonl import commit
from sgmcmc_verification.samplers.registry import sampler_row

NAME = "ma2015-figure3"
OTHER = "SGRHMC, friction 10"
GRIDS = {
    "SGLD": (1e-3, 1e-4, 1e-5),
    "SGHMC": (0.01, 0.003, 0.001),
    "SGRLD": (0.01, 0.003, 0.001),
    "SGRHMC": (0.02, 0.01, 0.005),
    OTHER: (0.1, 0.03, 0.01),
}
DECAY = (1000.0, 0.55)
SEEDS = (0, 1)
BASE = Cell("wikipedia", "SGRLD", topics=50, alpha=0.01, beta=1e-4, schedule=(0.01, *DECAY), steps=600, every=25)
QUICK = dataclasses.replace(BASE, corpus="generated", topics=5, alpha=0.1, beta=0.1, steps=20, every=10, batch=10)
PILOT = 150
"""Steps of the runs that choose a step size."""


def base(corpus: str) -> Cell:
    """Settings that all cells share."""
    return QUICK if corpus == "generated" else dataclasses.replace(BASE, corpus=corpus)


def pilots(method: str, corpus: str) -> list[Cell]:
    """Short runs, one for each step size."""
    quick = corpus == "generated"
    short = dataclasses.replace(base(corpus), method=method, steps=10 if quick else PILOT, every=10 if quick else 50)
    return [dataclasses.replace(short, schedule=(a, *DECAY)) for a in GRIDS[method][: 1 if quick else None]]


def chosen(method: str, lines: Lines, corpus: str) -> list[Cell]:
    """The runs of the figure, one for each seed."""
    schedule = best(lines, pilots(method, corpus)).schedule
    return [dataclasses.replace(base(corpus), method=method, schedule=schedule, seed=seed) for seed in SEEDS]


def results(lines: Lines, corpus: str) -> dict[str, list[dict[str, Any]]]:
    """Method -> results of its seeds."""
    return {m: [lines[c.key]["result"] for c in chosen(m, lines, corpus)] for m in GRIDS}


def heading(lines: Lines, corpus: str) -> str:
    """Caption of the runs of a figure."""
    return title(base(corpus), len(SEEDS), results(lines, corpus)["SGRLD"][0])


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Perplexity against documents, a panel for each corpus."""
    curves([(heading(lines, corpus), results(lines, corpus)) for corpus in corpora(quick)], path)


def text(lines: Lines, quick: bool) -> str:
    """The page."""
    cell = base(corpora(quick)[0])
    return experiment_page(
        NAME,
        lines,
        alpha=f"{cell.alpha:g}",
        beta=f"{cell.beta:g}",
        sweeps=cell.sweeps,
        corpora=(line for corpus in corpora(quick) for line in of_corpus(lines, corpus)),
        heats=(heat(lines, corpus) for corpus in corpora(quick)),
    )


def of_corpus(lines: Lines, corpus: str) -> list[str]:
    """The table of a corpus, and the order of the methods."""
    cell, found = base(corpus), results(lines, corpus)
    order = sorted((m for m in found if "," not in m), key=lambda m: mean_end(found[m]))
    rows = []
    for method in GRIDS:
        trial = ", ".join(f"{c.schedule[0]:g}: {final(lines[c.key]['result']):.0f}" for c in pilots(method, corpus))
        last = ", ".join(f"{final(r):.0f}" for r in found[method])
        seconds = sum(r.get("seconds", [0])[-1] for r in found[method]) / len(SEEDS)
        rows.append(f"| {method} | {trial.replace('inf', 'not finite')} | {last} | {seconds:.0f} |")
    paper = ["SGRHMC", "SGRLD", "SGHMC", "SGLD"]
    verdict = (
        "That is the order of the paper."
        if order == paper
        else "The paper has, best first: "
        + ", ".join(paper)
        + ". The Riemannian methods are ahead of the others in both."
        if set(order[:2]) == set(paper[:2])
        else "The paper has, best first: " + ", ".join(paper) + "."
    )
    return [
        f"**{heading(lines, corpus).replace(chr(10), '; ')}**",
        "",
        f"| method | a: perplexity after {pilots('SGLD', corpus)[0].steps} steps | "
        f"perplexity after {cell.steps} steps, each seed | seconds a run |",
        "|---|---|---|---|",
        *rows,
        "",
        f"{found['SGRLD'][0]['predicted']:,} held-out words. Best first: {', '.join(order)}. {verdict}",
        "",
    ]


def heat(lines: Lines, corpus: str) -> str:
    """End points of SGRHMC with either friction and of SGRLD, and how hot minibatches make them."""
    found = results(lines, corpus)
    ratio = found["SGRLD"][0]["training"][0] / base(corpus).batch
    at = lambda method: chosen(method, lines, corpus)[0].schedule[0]
    end = lambda method: f"{mean_end(found[method]):.0f}"
    return (
        f"- {corpus} (D / n = {ratio:,.0f}): {OTHER} ends at {end(OTHER)} (h = {at(OTHER):g}, heat "
        f"{1 + at(OTHER) * ratio / 20:.1f}), SGRLD at {end('SGRLD')} (h = {at('SGRLD'):g}, heat "
        f"{1 + at('SGRLD') * ratio / 2:.1f}), SGRHMC with the paper's friction at {end('SGRHMC')}."
    )


def mean_end(runs: Sequence[dict[str, Any]]) -> float:
    """Last perplexity, mean over the seeds."""
    return sum(map(final, runs)) / len(runs)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    quick, folder = command_line(arguments, __file__, NAME, "a minute")
    jax.config.update("jax_enable_x64", True)
    path = folder / f"{NAME}.jsonl"
    about = commit(), versions(Subject(sampler_row("sgrld")))
    for corpus in corpora(quick):
        append([c for m in GRIDS for c in pilots(m, corpus)], path, measured, *about)
        append([c for m in GRIDS for c in chosen(m, load(path), corpus)], path, measured, *about)
    lines = load(path)
    draw(lines, quick, folder / f"{NAME}.png")
    page = folder / f"{NAME}.md"
    page.write_text(text(lines, quick), encoding="utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
