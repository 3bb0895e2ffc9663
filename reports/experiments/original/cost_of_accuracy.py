"""Cost of an accuracy: gradients until a second moment is known to a relative error, exact laws, no sampling.

    python -m sgmcmc_verification.reports.experiments.original.cost_of_accuracy [--quick] [--resume] [--out FOLDER]

On a Gaussian target a step is affine, s' = A s + B xi + c, and the stationary law with its autocovariances is known.
For a whitened coordinate y of the position, C_k = cov(y_k, y_0) and rho_k = C_k / C_0, the average of y^2 over n
steps has

    bias b(h) = E y^2 - 1,     variance 2 tau(h) C_0^2 / n,     tau = 1 + 2 sum_{k >= 1} rho_k^2

for n large, since Cov(y_k^2, y_0^2) = 2 C_k^2 for a Gaussian process of mean 0. With the best step size a root mean
square error eps of E y^2 = 1 takes

    G(eps) = min_h 2 tau(h) C_0(h)^2 / (eps^2 - b(h)^2)

gradients, one a step, of the coordinate that takes most. An exact law at a large step size costs stability only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.checks.exact_laws.lyapunov import CONTRACTING, observed, stationary_law
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure
from sgmcmc_verification.targets.registry import target

NAME = "cost-of-accuracy"
TARGET = "gaussian-correlated-2d"
SAMPLERS = {
    "sgld": ("SGLD", "#0072B2", "o", "-"),
    "leimkuhler-matthews": ("Leimkuhler–Matthews", "#56B4E9", "v", "-"),
    "sghmc": ("SGHMC, Euler", "#D55E00", "X", "--"),
    "sghmc-symmetric": ("SGHMC, symmetric", "#E69F00", "s", "--"),
    "baoab": ("BAOAB", "#009E73", "^", "-."),
    "obabo": ("OBABO", "#CC79A7", "D", "-."),
    "ubu": ("UBU", "#000000", "P", ":"),
}
"""Name, colour, marker, line: all with one gradient a step, at their default options."""
EPSILONS = (0.1, 0.03, 0.01, 0.003, 0.001)
LARGEST, FINEST, QUICK = 9, 16, 4
"""Step sizes: the usual one times 2^(k/2), k from -FINEST to LARGEST."""

ROUNDOFF = 1e-10
"""Smaller biases are those of the equations that are solved: 1 / (1 - radius) times machine epsilon."""


@dataclass(frozen=True)
class Cell(Keyed):
    """A sampler, at `count` step sizes below the largest one."""

    sampler: str
    count: int
    seed: int = 0


def coordinates(step: JaxStep, h: float) -> list[tuple[float, float]] | None:
    """(C_0, tau) of each whitened coordinate of the position; None where there is no stationary law."""
    assert step.target.gaussian is not None
    (single,) = step.affine(h)
    inside, read = observed([single], step.readout_at(h)[0])
    law, a = stationary_law(inside), inside[0].matrix
    if not law.radius < CONTRACTING:
        return None
    whiten = np.linalg.cholesky(step.target.gaussian.precision).T @ read
    size = len(a)
    pairs = np.kron(a, a)
    found = []
    for p in whiten:
        carried = law.covariance @ p
        variance = float(p @ carried)
        # sum over k >= 1 of (p A^k S p)^2 = (p x p) (A x A) (I - A x A)^-1 (S p x S p)
        summed = np.kron(p, p) @ pairs @ np.linalg.solve(np.eye(size * size) - pairs, np.kron(carried, carried))
        found.append((variance, 1 + 2 * float(summed) / variance**2))
    return found


def measured(cell: Cell) -> dict[str, Any]:
    """Step sizes and, at each, (C_0, tau) of the coordinates."""
    law, subject = target(TARGET), resolve(cell.sampler)[0]
    step = step_map(subject, law)
    assert isinstance(step, JaxStep)
    sizes = subject.step_size(law) * 2.0 ** ((LARGEST - np.arange(cell.count)) / 2)
    return {"step sizes": sizes.tolist(), "coordinates": [coordinates(step, float(h)) for h in sizes]}


def curve(result: dict[str, Any]) -> list[tuple[float, float, float]]:
    """(h, largest |bias|, most gradients an effective draw) at the stable step sizes."""
    stable = [(h, c) for h, c in zip(result["step sizes"], result["coordinates"], strict=True) if c is not None]
    return [(h, max(abs(v - 1) for v, _ in c), max(tau for _, tau in c)) for h, c in stable]


def gradients(result: dict[str, Any], epsilon: float) -> tuple[float, float] | None:
    """(G(epsilon), h) at the best of the step sizes; None if the bias is too large at all of them."""
    found = []
    for h, c in zip(result["step sizes"], result["coordinates"], strict=True):
        if c is not None and all(abs(v - 1) < epsilon for v, _ in c):
            found.append((max(2 * tau * v * v / (epsilon**2 - (v - 1) ** 2) for v, tau in c), h))
    return min(found) if found else None


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    names = list(SAMPLERS)[:1] if quick else list(SAMPLERS)
    return [Cell(name, QUICK if quick else LARGEST + FINEST + 1) for name in names]


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    rows = []
    for cell in plan(quick):
        result = lines[cell.key]["result"]
        costs = [gradients(result, e) for e in EPSILONS]
        shown = ["–" if c is None else f"{c[0]:.2g} (h = {c[1]:.2g})" for c in costs]
        rows.append(f"| {SAMPLERS[cell.sampler][0]} | " + " | ".join(shown) + " |")
    return experiment_page(
        NAME,
        lines,
        target=TARGET,
        epsilons=" | ".join(f"ε = {e:g}" for e in EPSILONS),
        num_epsilons="---|" * len(EPSILONS),
        rows=rows,
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Bias against gradients an effective draw; gradients against accuracy."""
    figure, axes = new_figure(1, 2, (9.6, 4.2))
    left, right = axes[0]
    for cell in plan(quick):
        name, colour, marker, line = SAMPLERS[cell.sampler]
        result = lines[cell.key]["result"]
        style = {"color": colour, "marker": marker, "linestyle": line, "label": name, "markersize": 4}
        found = [(cost, bias) for _, bias, cost in curve(result) if bias > ROUNDOFF]
        if found:
            left.loglog(*zip(*found, strict=True), **style)
        grid = np.geomspace(EPSILONS[0], EPSILONS[-1], 9)
        costs = [(e, c[0]) for e in grid if (c := gradients(result, float(e)))]
        right.loglog(*zip(*costs, strict=True), **style)
    left.set_xlabel("gradients an effective draw, τ")
    left.set_ylabel("bias of the second moment, relative")
    right.set_xlabel("accuracy ε of the second moment")
    right.set_ylabel("gradients in all")
    right.invert_xaxis()
    right.legend(fontsize=8)
    for axis in (left, right):
        axis.grid(alpha=0.25, lw=0.4)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
