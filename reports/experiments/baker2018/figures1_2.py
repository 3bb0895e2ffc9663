"""Figures 1 and 2 of the SCIR paper: a Dirichlet posterior, sparse and dense, from minibatches of its counts.

    python -m sgmcmc_verification.reports.experiments.baker2018.figures1_2 [--quick] [--resume] [--out FOLDER]

1000 labels of 10 categories; the posterior of the category probabilities is Dirichlet(0.1 + counts). Every method sees
minibatches of n labels, with replacement, whose counts are multinomial. Steps 1001 to 2000 are kept and compared with
the exact posterior by d_KS: the mean over j of the Kolmogorov-Smirnov distance of the Rosenblatt transform

    z_j = BetaCDF(w_j / (w_j + .. + w_K); a_j, a_{j+1} + .. + a_K),   j = 1 .. K - 1

from the uniform law. The step size of a grid whose d_KS, averaged over five seeds, is smallest is the one that counts.
Every cell is a JSON line; `--resume` skips what the file has.

The samplers are the rows of the suite (`samplers.positive.scir`, `samplers.positive.cir_euler`,
`samplers.riemannian.sgrld` with the expanded-mean metric); only the published SGRLD, whose drift is not one of a law,
is written here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.samplers.positive.cir_euler import CIREuler
from sgmcmc_verification.samplers.positive.scir import SCIR
from sgmcmc_verification.samplers.riemannian.metrics import PositiveMetric
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD

NAME = "baker2018-figures-1-2"
ALPHA, CATEGORIES, TOTAL = 0.1, 10, 1000
BATCHES = (1, 10, 50, 100, 500)
SEEDS = (5, 6, 7, 8, 9)
BOXES = 10
"""Minibatch size of the boxplot."""
COMPONENT = 4
"""The fifth category: without labels in the sparse data."""
SCIR_GRID = (1.0, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001)
PAPER_GRID = (1e-3, 5e-4, 1e-4, 5e-5, 1e-5, 5e-6, 1e-6)
WIDER = (0.05, 0.02, 0.01, 5e-3, 2e-3)
"""Step sizes that the paper's grid for SGRLD lacks, and that its fair versions get too."""
GRIDS: dict[str, tuple[float, ...]] = {
    "exact": (0.0,),
    "SCIR": SCIR_GRID,
    "SGRLD, published": PAPER_GRID,
    "SGRLD": (*WIDER, *PAPER_GRID),
    "SGRLD, rescaled start": (*WIDER, *PAPER_GRID),
    "CIR-Euler": (*SCIR_GRID, 0.02, 5e-4, 1e-4, 1e-5),
}
METHODS = tuple(GRIDS)
STYLES = {
    "exact": ("#000000", "*"),
    "SCIR": ("#0072B2", "o"),
    "SGRLD, published": ("#D55E00", "X"),
    "SGRLD": ("#E69F00", "s"),
    "SGRLD, rescaled start": ("#009E73", "^"),
    "CIR-Euler": ("#CC79A7", "D"),
}
REPLICATION: dict[tuple[str, str], tuple[float, ...]] = {
    ("sparse", "SCIR"): (0.128, 0.086, 0.049, 0.038),
    ("sparse", "SGRLD, published"): (0.596, 0.597, 0.611, 0.622),
    ("sparse", "SGRLD"): (0.507, 0.488, 0.462, 0.452),
    ("sparse", "SGRLD, rescaled start"): (0.383, 0.363, 0.351, 0.360),
    ("sparse", "CIR-Euler"): (0.374, 0.364, 0.349, 0.360),
    ("dense", "SCIR"): (0.274, 0.164, 0.087, 0.064),
    ("dense", "SGRLD, published"): (0.294, 0.162, 0.095, 0.086),
    ("dense", "SGRLD"): (0.340, 0.296, 0.253, 0.237),
    ("dense", "SGRLD, rescaled start"): (0.342, 0.206, 0.094, 0.069),
    ("dense", "CIR-Euler"): (0.341, 0.211, 0.098, 0.072),
    ("sparse", "exact"): (0.028,) * 4,
    ("dense", "exact"): (0.027,) * 4,
}
"""An independent replication, three seeds, at n = 1, 10, 100, 500."""
REPLICATED = (1, 10, 100, 500)


@dataclass(frozen=True)
class Cell(Keyed):
    """A method on one of the data sets, at all step sizes of its grid and all seeds; `steps` are kept after as many."""

    data: str
    method: str
    batch: int
    steps: int = 1000
    seed: int = 0


