"""Figure 2 of the recipe paper: KL divergence of SGLD, SGHMC, naive SGRHMC and gSGRHMC on synthetic targets.

    python -m sgmcmc_verification.reports.experiments.ma2015.figure2 [--quick] [--resume] [--out FOLDER]

Left panel: on U = theta^2 / 2 and U = theta^4 - 2 theta^2 with gradient noise, sampled (histograms) and exact (the
stationary law of the scheme by quadrature), against the target and, for the naive sampler, against the law that it has
in truth, exp(-U) G^1/2. Right panel: KL against the number of steps on the two-dimensional target, with the first
samples over its contours.

Every cell is a JSON line in FOLDER/ma2015-figure2.jsonl, appended as soon as it is there; `--resume` skips
what the file has. The page and two figures are written beside it.

Source: ma2015complete, section 4.1 and figure 2. The supplement with the settings was not at hand; what is used here is
on the page, with what changes when it is varied.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.exact_laws.transfer_operator import grid_axes, stationary, transition
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.runner.execute import versions
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines, append, command_line, load
from sgmcmc_verification.reports.experiments.common.partition import Partition, divergence, partition
from sgmcmc_verification.reports.records.jsonl import commit
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.riemannian.metrics import RecipeMetric
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.targets.registry import target as find_target
from sgmcmc_verification.targets.target import Target

NAME = "ma2015-figure2"
ROWS = {
    "SGLD": ("sgld", "sgld-compensated"),
    "SGHMC": ("sghmc", "sghmc-compensated"),
    "naive SGRHMC": ("sgrhmc-naive", "sgrhmc-naive"),
    "gSGRHMC": ("sgrhmc-recipe-metric", "sgrhmc-compensated"),
}
"""Method -> its rows without and with compensation of the gradient noise; the naive one is a planted bug."""
METHODS = tuple(ROWS)
ONE_PEAK, TWO_PEAKS, PLANE = "gaussian-standard", "double-well", "banana"
LINES = (ONE_PEAK, TWO_PEAKS)
BURN_IN, SPACING = 20.0, 5.0
"""Time before the first draw and between draws of a chain, in units of the SDE."""
FIRST = 100
"""The right panel has KL after FIRST 3^k steps, k = 0, 1, ..."""
APART = 50
"""Steps between the first samples that are drawn over the contours."""


@dataclass(frozen=True)
class Setting:
    """A sampler on a target.

    Attributes:
        method: of `METHODS`.
        target: name of the target.
        step_size: h, time of the SDE.
        noise: V, variance of the gradient noise N(0, V I).
        compensate: whether the injected noise is reduced by it (B^ = V), or not (B^ = 0).
        friction: C of SGHMC.
        scale: D of the metric G^-1 = D sqrt(|U + C|).
        offset: C of the metric.
    """

    method: str
    target: str
    step_size: float = 0.02
    noise: float = 4.0
    compensate: bool = True
    friction: float = 3.0
    scale: float = 1.5
    offset: float = 1.5


@dataclass(frozen=True)
class Cell(Keyed):
    """One result: `kind` names the function that computes it, `size` how long, `seed` its random numbers."""

    kind: str
    setting: Setting
    size: tuple[int, ...]
    seed: int = 0


class Sizes(NamedTuple):
    """Size of the computation.

    `left` is (chains, draws a chain) of a seed, `seeds` the seeds of a cell; `grids` the points of the coarse and the
    fine grid of the quadrature; `tuning` and `right` are (chains, powers of 3).
    """

    left: tuple[int, int]
    seeds: int
    grids: tuple[tuple[int, int], tuple[int, int]]
    tuning: tuple[int, int]
    right: tuple[int, int]


FULL = Sizes((2000, 40), 5, ((48, 40), (64, 50)), (8, 6), (16, 8))
QUICK = Sizes((500, 8), 5, ((32, 28), (40, 32)), (5, 3), (5, 3))


# What is run -------------------------------------------------------------------------------------------------------


@cache
def problem(name: str) -> Target:
    """The target; one peak is cut off at 6 standard deviations where quadrature needs an interval."""
    found = find_target(name)
    return dataclasses.replace(found, interval=(-6.0, 6.0)) if name == ONE_PEAK else found


@cache
def cells_of(name: str) -> Partition:
    """Cells of width 0.1 (the histogram of the nearest released protocol) that hold all but 1e-6 of the target."""
    found = problem(name)
    low, high, points = {
        ONE_PEAK: ((-5.5,), (5.5,), 32),
        TWO_PEAKS: ((-2.4,), (2.4,), 32),
        PLANE: ((-4.0, -3.0), (4.0, 3.5), 6),
    }[name]
    return partition(lambda x: -found.flat_potential(x), low, high, 0.1, points)


def metric(setting: Setting) -> RecipeMetric:
    """G^-1 = D sqrt(|U + C|)."""
    return RecipeMetric(problem(setting.target), setting.scale, setting.offset)


def log_target(setting: Setting) -> Callable[[jax.Array], jax.Array]:
    """Log density of the target, up to a constant."""
    return lambda x: -problem(setting.target).flat_potential(x)


def log_wrong(setting: Setting) -> Callable[[jax.Array], jax.Array]:
    """Log density of the law of naive SGRHMC, exp(-U) G^1/2, up to a constant.

    With B = G^-1/2 and H = U + r^2 / 2 the naive dynamics d theta = B r dt, dr = (-B U' - B^2 r) dt + sqrt(2) B dW
    leave p = exp(-H) / B invariant in one dimension: friction and noise cancel each other, and
    d/dtheta (B r p) + d/dr (-B U' p) = -r U' exp(-H) + U' r exp(-H) = 0.
    """
    field = metric(setting)
    return lambda x: -problem(setting.target).flat_potential(x) - 0.5 * jnp.log(field.factor(x))


@cache
def row_of(method: str, compensate: bool) -> Row:
    """The row of the registry, of planted bugs for the naive method."""
    name = ROWS[method][compensate]
    return find_defect(name).row if method.startswith("naive") else sampler_row(name)


@cache
def sampler_of(setting: Setting) -> Sampler:
    """The sampler of the row, at the constants of the setting.

    Raises:
        ValueError: if the gradient noise is stronger than the noise that it should be subtracted from.
    """
    problem_, riemannian = problem(setting.target), "SGRHMC" in setting.method
    options = {"friction": setting.friction} if setting.method == "SGHMC" else {}
    built = row_of(setting.method, setting.compensate).build(problem_, **options)
    strength = 2 * (setting.friction if options else 1.0)
    if setting.compensate and setting.step_size * setting.noise > strength:
        raise ValueError(f"step_size: h V must not exceed {strength:g} for B^ = V, got {setting}")
    if riemannian:
        built = dataclasses.replace(built, metric=metric(setting), compensate=setting.compensate)  # pyright: ignore
    return built


@cache
def estimator_of(setting: Setting) -> Estimator:
    """Gradients with noise N(0, V I), which says so only where it is compensated."""
    found = problem(setting.target)
    return KnownNoise(found, setting.noise * np.eye(found.size), report=setting.compensate)


def _core(setting: Setting) -> Setting:
    """Key of the sampler and the estimator: the same objects for all step sizes, so nothing is retraced."""
    sampler_of(setting)  # raises
    return dataclasses.replace(setting, step_size=0.0)


@cache
def _collector(name: str) -> Callable[[jax.Array], dict[str, jax.Array]]:
    cells = cells_of(name)
    return lambda x: {"class": cells.classify(x), "square": x[0] ** 2}


def sampled(cell: Cell) -> dict[str, Any]:
    """Draws of many chains from one start, their histogram and its KL divergences."""
    s, (chains, draws) = cell.setting, cell.size
    cells, core, thin = cells_of(s.target), _core(s), round(SPACING / s.step_size)
    found = run(
        sampler_of(core),
        estimator_of(core),
        cell.random,
        step_size=s.step_size,
        num_chains=chains,
        num_steps=draws * thin,
        thin=thin,
        burn_in=round(BURN_IN / s.step_size),
        collect=_collector(s.target),
        on_nonfinite="ignore",
    )
    counts = np.bincount(np.asarray(found.samples["class"]).ravel(), minlength=cells.classes + 1)
    finite = counts[: cells.classes]
    result = {
        "kl": divergence(finite, cells.target),
        "square": None if counts[-1] else float(np.mean(found.samples["square"])),
        "nonfinite": int(counts[-1]),
    }
    if "SGRHMC" in s.method:
        result["kl_wrong"] = divergence(finite, cells.probabilities(log_wrong(s)))
    return result


@cache
def _exact_classes(name: str, n: int) -> Callable[[jax.Array], jax.Array]:
    """Compiled: key -> classes (n,) of n draws of the exact sampler of a target."""
    sample, classify = problem(name).sample, cells_of(name).classify
    assert sample is not None
    return jax.jit(lambda key: jax.vmap(classify)(sample(key, n)))


def independent(cell: Cell) -> dict[str, Any]:
    """As `sampled`, from the exact sampler: the KL that a perfect method would show."""
    cells = cells_of(cell.setting.target)
    draws = _exact_classes(cell.setting.target, int(np.prod(cell.size)))(cell.random)
    return {"kl": divergence(np.bincount(np.asarray(draws), minlength=cells.classes), cells.target)}


def exact(cell: Cell) -> dict[str, Any]:
    """KL divergences of the stationary law of the scheme, by quadrature on a coarse and a fine grid.

    Gradient noise that is Gaussian and compensated leaves the law of the step as it is without: both noises add up to
    N(0, 2 h D). So one normal a step is integrated instead of two.
    """
    s = cell.setting
    if s.compensate:
        sampler_of(s)  # raises
        s = dataclasses.replace(s, compensate=False, noise=0.0)
    grids = {"coarse": cell.size[:2], "fine": cell.size[2:]}
    return {name: grid_divergences(s, shape) for name, shape in grids.items()}


def grid_divergences(s: Setting, shape: tuple[int, ...]) -> dict[str, float | None]:
    """KL divergences of the stationary law on a grid of this shape; on one of 5 shape[0] points without momentum."""
    step = step_of(_core(s))
    laws = {"kl": log_target(s)} | ({"kl_wrong": log_wrong(s)} if "SGRHMC" in s.method else {})
    shape = shape if step.size == 2 else (5 * shape[0],)
    axes = grid_axes(problem(s.target), 1.0, shape)
    weights = stationary(transition(step, s.step_size, axes).matrix).reshape(shape)
    marginal = weights.sum(axis=1) if step.size == 2 else weights
    return {key: _on_grid(marginal, law, axes[0]) for key, law in laws.items()}


@cache
def step_of(core: Setting) -> JaxStep:
    """The step of a setting under the noise tape."""
    row = dataclasses.replace(row_of(core.method, core.compensate), build=lambda target: sampler_of(core))
    estimator = estimator_of(core) if core.noise else Exact(problem(core.target))
    step = step_map(Subject(row), problem(core.target), estimator)
    assert isinstance(step, JaxStep)
    step.require_gaussian()
    return step


def _on_grid(marginal: np.ndarray, log_density: Callable, axis: np.ndarray) -> float | None:
    """KL divergence of a law on an even grid from a density, the sum of q log(q / p) - q + p >= 0.

    Where p or q is below round-off, or q is not positive by the error of the quadrature, nothing is added.
    """
    p = np.exp(np.asarray(jax.vmap(log_density)(jnp.asarray(axis[:, None]))))
    p = p / p.sum()
    seen = (p > 1e-14) & (marginal > 1e-14)
    p, q = p[seen], marginal[seen]
    value = float(np.sum(q * np.log(q / p) - q + p))
    return value if np.isfinite(value) else None


def closed_form(setting: Setting) -> float:
    """KL(exp(-U) G^1/2 || exp(-U)), on the cells."""
    cells = cells_of(setting.target)
    return divergence(cells.probabilities(log_wrong(setting)), cells.target)


def path(cell: Cell) -> dict[str, Any]:
    """KL of the histogram of each chain from its first step on, after 100 3^k steps."""
    s, (chains, powers) = cell.setting, cell.size
    cells, core, steps = cells_of(s.target), _core(s), _steps(powers)
    found = run(
        sampler_of(core),
        estimator_of(core),
        cell.random,
        step_size=s.step_size,
        num_chains=chains,
        num_steps=steps[-1],
        collect=cells.classify,
        on_nonfinite="ignore",
    )
    classes = np.asarray(found.samples)
    lost = int(np.any(classes == cells.classes, axis=1).sum())
    return {"kl": [_running(c, steps, cells) for c in classes], "nonfinite": lost}


def independent_path(cell: Cell) -> dict[str, Any]:
    """As `path`, from the exact sampler."""
    (chains, powers), cells = cell.size, cells_of(cell.setting.target)
    steps = _steps(powers)
    classes = np.asarray(_exact_classes(cell.setting.target, chains * steps[-1])(cell.random)).reshape(chains, -1)
    return {"kl": [_running(c, steps, cells) for c in classes]}


def _steps(powers: int) -> list[int]:
    return [FIRST * 3**k for k in range(powers + 1)]


def _running(classes: np.ndarray, steps: list[int], cells: Partition) -> list[float]:
    counts = [np.bincount(classes[:n], minlength=cells.classes + 1)[: cells.classes] for n in steps]
    return [round(divergence(c, cells.target), 6) for c in counts]


def first_samples(cell: Cell) -> dict[str, Any]:
    """The first positions of one chain, `APART` steps apart, its start included."""
    s, core = cell.setting, _core(cell.setting)
    found = run(
        sampler_of(core),
        estimator_of(core),
        jax.random.key(cell.seed),
        step_size=s.step_size,
        num_chains=1,
        num_steps=cell.size[0] * APART,
        thin=APART,
    )
    start = np.asarray(problem(s.target).example)[None]
    return {"points": np.concatenate([start, np.asarray(found.samples)[0]]).round(4).tolist()}


KINDS: dict[str, Callable[[Cell], dict[str, Any]]] = {
    "sampled": sampled,
    "independent": independent,
    "exact": exact,
    "path": path,
    "independent path": independent_path,
    "first samples": first_samples,
}


# The plan ----------------------------------------------------------------------------------------------------------

STEP_SIZES = (0.1, 0.05, 0.02, 0.01)
PLANE_NOISE = 1.0
SINGULAR = 0.5
"""The offset C that is remembered from the supplement; U + C changes sign on two peaks."""


def is_stable(setting: Setting) -> bool:
    """Explicit Euler of the overdamped equation has no stationary law that a grid holds for larger steps there."""
    return not (setting.method == "SGLD" and setting.target == TWO_PEAKS and setting.step_size > 0.02)


def variations(target: str) -> list[Setting]:
    """The settings of the left panel one at a time away from the base, for the exact law."""
    base = [Setting(method, target) for method in METHODS]
    change = dataclasses.replace
    found = [change(s, noise=16.0, compensate=False) for s in base]
    found += [change(s, friction=c) for s in base if s.method == "SGHMC" for c in (1.0, 10.0)]
    riemannian = [s for s in base if "SGRHMC" in s.method]
    found += [change(s, scale=d) for s in riemannian for d in (0.5, 4.0)]
    offset = SINGULAR if target == ONE_PEAK else 5.0
    return found + [change(s, offset=offset) for s in riemannian]


def plane(method: str, step_size: float, **changes: float) -> Setting:
    """A setting of the right panel; SGHMC has friction 1 unless said."""
    return Setting(method, PLANE, step_size, PLANE_NOISE, **{"friction": 1.0, **changes})  # pyright: ignore


def tuning(quick: bool) -> list[Setting]:
    """The grid of the right panel."""
    if quick:
        return [plane("SGLD", 0.02), plane("SGHMC", 0.1), plane("gSGRHMC", 0.05)]
    found = [plane("SGLD", h) for h in (0.005, 0.01, 0.02, 0.03, 0.05)]
    found += [plane("SGHMC", h, friction=c) for c in (0.3, 1.0, 3.0) for h in (0.05, 0.07, 0.1, 0.14)]
    wide, narrow = (0.03, 0.05, 0.07, 0.1), (0.05, 0.085, 0.12, 0.17)
    return found + [
        plane("gSGRHMC", h, scale=d, offset=c)
        for d, sizes in ((1.5, wide), (0.5, narrow))
        for c in (SINGULAR, 1.5)
        for h in sizes
    ]


def equal_steps() -> list[list[Setting]]:
    """The methods of the right panel at one and the same step size."""
    return [[plane(m, h) for m in ("SGLD", "SGHMC", "gSGRHMC")] for h in (0.02, 0.05)]


def tuned(lines: Lines, quick: bool, sizes: Sizes, last: bool = False) -> list[Setting]:
    """For each method the setting of the grid with the smallest log KL, mean over the numbers of steps or at the last.

    Settings in which a chain left the finite numbers do not count. The chosen ones are run again with fresh random
    numbers, so that the choice does not flatter the result.
    """
    best: dict[str, tuple[float, Setting]] = {}
    for setting in tuning(quick):
        result = lines[Cell("path", setting, sizes.tuning, 1).key]["result"]
        logs = np.log(result["kl"])
        score = float(np.mean(logs[:, -1] if last else logs))
        if not result["nonfinite"] and score < best.get(setting.method, (np.inf,))[0]:
            best[setting.method] = score, setting
    return [setting for _, setting in best.values()]


def singular() -> list[Setting]:
    """Naive SGRHMC and gSGRHMC at the remembered offset, where the metric has zeros on two peaks."""
    return [
        Setting(method, target, h, offset=SINGULAR)
        for method in METHODS[2:]
        for target, h in ((ONE_PEAK, 0.02), (TWO_PEAKS, 0.02), (TWO_PEAKS, 0.005))
    ]


def plan(quick: bool, sizes: Sizes) -> list[Cell]:
    """All cells but those that depend on the tuning."""
    grids = (*sizes.grids[0], *sizes.grids[1])
    base = [Setting(m, ONE_PEAK, 0.1) for m in METHODS]
    if not quick:
        base = [Setting(m, t) for t in LINES for m in METHODS]
    found = [Cell("sampled", s, sizes.left, seed) for s in base for seed in range(sizes.seeds)]
    for target in dict.fromkeys(s.target for s in base):
        found += [Cell("independent", Setting("SGLD", target), sizes.left, seed) for seed in range(sizes.seeds)]
    steps = STEP_SIZES[:2] if quick else STEP_SIZES
    curves = [dataclasses.replace(s, step_size=h) for s in base for h in steps]
    found += [Cell("exact", s, grids) for s in curves if is_stable(s)]
    found += [Cell("path", s, sizes.tuning, 1) for s in tuning(quick)]
    found += [Cell("independent path", plane("SGLD", 0.02), sizes.right)]
    if not quick:
        found += [Cell("path", s, sizes.right, 2) for group in equal_steps() for s in group]
        small = (sizes.left[0] // 5, sizes.left[1])
        found += [Cell("sampled", s, small, seed) for s in singular() for seed in range(sizes.seeds)]
        found += [Cell("independent", Setting("SGLD", t), small, seed) for t in LINES for seed in range(sizes.seeds)]
        found += [Cell("exact", dataclasses.replace(s, compensate=False), grids) for s in base]
        found += [Cell("exact", s, grids) for t in LINES for s in variations(t)]
    return found


def last_cells(lines: Lines, quick: bool, sizes: Sizes) -> list[Cell]:
    """The cells that depend on the tuning: its choices again, and the first samples of those for the mean."""
    chosen = tuned(lines, quick, sizes)
    everything = dict.fromkeys(chosen + tuned(lines, quick, sizes, last=True))
    return [Cell("path", s, sizes.right, 2) for s in everything] + [Cell("first samples", s, (10,)) for s in chosen]


# Running -----------------------------------------------------------------------------------------------------------


def compute(cells: Iterable[Cell], file: Path, revision: str) -> None:
    """Compute the cells that the file lacks and append them."""
    append(cells, file, lambda cell: KINDS[cell.kind](cell), revision, versions(Subject(row_of("SGLD", False))))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    quick, folder = command_line(arguments, __file__, NAME, "a minute")
    from sgmcmc_verification.reports.experiments.ma2015.figure2_page import write

    jax.config.update("jax_enable_x64", True)
    sizes = QUICK if quick else FULL
    file, revision = folder / f"{NAME}.jsonl", commit()
    compute(plan(quick, sizes), file, revision)
    compute(last_cells(load(file), quick, sizes), file, revision)
    print(write(load(file), folder, quick, sizes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
