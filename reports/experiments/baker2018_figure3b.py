"""Figure 3b of the SCIR paper: stochastic slice samplers of a Dirichlet-process mixture on the Microsoft web data.

    python -m reports.experiments.baker2018_figure3b [--quick] [--out FOLDER]

SCIR, SGRLD and the exact Gibbs slice sampler on 32,711 users, scored by the log predictive of 5,000 test users. Every
run is a JSON line in FOLDER/baker2018-figure3b.jsonl; a run that is started again skips what the file has, and goes on
within a run from its checkpoint. `--quick` is a small version on generated users, which needs no data file.

Source: baker2018large, section 4.2 and figure 3b; the settings are those of its published program.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from checks.defects.dp_mixture import OneWeightForBoth
from reports.experiments.cells import Keyed, Lines
from reports.experiments.pages import new_figure, provenance
from reports.experiments.publish import publish
from samplers.dp_run import run_dp
from samplers.dp_slice import DPSlice, StepSizes, Users, log_predictive
from samplers.gamma_updates import CIRUpdate, ExactGamma, ExpandedMeanUpdate, GammaUpdate
from targets.data import cache_directory
from targets.datasets.msweb import load_msweb
from targets.dp_mixture import DPMixture
from targets.sparse_rows import SparseRows, sparse_rows

NAME = "baker2018-figure3b"
UPDATES: dict[str, Callable[[], GammaUpdate]] = {
    "Gibbs": ExactGamma,
    "SCIR": CIRUpdate,
    "SGRLD": ExpandedMeanUpdate,
    "SGRLD, released": OneWeightForBoth,
}
BATCH = 1000
ITERATIONS = 1000
EVERY = 10
LAST = 10
"""Scores at the end of a run, 100 iterations, whose mean is its result."""
SEEDS = (0, 1, 2, 3, 4)
TUNING_SEED = 100
"""None of the five."""


@dataclass(frozen=True)
class Setting:
    """A sampler with its prior.

    Attributes:
        method: a key of `UPDATES`.
        base: a0 of the atoms.
        atoms: h_theta; 0 for Gibbs, which has none.
        sticks: h_v.
        components: K0 at the start.
        batch: users a step, None for all.
    """

    method: str
    base: float
    atoms: float
    sticks: float
    components: int
    batch: int | None = BATCH


@dataclass(frozen=True)
class Cell(Keyed):
    """A run."""

    setting: Setting
    iterations: int
    seed: int
    data: str = "msweb"


SCIR = Setting("SCIR", 0.5, 0.1, 0.1, 20)
SGRLD = Setting("SGRLD", 0.001, 1e-3, 5e-3, 30)
RELEASED = Setting("SGRLD, released", 0.001, 1e-3, 5e-3, 30)
TUNED = Setting("SGRLD", 0.001, 1e-4, 1e-3, 30)
TUNED_SAME = Setting("SGRLD", 0.5, 1e-3, 1e-3, 20)
SCIR_SAME = Setting("SCIR", 0.001, 0.1, 0.1, 30)
GIBBS = Setting("Gibbs", 0.5, 0.0, 0.0, 20, None)
GIBBS_SAME = Setting("Gibbs", 0.001, 0.0, 0.0, 30, None)
MAIN = (SCIR, SGRLD, RELEASED, TUNED, TUNED_SAME, SCIR_SAME, GIBBS, GIBBS_SAME)
GRID = tuple(
    Setting("SGRLD", base, atoms, sticks, count)
    for base, count in ((0.001, 30), (0.5, 20))
    for atoms in (1e-2, 1e-3, 1e-4, 1e-5)
    for sticks in (5e-3, 1e-3, 1e-4)
)
SCIR_GRID = tuple(Setting("SCIR", 0.5, h, h, 20) for h in (0.01, 0.1, 0.5, 2.0, 600.0))
"""At h = 600 e^-h is 0: every step draws afresh from the law of its batch."""
QUICK = (SCIR, SGRLD, GIBBS)


@cache
def problem(data: str) -> tuple[SparseRows, SparseRows]:
    """Training and test users: "msweb", or "generated" ones of four components over 20 categories."""
    if data == "msweb":
        found = load_msweb()
        return found.train.users, found.test.users
    generator = np.random.default_rng(0)
    theta, z = generator.dirichlet(np.full(20, 0.2), 4), generator.integers(4, size=2500)
    table = generator.multinomial(3, theta[z])
    return sparse_rows(table[:2000]), sparse_rows(table[2000:])


def sampler_of(cell: Cell) -> tuple[DPSlice, Users, StepSizes]:
    """The sampler, its data and its step sizes."""
    s, train = cell.setting, problem(cell.data)[0]
    users = Users(train, s.batch and min(s.batch, train.size // 4))
    sampler = DPSlice(DPMixture(train.width, s.base), UPDATES[s.method](), s.components)
    # a Gibbs step has no step size: any positive number will do
    return sampler, users, StepSizes(s.atoms, s.sticks) if s.atoms else StepSizes(1.0, 1.0)


def measured(cell: Cell) -> dict[str, Any]:
    """Scores, components in use, z* and alpha along a run, which goes on from its checkpoint in the cache."""
    sampler, users, sizes = sampler_of(cell)
    test = problem(cell.data)[1]
    file = cache_directory() / "runs" / f"{NAME}-{zlib.crc32(cell.key.encode()):08x}.npz"
    file.parent.mkdir(parents=True, exist_ok=True)
    found = run_dp(
        sampler, users, sizes, iterations=cell.iterations, seed=cell.seed, every=EVERY, checkpoint=file,
        score=lambda state: (
            log_predictive(state, test), float(len(np.unique(state.labels))), float(len(state.log_sticks)),
            float(state.concentration),
        ),
        fingerprint={"cell": cell.key},
    )  # fmt: skip
    file.unlink(missing_ok=True)
    return {
        "score": np.round(found.scores[:, 0], 5).tolist(),
        "components": found.scores[:, 1].astype(int).tolist(),
        "last": found.scores[:, 2].astype(int).tolist(),
        "alpha": np.round(found.scores[:, 3], 4).tolist(),
        "seconds": np.round(found.seconds, 3).tolist(),
    }


def plan(quick: bool) -> list[Cell]:
    """The runs of the figure, then those of the tuning."""
    if quick:
        return [Cell(s, 100, seed, "generated") for s in QUICK for seed in (0, 1)]
    tuning = [Cell(s, ITERATIONS, TUNING_SEED) for s in (*GRID, *SCIR_GRID)]
    return [Cell(s, ITERATIONS, seed) for s in MAIN for seed in SEEDS] + tuning


# The page ----------------------------------------------------------------------------------------------------------


def text(lines: Lines, quick: bool) -> list[str]:
    return []


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, None, "a minute")


if __name__ == "__main__":
    raise SystemExit(main())
