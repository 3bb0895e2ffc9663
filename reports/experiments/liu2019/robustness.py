"""The poster's three types of dynamics under stochastic gradients: robust, fragile, robust.

    python -m sgmcmc_verification.reports.experiments.liu2019.robustness [--quick] [--resume] [--out FOLDER]

On N(0, 1) every step is affine and every law a Gaussian, whose mean and covariance follow a recursion without noise
(`Affine`). Beside it: the same numbers of many chains, each with gradient noise of its own, and of particles of flows,
which share the noise of a step. Every cell is a JSON line in FOLDER/liu2019-robustness.jsonl; `--resume` skips
what the file has.

Source: liu2019understanding, the three types of its section on existing dynamics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, number
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.particles.particle_flow import as_flow
from sgmcmc_verification.samplers.particles.parvi import ParVI
from sgmcmc_verification.samplers.particles.psghmc import PSGHMC, hamiltonian
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.target import Target

NAME = "liu2019-robustness"
FRICTION = 1.0
NOISES = (0.0, 10.0, 40.0)
"""V: variances of the gradient."""
START, SPREAD = 2.0, 0.5
"""Of the positions, normal; momenta are of the target."""
TIME, RECORDS = 40.0, 20
STEP = {"chains": 0.05, "particles": 0.02}
CHAINS, PARTICLES, REPLICATES = 4000, 50, 40
KINDS = {
    "chains": {"SGLD": 1, "SGHMC without friction": 2, "SGHMC": 3},
    "particles": {"Blob": 1, "Hamiltonian flow": 2, "pSGHMC-det": 3, "pSGHMC-fGH": 3},
}
"""Kind -> method -> type of the poster."""
TYPES = {1: "D non-singular", 2: "D = 0", 3: "D ≠ 0, singular"}
POSTER = {1: "robust", 2: "fragile: no stabilising force", 3: "robust: the noise appears on each fibre"}
COLOURS = dict(zip(NOISES, ("#000000", "#0072B2", "#D55E00"), strict=True))


@dataclass(frozen=True)
class Cell(Keyed):
    """`kind` of `KINDS`, a method, the variance of its gradients, and the time that it runs for."""

    kind: str
    method: str
    noise: float
    time: float
    seed: int = 0


class Affine(NamedTuple):
    """z' = A z + N(0, N), z = theta, or (theta, r)."""

    A: np.ndarray
    N: np.ndarray


def affine(cell: Cell, h: float) -> Affine:
    """One step of a chain, or of the mean of particles, on N(0, 1) with gradient noise of variance V.

    Chains, with r before theta: r' = (1 - h C) r - h (theta + eta) + N(0, 2 C h), theta' = theta + h r'. Particles: the
    repulsion of Blob sums to zero, so that their mean has an Euler step of dz/dt = -(D + Q) (z + (eta, 0)).
    """
    V = cell.noise
    if cell.method in ("SGLD", "Blob"):
        injected = 2 * h if cell.kind == "chains" else 0.0
        return Affine(np.array([[1 - h]]), np.array([[injected + h**2 * V]]))
    C = 0.0 if KINDS[cell.kind][cell.method] == 2 else FRICTION
    if cell.kind == "chains":
        kick = np.array([[h * h, h], [h, 1.0]])
        return Affine(np.array([[1 - h * h, h * (1 - h * C)], [-h, 1 - h * C]]), (2 * C * h + h**2 * V) * kick)
    return Affine(np.array([[1.0, h], [-h, 1 - h * C]]), np.diag([0.0, h**2 * V]))


