"""Figure 3 of the SGGMC paper: a mixture on the circle, sampled with gradient noise of variance 1000.

    python -m sgmcmc_verification.reports.experiments.liu2016.figure3 [--quick] [--resume] [--out FOLDER]

Independent chains from uniform starts, compared with the exact density in angle: SGGMC with V^ = V, SGGMC with V^ = 0,
gSGNHT (which is not told V), and GMC with exact gradients. Every cell is a JSON line in FOLDER/liu2016-figure3.jsonl;
`--resume` skips what the file has.

Source: liu2016stochastic, section 5.1 and figure 3. The paper does not state step size, friction or the number of
steps; what is used is on the page, with what changes when it is varied.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.distances import (
    Distance,
    counts_of,
    distance,
    kolmogorov,
    relaxation_rate,
    total_variation,
)
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import (
    experiment_page,
    mean_and_error,
    new_figure,
    number,
    pair,
)
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.targets.directional.vmf_mixture import circle_angle, circle_mixture
from sgmcmc_verification.targets.target import Target

NAME = "liu2016-figure3"
BINS = 72
EDGES = np.linspace(-math.pi, math.pi, BINS + 1)
MERGED = 2
"""Bins that are drawn as one."""
BURN_IN = 5.0
"""Relaxation times before the first draw; draws are one relaxation time apart."""
GMC_STEPS, GMC_SPACING = 5, 10
"""Steps of the integrator a transition of GMC, and transitions from one draw to the next."""
SHOWN = 100
"""Draws in the plane."""


@dataclass(frozen=True)
class Setting:
    """A sampler with gradient noise N(0, V I).

    Attributes:
        method: "SGGMC", "gSGNHT" or "GMC".
        step_size: h.
        friction: C of SGGMC, A of gSGNHT; unused by GMC.
        noise: V; 0 for exact gradients.
        compensate: V^ = V (of SGGMC), else 0.
    """

    method: str
    step_size: float
    friction: float = 0.0
    noise: float = 1000.0
    compensate: bool = False


@dataclass(frozen=True)
class Cell(Keyed):
    """A setting with `size` = (chains, draws a chain)."""

    setting: Setting
    size: tuple[int, int]
    seed: int = 0


BASE = (
    Setting("SGGMC", 0.01, 10.0, compensate=True),
    Setting("SGGMC", 0.01, 10.0),
    Setting("gSGNHT", 0.01, 1.0),
    Setting("GMC", 0.3, noise=0.0),
)
VARIED = (
    *(Setting("SGGMC", h, C, compensate=True) for h, C in ((0.01, 5.0), (0.005, 10.0), (0.02, 10.0), (0.02, 20.0))),
    Setting("gSGNHT", 0.02, 1.0),
)
OUTSIDE = (
    Setting("SGGMC", 0.02, 5.0, compensate=True),
    Setting("SGGMC", 0.2, 20.0, compensate=True),
    Setting("SGGMC", 0.02, 10.0),
)
"""h V > 2 C; the same, and h C too large; and V^ = 0 with a larger step."""
FULL, SMALL, QUICK = (500, 10), (200, 10), (400, 1)
LABELS = {
    ("SGGMC", True): "SGGMC, V̂ = V",
    ("SGGMC", False): "SGGMC, V̂ = 0",
    ("gSGNHT", False): "gSGNHT",
    ("GMC", False): "GMC, exact gradients",
}
COLOURS = dict(zip(LABELS, ("#0072B2", "#D55E00", "#009E73", "#E69F00"), strict=True))
"""Of the palette of Okabe and Ito; markers say the same in print."""
MARKERS = dict(zip(LABELS, ("o", "X", "s", "^"), strict=True))


def base(quick: bool) -> tuple[Setting, ...]:
    """The base settings; the quick version takes two of them with a larger step."""
    return tuple(dataclasses.replace(s, step_size=0.02) for s in BASE[:2]) if quick else BASE


def label(setting: Setting) -> tuple[str, bool]:
    """Key of its colour and name."""
    return setting.method, setting.compensate


@cache
def problem() -> Target:
    """U = -log(exp(5 mu_1 . x) + 2 exp(5 mu_2 . x)), mu at the angles pi / 3 and -pi / 3."""
    return circle_mixture()


def probabilities(target: Target) -> np.ndarray:
    """Of the bins of the angle, exact."""
    return np.diff(target.cdfs["angle"].cdf(EDGES))


@cache
def rate() -> float:
    """Slowest rate of the overdamped diffusion of the target."""
    angles = np.linspace(-math.pi, math.pi, 721)[:-1]
    density = np.exp(5 * np.cos(angles - math.pi / 3)) + 2 * np.exp(5 * np.cos(angles + math.pi / 3))
    return relaxation_rate(density, (angles[1] - angles[0],), periodic=True)


def damping(s: Setting) -> float:
    """The friction that the velocity feels: C, or A + h V / 2, the mean of the thermostat."""
    return s.friction + (s.step_size * s.noise / 2 if s.method == "gSGNHT" else 0.0)


def inflation(s: Setting) -> float:
    """s = 1 + h (V - V^) / (2 C) of SGGMC, where V^ is at most 2 C / h; 1 for the others."""
    if s.method != "SGGMC":
        return 1.0
    known = min(s.noise, 2 * s.friction / s.step_size) if s.compensate else 0.0
    return 1 + s.step_size * (s.noise - known) / (2 * s.friction)


def temperature(s: Setting) -> float:
    """Of the position, to leading order: s u / sinh u, u = C h / 2, which is exact where U is quadratic."""
    if s.method != "SGGMC":
        return 1.0
    u = s.friction * s.step_size / 2
    return inflation(s) * u / math.sinh(u)


def kinetic(s: Setting) -> float:
    """E |v|^2 to leading order: s C h / sinh(C h), which is exact for U = 0."""
    if s.method != "SGGMC":
        return 1.0
    return inflation(s) * s.friction * s.step_size / math.sinh(s.friction * s.step_size)


@cache
def predicted(s: Setting) -> tuple[float, float]:
    """(KS, TV) of the law at the predicted temperature from the target."""
    tempered = problem().tempered
    assert tempered is not None
    p, q = probabilities(tempered(temperature(s))), probabilities(problem())
    return float(kolmogorov(p, q)), float(total_variation(p, q))


def spacing(s: Setting) -> int:
    """Steps from one draw to the next: a relaxation time, C / rate + 2 / C of the SDE."""
    if s.method == "GMC":
        return GMC_SPACING
    return math.ceil((damping(s) / rate() + 2 / damping(s)) / s.step_size)


@cache
def sampler_of(method: str, friction: float, compensate: bool) -> Sampler:
    """Shared by all step sizes, so that nothing is traced again."""
    manifold = problem().manifold
    if method == "SGGMC":
        return SGGMC(manifold, friction, compensate=compensate)
    return GSGNHT(manifold, friction) if method == "gSGNHT" else GMC(manifold, GMC_STEPS)


@cache
def estimator_of(noise: float, report: bool) -> Estimator:
    """Exact gradients plus N(0, V I)."""
    return KnownNoise(problem(), noise * np.eye(2), report=report) if noise else Exact(problem())


def sampled(cell: Cell) -> dict[str, Any]:
    """Histogram of the angles, its distances from the target, moments with standard errors over chains."""
    s, (chains, draws) = cell.setting, cell.size
    start, key = jax.random.split(cell.random)
    thin = spacing(s)
    found = run(
        sampler_of(s.method, s.friction, s.compensate),
        estimator_of(s.noise, s.compensate),
        key,
        step_size=s.step_size,
        num_steps=draws * thin,
        thin=thin,
        burn_in=round((BURN_IN - 1) * thin),
        positions=jax.vmap(problem().manifold.random)(jax.random.split(start, chains)),
        collect=circle_angle,
        on_nonfinite="raise",
    )
    angles = np.asarray(found.samples)
    counts = counts_of(np.clip(np.searchsorted(EDGES, angles, side="right") - 1, 0, BINS - 1), BINS)
    law = probabilities(problem())
    result: dict[str, Any] = {
        "counts": counts.sum(axis=0).tolist(),
        "KS": distance(kolmogorov, counts, law),
        "TV": distance(total_variation, counts, law),
        "cos": mean_and_error(np.cos(angles).mean(axis=1)),
        "sin": mean_and_error(np.sin(angles).mean(axis=1)),
        "steps": found.steps,
        "first": angles[:SHOWN, 0].round(4).tolist(),
    }
    if s.method != "GMC":
        result["kinetic"] = mean_and_error(np.sum(np.asarray(found.state.velocity) ** 2, axis=1))
    if s.method == "gSGNHT":
        result["thermostat"] = mean_and_error(found.state.thermostat)
    return result


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    if quick:
        return [Cell(s, QUICK) for s in base(quick)]
    return [Cell(s, FULL) for s in BASE] + [Cell(s, SMALL) for s in (*VARIED, *OUTSIDE)]


# The page ----------------------------------------------------------------------------------------------------------


def claims(found: dict[Setting, dict], settings: tuple[Setting, ...]) -> list[tuple[str, str, str]]:
    """(claim, verdict, what was measured) from the results of the base settings."""
    told, untold = settings[:2]
    ks, tv = _distances(found[told])
    rows = [
        (
            "no obvious corruption of the result when using a stochastic gradient (V̂ = V)",
            "holds" if ks.explained and tv.explained else "does not hold",
            f"KS {number(ks.value)} (chance alone: at most {number(ks.limit)}), TV {number(tv.value)} "
            f"(at most {number(tv.limit)})",
        )
    ]
    ks, energy = _distances(found[untold])[0], found[untold]["kinetic"]
    rows.append(
        (
            "(not in the paper) without V̂ it would be: the law has the temperature 1 + hV/(2C)",
            "holds" if not ks.explained and ks.value - ks.limit < predicted(untold)[0] else "not decided",
            f"V̂ = 0: KS {number(ks.value)} (predicted {number(predicted(untold)[0])}; chance alone: at most "
            f"{number(ks.limit)}), E v² = {pair(energy)} (predicted {kinetic(untold):.3f})",
        )
    )
    for s in settings[2:3]:
        (ks, tv), r = _distances(found[s]), found[s]
        rows.append(
            (
                "(shown on other data in the paper) gSGNHT needs no V̂",
                "holds" if ks.explained and tv.explained else "does not hold",
                f"KS {number(ks.value)} (chance alone: at most {number(ks.limit)}); its thermostat rose to "
                f"{pair(r['thermostat'])}, A + hV/2 = {damping(s):g}",
            )
        )
    return rows


def _distances(result: dict) -> tuple[Distance, Distance]:
    return Distance(*result["KS"]), Distance(*result["TV"])


def _row(s: Setting, r: dict) -> str:
    ks, tv = _distances(r)
    expected = predicted(s)
    words = "yes" if ks.explained and tv.explained else "**no**"
    options = "" if s.method == "GMC" else f"{s.friction:g}"
    return (
        f"| {LABELS[label(s)]} | {s.step_size:g} | {options} | {r['steps']} | {ks.value:.4f} | {ks.limit:.4f} | "
        f"{expected[0]:.4f} | {tv.value:.4f} | {tv.limit:.4f} | {expected[1]:.4f} | {words} | "
        f"{pair(r['kinetic']) if 'kinetic' in r else '–'} | {kinetic(s):.3f} |"
    )


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    cells = {cell.setting: cell for cell in plan(quick)}
    found = {s: lines[cell.key]["result"] for s, cell in cells.items()}
    law, size = problem().moments, cells[base(quick)[0]].size
    head = (
        "| method | h | C or A | steps | KS | chance | predicted | TV | chance | predicted | explained by chance "
        "| E v² | predicted |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    )
    groups = [("Base settings", base(quick)), ("Settings varied", VARIED), ("Outside of the range", OUTSIDE)]
    tables = []
    for title, settings in groups:
        shown = [s for s in settings if s in found]
        if shown:
            tables += ["", f"### {title}", "", *head, *(_row(s, found[s]) for s in shown)]
    return experiment_page(
        NAME,
        lines,
        claims=(f"| {claim} | **{verdict}** | {measured} |" for claim, verdict, measured in claims(found, base(quick))),
        topics=size[0],
        images=size[1],
        small=SMALL[0],
        burn_in=f"{BURN_IN:g}",
        bins=BINS,
        tables=tables,
        first_mean=f"{law['theta[0]'].value:.4f}",
        second_mean=f"{law['theta[1]'].value:.4f}",
        base=(f"| {LABELS[label(s)]} | {pair(found[s]['cos'])} | {pair(found[s]['sin'])} |" for s in base(quick)),
        gmc_steps=GMC_STEPS,
        gmc_spacing=GMC_SPACING,
        rate=f"{rate():.4f}",
        steps_per_second=f"{500 / rate():.0f}",
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Samples on the circle; densities in angle; differences from the target."""
    cells = {cell.setting: cell for cell in plan(quick)}
    found = {s: lines[cell.key]["result"] for s, cell in cells.items()}
    figure, axes = new_figure(1, 3, (13, 4.1), width_ratios=(1, 1.35, 1.35))
    fine = np.linspace(-math.pi, math.pi, 721)
    density = np.exp(-np.array(jax.vmap(problem().potential)(np.stack([np.cos(fine), np.sin(fine)], axis=1))))
    merged = lambda values: np.reshape(values, (-1, MERGED)).sum(axis=1)
    wide = EDGES[::MERGED]
    law, middle, width = merged(probabilities(problem())), (wide[1:] + wide[:-1]) / 2, wide[1] - wide[0]
    plane(axes[0, 0], found[base(quick)[0]], fine, density)
    axis = axes[0, 1]
    axis.plot(fine, density, color="black", lw=1.4, label="exact density")
    for s in base(quick):
        counts = merged(found[s]["counts"])
        sampled = counts / counts.sum() / width
        style = {"color": COLOURS[label(s)], "marker": MARKERS[label(s)], "ms": 4.5, "mec": "black", "mew": 0.3}
        axis.plot(middle, sampled, ls="none", label=LABELS[label(s)], **style)
        axes[0, 2].plot(middle, sampled - law / width, lw=0.9, **style, label=LABELS[label(s)])
    tempered = problem().tempered
    assert tempered is not None
    wrong = merged(probabilities(tempered(temperature(base(quick)[1]))))
    axes[0, 2].plot(middle, (wrong - law) / width, color="black", ls="--", lw=1.2, label="predicted for V̂ = 0")
    axes[0, 2].axhline(0, color="0.5", lw=0.8)
    for axis, title, unit in (
        (axes[0, 1], "(b) density of the angle", "density"),
        (axes[0, 2], "(c) sampled minus exact density", "difference"),
    ):
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("angle φ (radians)")
        axis.set_ylabel(unit)
        axis.grid(alpha=0.25, lw=0.4)
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=100)


