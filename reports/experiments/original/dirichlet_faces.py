"""Effect of a singular force on a scheme without a Metropolis test: SGGMC on Dirichlet laws, dense to sparse.

    python -m sgmcmc_verification.reports.experiments.original.dirichlet_faces [--quick] [--resume] [--out FOLDER]

Independent chains of SGGMC start from Dirichlet(alpha, alpha), as a law on the circle through the sphere map, and run
for a fixed time; the Kolmogorov-Smirnov distance of theta_1 from its Beta law is taken at several step sizes. Every
cell is a JSON line in FOLDER/dirichlet-faces.jsonl; `--resume` skips what the file has.

Derivation (own). Let y be the distance to a face, y^(a-1) the density there, a = 2 alpha, and F = (a - 1) / y the force
(`targets.simplex.dirichlet.dirichlet_sphere`). A kick h F is O(1) for y < O(h), which a step meets with probability
O(h^a). It displaces the law by O(1) for a time O(1 / C), in which there are O(1 / h) steps: a bias of the law of
O(h^(a-1)) beside the O(h^2) of the splitting. So the order is min(2, 2 alpha - 1), which is 2 from alpha = 3/2 on; for
alpha < 1/2 the law does not tend to the target as h -> 0; at alpha = 1/2 there is no force. On the flat simplex a =
alpha, so that the same holds for alpha - 1; it is not run: a chain that is kicked hard takes 1e4 reflections in a step.
GMC (`samplers.geodesic.gmc`) has a Metropolis test and is exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy import stats

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, number
from sgmcmc_verification.reports.statistics.order_fits import fit_order
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.targets.simplex.dirichlet import dirichlet_sphere

NAME = "dirichlet-faces"
TIME = 4.0
"""Of a chain, in units of 1 / friction."""
STEP_SIZES = (0.2, 0.1, 0.05, 0.025, 0.0125)
ALPHAS = (0.3, 0.5, 0.75, 1.0, 1.5, 2.5)
COLOURS = ("#D55E00", "#E69F00", "#CC79A7", "#009E73", "#0072B2", "#56B4E9")
MARKERS = ("X", "s", "^", "o", "D", "v")
FULL, QUICK = 1 << 17, 1 << 12
CRITICAL = 1.63
"""Of sqrt(n) KS: exceeded in 1 of 100 runs without a bias."""


@dataclass(frozen=True)
class Cell(Keyed):
    """`chains` of a method, "SGGMC" or "GMC", with a step size."""

    method: str
    alpha: float
    step_size: float
    chains: int
    seed: int = 0


def predicted_order(alpha: float) -> float:
    """min(2, 2 alpha - 1), 2 without a force; not positive where the limit is not the target."""
    strength = 2 * alpha - 1
    return min(2.0, strength) if strength else 2.0


def measured(cell: Cell) -> dict[str, Any]:
    """KS distance of theta_1 after `TIME`, and how many chains are no longer finite."""
    target = dirichlet_sphere([cell.alpha] * 2, "law")
    assert target.sample is not None
    start, key = jax.random.split(cell.random)
    sampler = SGGMC(target.manifold) if cell.method == "SGGMC" else GMC(target.manifold)
    steps = round(TIME / cell.step_size)
    end = run(
        sampler,
        Exact(target),
        key,
        step_size=cell.step_size,
        num_steps=steps,
        thin=steps,
        positions=target.sample(start, cell.chains),
    ).position
    theta = np.asarray(end)[:, 0] ** 2
    finite = np.isfinite(theta)
    distance = stats.kstest(theta[finite], stats.beta(cell.alpha, cell.alpha).cdf).statistic
    return {"KS": float(distance), "lost": int(np.count_nonzero(~finite))}


def plan(quick: bool) -> list[Cell]:
    """All cells: SGGMC at all step sizes, GMC at the largest one."""
    count, sizes = (QUICK, STEP_SIZES[:2]) if quick else (FULL, STEP_SIZES)
    return [Cell("SGGMC", alpha, h, count) for alpha in ALPHAS for h in sizes] + [
        Cell("GMC", alpha, STEP_SIZES[0], count) for alpha in ALPHAS
    ]


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    cells = plan(quick)
    found = {(c.method, c.alpha, c.step_size): lines[c.key]["result"] for c in cells}
    sizes = STEP_SIZES[:2] if quick else STEP_SIZES
    chance = CRITICAL / math.sqrt(cells[0].chains)
    rows = []
    for alpha in ALPHAS:
        distances = [found["SGGMC", alpha, h]["KS"] for h in sizes]
        order = predicted_order(alpha)
        rows.append(
            f"| {alpha:g} | {f'{order:.2g}' if order > 0 else 'no limit'} | "
            + " | ".join(number(d) for d in distances)
            + f" | {slope(sizes, distances, chance)} | {number(found['GMC', alpha, STEP_SIZES[0]]['KS'])} |"
        )
    lost = sum(result["lost"] for result in found.values())
    return experiment_page(
        NAME,
        lines,
        time=f"{TIME:g}",
        chains=cells[0].chains,
        chance=number(chance),
        lost=lost,
        sizes=" | ".join(f"h = {h:g}" for h in sizes),
        step_sizes=f"{STEP_SIZES[0]:g}",
        num_sizes="---|" * (len(sizes) + 2),
        rows=rows,
    )


def slope(sizes: Sequence[float], distances: Sequence[float], chance: float) -> str:
    """Order fitted to the distances that are well above chance, with its standard error."""
    seen = [(h, d) for h, d in zip(sizes, distances, strict=True) if d > 2 * chance]
    fitted = fit_order(*zip(*seen, strict=True)) if seen else None
    return str(fitted or "–")


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """KS distance against step size."""
    found = {(c.method, c.alpha, c.step_size): lines[c.key]["result"]["KS"] for c in plan(quick)}
    sizes, count = (STEP_SIZES[:2], QUICK) if quick else (STEP_SIZES, FULL)
    figure, axes = new_figure(1, 1, (6.4, 4.4))
    axis = axes[0, 0]
    for alpha, colour, marker in zip(ALPHAS, COLOURS, MARKERS, strict=True):
        order = predicted_order(alpha)
        name = f"α = {alpha:g}: " + (f"order {order:.2g}" if order > 0 else "no limit")
        axis.loglog(sizes, [found["SGGMC", alpha, h] for h in sizes], color=colour, marker=marker, label=name)
    axis.axhspan(0, CRITICAL / math.sqrt(count), color="0.85", label="chance")
    axis.set_xticks(sizes, [f"{h:g}" for h in sizes])
    axis.minorticks_off()
    axis.set_xlabel("step size h")
    axis.set_ylabel("KS distance of θ₁")
    axis.set_title("SGGMC on Dirichlet(α, α) through the sphere map", fontsize=10)
    axis.grid(alpha=0.25, lw=0.4)
    axis.legend(fontsize=7, title="predicted", title_fontsize=7)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