def recursion(step: Affine, mean: np.ndarray, covariance: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Means (count + 1, n) and covariances (count + 1, n, n) from the start on."""
    means, covariances = [mean], [covariance]
    for _ in range(count):
        means.append(step.A @ means[-1])
        covariances.append(step.A @ covariances[-1] @ step.A.T + step.N)
    return np.array(means), np.array(covariances)


def divergence(mean: np.ndarray, covariance: np.ndarray) -> float:
    """KL(N(m, S) || N(0, I)) = (tr S + m.m - n - log det S) / 2."""
    return float(np.trace(covariance) + mean @ mean - len(mean) - np.linalg.slogdet(covariance)[1]) / 2


@cache
def law() -> Target:
    """N(0, 1)."""
    return gaussian(np.zeros(1), np.eye(1), "standard Gaussian")


def sampler_of(method: str) -> Any:
    """The methods; SGHMC without friction and injected noise is a planted bug of the suite."""
    return {
        "SGLD": SGLD,
        "SGHMC without friction": lambda: find_defect("sghmc-naive").subject.sampler(law()),
        "SGHMC": lambda: SGHMC(friction=FRICTION),
        "Blob": ParVI,
        "Hamiltonian flow": lambda: as_flow(hamiltonian, form="fgh", joint=True)(law()),
        "pSGHMC-det": lambda: PSGHMC(FRICTION, form="det"),
        "pSGHMC-fGH": lambda: PSGHMC(FRICTION, form="fgh"),
    }[method]()


def coordinates(sampler: Any, state: Any) -> jax.Array:
    """z (n,) of a chain, or (M, n) of particles: the position, and the momentum if there is one."""
    position = sampler.position(state)
    momentum = getattr(state, "momentum", getattr(state, "auxiliary", None))
    return position if momentum is None else jnp.concatenate([position, momentum], axis=-1)


def walked(cell: Cell) -> tuple[np.ndarray, float]:
    """z at the records, (records + 1, walkers, ..), and the time between two; the walkers are independent."""
    h = STEP[cell.kind]
    every = max(1, round(cell.time / RECORDS / h))
    sampler, estimator = sampler_of(cell.method), KnownNoise(law(), np.full((1, 1), cell.noise))
    place, start, walk = jax.random.split(cell.random, 3)
    if cell.kind == "chains":
        x = START + SPREAD * jax.random.normal(place, (CHAINS, 1))
        state = jax.vmap(lambda k, y: sampler.init(k, y, estimator))(jax.random.split(start, CHAINS), x)
        count = CHAINS
    else:
        x = START + SPREAD * jax.random.normal(place, (PARTICLES, 1))
        one = sampler.init(start, x, estimator)  # the same particles in every replicate
        count = REPLICATES
        state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), one)
    if cell.kind == "chains" and hasattr(state, "momentum"):
        state = state._replace(momentum=jax.random.normal(jax.random.fold_in(start, 1), (CHAINS, 1)))
    step = jax.vmap(lambda k, s: sampler.step(k, s, h, estimator))

    @jax.jit
    def run(state, first):
        body = lambda t, s: step(jax.random.split(jax.random.fold_in(walk, t), count), s)
        return jax.lax.fori_loop(first, first + every, body, state)

    read = lambda s: np.asarray(jax.vmap(lambda one: coordinates(sampler, one))(s))
    found = [read(state)]
    for t in range(RECORDS):
        state = run(state, t * every)
        found.append(read(state))
    return np.array(found), every * h


def measured(cell: Cell) -> dict[str, Any]:
    """Times; of chains their mean, covariance and divergence, of particles the mean square of their centre."""
    z, between = walked(cell)
    times = [round(between * i, 6) for i in range(len(z))]
    if cell.kind == "chains":
        means, covariances = z.mean(axis=1), np.array([np.cov(x.T).reshape(x.shape[1], x.shape[1]) for x in z])
        return {"times": times, "mean": means.tolist(), "covariance": covariances.tolist()}
    centres = z.mean(axis=2)  # (records + 1, replicates, n)
    shape = z - centres[:, :, None]
    return {
        "times": times,
        "start": centres[0, 0].tolist(),
        "centre squared": (centres[..., 0] ** 2).mean(axis=1).tolist(),
        "spread": shape[:, 0, :, 0].var(axis=1).tolist(),
        "largest difference between shapes of replicates": float(np.ptp(shape, axis=1).max()),
    }


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    time = 2.0 if quick else TIME
    return [Cell(kind, m, V, time) for kind, methods in KINDS.items() for m in methods for V in NOISES]


# The page ----------------------------------------------------------------------------------------------------------


def exact(cell: Cell, result: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, means, covariances) after every step, from the recursion."""
    h = STEP[cell.kind]
    step = affine(cell, h)
    n = len(step.A)
    if cell.kind == "chains":
        mean, covariance = np.eye(n)[0] * START, np.diag([SPREAD**2, 1.0][:n])
    else:
        mean, covariance = np.array(result["start"]), np.zeros((n, n))
    count = round(result["times"][-1] / h)
    return h * np.arange(count + 1), *recursion(step, mean, covariance, count)


def at_records(cell: Cell, result: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Exact means and covariances at the times of the lines."""
    _, means, covariances = exact(cell, result)
    index = np.round(np.array(result["times"]) / STEP[cell.kind]).astype(int)
    return means[index], covariances[index]


def deviation(cell: Cell, result: dict[str, Any]) -> float:
    """Largest distance of what was measured from the recursion, in its standard errors, over records.

    Of chains the variance of theta, with the error sigma^2 (2 / (n - 1))^(1/2) of a Gaussian; of particles the mean
    over replicates of the squared centre c, with the variance (2 sigma^4 + 4 m^2 sigma^2) / R. Without noise there is
    no error but round-off, and the relative distance is returned in units of 1e-9.
    """
    means, covariances = at_records(cell, result)
    m, v = means[:, 0], covariances[:, 0, 0]
    if cell.kind == "chains":
        found = np.array(result["covariance"])[:, 0, 0]
        return float(np.abs((found - v) / (v * np.sqrt(2 / (CHAINS - 1)))).max())
    found = np.array(result["centre squared"])
    if cell.noise == 0:
        return float((np.abs(found - m**2) / (1e-9 * (m**2).max())).max())
    error = np.sqrt((2 * v**2 + 4 * m**2 * v) / REPLICATES)
    return float(np.abs((found - m**2 - v)[1:] / error[1:]).max())


def curve(cell: Cell, result: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, exact, measured at the records): of chains the divergence, of particles E c^2."""
    times, means, covariances = exact(cell, result)
    if cell.kind == "chains":
        right = np.array([divergence(m, S) for m, S in zip(means, covariances, strict=True)])
        pairs = zip(result["mean"], result["covariance"], strict=True)
        return times, right, np.array([divergence(np.array(m), np.array(S)) for m, S in pairs])
    return times, means[:, 0] ** 2 + covariances[:, 0, 0], np.array(result["centre squared"])


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    claims, rows, particles = [], [], []
    for cell in plan(quick):
        result, kind = lines[cell.key]["result"], KINDS[cell.kind][cell.method]
        _, right, found = curve(cell, result)
        half, end = found[len(found) // 2], found[-1]
        row = (
            f"| {kind}: {TYPES[kind]} | {cell.method} | {cell.noise:g} | {number(half)} | {number(end)} | "
            f"{number(float(right[-1]))} | {deviation(cell, result):.1f} |"
        )
        (rows if cell.kind == "chains" else particles).append(row)
        if cell.kind == "chains" and cell.noise == NOISES[-1]:
            grew = right[-1] / right[len(right) // 2]
            seen = (
                f"the divergence settles at {number(float(right[-1]))}"
                if grew < 1.1
                else (f"the divergence grows from {number(half)} to {number(end)} from half of the time to the end")
            )
            claims.append(f"| {kind}: {TYPES[kind]} | {POSTER[kind]} | {cell.method}: {seen} |")
    gaps = {1: 0.0, 2: 0.0, 3: 0.0}
    for cell in (c for c in plan(quick) if c.kind == "particles"):
        kind = KINDS[cell.kind][cell.method]
        gaps[kind] = max(gaps[kind], lines[cell.key]["result"]["largest difference between shapes of replicates"])
    h = STEP["chains"]
    return experiment_page(
        NAME,
        lines,
        chains=CHAINS,
        particles=PARTICLES,
        replicates=REPLICATES,
        noises=f"{NOISES[-1]:g}",
        claims=claims,
        h=f"{h * NOISES[-1] / 2:g}",
        rows=rows,
        largest_gap=number(max(gaps[1], gaps[3])),
        gaps=number(gaps[2]),
        num_particles=particles,
        start=f"{START:g}",
        spread=f"{SPREAD**2:g}",
        chain_step=f"{STEP['chains']:g}",
        particle_step=f"{STEP['particles']:g}",
        friction=f"{FRICTION:g}",
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """A column a type; chains above, particles below; lines are exact, points measured."""
    figure, axes = new_figure(2, 3, (11.5, 6.6), sharex=True, sharey="row")
    for cell in plan(quick):
        kind, result = KINDS[cell.kind][cell.method], lines[cell.key]["result"]
        axis = axes[0 if cell.kind == "chains" else 1, kind - 1]
        times, right, found = curve(cell, result)
        other = cell.method == "pSGHMC-fGH"  # its centre has the same law as that of pSGHMC-det
        if not other:
            axis.plot(times, right, color=COLOURS[cell.noise], lw=1.2)
        axis.plot(
            result["times"],
            found,
            "x" if other else "o",
            ms=4 if other else 3.2,
            color=COLOURS[cell.noise],
            label=f"{cell.method}, V = {cell.noise:g}",
        )
    for column, (kind, name) in enumerate(TYPES.items()):
        axes[0, column].set_title(f"type {kind}: {name}", fontsize=10)
        axes[1, column].set_xlabel("time")
        for axis in axes[:, column]:
            axis.set_yscale("log")
            axis.grid(alpha=0.25, lw=0.4)
            axis.legend(fontsize=6.5)
    axes[0, 0].set_ylim(1e-5, 1e3)
    axes[1, 0].set_ylim(1e-3, 1e2)
    axes[0, 0].set_ylabel("chains: KL(q‖p)")
    axes[1, 0].set_ylabel("particles: mean square of their centre")
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw, duration="half a minute")


if __name__ == "__main__":
    raise SystemExit(main())
