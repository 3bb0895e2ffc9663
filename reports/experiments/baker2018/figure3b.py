"""Figure 3b of the SCIR paper: stochastic slice samplers of a Dirichlet-process mixture on the Microsoft web data.

    python -m sgmcmc_verification.reports.experiments.baker2018.figure3b [--quick] [--resume] [--out FOLDER]

SCIR, SGRLD and the exact Gibbs slice sampler on 32,711 users, scored by the log predictive of 5,000 test users. Every
run is a JSON line in FOLDER/baker2018-figure3b.jsonl; `--resume` skips what the file has, and goes on
within a run from its checkpoint. `--quick` is a small version on generated users, which needs no data file.

Source: baker2018large, section 4.2 and figure 3b; the settings are those of its published program.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.checks.faults.dp_mixture import OneWeightForBoth
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure
from sgmcmc_verification.samplers.positive.gamma_updates import CIRUpdate, ExactGamma, ExpandedMeanUpdate, GammaUpdate
from sgmcmc_verification.samplers.topic_models.dp.run import USUAL, run_dp
from sgmcmc_verification.samplers.topic_models.dp.slice import DPSlice, StepSizes, Users, log_predictive
from sgmcmc_verification.targets.datasets.files import cache_directory
from sgmcmc_verification.targets.datasets.msweb import load_msweb
from sgmcmc_verification.targets.numerics.ragged import SparseRows, sparse_rows
from sgmcmc_verification.targets.topic_models.dp_mixture import DPMixture

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
TUNED = Setting("SGRLD", 0.001, 1e-4, 1e-4, 30)
TUNED_SAME = Setting("SGRLD", 0.5, 1e-3, 1e-4, 20)
"""The best of `GRID`, which the page verifies."""
SCIR_SAME = Setting("SCIR", 0.001, 0.1, 0.1, 30)
GIBBS = Setting("Gibbs", 0.5, 0.0, 0.0, 20, None)
GIBBS_SAME = Setting("Gibbs", 0.001, 0.0, 0.0, 30, None)
MAIN = (SCIR, SGRLD, RELEASED, TUNED, TUNED_SAME, GIBBS)
ASIDE = (SCIR_SAME, GIBBS_SAME)
"""Two seeds, for the remark on the prior."""
GRID = tuple(
    Setting("SGRLD", base, atoms, sticks, count)
    for base, count in ((0.001, 30), (0.5, 20))
    for atoms in (1e-3, 1e-4)
    for sticks in (5e-3, 1e-3, 1e-4)
)
SCIR_GRID = tuple(Setting("SCIR", 0.5, h, h, 20) for h in (0.01, 0.03, 0.1, 0.5, 600.0))
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
    loop = replace(USUAL, evaluate_every=EVERY, checkpoint=file)
    found = run_dp(
        sampler,
        users,
        sizes,
        iterations=cell.iterations,
        seed=cell.seed,
        loop=loop,
        score=lambda state: (
            log_predictive(state, test),
            float(len(np.unique(state.labels))),
            float(len(state.log_sticks)),
            float(state.concentration),
        ),
        fingerprint={"cell": cell.key},
    )
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
    aside = [Cell(s, ITERATIONS, seed) for s in ASIDE for seed in SEEDS[:2]]
    return [Cell(s, ITERATIONS, seed) for s in MAIN for seed in SEEDS] + aside + tuning


# The page ----------------------------------------------------------------------------------------------------------


COLOURS = {"Gibbs": "#000000", "SCIR": "#0072B2", "SGRLD": "#D55E00", "SGRLD, released": "#CC79A7"}
"""Of the palette of Okabe and Ito."""
STYLES = {SGRLD: "-", RELEASED: "-", SCIR: "-", GIBBS: "-"}
"""Line styles; dashed where not given."""


def label(s: Setting) -> str:
    """Short name of a setting."""
    sizes = f", h = ({s.atoms:g}, {s.sticks:g})" if s.atoms else ", all users"
    return f"{s.method}, a = {s.base:g}{sizes}"


def final(result: dict[str, Any]) -> float:
    """Mean score of the end of a run."""
    return float(np.mean(result["score"][-LAST:]))


def rise(runs: list[dict[str, Any]]) -> float:
    """The end above the lowest mean of 100 consecutive iterations, averaged over the seeds."""
    windows = [np.convolve(r["score"], np.full(LAST, 1 / LAST), "valid") for r in runs]
    return float(np.mean([w[-1] - w.min() for w in windows]))


def catches(found: dict[Setting, list[dict[str, Any]]]) -> tuple[int, float, float]:
    """Iterations and seconds of Gibbs until its mean score is that of the end of SCIR, and the seconds of SCIR."""
    goal = np.mean([final(r) for r in found[SCIR]])
    at = int(np.argmax(np.mean([r["score"] for r in found[GIBBS]], axis=0) <= goal))
    return EVERY * at, float(undisturbed(found[GIBBS])[at]), float(undisturbed(found[SCIR])[-1])


def best_of(lines: Lines, base: float) -> Setting:
    """The setting of SGRLD's grid with the lowest score at the tuning seed."""
    cells = [Cell(s, ITERATIONS, TUNING_SEED) for s in GRID if s.base == base]
    return min(cells, key=lambda c: final(lines[c.key]["result"])).setting


