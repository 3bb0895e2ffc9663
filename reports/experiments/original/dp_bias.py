"""Bias of stochastic slice samplers: a Dirichlet-process mixture of 8 users, enumerated exactly.

    python -m sgmcmc_verification.reports.experiments.original.dp_bias [--quick] [--resume] [--out FOLDER]

Long chains of the exact Gibbs slice sampler, of SCIR and of SGRLD, with all users and with minibatches, against the
exact law over the 4140 partitions. Every cell is a JSON line in FOLDER/dp-tiny.jsonl; `--resume` skips
what the file has.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure
from sgmcmc_verification.samplers.positive.gamma_updates import CIRUpdate, ExactGamma, ExpandedMeanUpdate, GammaUpdate
from sgmcmc_verification.samplers.topic_models.dp.slice import DPSlice, Users
from sgmcmc_verification.targets.numerics.ragged import sparse_rows
from sgmcmc_verification.targets.topic_models.dp_mixture import DPMixture, PartitionPosterior

NAME = "dp-tiny"
TABLE = ((3, 0, 0, 1), (2, 1, 0, 0), (4, 0, 0, 0), (0, 2, 1, 0), (0, 3, 0, 1), (0, 0, 2, 1), (1, 0, 0, 2), (0, 0, 1, 2))
"""Counts of 8 users over 4 categories."""
UPDATES: dict[str, Callable[[], GammaUpdate]] = {
    "Gibbs": ExactGamma,
    "SCIR": CIRUpdate,
    "SGRLD": ExpandedMeanUpdate,
}
COLOURS = {"Gibbs": "#000000", "SCIR": "#0072B2", "SGRLD": "#D55E00"}
MARKERS = {8: "o", 4: "s", 2: "^"}
BLOCKS = 50
"""Stretches of a chain, whose means give the standard error."""
CONCENTRATION = 1.0
QUANTILE = 5.0
"""Standard errors within which an estimate counts as explained by chance: two-sided rate 6e-7 for a normal mean."""


@dataclass(frozen=True)
class Cell(Keyed):
    """A chain: method, step size (0 for exact draws), users a step, alpha fixed or random, sweeps."""

    method: str
    step_size: float
    batch: int
    fixed: bool
    sweeps: int
    seed: int = 0


@cache
def posterior(fixed: bool) -> PartitionPosterior:
    """The exact law."""
    return PartitionPosterior(DPMixture(4, 0.5, CONCENTRATION if fixed else None), sparse_rows(np.array(TABLE)))


@cache
def exact(fixed: bool) -> tuple[np.ndarray, np.ndarray, float, float]:
    """P(z_i = z_j) (8, 8), the law of the number of components (8,), mean and sd of alpha."""
    law = posterior(fixed)
    same = law.strings[:, :, None] == law.strings[:, None, :]
    blocks = np.bincount(law.strings.max(axis=1), law.probabilities, len(TABLE))
    mean, deviation = law.concentration_moments() if not fixed else (CONCENTRATION, 0.0)
    return np.einsum("p,pij->ij", law.probabilities, same), blocks, mean, deviation


def measured(cell: Cell) -> dict[str, Any]:
    """Means over `BLOCKS` stretches of a chain that starts from an exact draw, after a tenth of it as burn-in."""
    law = posterior(cell.fixed)
    generator = np.random.default_rng([cell.seed, zlib.crc32(cell.key.encode())])
    sampler, users = DPSlice(law.model, UPDATES[cell.method]()), Users(law.rows, cell.batch)
    step_size = cell.step_size or 1.0
    ((alpha, z),) = law.draw(generator, 1)
    state = sampler.start(generator, alpha, z)
    for _ in range(cell.sweeps // 10):
        state = sampler.step(generator, state, step_size, users)
    n, length = len(TABLE), cell.sweeps // BLOCKS
    same, blocks, alphas = np.zeros((BLOCKS, n, n)), np.zeros((BLOCKS, n)), np.zeros(BLOCKS)
    for b in range(BLOCKS):
        for _ in range(length):
            state = sampler.step(generator, state, step_size, users)
            same[b] += state.labels[:, None] == state.labels
            blocks[b, len(set(state.labels.tolist())) - 1] += 1
            alphas[b] += state.concentration
    return summary(same / length, blocks / length, alphas / length, cell.fixed)


def summary(same: np.ndarray, blocks: np.ndarray, alphas: np.ndarray, fixed: bool) -> dict[str, Any]:
    """Differences from the exact law with standard errors from the stretches."""
    pairs, law, mean, deviation = exact(fixed)
    error = lambda a: a.std(axis=0, ddof=1) / np.sqrt(len(a))
    upper = np.triu_indices(len(TABLE), 1)
    difference, spread = (same.mean(axis=0) - pairs)[upper], error(same)[upper]
    worst = int(np.argmax(np.abs(difference)))
    counts = 1.0 + np.arange(len(TABLE))
    means = blocks @ counts
    sd = float(np.sqrt(law @ counts**2 - (law @ counts) ** 2))
    found = {
        "pair": [float(difference[worst]), float(spread[worst])],
        "components": [float((means.mean() - law @ counts) / sd), float(error(means) / sd)],
        "TV": float(0.5 * np.abs(blocks.mean(axis=0) - law).sum()),
    }
    if not fixed:
        found["alpha"] = [float((alphas.mean() - mean) / deviation), float(error(alphas) / deviation)]
    return found


def plan(quick: bool) -> list[Cell]:
    """All cells; chains are longer where the step is short."""
    sweeps = 1000 if quick else 12_000
    size = lambda h: sweeps + round(0 if quick or not h else 100 / h)
    cell = lambda method, h, batch, fixed=True: Cell(method, h, batch, fixed, size(h))
    if quick:
        return [cell("Gibbs", 0.0, 8), cell("SCIR", 0.1, 8), cell("SGRLD", 0.01, 4)]
    return [
        *(cell("Gibbs", 0.0, batch) for batch in MARKERS),
        *(cell("SCIR", h, 8) for h in (10.0, 1.0, 0.1, 0.01)),
        *(cell("SGRLD", h, 8) for h in (0.1, 0.03, 0.01)),
        *(cell("SCIR", h, batch) for batch in (4, 2) for h in (1.0, 0.1, 0.01)),
        *(cell("SGRLD", h, batch) for batch in (4, 2) for h in (0.03, 0.01)),
        cell("Gibbs", 0.0, 8, False),
        cell("SCIR", 0.1, 8, False),
        cell("SGRLD", 0.01, 8, False),
    ]


# The page ----------------------------------------------------------------------------------------------------------


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    rows = []
    for c in plan(quick):
        r = lines[c.key]["result"]
        rows.append(
            f"| {c.method} | {c.step_size or '–'} | {c.batch} of {len(TABLE)} | "
            f"{'fixed' if c.fixed else 'random'} | {signed(r['pair'])} | {signed(r['components'])} | {r['TV']:.3f} | "
            f"{signed(r['alpha']) if 'alpha' in r else '–'} |"
        )
    return experiment_page(
        NAME,
        lines,
        num_table=len(TABLE),
        concentration=f"{CONCENTRATION:g}",
        blocks=BLOCKS,
        quantile=f"{QUANTILE:g}",
        rows=rows,
    )


def signed(value: Sequence[float]) -> str:
    """value ± error, bold where chance does not explain it."""
    words = f"{value[0]:+.3f} ± {value[1]:.3f}"
    return f"**{words}**" if abs(value[0]) > QUANTILE * value[1] else words


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Error of the mean number of components against step size."""
    cells = [c for c in plan(quick) if c.fixed]
    figure, axes = new_figure(1, 1, (6.8, 4.4))
    axis = axes[0, 0]
    for method, colour in COLOURS.items():
        for batch, marker in MARKERS.items():
            chosen = sorted((c for c in cells if c.method == method and c.batch == batch), key=lambda c: c.step_size)
            if not chosen:
                continue
            values = np.array([lines[c.key]["result"]["components"] for c in chosen])
            label = f"{method}, {batch} of {len(TABLE)} users"
            style = {"color": colour, "marker": marker, "label": label, "capsize": 2, "ms": 5, "lw": 1.2}
            # exact draws are CIR transitions over an infinite time
            shift = {8: 1.0, 4: 1.06, 2: 0.94}[batch]  # so that bars do not hide one another
            at = [shift * (c.step_size or 30.0) for c in chosen]
            axis.errorbar(at, values[:, 0], 2 * values[:, 1], **style)
    axis.axhline(0, color="0.5", lw=0.8)
    axis.set_xscale("log")
    axis.set_xticks([0.003, 0.01, 0.03, 0.1, 0.3, 1, 10, 30], ["0.003", "0.01", "0.03", "0.1", "0.3", "1", "10", "∞"])
    axis.minorticks_off()
    axis.set_xlabel("step size h (∞: exact draws)")
    axis.set_ylabel("error of E[components], posterior sd")
    axis.set_title(f"DP mixture of {len(TABLE)} users, α = {CONCENTRATION:g}; bars: ± 2 standard errors", fontsize=10)
    axis.grid(alpha=0.25, lw=0.4)
    axis.legend(fontsize=7, ncols=3, loc="lower center")
    axis.set_ylim(min(-0.8, axis.get_ylim()[0]), None)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
