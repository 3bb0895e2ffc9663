"""Figure 4 of the SGGMC paper: the posterior of two directions on the circle, sampled with minibatches of 10 of 100.

    python -m sgmcmc_verification.reports.experiments.liu2016.figure4 [--quick] [--resume] [--out FOLDER]

Independent chains of SGGMC from one point, with the empirical Fisher matrix for V^ and with V^ = 0; marginals and joint
law of the two angles against quadrature. Every cell is a JSON line in FOLDER/liu2016-figure4.jsonl; `--resume` skips
what the file has.

Source: liu2016stochastic, section 5.2 and figure 4. The paper's model can be read in several ways
(`targets.directional.circle_posterior`), and it does not state step size, friction, the number of steps, or its data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
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
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.targets.directional.circle_posterior import MEAN_DATA, PAIR_DATA, CirclePair, circle_posterior
from sgmcmc_verification.targets.target import Target

NAME = "liu2016-figure4"
BATCH = 10
BINS = 20
"""Cells along each angle, over the box of the target."""
SUB = 12
"""Midpoints a cell and axis for its mass."""
BURN_IN = 4.0
"""Relaxation times before the first draw; draws are one relaxation time apart."""
READINGS = (("mean", "e1"), ("pair", "e1"), ("pair", "e2"))


@dataclass(frozen=True)
class Setting:
    """SGGMC on the posterior.

    Attributes:
        step_size: h.
        friction: C.
        fisher: V^ is the empirical Fisher matrix of the minibatch, else 0.
    """

    step_size: float
    friction: float
    fisher: bool = True


@dataclass(frozen=True)
class Cell(Keyed):
    """A setting with `size` = (chains, draws a chain)."""

    setting: Setting
    size: tuple[int, int]
    seed: int = 0


BASE = Setting(0.001, 15.0)
ROUGH = (Setting(0.002, 15.0), Setting(0.002, 15.0, fisher=False))
VARIED = (Setting(0.0005, 15.0), Setting(0.002, 30.0))
FULL, SMALL, QUICK = (200, 10), (100, 8), (100, 1)
COLOURS = {True: "#0072B2", False: "#D55E00"}
"""V^ by the Fisher matrix or 0; of the palette of Okabe and Ito."""
LABELS = {True: "V̂ = Fisher", False: "V̂ = 0"}


@cache
def problem() -> Target:
    """The reading with the mean direction in the likelihood and both priors at e_1."""
    return circle_posterior()


@cache
def law_of(likelihood: str, second_prior: str) -> CirclePair:
    """The law of the angles under a reading of the model."""
    return CirclePair(likelihood, second_prior, np.array(MEAN_DATA if likelihood == "mean" else PAIR_DATA), 1.0)


@cache
def edges() -> tuple[np.ndarray, np.ndarray]:
    """Edges of the cells along each angle, around what holds all but 1e-6 of the law."""
    first, second, density = law_of(*READINGS[0]).joint(160)
    found = []
    for axis, other in ((first, 1), (second, 0)):
        cumulative = np.cumsum(density.sum(axis=other))
        inside = axis[(cumulative > 5e-7 * cumulative[-1]) & (cumulative < (1 - 5e-7) * cumulative[-1])]
        found.append(np.linspace(inside[0], inside[-1], BINS + 1))
    return found[0], found[1]


@cache
def probabilities() -> np.ndarray:
    """Of the cells (BINS, BINS), normalised."""
    first, second = ((e[:-1, None] + (e[1] - e[0]) * (np.arange(SUB) + 0.5) / SUB).ravel() for e in edges())
    levels = law_of(*READINGS[0]).log_density(first[:, None], second[None, :])
    masses = np.exp(levels - levels.max()).reshape(BINS, SUB, BINS, SUB).sum(axis=(1, 3))
    return masses / masses.sum()


@cache
def rate(likelihood: str, second_prior: str) -> float:
    """Slowest rate of the overdamped diffusion under a reading."""
    first, second, density = law_of(likelihood, second_prior).joint(90)
    return relaxation_rate(density, (first[1] - first[0], second[1] - second[0]), periodic=False)


@cache
def exact_variance() -> np.ndarray:
    """V, the mean over the posterior of the covariance (2, 2) of the gradient of the angles, with replacement."""
    target, (points, weights) = problem(), problem().quadrature(40)  # pyright: ignore[reportOptionalCall]
    keep = weights > 1e-9
    terms = target.terms
    assert terms is not None

    def along(point, datum):
        gradient = jax.grad(terms.datum)(point.reshape(2, 2), datum)
        return gradient[:, 1] * point[::2] - gradient[:, 0] * point[1::2]  # along (-sin, cos)

    scores = np.asarray(jax.jit(jax.vmap(jax.vmap(along, (None, 0)), (0, None)))(jnp.asarray(points[keep]), terms.data))
    centred = scores - scores.mean(axis=1, keepdims=True)
    covariance = terms.size / BATCH * np.einsum("pni,pnj->pij", centred, centred)
    return np.einsum("p,pij->ij", weights[keep] / weights[keep].sum(), covariance)


@cache
def moments() -> dict[str, float]:
    """By quadrature: means, standard deviations and correlation of the angles, and P(angle 1 < angle 2)."""
    first, second, density = law_of(*READINGS[0]).joint(240)
    weights = density / density.sum()
    a, b = np.meshgrid(first, second, indexing="ij")
    return summary(a.ravel(), b.ravel(), weights.ravel())


def summary(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """Moments of weighted points."""
    mean = lambda f: float(np.sum(weights * f))
    x, y = a - mean(a), b - mean(b)
    sd = math.sqrt(mean(x * x)), math.sqrt(mean(y * y))
    found = {"mean 1": mean(a), "mean 2": mean(b), "sd 1": sd[0], "sd 2": sd[1]}
    return found | {"correlation": mean(x * y) / (sd[0] * sd[1]), "P(1 < 2)": mean(a < b)}


@cache
def sampler_of(friction: float, fisher: bool) -> SGGMC:
    """Shared by all step sizes, so that nothing is traced again."""
    return SGGMC(problem().manifold, friction, compensate=fisher)


@cache
def estimator_of(fisher: bool) -> Minibatch:
    """Ten data with replacement."""
    terms = problem().terms
    assert terms is not None
    return Minibatch(terms, BATCH, fisher=fisher)


def spacing(s: Setting) -> int:
    """Steps from one draw to the next: a relaxation time, C / rate + 2 / C of the SDE."""
    return math.ceil((s.friction / rate(*READINGS[0]) + 2 / s.friction) / s.step_size)


def sampled(cell: Cell) -> dict[str, Any]:
    """Histograms of the angles, their distances from the exact law, moments over all draws."""
    s, (chains, draws) = cell.setting, cell.size
    thin = spacing(s)
    found = run(
        sampler_of(s.friction, s.fisher),
        estimator_of(s.fisher),
        cell.random,
        step_size=s.step_size,
        num_steps=draws * thin,
        thin=thin,
        burn_in=round((BURN_IN - 1) * thin),
        num_chains=chains,
        position=problem().example,
        collect=lambda v: jnp.arctan2(v[:, 1], v[:, 0]),
        on_nonfinite="raise",
    )
    angles = np.asarray(found.samples)
    cells = [np.clip(np.searchsorted(e, angles[..., i], side="right") - 1, 0, BINS - 1) for i, e in enumerate(edges())]
    law = probabilities()
    joint = counts_of(cells[0] * BINS + cells[1], BINS * BINS)
    velocity, (a, b) = np.asarray(found.state.velocity), np.moveaxis(angles, -1, 0)
    return {
        "joint": joint.sum(axis=0).tolist(),
        "TV": distance(total_variation, joint, law.ravel()),
        "KS 1": distance(kolmogorov, counts_of(cells[0], BINS), law.sum(axis=1)),
        "KS 2": distance(kolmogorov, counts_of(cells[1], BINS), law.sum(axis=0)),
        "moments": summary(a.ravel(), b.ravel(), np.full(a.size, 1 / a.size)),
        "P(1 < 2)": mean_and_error((a < b).mean(axis=1)),
        "kinetic": [mean_and_error(np.sum(velocity[:, i] ** 2, axis=1)) for i in range(2)],
        "steps": found.steps,
    }


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    if quick:
        return [Cell(Setting(0.002, 30.0), QUICK)]
    return [Cell(s, FULL) for s in (BASE, *ROUGH)] + [Cell(s, SMALL) for s in VARIED]


# The page ----------------------------------------------------------------------------------------------------------


def distances(result: dict) -> dict[str, Distance]:
    """Of the marginals and the joint law."""
    return {name: Distance(*result[name]) for name in ("KS 1", "KS 2", "TV")}


def claims(found: dict[Setting, dict], base: Setting) -> list[tuple[str, str, str]]:
    """(claim, verdict, what was measured)."""
    r, exact = found[base], moments()
    fits = all(d.explained for d in distances(r).values())
    mass, error = r["P(1 < 2)"]
    rows = [
        (
            "no observable corruption when a minibatch is used (V̂ = empirical Fisher)",
            "holds" if fits else "does not hold",
            ", ".join(
                f"{name} {number(d.value)} (chance alone: at most {number(d.limit)})"
                for name, d in distances(r).items()
            ),
        ),
        (
            "the samples fully explore the two modes and the strong correlation of v₁ and v₂",
            "holds" if abs(mass - exact["P(1 < 2)"]) < 4 * error else "does not hold",
            f"all chains start at one point; P(angle 1 < angle 2) is {pair(r['P(1 < 2)'])} (exact "
            f"{exact['P(1 < 2)']:.4f}), the correlation {r['moments']['correlation']:.3f} (exact "
            f"{exact['correlation']:.3f})",
        ),
    ]
    if ROUGH[1] in found:
        with_it, without = found[ROUGH[0]], found[ROUGH[1]]
        wrong = not all(d.explained for d in distances(without).values())
        words = [
            f"{name}: TV {number(d['TV'].value)} (at most {number(d['TV'].limit)}), E v² "
            f"{', '.join(pair(k) for k in result['kinetic'])}"
            for name, result in (("V̂ = Fisher", with_it), ("V̂ = 0", without))
            for d in (distances(result),)
        ]
        rows.append(
            (
                f"(not in the paper) V̂ = 0 would corrupt it at h = {ROUGH[0].step_size:g}, C = {ROUGH[0].friction:g}",
                "holds" if wrong else "not decided",
                "; ".join(words)
                + f"; without compensation the mean of both is about 1 + h tr V/(4C) = {heated(ROUGH[1]):.2f}",
            )
        )
    return rows


def heated(s: Setting) -> float:
    """Mean temperature of the two velocities without compensation, to first order in h V / C."""
    return 1 + s.step_size * float(np.trace(exact_variance())) / (4 * s.friction)


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    cells = plan(quick)
    found = {cell.setting: lines[cell.key]["result"] for cell in cells}
    exact, base, size = moments(), cells[0].setting, cells[0].size
    rows = []
    for s, r in found.items():
        d = distances(r)
        words = "yes" if all(v.explained for v in d.values()) else "**no**"
        values = " | ".join(f"{v.value:.4f} ({v.limit:.4f})" for v in d.values())
        rows.append(
            f"| {LABELS[s.fisher]} | {s.step_size:g} | {s.friction:g} | {r['steps']} | {values} | {words} | "
            f"{pair(r['P(1 < 2)'])} | {r['moments']['correlation']:.3f} | {', '.join(pair(k) for k in r['kinetic'])} |"
        )
    V = exact_variance()
    rates = [rate(*reading) for reading in READINGS]
    return experiment_page(
        NAME,
        lines,
        claims=(f"| {claim} | **{verdict}** | {measured} |" for claim, verdict, measured in claims(found, base)),
        size=size[0],
        other_size=size[1],
        small=SMALL[0],
        other_small=SMALL[1],
        burn_in=f"{BURN_IN:g}",
        bins=BINS,
        p_1_2_=f"{exact['P(1 < 2)']:.4f}",
        correlation=f"{exact['correlation']:.3f}",
        rows=rows,
        batch=BATCH,
        step_size=f"{base.step_size:g}",
        friction=f"{base.friction:g}",
        rates=number(rates[0], 3),
        second_rate=number(rates[1]),
        v=f"{V[0, 0]:.0f}",
        second_variance=f"{V[1, 1]:.0f}",
        rough_step_size=f"{ROUGH[0].step_size:g}",
        rough_friction=f"{ROUGH[0].friction:g}",
        rough_ratio=f"{2 * ROUGH[0].friction / ROUGH[0].step_size:.0f}",
        base_ratio=f"{2 * BASE.friction / BASE.step_size:.0f}",
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Marginals, and the joint law: exact and sampled."""
    cells = plan(quick)
    found = {cell.setting: lines[cell.key]["result"] for cell in cells}
    base = cells[0].setting
    figure, axes = new_figure(1, 4, (15, 3.9))
    law, (first, second) = probabilities(), edges()
    shown = [(base, "o"), *((s, "X") for s in ROUGH[1:] if s in found)]
    for i, e in enumerate((first, second)):
        axis, target = axes[0, i], problem().cdfs[f"angle[{i}]"].cdf
        fine = np.linspace(e[0], e[-1], 400)
        axis.plot(
            (fine[1:] + fine[:-1]) / 2, np.diff(target(fine)) / np.diff(fine), color="black", lw=1.4, label="exact"
        )
        for s, marker in shown:
            counts = np.array(found[s]["joint"]).reshape(BINS, BINS).sum(axis=1 - i)
            axis.plot(
                (e[1:] + e[:-1]) / 2,
                counts / counts.sum() / (e[1] - e[0]),
                marker,
                ms=5,
                mec="black",
                mew=0.4,
                color=COLOURS[s.fisher],
                label=f"{LABELS[s.fisher]}, h = {s.step_size:g}",
                ls="none",
            )
        axis.set_title(f"({'ab'[i]}) marginal of v{'₁₂'[i]}", fontsize=9)
        axis.set_xlabel(f"angle of v{'₁₂'[i]} (radians)")
        axis.set_ylabel("density")
        axis.set_ylim(0, 1.25 * axis.get_ylim()[1])
        axis.grid(alpha=0.25, lw=0.4)
        axis.legend(fontsize=7, loc="upper left")
    counts = np.array(found[base]["joint"]).reshape(BINS, BINS)
    area = (first[1] - first[0]) * (second[1] - second[0])
    top, image = (law / area).max(), None
    for axis, values, title in (
        (axes[0, 2], law / area, "(c) joint density, exact"),
        (axes[0, 3], counts / counts.sum() / area, f"(d) joint density, SGGMC ({counts.sum()} draws)"),
    ):
        image = axis.pcolormesh(first, second, values.T, cmap="cividis", vmin=0, vmax=1.2 * top)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("angle of v₁ (radians)")
        axis.set_ylabel("angle of v₂ (radians)")
    figure.colorbar(image, ax=axes[0, 3], label="density")
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, sampled, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
