"""Are credible regions of topics calibrated? Spherical admixture models whose documents were drawn from the model.

    python -m sgmcmc_verification.reports.experiments.original.sam_calibration [--quick] [--resume] [--out FOLDER]

Topics and documents are drawn from the model many times, each method runs on every corpus from a start near m, and the
rank of the true topics among draws is taken. Each method is a JSON line in FOLDER/sam-calibration.jsonl;
`--resume` skips what the file has. About 10 minutes.

Source: talts2018validating (ranks); liu2016stochastic, section 5.3 (model and methods).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from sgmcmc_verification.checks.tiers.workload.sam import OwnDocuments, vmf, with_documents
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, results
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.topic_models.sam.methods import Method
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings
from sgmcmc_verification.targets.topic_models.sam.documents import as_rows
from sgmcmc_verification.targets.topic_models.sam.model import SAM, unit_rows

NAME = "sam-calibration"
WORDS, DOCUMENTS, BATCH = 6, 20, 10
LENGTH = 15
"""Draws of each posterior."""
BURN_IN, SPACING, FRICTION, STEPS = 2.0, 0.5, 10.0, 5
"""SDE times before the first draw and between draws, friction, steps a sample, of SGGMC and gSGNHT."""
STATISTICS = ("m . mean topic", "beta_0 . beta_1", "documents . mean topic")
"""Functions that do not change when the topics change their names."""
LEVELS = (0.5, 0.9)
LABELS = {"gmc-bgibbs": "GMC-bGibbs", "sggmc": "SGGMC", "gsgnht": "gSGNHT"}
COLOURS = {"gmc-bgibbs": "#009E73", "sggmc": "#0072B2", "gsgnht": "#D55E00"}


@dataclass(frozen=True)
class Cell(Keyed):
    """A method at a step size on so many corpora; `batch` documents a sample."""

    method: str
    step_size: float
    batch: int
    corpora: int
    seed: int = 0


def plan(quick: bool) -> list[Cell]:
    """The exact method, then each sampler with all documents and with batches at two step sizes."""
    if quick:
        return [Cell("gmc-bgibbs", 0.02, DOCUMENTS, 20)]
    noisy = [
        Cell(name, h, size, 300)
        for name in ("sggmc", "gsgnht")
        for size in (DOCUMENTS, BATCH)
        for h in (0.002, 0.0005)
        if size == BATCH or h == 0.002
    ]
    return [Cell("gmc-bgibbs", 0.02, DOCUMENTS, 300), *noisy]


def model() -> SAM:
    """Two topics that are exchangeable, over six words."""
    return SAM(np.eye(1, WORDS)[0], np.full(2, 2.0), 10.0, 10.0, 40.0)


def corpora(law: SAM, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """True topics (R, 2, V) and documents (R, D, V) drawn from the model."""
    rng = np.random.default_rng(seed)
    mean = vmf(rng, np.tile(law.direction, (count, 1)), law.prior_concentration)
    beta = vmf(rng, np.repeat(mean, 2, axis=0), law.topic_concentration).reshape(count, 2, WORDS)
    b = np.einsum("rdk,rkv->rdv", rng.dirichlet(law.alpha, (count, DOCUMENTS)), beta)
    return beta, vmf(rng, unit_rows(b).reshape(-1, WORDS), law.concentration).reshape(count, DOCUMENTS, WORDS)


def statistics(law: SAM, beta: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """`STATISTICS` (R, 3)."""
    middle = unit_rows(beta.sum(axis=1))
    near = np.einsum("rdv,rv->r", documents, middle)
    return np.stack([middle @ law.direction, np.sum(beta[:, 0] * beta[:, 1], axis=1), near], axis=1)


def method_of(cell: Cell, law: SAM, documents: np.ndarray) -> OwnDocuments:
    """The method with a chain and documents of its own for each corpus."""
    if cell.method == "gmc-bgibbs":
        sampler: Any = GMC(law.manifold, 4)
        weights, steps = WeightSettings(12, 1, 4), 1
    else:
        sampler = (SGGMC if cell.method == "sggmc" else GSGNHT)(law.manifold, FRICTION)
        weights, steps = WeightSettings(12, 4, 4), STEPS
    made = Method(law, sampler, as_rows(documents[0]), cell.batch, cell.step_size, steps, weights)
    return with_documents(made, documents)


def samples_of(cell: Cell) -> tuple[int, int]:
    """Samples before the first draw, and between draws."""
    if cell.method == "gmc-bgibbs":
        return 100, 20
    each = STEPS * cell.step_size
    return round(BURN_IN / each), round(SPACING / each)


def measured(cell: Cell) -> dict[str, Any]:
    """Ranks (3, R) of the truth, uniform if the draws are of the posterior, and how far chains are from each other."""
    law = model()
    truth, documents = corpora(law, cell.corpora, cell.seed)
    method, rng = method_of(cell, law, documents), np.random.default_rng([cell.seed, 1])
    start = np.stack([law.start(rng) for _ in range(cell.corpora)])
    state = method.init(rng, start)
    first, spacing = samples_of(cell)
    drawn, last = [], first + (LENGTH - 1) * spacing
    for number in range(1, last + 1):
        state = method.sample(rng, state)
        if number >= first and (number - first) % spacing == 0:
            drawn.append(statistics(law, method.topics(state), documents))
    below = np.sum(np.stack(drawn) < statistics(law, truth, documents), axis=0)
    ranks = (below + rng.random(below.shape)) / (LENGTH + 1)
    return {"ranks": np.round(ranks, 5).T.tolist(), "samples": last}


def label(cell: Cell) -> str:
    """Of a method."""
    size = "all documents" if cell.batch == DOCUMENTS else f"batches of {cell.batch}"
    return f"{LABELS[cell.method]}, {size}, h = {cell.step_size:g}"


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    rows, found = [], []
    for cell, result in results(lines, plan(quick)).items():
        for name, ranks in zip(STATISTICS, np.array(result["ranks"]), strict=True):
            inside = [np.mean(np.abs(ranks - 0.5) < level / 2) for level in LEVELS]
            errors = [np.sqrt(level * (1 - level) / len(ranks)) for level in LEVELS]
            bold = ["**" if abs(a - level) > 4 * e else "" for a, level, e in zip(inside, LEVELS, errors, strict=True)]
            cells = [f"{mark}{a:.3f}{mark}" for a, mark in zip(inside, bold, strict=True)]
            p = float(stats.kstest(ranks, "uniform").pvalue)
            found.append((p, f"{label(cell)}, {name.replace('_', chr(92) + '_')}"))
            rows.append(f"| {label(cell)} | {name.replace('_', chr(92) + '_')} | {' | '.join(cells)} | {p:.2g} |")
    first, found = plan(quick)[0], sorted(found)
    return experiment_page(
        NAME,
        lines,
        corpora=first.corpora,
        documents=DOCUMENTS,
        words=WORDS,
        length=LENGTH,
        spacing=SPACING,
        standard_error=f"{np.sqrt(0.25 / first.corpora):.3f}",
        tail_error=f"{np.sqrt(0.09 / first.corpora):.3f}",
        rows=rows,
        num_found=len(found),
        smallest_p=f"{found[0][0]:.2g}",
        smallest_name=found[0][1],
        min=f"{min(1.0, len(found) * found[0][0]):.2g}",
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Distribution functions of the ranks less the uniform one, a panel a function."""
    figure, axes = new_figure(1, len(STATISTICS), (11, 3.6), sharey=True)
    grid = np.linspace(0, 1, 201)
    cells = [cell for cell in plan(quick) if cell.key in lines]
    for number, axis in enumerate(axes[0]):
        for cell in cells:
            ranks = np.sort(lines[cell.key]["result"]["ranks"][number])
            style = "-" if cell.batch == DOCUMENTS else ("--" if cell.step_size == 0.002 else ":")
            share = np.searchsorted(ranks, grid, side="right") / len(ranks)
            axis.plot(grid, share - grid, style, color=COLOURS[cell.method], lw=1.4, label=label(cell))
        band = stats.kstwo.isf(0.01, cells[0].corpora)
        axis.axhspan(-band, band, color="#999999", alpha=0.2, lw=0)
        axis.set_title(STATISTICS[number], fontsize=10)
        axis.set_xlabel("rank of the truth")
        axis.grid(alpha=0.25, lw=0.4)
    axes[0, 0].set_ylabel("distribution function less the uniform one")
    axes[0, -1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
