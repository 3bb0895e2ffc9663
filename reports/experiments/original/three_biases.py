"""Sources of a bias: discretisation, gradient noise, implementation, each exact and apart.

    python -m sgmcmc_verification.reports.experiments.original.three_biases [--quick] [--resume] [--out FOLDER]

The stationary law of an affine step with all minibatches enumerated is computed (`checks.exact_laws.lyapunov`), not
sampled, on the posterior of a Gaussian mean with five data (`tiny-gaussian-data`). With b(h, n) the bias of mean and
covariance in units of the target at step size h and batches of n of N data, drawn without replacement,

    b(h, n) = b_0  +  [b(h, N) - b_0]  +  [b(h, n) - b(h, N)],     b_0 = lim_{h -> 0} b(h, N)
              implementation   discretisation      gradient noise

A right implementation has b_0 = 0, whatever its order: with exact gradients and h -> 0 nothing else can be left. The
largest entry of each of the three is shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tiers.law.gaussian import whitened_bias
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, number
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.targets.registry import target

NAME = "three-biases"
TARGET = "tiny-gaussian-data"
SAMPLERS = {
    "sgld": "SGLD",
    "sghmc-symmetric": "SGHMC, symmetric splitting",
    "baoab": "BAOAB",
    "sghmc-noise-times-friction": "SGHMC with a planted bug",
}
PLANTED = ("sghmc-noise-times-friction",)
BATCHES = (1, 2, 3, 4, 5)
LEVELS = 7
"""Step sizes: the usual one and its halvings."""
PARTS = ("discretisation", "gradient noise", "implementation")
STYLES = {
    "discretisation": ("#0072B2", "o", "-"),
    "gradient noise": ("#E69F00", "s", "--"),
    "implementation": ("#D55E00", "X", ":"),
}
SMALL = 1e-12
"""Below it there is nothing but round-off."""


@dataclass(frozen=True)
class Cell(Keyed):
    """A sampler of the registry, or a planted bug, with batches of `batch` data."""

    sampler: str
    batch: int
    levels: int
    seed: int = 0


def subject_of(name: str) -> Subject:
    """The row of a sampler, or of a planted bug at the options under which it shows."""
    return find_defect(name).subject if name in PLANTED else resolve(name)[0]


def measured(cell: Cell) -> dict[str, Any]:
    """Step sizes and the entries of the bias at each; None where there is no stationary law."""
    law, subject = target(TARGET), subject_of(cell.sampler)
    assert law.terms is not None
    estimator = None if cell.batch == law.terms.size else Minibatch(law.terms, cell.batch, replace=False)
    step = step_map(subject, law, estimator)
    temperature = step.sampler.claims.temperature
    sizes = subject.step_size(law) / 2.0 ** np.arange(cell.levels)
    found = [whitened_bias(step, float(h), temperature) for h in sizes]
    bias = [entries.tolist() if radius < 1 else None for entries, radius, _ in found]
    return {"step sizes": sizes.tolist(), "bias": bias}


def parts(lines: Lines, name: str, quick: bool) -> dict[int, dict[str, np.ndarray]]:
    """batch -> part -> largest entry at each step size; the step sizes are under "h"."""
    cells = {c.batch: c for c in plan(quick) if c.sampler == name}
    full = lines[cells[max(cells)].key]["result"]
    h = np.array(full["step sizes"])
    exact = np.array(full["bias"])
    limit = neville(h, exact)[0]
    top = lambda a: np.abs(a).max(axis=-1)
    found = {}
    for batch, cell in cells.items():
        own = [[np.nan] * exact.shape[1] if b is None else b for b in lines[cell.key]["result"]["bias"]]
        found[batch] = {
            "h": h,
            "discretisation": top(exact - limit),
            "gradient noise": top(np.array(own) - exact),
            "implementation": np.full(len(h), top(limit)),
        }
    return found


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    names, batches = (list(SAMPLERS)[:1], BATCHES[::4]) if quick else (list(SAMPLERS), BATCHES)
    return [Cell(name, batch, 3 if quick else LEVELS) for name in names for batch in batches]


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    rows = []
    for name in dict.fromkeys(c.sampler for c in plan(quick)):
        found = parts(lines, name, quick)
        for batch in (max(found), min(found)):
            for i in (0, len(found[batch]["h"]) - 1):
                values = [found[batch][part][i] for part in PARTS]
                rows.append(
                    f"| {SAMPLERS[name]} | {batch / max(found):.0%} | {number(found[batch]['h'][i])} | "
                    + " | ".join("0" if v < SMALL else number(v) for v in values)
                    + " |"
                )
    bugs = "; ".join(f"*{SAMPLERS[name]}*: {find_defect(name).error}" for name in PLANTED)
    return experiment_page(NAME, lines, parts=" | ".join(PARTS), rows=rows, bugs=bugs)


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Above: against step size at the smallest batch. Below: against the batch fraction at the usual step size."""
    names = list(dict.fromkeys(c.sampler for c in plan(quick)))
    figure, axes = new_figure(2, len(names), (3.0 * len(names), 5.6), sharey=True)
    for column, name in enumerate(names):
        found = parts(lines, name, quick)
        whole, small = max(found), min(found)
        upper, lower = axes[:, column]
        fractions = [batch / whole for batch in sorted(found)]
        for part, (colour, marker, line) in STYLES.items():
            style = {"color": colour, "marker": marker, "linestyle": line, "label": part}
            clip = lambda a: np.where(np.asarray(a) < SMALL, np.nan, a)
            upper.loglog(found[small]["h"], clip(found[small][part]), **style)
            lower.semilogy(fractions, clip([found[batch][part][0] for batch in sorted(found)]), **style)
        upper.set_title(SAMPLERS[name], fontsize=9)
        upper.set_xlabel(f"step size (batch {small / whole:.0%})")
        lower.set_xlabel(f"batch fraction (h = {found[whole]['h'][0]:.2g})")
        for axis in (upper, lower):
            axis.grid(alpha=0.25, lw=0.4)
    for axis in axes[:, 0]:
        axis.set_ylabel("bias, standard deviations")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