def plane(axis: Any, result: dict, fine: np.ndarray, density: np.ndarray) -> None:
    """The circle with some draws, and the histogram of all and the density as heights outwards."""
    turn = lambda angle, radius: (radius * np.cos(angle), radius * np.sin(angle))
    counts = np.array(result["counts"])
    height = counts / counts.sum() / (EDGES[1] - EDGES[0])
    axis.plot(*turn(fine, 1.0), color="0.6", lw=0.8)
    radii = 1 + np.repeat(height, 2)
    axis.plot(
        *turn(np.repeat(EDGES, 2)[1:-1], radii),
        color=COLOURS["SGGMC", True],
        lw=1.0,
        label=f"histogram of {counts.sum()}",
    )
    axis.plot(*turn(fine, 1 + density), color="black", lw=1.2, ls="--", label="exact density")
    axis.plot(
        *turn(np.array(result["first"]), 1.0),
        "o",
        ms=4,
        color=COLOURS["SGGMC", True],
        mec="black",
        mew=0.4,
        alpha=0.7,
        label=f"{len(result['first'])} samples",
        ls="none",
    )
    axis.set_aspect("equal")
    axis.set_xlim(-2.1, 1.7)
    axis.set_ylim(-1.9, 1.9)
    axis.set_xlabel("x₁")
    axis.set_ylabel("x₂")
    axis.set_title("(a) SGGMC, V̂ = V, in the plane", fontsize=9)
    axis.legend(fontsize=7, loc="upper left")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, sampled, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
