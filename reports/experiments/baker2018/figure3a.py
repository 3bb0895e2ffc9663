"""Figure 3a of the SCIR paper: SCIR against SGRLD on LDA, perplexity against documents. Reduced.

    python -m sgmcmc_verification.reports.experiments.baker2018.figure3a [--quick] [--resume] [--out FOLDER]

Wikipedia text of 2014 and 20 Newsgroups. Every run is a JSON line in FOLDER/baker2018-figure3a.jsonl; a command that
is started again skips what the file has. Needs the files of `targets.datasets.wikipedia` and
`targets.datasets.newsgroups`, `--quick` does not.

Source: baker2018large, section 5.1 and figure 3a, with the settings of its released program. Differs from it in:
    1. text, fewer updates, 50 Gibbs sweeps in a document instead of 200, two seeds instead of five;
    2. a third curve, SGRLD with the prior of SCIR: the program gives the two methods other priors.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Lines
from sgmcmc_verification.reports.experiments.common.lda import Cell, corpora, curves, final, measured, title
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page

NAME = "baker2018-figure3a"
SCIR_CELL = Cell(
    "wikipedia", "SCIR", topics=100, alpha=0.005, beta=1.0, schedule=(0.5, 10.0, 0.33), steps=250, every=10
)
SGRLD_CELL = dataclasses.replace(SCIR_CELL, method="SGRLD", alpha=0.01, beta=1e-4, schedule=(0.01, 1000.0, 0.6))
CURVES = {
    "SCIR": SCIR_CELL,
    "SGRLD": SGRLD_CELL,
    "SGRLD, prior of SCIR": dataclasses.replace(SGRLD_CELL, alpha=SCIR_CELL.alpha, beta=SCIR_CELL.beta),
}
SEEDS = {"wikipedia": (0, 1), "newsgroups": (0, 1), "generated": (0,)}
SMALL = {"corpus": "generated", "topics": 5, "steps": 20, "every": 10, "batch": 10}


def cells(corpus: str, label: str) -> list[Cell]:
    """The runs of a curve, one for each seed; the third curve is of one seed."""
    changes: dict[str, Any] = {"corpus": corpus} if corpus != "generated" else SMALL
    cell = dataclasses.replace(CURVES[label], **changes)
    seeds = SEEDS[corpus] if "," not in label else SEEDS[corpus][:1]
    return [dataclasses.replace(cell, seed=seed) for seed in seeds]


def plan(quick: bool) -> list[Cell]:
    """All runs."""
    return [cell for corpus in corpora(quick) for label in CURVES for cell in cells(corpus, label)]


def results(lines: Lines, corpus: str) -> dict[str, list[dict[str, Any]]]:
    """Curve -> results of its seeds."""
    return {label: [lines[c.key]["result"] for c in cells(corpus, label)] for label in CURVES}


def heading(lines: Lines, corpus: str) -> str:
    """Caption of the runs of a figure."""
    return title(cells(corpus, "SCIR")[0], len(SEEDS[corpus]), results(lines, corpus)["SCIR"][0])


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Perplexity against documents, a panel for each corpus."""
    curves([(heading(lines, corpus), results(lines, corpus)) for corpus in corpora(quick)], path)


def text(lines: Lines, quick: bool) -> str:
    """The page."""
    tables = []
    for corpus in corpora(quick):
        found = results(lines, corpus)
        tables += [
            f"**{heading(lines, corpus).replace(chr(10), '; ')}**",
            "",
            "| curve | alpha | beta | step size h (1 + t / tau)^-kappa | perplexity at the end, each seed | s a step |",
            "|---|---|---|---|---|---|",
        ]
        for label, rows in found.items():
            cell = cells(corpus, label)[0]
            h, tau, kappa = cell.schedule
            ends = ", ".join(f"{final(r):.0f}" for r in rows)
            seconds = sum(r["seconds"][-1] / r["steps"][-1] for r in rows if "steps" in r) / len(rows)
            tables.append(
                f"| {label} | {cell.alpha:g} | {cell.beta:g} | {h:g}, {tau:g}, {kappa:g} | {ends} | {seconds:.2f} |"
            )
        tables += ["", _verdict(found), ""]
    return experiment_page(NAME, lines, sweeps=SCIR_CELL.sweeps, tables=tables)


def _verdict(found: dict[str, list[dict[str, Any]]]) -> str:
    """Evidence on the claim of the paper."""
    scir, sgrld = ([final(r) for r in found[label]] for label in ("SCIR", "SGRLD"))
    same = final(found["SGRLD, prior of SCIR"][0])
    if len(scir) == 1:
        ahead = f"SCIR ends {sgrld[0] - scir[0]:+.0f} below SGRLD; one seed does not tell such a difference from chance"
    elif max(scir) < min(sgrld):
        ahead = "SCIR is below SGRLD with every seed, as in the paper"
    elif max(sgrld) < min(scir):
        ahead = "SGRLD is below SCIR with every seed, unlike in the paper"
    else:
        ahead = "SCIR and SGRLD are not told apart by the seeds"
    prior = sum(sgrld) / len(sgrld) - same
    return (
        f"{ahead}. With the same prior, that of SCIR, SCIR ends at {sum(scir) / len(scir):.0f} and SGRLD at "
        f"{same:.0f}: of the difference between the released settings, {prior:+.0f} is of the prior."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
