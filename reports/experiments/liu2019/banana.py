"""Particles on a banana by four methods: Blob, SGHMC, pSGHMC-det and pSGHMC-fGH, in pictures.

    python -m sgmcmc_verification.reports.experiments.liu2019.banana [--quick] [--resume] [--out FOLDER]

Fifty particles from a place beside the law, drawn after every 300 iterations. Every cell is a JSON line in
FOLDER/liu2019-banana.jsonl; `--resume` skips what the file has.

Source: the synthetic experiment of the released code of liu2019understanding: the law, the start, step size, friction
and bandwidth. SGHMC is at temperature 1; that of the released code adds noise of the standard deviation C (2 h)^(1/2)
where (2 C h)^(1/2) belongs, which is the temperature C.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.statistics.ksd import ksd
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, number
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.particles.parvi import ParVI
from sgmcmc_verification.samplers.particles.psghmc import PSGHMC
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.target import Target

NAME = "liu2019-banana"
METHODS = ("Blob", "SGHMC", "pSGHMC-det", "pSGHMC-fGH")
COLOURS = dict(zip(METHODS, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))
"""Of the palette of Okabe and Ito."""
PARTICLES, START, SPREAD = 50, (-2.0, -7.0), 0.5
STEP_SIZE, FRICTION = 0.01, 0.5
SNAPSHOTS = (0, 300, 600, 900, 1200)
QUICK = (0, 20)
LONG = 12_000
"""Iterations of the cells that show where the particles end."""
SEEDS = 5
BOX = (-22.0, 4.0, -24.0, 24.0)
"""Of the pictures."""
REFERENCE_SETS = 200


@dataclass(frozen=True)
class Cell(Keyed):
    """Particles of a method; `iterations` are those at which they are kept."""

    method: str
    iterations: tuple[int, ...]
    seed: int = 0


def energy(x: jax.Array) -> jax.Array:
    """U = [(x^2 + y^2) / 2 + (25 x + y^2)^2 * 2 / 5] / 100."""
    return 0.01 * (0.5 * jnp.sum(x * x) + 0.4 * (25 * x[0] + x[1] ** 2) ** 2)


@cache
def law() -> Target:
    """The banana."""
    return Target("banana of the flow paper", Euclidean(2), jnp.asarray(START), energy, source="liu2019understanding")


@cache
def rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m, 2) and weights (m,) of the law: given y, x is normal; a fine grid in y and Gauss nodes in x."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    y = np.linspace(-60, 60, 4801)
    # 0.01 [x^2 / 2 + 0.4 (25 x + y^2)^2] is quadratic in x with precision 0.01 (1 + 500)
    precision = 0.01 * (1 + 0.8 * 625)
    mean = -0.01 * 0.8 * 25 * y**2 / precision
    left = 0.01 * (0.5 * y**2 + 0.4 * y**4) - 0.5 * precision * mean**2
    height = np.exp(-(left - left.min()))
    points = np.stack([mean[:, None] + nodes / np.sqrt(precision), np.broadcast_to(y[:, None], (len(y), 12))], axis=-1)
    mass = (height[:, None] * weights).ravel()
    return points.reshape(-1, 2), mass / mass.sum()


STATISTICS = {
    "x": lambda z: z[:, 0],
    "y": lambda z: z[:, 1],
    "x²": lambda z: z[:, 0] ** 2,
    "y²": lambda z: z[:, 1] ** 2,
}


def sampler_of(method: str) -> Any:
    """The methods of the figure."""
    return {
        "Blob": ParVI("blob", "he"),
        "SGHMC": SGHMC(friction=FRICTION),
        "pSGHMC-det": PSGHMC(FRICTION, form="det", bandwidth="he"),
        "pSGHMC-fGH": PSGHMC(FRICTION, form="fgh", bandwidth="he"),
    }[method]


def discrepancy(points: np.ndarray) -> float:
    """Squared kernel Stein discrepancy, all pairs."""
    scores = -np.asarray(jax.vmap(jax.grad(energy))(jnp.asarray(points)))
    return ksd(points, scores, statistic="V")


def moved(cell: Cell) -> dict[str, Any]:
    """The particles at the iterations of the cell, and their distances from the law."""
    sampler, estimator = sampler_of(cell.method), Exact(law())
    place, start, walk = jax.random.split(cell.random, 3)
    positions = jnp.asarray(START) + SPREAD * jax.random.normal(place, (PARTICLES, 2))
    if ParticleLaw in sampler.claims:
        state = sampler.init(start, positions, estimator)
        advance = lambda key, s: sampler.step(key, s, STEP_SIZE, estimator)
        read = sampler.position
    else:
        state = jax.vmap(lambda k, x: sampler.init(k, x, estimator))(jax.random.split(start, PARTICLES), positions)
        one = jax.vmap(lambda k, s: sampler.step(k, s, STEP_SIZE, estimator))
        advance = lambda key, s: one(jax.random.split(key, PARTICLES), s)
        read = jax.vmap(sampler.position)

    @jax.jit
    def run(state, first, last):
        return jax.lax.fori_loop(first, last, lambda t, s: advance(jax.random.fold_in(walk, t), s), state)

    kept = []
    for before, now in zip((0, *cell.iterations[:-1]), cell.iterations, strict=True):
        state = run(state, before, now)
        x = np.asarray(read(state))
        kept.append({"points": x.round(5).tolist(), "KSD": discrepancy(x)})
    return {"snapshots": kept}


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    if quick:
        return [Cell(m, QUICK) for m in METHODS]
    return [Cell(m, SNAPSHOTS, seed) for m in METHODS for seed in range(SEEDS)] + [Cell(m, (LONG,)) for m in METHODS]


@cache
def exact_discrepancies() -> tuple[float, float]:
    """Median and 95% quantile of the discrepancy of sets of independent draws of the law, as many as particles."""
    points, weights = rule()
    generator = np.random.default_rng(0)
    found = []
    for _ in range(REFERENCE_SETS):
        drawn = points[generator.choice(len(points), PARTICLES, p=weights)]
        found.append(discrepancy(drawn))
    return float(np.median(found)), float(np.quantile(found, 0.95))


# The page ----------------------------------------------------------------------------------------------------------


def measured(lines: Lines, quick: bool) -> dict[str, np.ndarray]:
    """Method -> KSD (seeds, snapshots)."""
    iterations = QUICK if quick else SNAPSHOTS
    return {
        m: np.array(
            [
                [s["KSD"] for s in lines[c.key]["result"]["snapshots"]]
                for c in plan(quick)
                if c.method == m and c.iterations == iterations
            ]
        )
        for m in METHODS
    }


def mean_height(lines: Lines, quick: bool, method: str) -> np.ndarray:
    """Mean of y by snapshot, over particles and starts."""
    iterations = QUICK if quick else SNAPSHOTS
    cells = [c for c in plan(quick) if c.method == method and c.iterations == iterations]
    shots = [[s["points"] for s in lines[c.key]["result"]["snapshots"]] for c in cells]
    return np.array(shots)[..., 1].mean(axis=(0, 2))


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    iterations = QUICK if quick else SNAPSHOTS
    found, (median, most) = measured(lines, quick), exact_discrepancies()
    nodes, weights = rule()
    exact = {name: float(weights @ f(nodes)) for name, f in STATISTICS.items()}
    rows, means = [], []
    for m in METHODS:
        rows.append(f"| {m} | " + " | ".join(number(float(v)) for v in np.mean(found[m], axis=0)) + " |")
        means.append(f"| {m} | " + " | ".join(f"{v:.2f}" for v in mean_height(lines, quick, m)) + " |")
    after: list[str] = []
    if not quick:
        after = [
            "",
            f"## After {LONG} iterations",
            "",
            "| | " + " | ".join(f"E {name}" for name in STATISTICS) + " | KSD² |",
            "|---|" + "---|" * 5,
            "| the law | " + " | ".join(f"{v:.3f}" for v in exact.values()) + f" | {number(median)} (50 draws) |",
        ]
        for m in METHODS:
            last = lines[Cell(m, (LONG,)).key]["result"]["snapshots"][-1]
            points = np.array(last["points"])
            moments = " | ".join(f"{f(points).mean():.3f}" for f in STATISTICS.values())
            after.append(f"| {m} | {moments} | {number(last['KSD'])} |")
    return experiment_page(
        NAME,
        lines,
        num_blob=len(found["Blob"]),
        median=number(median),
        most=number(most),
        iterations=" | ".join(str(i) for i in iterations),
        num_iterations="---|" * len(iterations),
        rows=rows,
        means=means,
        after=after,
        particles=PARTICLES,
        start=START,
        spread=f"{SPREAD**2:g}",
        step_size=f"{STEP_SIZE:g}",
        friction=f"{FRICTION:g}",
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """A row a method, a column an iteration."""
    iterations = QUICK if quick else SNAPSHOTS
    figure, axes = new_figure(
        len(METHODS), len(iterations), (2.3 * len(iterations) + 0.6, 2.5 * len(METHODS)), sharex=True, sharey=True
    )
    x, y = np.meshgrid(np.linspace(*BOX[:2], 700), np.linspace(*BOX[2:], 400))
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    height = np.exp(-np.asarray(jax.vmap(energy)(jnp.asarray(grid)))).reshape(x.shape)
    for row, m in enumerate(METHODS):
        shots = lines[Cell(m, iterations).key]["result"]["snapshots"]
        for column, (iteration, shot) in enumerate(zip(iterations, shots, strict=True)):
            axis, points = axes[row, column], np.array(shot["points"])
            axis.contour(x, y, height, levels=[0.02, 0.2, 0.6], colors="0.65", linewidths=0.7)
            axis.plot(points[:, 0], points[:, 1], "o", ms=3.2, color=COLOURS[m], mec="black", mew=0.3)
            axis.set_xlim(*BOX[:2])
            axis.set_ylim(*BOX[2:])
            if row == 0:
                axis.set_title("start" if iteration == 0 else f"{iteration} iterations", fontsize=9)
            if column == 0:
                axis.set_ylabel(f"{m}\ny", fontsize=9)
            if row == len(METHODS) - 1:
                axis.set_xlabel("x", fontsize=9)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, moved, text, draw, duration="half a minute")


if __name__ == "__main__":
    raise SystemExit(main())