def results(lines: Lines, quick: bool) -> dict[Setting, list[dict[str, Any]]]:
    """The runs of each setting of the figure."""
    found: dict[Setting, list[dict[str, Any]]] = {}
    for c in plan(quick):
        if c.seed != TUNING_SEED:
            found.setdefault(c.setting, []).append(lines[c.key]["result"])
    return found


def undisturbed(runs: list[dict[str, Any]]) -> np.ndarray:
    """Seconds up to each score: of every ten iterations the fastest of the seeds, since the machine did other work."""
    steps = np.diff([r["seconds"] for r in runs], axis=1)
    return np.concatenate([[0.0], np.cumsum(steps.min(axis=0))])


def row(s: Setting, runs: list[dict[str, Any]]) -> str:
    """A line of the table of runs."""
    scores = np.array([final(r) for r in runs])
    mean = lambda name: np.mean([np.mean(r[name][-LAST:]) for r in runs])
    rate = EVERY * (len(runs[0]["score"]) - 1) / undisturbed(runs)[-1]
    return (
        f"| {label(s)} | {s.components} | {s.batch or 'all'} | {scores.mean():.4f} ± {scores.std(ddof=1):.4f} | "
        f"{scores.min():.4f} to {scores.max():.4f} | {rise(runs):+.4f} | {mean('components'):.1f} | "
        f"{mean('alpha'):.2f} | {rate:.0f} |"
    )


def claims(found: dict[Setting, list[dict[str, Any]]]) -> list[tuple[str, str, str]]:
    """(claim of the paper, verdict, what was measured)."""
    scores = {s: np.array([final(r) for r in runs]) for s, runs in found.items()}
    several = lambda s: f"{scores[s].mean():.4f} ± {scores[s].std(ddof=1):.4f}"
    below = lambda s, other: bool(scores[s].max() < scores[other].min())
    used = lambda s: float(np.mean([np.mean(r["components"][-LAST:]) for r in found[s]]))
    iterations, seconds, of_scir = catches(found)
    order = lambda s, other: (
        "holds" if below(s, other) else "the other way round" if below(other, s) else "not at every seed"
    )
    gap = lambda s, other: f"{scores[other].mean() - scores[s].mean():+.4f}"
    return [
        (
            "SCIR converges to a lower score than SGRLD (published settings of both)",
            order(SCIR, SGRLD) if below(SCIR, RELEASED) else "not at every seed",
            f"SCIR {several(SCIR)}; SGRLD {several(SGRLD)} with the right sticks ({gap(SCIR, SGRLD)}), "
            f"{several(RELEASED)} with those of the published program ({gap(SCIR, RELEASED)})",
        ),
        (
            "(not in the paper) and than SGRLD with the prior of SCIR, a = 0.5, at the best of its grid",
            order(SCIR, TUNED_SAME),
            f"{label(TUNED_SAME)}: {several(TUNED_SAME)} ({gap(SCIR, TUNED_SAME)})",
        ),
        (
            "(not in the paper) and than SGRLD with its own prior, a = 0.001, at the best of its grid",
            order(SCIR, TUNED),
            f"{label(TUNED)}: {several(TUNED)} ({gap(SCIR, TUNED)}). Not comparable: in that model the exact sampler "
            f"scores {several(GIBBS_SAME)} and SCIR {several(SCIR_SAME)}, see below",
        ),
        (
            "SCIR has the lower variance over seeds",
            "holds for the released program alone"
            if scores[SGRLD].std() < scores[SCIR].std() < scores[RELEASED].std()
            else "see the numbers",
            f"standard deviations {scores[SCIR].std(ddof=1):.4f} (SCIR), {scores[RELEASED].std(ddof=1):.4f} (SGRLD as "
            f"released), {scores[SGRLD].std(ddof=1):.4f} (with the right sticks); of five seeds each, so that a factor "
            "below 3 is not significant",
        ),
        (
            "SGRLD produces worse scores as iterations go on",
            "not within 1000 iterations" if max(rise(found[RELEASED]), rise(found[SGRLD])) < 0.02 else "holds",
            "the last 100 iterations above the best 100 of a run: "
            f"{rise(found[RELEASED]):.4f} (as released), {rise(found[SGRLD]):.4f} (with the right sticks), "
            f"{rise(found[SCIR]):.4f} (SCIR)",
        ),
        (
            "SGRLD proposes many more clusters",
            "holds for the released program alone" if used(RELEASED) > 1.5 * used(SGRLD) else "does not hold",
            f"components in use {used(RELEASED):.0f} (as released, growing still), {used(SGRLD):.0f} (with the right "
            f"sticks), both from {SGRLD.components}; {used(SCIR):.0f} (SCIR, from {SCIR.components}). It is the drift "
            "of the second part of the sticks, and not the error of Euler's method near 0, as the paper supposes",
        ),
        (
            "the exact Gibbs slice sampler is better than both (supplement)",
            "holds" if below(GIBBS, SCIR) and below(GIBBS, SGRLD) else "does not hold",
            f"Gibbs {several(GIBBS)}: {gap(GIBBS, SCIR)} to SCIR, {gap(GIBBS, TUNED_SAME)} to the tuned SGRLD of the "
            f"same model (a = 0.5), {gap(GIBBS, SGRLD)} to SGRLD as set by the paper",
        ),
        (
            "and it does not scale",
            "not at this size",
            f"an iteration over all users takes {undisturbed(found[GIBBS])[-1] / of_scir:.0f} times as long as one of "
            f"SCIR, but {iterations} of them, {seconds:.1f} s, reach the score that SCIR has after {ITERATIONS}, "
            f"{of_scir:.1f} s",
        ),
    ]


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found = results(lines, quick)
    return experiment_page(
        NAME,
        lines,
        quick=quick,
        claims=[] if quick else claims(found),
        iterations=ITERATIONS,
        first_seed=SEEDS[0],
        last_seed=SEEDS[-1],
        averaged=LAST * EVERY,
        runs=[row(s, runs) for s, runs in found.items()],
        tuning_seed=TUNING_SEED,
        tuning=[] if quick else tuning(lines),
    )