def observed(data: str) -> np.ndarray:
    """Counts (10,): sparse as in the paper, dense from uniform labels."""
    if data == "sparse":
        return np.array([800.0, 100.0, 100.0, *[0.0] * 7])
    return np.bincount(np.random.default_rng(2018).integers(0, CATEGORIES, TOTAL), minlength=CATEGORIES).astype(float)


def distances(log_theta: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """d_KS (chains,) of samples log theta (steps, chains, K) from Dirichlet(shape)."""
    omega = np.exp(log_theta - special.logsumexp(log_theta, axis=-1, keepdims=True))
    left = np.cumsum(omega[..., ::-1], axis=-1)[..., ::-1]
    stick = np.divide(omega, left, out=np.zeros_like(omega), where=left > 0)[..., :-1]
    rest = np.cumsum(shape[::-1])[::-1]
    z = np.sort(special.betainc(shape[:-1], rest[1:], np.clip(stick, 0, 1)), axis=0)
    n = len(z)
    above = (np.arange(1, n + 1) / n).reshape(n, 1, 1)
    return np.maximum(above - z, z - (above - 1 / n)).max(axis=0).mean(axis=-1)


@dataclass(frozen=True, eq=False)
class Multinomial(Stateless):
    """Counts (.., K) of minibatches with replacement, one for each chain, scaled to all data."""

    counts: np.ndarray
    batch: int

    backend = "host"

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        drawn = key.multinomial(self.batch, self.counts / TOTAL, size=position.shape[:-1])
        return Estimate(None, statistics=TOTAL / self.batch * drawn), estate


@dataclass(frozen=True, eq=False)
class ExpandedMean(Stateless):
    """The gradient in the expanded-mean parameterisation, with the counts of a minibatch with replacement.

        -grad U = (alpha - 1 + n^) / theta - N / theta_. - 1

    Source: patterson2013stochastic, section 4.
    """

    counts: np.ndarray
    batch: int

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        edges = jnp.asarray(np.cumsum(self.counts))
        labels = jnp.searchsorted(edges, jax.random.randint(key, (self.batch,), 0, TOTAL), side="right")
        counts = TOTAL / self.batch * jnp.zeros_like(position).at[labels].add(1.0)
        score = (ALPHA - 1 + counts) / position - TOTAL / jnp.sum(position) - 1
        return Estimate(-score), estate


def starts(cell: Cell, generator: np.random.Generator) -> np.ndarray:
    """theta_0 (10,): alpha plus the counts of 1000 uniform labels (sparse) or of the data (dense)."""
    counts = generator.multinomial(TOTAL, [1 / CATEGORIES] * CATEGORIES) if cell.data == "sparse" else None
    theta = ALPHA + (observed(cell.data) if counts is None else counts)
    return theta / theta.sum() if cell.method == "SGRLD, rescaled start" else theta


@partial(jax.jit, static_argnames=("sampler", "estimator", "steps"))
def _sgrld_chains(sampler, estimator, keys, positions, sizes, steps):
    """theta (steps, chains, K) after as many steps of burn-in."""

    def move(state, keys):
        states = jax.vmap(lambda k, s, h: sampler.step(k, s, h, estimator))(keys, state, sizes)
        return states, states.position

    def stretch(state, number):
        split = jax.vmap(lambda k: jax.random.split(jax.random.fold_in(k, number), steps))(keys)
        return jax.lax.scan(move, state, jnp.swapaxes(split, 0, 1))

    state, _ = stretch(PositionState(positions, ()), 0)
    return stretch(state, 1)[1]


def sgrld(cell: Cell) -> np.ndarray:
    """log theta (steps, grid x seeds, K) of SGRLD."""
    grid = [(h, s) for h in GRIDS[cell.method] for s in SEEDS]
    positions = np.stack([starts(cell, np.random.default_rng([s, cell.batch])) for _, s in grid])
    sampler, estimator = SGRLD(PositiveMetric(), reflect=True), ExpandedMean(observed(cell.data), cell.batch)
    keys = jax.vmap(lambda s: jax.random.fold_in(jax.random.fold_in(cell.random, 1), s))(jnp.arange(len(grid)))
    sizes = jnp.asarray([h for h, _ in grid])
    theta = _sgrld_chains(sampler, estimator, keys, jnp.asarray(positions), sizes, cell.steps)
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(theta))