def tuning(lines: Lines) -> list[str]:
    """Tables of the scores of the grids."""
    score = lambda s: f"{final(lines[Cell(s, ITERATIONS, TUNING_SEED).key]['result']):.3f}"
    for chosen in (TUNED, TUNED_SAME):
        if best_of(lines, chosen.base) != chosen:
            raise ValueError(
                f"TUNED: {label(best_of(lines, chosen.base))} is the best of its grid, not {label(chosen)}"
            )
    sticks, bases = sorted({s.sticks for s in GRID}), sorted({s.base for s in GRID})
    out = ["| SGRLD | " + " | ".join(f"{h:g}" for h in sticks) + " |", "|---|" + "---|" * len(sticks)]
    for base in bases:
        for atoms in sorted({s.atoms for s in GRID}):
            cells = [next(s for s in GRID if (s.base, s.atoms, s.sticks) == (base, atoms, h)) for h in sticks]
            out.append(f"| a = {base:g}, h of the atoms {atoms:g} | " + " | ".join(map(score, cells)) + " |")
    out += ["", "| SCIR, the same h for both | " + " | ".join(f"{s.atoms:g}" for s in SCIR_GRID) + " |"]
    out += ["|---|" + "---|" * len(SCIR_GRID), "| a = 0.5 | " + " | ".join(map(score, SCIR_GRID)) + " |"]
    return [*out, ""]


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Score against iterations and against seconds: every seed thin, their mean thick."""
    found = results(lines, quick)
    figure, axes = new_figure(1, 2, (11.5, 5.2))
    users = problem("generated" if quick else "msweb")[0].size
    for s, runs in found.items():
        if s in ASIDE:
            continue
        style = {"color": COLOURS[s.method], "ls": STYLES.get(s, "--" if s == TUNED else ":")}
        scores = np.array([r["score"] for r in runs])
        iterations = EVERY * np.arange(scores.shape[1])
        seconds = undisturbed(runs)
        for axis, at in ((axes[0, 0], iterations), (axes[0, 1], seconds)):
            axis.plot(at[1:], scores[:, 1:].T, lw=0.5, alpha=0.35, **style)
            axis.plot(at[1:], scores.mean(axis=0)[1:], lw=1.8, label=label(s), **style)
    lowest = min(min(r["score"]) for runs in found.values() for r in runs)
    for axis, name in (
        (axes[0, 0], "iterations"),
        (axes[0, 1], "seconds (of each 10 iterations the fastest of the seeds), one thread"),
    ):
        axis.set_xlabel(name)
        axis.set_ylabel("− log predictive of a test user")
        if not quick:
            axis.set_ylim(lowest - 0.02, lowest + 0.42)
        axis.grid(alpha=0.25, lw=0.4)
    if not quick:
        axes[0, 1].set_xscale("log")
        axes[0, 1].set_xlim(0.2, 30)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, fontsize=8, ncols=3, loc="outside lower center", title="h = (atoms, sticks)")
    runs = found[SCIR]
    batch = "quick" if quick else f"batch {BATCH}"
    name = "generated data" if quick else "Microsoft web data"
    figure.suptitle(
        f"DP mixture, {name}: {users:,} users, {batch}, {EVERY * (len(runs[0]['score']) - 1)} iterations, "
        f"{len(runs)} seeds (thin), mean (thick)",
        fontsize=10,
    )
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