def published(cell: Cell) -> np.ndarray:
    """log theta (steps, grid x seeds, K) of SGRLD as the authors' program has it.

        theta' = |theta + (h / 2) (theta o g + 1) + sqrt(h theta) Z|,  g = alpha - theta + n^ - N theta / theta_.

    g is the natural gradient already, which holds theta once: the drift is that of no law.
    """
    grid = [(h, s) for h in GRIDS[cell.method] for s in SEEDS]
    theta = np.stack([starts(cell, np.random.default_rng([s, cell.batch])) for _, s in grid])
    h = np.array([h for h, _ in grid])[:, None]
    generator, estimator = np.random.default_rng([1, cell.batch]), Multinomial(observed(cell.data), cell.batch)
    kept = np.empty((cell.steps, *theta.shape))
    for t in range(2 * cell.steps):
        counts = estimator.estimate(generator, (), theta)[0].statistics
        g = ALPHA - theta + counts - TOTAL * theta / theta.sum(axis=1, keepdims=True)
        theta = np.abs(theta + h / 2 * (theta * g + 1) + np.sqrt(h * theta) * generator.standard_normal(theta.shape))
        if t >= cell.steps:
            kept[t - cell.steps] = theta
    with np.errstate(divide="ignore"):
        return np.log(kept)


def vectorised(sampler: Callable[..., Any], cell: Cell) -> np.ndarray:
    """log theta (steps, grid x seeds, K) of a host sampler, which moves all seeds at once."""
    blocks = []
    estimator = Multinomial(observed(cell.data), cell.batch)
    for i, h in enumerate(GRIDS[cell.method]):
        generator = np.random.default_rng([i, cell.batch, METHODS.index(cell.method)])
        theta = np.stack([starts(cell, np.random.default_rng([s, cell.batch])) for s in SEEDS])
        used = sampler(ALPHA)
        state = used.init(generator, theta, estimator)
        kept = np.empty((cell.steps, *theta.shape))
        for t in range(2 * cell.steps):
            state = used.step(generator, state, h, estimator)
            if t >= cell.steps:
                with np.errstate(divide="ignore"):
                    kept[t - cell.steps] = state.log_position if sampler is SCIR else np.log(state.position)
        blocks.append(kept)
    return np.concatenate(blocks, axis=1)


def exact(cell: Cell) -> np.ndarray:
    """log theta (steps, seeds, K) of independent draws."""
    shape = ALPHA + observed(cell.data)
    size = (cell.steps, len(SEEDS), CATEGORIES)
    generator = np.random.default_rng([0, cell.batch])
    return np.log(generator.standard_gamma(shape + 1, size)) - generator.standard_exponential(size) / shape


RUNS: dict[str, Callable[[Cell], np.ndarray]] = {
    "exact": exact,
    "SCIR": partial(vectorised, SCIR),
    "SGRLD, published": published,
    "SGRLD": sgrld,
    "SGRLD, rescaled start": sgrld,
    "CIR-Euler": partial(vectorised, CIREuler),
}


def measured(cell: Cell) -> dict[str, Any]:
    """d_KS for every step size and seed, and quantiles of log10 of the fifth component at the best step size."""
    log_theta = RUNS[cell.method](cell)
    usable = (log_theta < np.inf).all(axis=(0, 2))
    scores = np.ones(log_theta.shape[1])  # of a chain that explodes
    scores[usable] = distances(log_theta[:, usable], ALPHA + observed(cell.data))
    scores = scores.reshape(-1, len(SEEDS))
    best = int(scores.mean(axis=1).argmin())
    chains = log_theta.reshape(cell.steps, len(scores), len(SEEDS), CATEGORIES)[:, best]
    part = (chains - special.logsumexp(chains, axis=-1, keepdims=True))[..., COMPONENT] / np.log(10)
    return {
        "scores": [[round(float(s), 5) for s in row] for row in scores],
        "quantiles": [round(float(q), 4) for q in np.quantile(part, (0.05, 0.25, 0.5, 0.75, 0.95))],
    }


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    batches, steps = ((BOXES, 100), 100) if quick else (BATCHES, 1000)
    return [Cell(data, method, n, steps) for data in ("sparse", "dense") for method in METHODS for n in batches]


def best(lines: Lines, cell: Cell, grid: Sequence[float] | None = None) -> tuple[float, float, float]:
    """Step size, d_KS and its standard deviation over the seeds, at the best step size (of a part of the grid)."""
    own = GRIDS[cell.method]
    rows = lines[cell.key]["result"]["scores"]
    chosen = [(float(np.mean(r)), h, r) for h, r in zip(own, rows, strict=True) if grid is None or h in grid]
    mean, h, row = min(chosen)
    return h, mean, float(np.std(row, ddof=1))


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    cells = {(c.data, c.method, c.batch): c for c in plan(quick)}
    batches = sorted({n for _, _, n in cells})
    steps = next(iter(cells.values())).steps
    tables = []
    for data in ("sparse", "dense"):
        tables += [
            f"## {data.capitalize()}",
            "",
            "| | " + " | ".join(f"n = {n}" for n in batches) + " |",
            "|---|" + "---|" * len(batches),
        ]
        for method in METHODS:
            wide = method in ("SGRLD", "SGRLD, rescaled start")
            for label, grid in ((" (paper's grid)", PAPER_GRID), (" (wider grid)", None)) if wide else (("", None),):
                entries = [best(lines, cells[data, method, n], grid) for n in batches]
                tables.append(
                    f"| {method}{label} | "
                    + " | ".join(f"{m:.3f} ± {s:.3f}" + (f" ({h:g})" if h else "") for h, m, s in entries)
                    + " |"
                )
        tables.append("")
    if not quick:
        tables += comparison(lines, cells)
    return experiment_page(
        NAME,
        lines,
        quick=quick,
        labels=TOTAL,
        categories=CATEGORIES,
        alpha=ALPHA,
        steps=steps,
        seeds=len(SEEDS),
        tables=tables,
    )


def comparison(lines: Lines, cells: dict[tuple[str, str, int], Cell]) -> list[str]:
    """The table against the replication, on the paper's grids."""
    page = [
        "## Against an independent replication",
        "",
        "d_KS of this run less that of a replication with three seeds, on the paper's grids, with the standard "
        "error of the difference from the spread of the seeds here, s √(1/5 + 1/3).",
        "",
        "| | " + " | ".join(f"n = {n}" for n in REPLICATED) + " |",
        "|---|" + "---|" * len(REPLICATED),
    ]
    for (data, method), values in REPLICATION.items():
        entries = []
        for n, value in zip(REPLICATED, values, strict=True):
            grid = PAPER_GRID if method.startswith("SGRLD") else None
            _, mean, spread = best(lines, cells[data, method, n], grid)
            entries.append(f"{mean - value:+.3f} ± {spread * np.sqrt(1 / 5 + 1 / 3):.3f}")
        page.append(f"| {data}, {method} | " + " | ".join(entries) + " |")
    return [*page, ""]


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Left the boxplots, right d_KS against the minibatch size; above sparse, below dense."""
    cells = {(c.data, c.method, c.batch): c for c in plan(quick)}
    batches = sorted({n for _, _, n in cells})
    figure, axes = new_figure(2, 2, (11.0, 8.0))
    for row, data in enumerate(("sparse", "dense")):
        box, curve = axes[row]
        stats = []
        for method in METHODS:
            q = lines[cells[data, method, BOXES].key]["result"]["quantiles"]
            stats.append({"whislo": q[0], "q1": q[1], "med": q[2], "q3": q[3], "whishi": q[4], "fliers": []})
        drawn = box.bxp(stats, showfliers=False, patch_artist=True, medianprops={"color": "black"})
        for patch, method in zip(drawn["boxes"], METHODS, strict=True):
            patch.set_facecolor(STYLES[method][0])
            patch.set_alpha(0.7)
        box.set_xticks(range(1, len(METHODS) + 1), [m.replace(", ", ",\n") for m in METHODS], fontsize=8)
        box.set_ylabel("log10 of the 5th component")
        box.set_title(f"{data}, n = {BOXES}: quantiles 5, 25, 50, 75, 95 %")
        for method in METHODS:
            colour, marker = STYLES[method]
            values = [best(lines, cells[data, method, n])[1:] for n in batches]
            curve.errorbar(
                batches,
                [v[0] for v in values],
                [v[1] for v in values],
                color=colour,
                marker=marker,
                label=method,
                capsize=3,
                linestyle="--" if method == "exact" else "-",
            )
        curve.set_xscale("log")
        curve.set_yscale("log")
        curve.set_xlabel("minibatch size n")
        curve.set_ylabel("d_KS")
        curve.set_title(f"{data}: d_KS at the best step size")
    axes[0, 1].legend(fontsize=8)
    steps = next(iter(cells.values())).steps
    figure.suptitle(
        f"SCIR on Dirichlet posteriors{', reduced' if quick else ''}: {TOTAL} labels, {CATEGORIES} categories, "
        f"{steps} + {steps} steps, {len(SEEDS)} seeds"
    )
    figure.savefig(path, dpi=130)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, then write the figure and the page."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw, duration="a minute")


if __name__ == "__main__":
    raise SystemExit(main())
