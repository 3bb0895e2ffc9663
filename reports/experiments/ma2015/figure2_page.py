"""The page and the figures of `reports.experiments.ma2015.figure2`."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.reports.experiments.common.grid import Lines
from sgmcmc_verification.reports.experiments.common.markdown import mean_and_error, new_figure, number, provenance
from sgmcmc_verification.reports.experiments.common.partition import RARE
from sgmcmc_verification.reports.experiments.ma2015 import figure2 as experiment
from sgmcmc_verification.reports.experiments.ma2015.figure2 import (
    FIRST,
    LINES,
    METHODS,
    ONE_PEAK,
    PLANE,
    SINGULAR,
    STEP_SIZES,
    TWO_PEAKS,
    Cell,
    Setting,
    Sizes,
    cells_of,
    closed_form,
    plane,
    problem,
)
from sgmcmc_verification.reports.templates import render

COLOURS = {"SGLD": "#0072B2", "SGHMC": "#E69F00", "naive SGRHMC": "#D55E00", "gSGRHMC": "#009E73"}
"""Of the palette of Okabe and Ito, which the colour-blind can tell apart; markers and dashes say the same in print."""
MARKERS = {"SGLD": "s", "SGHMC": "^", "naive SGRHMC": "X", "gSGRHMC": "o"}
DASHES = {"SGLD": (4, 2), "SGHMC": (6, 2, 1, 2), "naive SGRHMC": (1, 1), "gSGRHMC": ()}
PEAKS = {ONE_PEAK: "one peak", TWO_PEAKS: "two peaks"}
FORMULAS = {ONE_PEAK: "U = θ²/2", TWO_PEAKS: "U = θ⁴ − 2θ²"}
WRONG = "e^−U G^1/2"


class Results:
    """The lines of a file, by what is asked for; missing cells are None."""

    def __init__(self, lines: Lines, quick: bool, sizes: Sizes):
        self.lines, self.quick, self.sizes = lines, quick, sizes

    def result(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell."""
        line = self.lines.get(cell.key)
        return line["result"] if line else None

    def sampled(self, setting: Setting, key: str = "kl", small: bool = False, kind: str = "sampled"):
        """Mean and standard error over the seeds; None if a seed is missing or has no number."""
        chains, draws = self.sizes.left
        size = (chains // 5 if small else chains, draws)
        found = [self.result(Cell(kind, setting, size, seed)) for seed in range(self.sizes.seeds)]
        values = [r.get(key) for r in found if r]
        if len(values) < self.sizes.seeds or any(v is None for v in values):
            return None
        return mean_and_error(values)

    def floor(self, target: str, small: bool = False):
        """KL of the exact sampler with as many draws."""
        return self.sampled(Setting("SGLD", target), small=small, kind="independent")

    def exact(self, setting: Setting, key: str = "kl") -> tuple[float, float] | None:
        """KL of the stationary law and its numerical error; None if the grid does not resolve it."""
        found = self.result(Cell("exact", setting, (*self.sizes.grids[0], *self.sizes.grids[1])))
        if not found or found["fine"].get(key) is None or found["coarse"].get(key) is None:
            return None
        value = found["fine"][key]
        error = abs(value - found["coarse"][key])
        return (value, error) if error < 0.2 * value + 1e-4 else None

    def path(self, setting: Setting, tuning: bool = False, kind: str = "path"):
        """(KL of every chain after every number of steps, chains that left the finite numbers), or None."""
        size, seed = (self.sizes.tuning, 1) if tuning else (self.sizes.right, 2)
        found = self.result(Cell(kind, setting, size, 0 if kind.startswith("independent") else seed))
        return None if found is None else (np.array(found["kl"]), found.get("nonfinite", 0))

    @property
    def tuned(self) -> list[Setting]:
        """The settings that the tuning chose for the mean over the numbers of steps."""
        return experiment.tuned(self.lines, self.quick, self.sizes)

    @property
    def tuned_last(self) -> list[Setting]:
        """Those that it chose for the largest number of steps of the grid."""
        return experiment.tuned(self.lines, self.quick, self.sizes, last=True)

    @property
    def horizon(self) -> int:
        """The largest number of steps of the grid."""
        return FIRST * 3 ** self.sizes.tuning[1]

    @property
    def base(self) -> Setting:
        """The base setting of the left panel."""
        return Setting(METHODS[0], ONE_PEAK, 0.1) if self.quick else Setting(METHODS[0], ONE_PEAK)

    @property
    def targets(self) -> tuple[str, ...]:
        """Of the left panel."""
        return LINES[:1] if self.quick else LINES


def resolved(pair: tuple[float, float] | None) -> str:
    """The value, or a bound where the numerical error is larger."""
    if pair is None:
        return number(None)
    value, error = pair
    if value <= error:
        return f"< {number(value + error, 1)}"
    return number(value, 3 if error < 0.005 * value else 2)


def with_error(pair: tuple[float, float] | None) -> str:
    """value ± standard error, in units of 1e-3."""
    return "–" if pair is None else f"{1e3 * pair[0]:.3f} ± {1e3 * pair[1]:.3f}"


# The findings ------------------------------------------------------------------------------------------------------


def findings(found: Results) -> list[tuple[str, str, str]]:
    """(claim of the paper, holds or not, what was measured), computed from the results alone."""
    singular = () if found.quick else (claim_singular(found),)
    return [claim_naive(found), claim_right(found), *singular, *claim_fastest(found)]


def _curve(found: Results, method: str, target: str, key: str = "kl") -> list[tuple[float, float, float]]:
    """(h, KL, numerical error) with compensated noise, steps decreasing."""
    steps = STEP_SIZES[:2] if found.quick else STEP_SIZES
    rows = [(h, found.exact(Setting(method, target, h), key)) for h in steps]
    return [(h, *value) for h, value in rows if value is not None]


def _vanishes(curve: list[tuple[float, float, float]]) -> bool:
    """True if KL falls at least as h (it should fall as h^2, down to the error of the grid)."""
    (h0, first, _), (h1, last, error) = curve[0], curve[-1]
    return last <= first * h1 / h0 + 2 * error


def claim_naive(found: Results) -> tuple[str, str, str]:
    """Naive SGRHMC does not converge to the target, but to its own law."""
    holds, words = True, []
    for target in found.targets:
        right, wrong = _curve(found, METHODS[2], target), _curve(found, METHODS[2], target, "kl_wrong")
        limit = closed_form(Setting(METHODS[2], target))
        holds &= right[-1][1] > 0.5 * limit and not _vanishes(right) and _vanishes(wrong)
        words.append(
            f"{PEAKS[target]}: at h = {right[-1][0]} its exact KL to the target is {number(right[-1][1])} (closed form "
            f"for h → 0 on the cells: {number(limit)}) and to {WRONG} {number(wrong[-1][1])}, "
            f"after {number(wrong[0][1])} at h = {wrong[0][0]}"
        )
    return "naive SGRHMC does not converge to the target", "holds" if holds else "does not hold", "; ".join(words)


def claim_right(found: Results) -> tuple[str, str, str]:
    """gSGRHMC has the right invariant law."""
    holds, words = True, []
    for target in found.targets:
        curve, wrong = _curve(found, METHODS[3], target), _curve(found, METHODS[3], target, "kl_wrong")
        holds &= _vanishes(curve) and not _vanishes(wrong)
        values = ", ".join(f"{number(kl)} (h = {h})" for h, kl, _ in curve)
        words.append(f"{PEAKS[target]}: exact KL {values}")
    return "gSGRHMC has the correct invariant law", "holds" if holds else "does not hold", "; ".join(words)


def claim_singular(found: Results) -> tuple[str, str, str]:
    """The same with the remembered offset, at which div B is infinite at four points of the two peaks."""
    holds, words = True, []
    for s in experiment.singular():
        if s.method != METHODS[3]:
            continue
        sample, floor, lost = found.sampled(s, small=True), found.floor(s.target, small=True), lost_share(found, s)
        assert sample is not None
        assert floor is not None
        holds &= lost == 0 and sample[0] - floor[0] < 0.5 * closed_form(s)
        words.append(
            f"{PEAKS[s.target]}, h = {s.step_size}: sampled KL {number(sample[0])} (exact sampler {number(floor[0])})"
            + (f", {lost:.1%} of the draws not finite" if lost else "")
        )
    claim = f"gSGRHMC has the correct invariant law, with the remembered constant C = {SINGULAR}"
    return claim, "holds" if holds else "does not hold at these step sizes", "; ".join(words)


def lost_share(found: Results, s: Setting) -> float:
    """Share of the draws at the remembered offset that are not finite."""
    chains, draws = found.sizes.left
    lost = found.sampled(s, "nonfinite", small=True)
    assert lost is not None
    return lost[0] / (chains // 5 * draws)


def claim_fastest(found: Results) -> list[tuple[str, str, str]]:
    """gSGRHMC explores the plane most rapidly: at one step size, and each at its best setting.

    A setting is judged over the numbers of steps that it was chosen for: a larger step is better for fewer of them.
    Three standard errors decide.
    """
    groups = (
        [] if found.quick else [(f"all with h = {g[0].step_size}", g, slice(None)) for g in experiment.equal_steps()]
    )
    powers = found.sizes.tuning[1]
    groups.append((f"each at its best setting for up to {found.horizon} steps", found.tuned, slice(powers + 1)))
    last = slice(powers, powers + 1)
    groups.append((f"each at its best setting for {found.horizon} steps", found.tuned_last, last))
    rows = []
    for name, settings, span in groups:
        mine = next(s for s in settings if s.method == "gSGRHMC")
        words, ratios = [], []
        for other in settings:
            if other.method == "gSGRHMC":
                continue
            ratio, error = log_ratio(found, mine, other, span)
            ratios.append(ratio / error)
            words.append(f"{np.exp(ratio):.2f} (± {np.exp(ratio) * error:.3f}) of that of {other.method}")
        what = f"after {found.horizon} steps" if span == last else "geometric mean over the numbers of steps"
        rows.append(
            (
                f"gSGRHMC most rapidly explores the space, {name}",
                "holds" if max(ratios) < -3 else "does not hold" if max(ratios) > 3 else "not decided",
                f"its KL, {what}, is {' and '.join(words)}",
            )
        )
    return rows


def log_ratio(found: Results, mine: Setting, other: Setting, span: slice) -> tuple[float, float]:
    """Difference of the means of log KL over some numbers of steps, and its standard error over chains."""
    pairs = []
    for setting in (mine, other):
        kl, _ = found.path(setting) or (np.full((2, 1), np.nan), 0)
        pairs.append(mean_and_error(np.log(kl[:, span]).mean(axis=1)))
    return pairs[0][0] - pairs[1][0], float(np.hypot(pairs[0][1], pairs[1][1]))


# The page ----------------------------------------------------------------------------------------------------------


def write(lines: Lines, folder: Path, quick: bool, sizes: Sizes) -> Path:
    """Write the figures and the page; return the path of the page."""
    found = Results(lines, quick, sizes)
    draw_left(found, folder / f"{experiment.NAME}-left.png")
    draw_right(found, folder / f"{experiment.NAME}-right.png")
    page = folder / f"{experiment.NAME}.md"
    page.write_text(text(found), encoding="utf-8")
    return page


def text(found: Results) -> str:
    """Text of the page."""
    left_tables = left_table(found)
    if not found.quick:
        left_tables += exact_table(found) + variation_table(found) + singular_table(found)
    return render(
        "experiments/ma2015-figure2.md.j2",
        name=experiment.NAME,
        provenance=provenance(found.lines),
        findings=findings(found),
        notes="" if found.quick else notes(found),
        left_tables=left_tables,
        right_tables=right_tables(found),
        method=method_section(found),
    )


def notes(found: Results) -> str:
    """Facts for a comparison with the figure of the paper."""
    limits = [closed_form(Setting(METHODS[2], t, offset=SINGULAR)) for t in LINES]
    loud = [found.exact(Setting(m, ONE_PEAK, noise=16.0, compensate=False)) for m in METHODS[2:]]
    naive, right = (number(pair[0] if pair else None) for pair in loud)
    return render(
        "experiments/ma2015-figure2-notes.md.j2",
        naive=naive,
        right=right,
        singular=SINGULAR,
        one_peak=number(limits[0]),
        two_peaks=number(limits[1]),
    )


def left_table(found: Results) -> list[str]:
    """Sampled KL at the base step size beside the exact one."""
    chains, draws = found.sizes.left
    base = found.base
    rows = [
        f"Sampled: {found.sizes.seeds} seeds of {chains} chains with {draws} draws each, h = {base.step_size}, "
        f"gradient noise N(0, {base.noise:g}); mean ± standard error over seeds, **in 10⁻³**. *exact*: the stationary "
        "law of the scheme by quadrature, ± the difference of two grids. *exact sampler*: independent draws of the "
        "target, as many: the bias of a histogram, which every sampled KL contains.",
        "",
        f"| target | method | B̂ | sampled KL | exact sampler | exact KL | sampled KL to {WRONG} | exact | E θ² (exact "
        "target) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for target in found.targets:
        moment = problem(target).moments["theta[0]^2"].value
        for method in METHODS:
            for compensate in (True,) if found.quick else (True, False):
                s = dataclasses.replace(base, method=method, target=target, compensate=compensate)
                square = found.sampled(s, "square")
                floor = found.floor(target) if compensate else None
                naive = method == METHODS[2]
                rows.append(
                    f"| {PEAKS[target]} | {method} | {'V' if compensate else '0'} | {with_error(found.sampled(s))} "
                    f"| {with_error(floor)} | {with_error(found.exact(s))} "
                    f"| {with_error(found.sampled(s, 'kl_wrong')) if naive else ''} "
                    f"| {with_error(found.exact(s, 'kl_wrong')) if naive else ''} "
                    f"| {'–' if square is None else f'{square[0]:.4f} ± {square[1]:.4f}'} ({moment:.4f}) |"
                )
    return [*rows, ""]


def exact_table(found: Results) -> list[str]:
    """Exact KL against the step size."""
    rows = [
        "### Step size",
        "",
        "Exact KL of the stationary law of the scheme, B̂ = V; (–): no law that the grid resolves. A right scheme of "
        "first order has KL = O(h²). <: below the difference of two grids, which on two peaks is 1e-5.",
        "",
        f"| target | method | against | {' | '.join(f'h = {h}' for h in STEP_SIZES)} | h → 0 |",
        f"|---|---|---|{'---|' * len(STEP_SIZES)}---|",
    ]
    for target in LINES:
        for method in METHODS:
            for key in ("kl", "kl_wrong") if method == METHODS[2] else ("kl",):
                values = [found.exact(Setting(method, target, h), key) for h in STEP_SIZES]
                naive = method == METHODS[2] and key == "kl"
                limit = number(closed_form(Setting(method, target)), 3) if naive else "0"
                cells = " | ".join(resolved(v) for v in values)
                law = "target" if key == "kl" else WRONG
                rows.append(f"| {PEAKS[target]} | {method} | {law} | {cells} | {limit} |")
    return [*rows, ""]


def variation_table(found: Results) -> list[str]:
    """Exact KL at other settings."""
    names = {"noise": "V", "friction": "friction", "scale": "D", "offset": "C"}
    rows = [
        "### Gradient noise, friction and metric",
        "",
        "Exact KL at h = 0.02 with one setting changed. Base: V = 4, B̂ = V, friction 3, G⁻¹ = 1.5 √|U + 1.5|. With "
        "B̂ = V and Gaussian noise the law of a step does not depend on V, so V is varied with B̂ = 0.",
        "",
        f"| target | method | changed | to the target | to {WRONG} | closed form of the naive law |",
        "|---|---|---|---|---|---|",
    ]
    for target in LINES:
        for s in experiment.variations(target):
            base = Setting(s.method, s.target)
            changed = [f"{names[k]} = {getattr(s, k):g}" for k in names if getattr(s, k) != getattr(base, k)]
            changed += [] if s.compensate else ["B̂ = 0"]
            right, wrong = found.exact(s), found.exact(s, "kl_wrong")
            limit = number(closed_form(s), 3) if s.method == METHODS[2] else ""
            other = resolved(wrong) if s.method == METHODS[2] else ""
            rows.append(
                f"| {PEAKS[target]} | {s.method} | {', '.join(changed)} | {resolved(right)} | {other} | {limit} |"
            )
    return [*rows, ""]


def singular_table(found: Results) -> list[str]:
    """The remembered offset."""
    chains = found.sizes.left[0]
    rows = [
        f"### The metric with C = {SINGULAR}",
        "",
        "On two peaks U + C changes sign at four points, where G⁻¹ is 0 and div G^-1/2 infinite. Sampled as above, "
        f"with {chains // 5} chains a seed, **in 10⁻³**; *lost*: share of the draws that are not finite "
        "(the KL is that of the others).",
        "",
        f"| target | method | h | sampled KL | exact sampler | sampled KL to {WRONG} | closed form of the naive law "
        "| lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for s in experiment.singular():
        rows.append(
            f"| {PEAKS[s.target]} | {s.method} | {s.step_size} | {with_error(found.sampled(s, small=True))} "
            f"| {with_error(found.floor(s.target, small=True))} "
            f"| {with_error(found.sampled(s, 'kl_wrong', small=True))} | {1e3 * closed_form(s):.3f} "
            f"| {lost_share(found, s):.1%} |"
        )
    return [*rows, ""]


def describe(s: Setting) -> str:
    """The settings of the right panel that concern the method."""
    own = {"SGLD": "", "SGHMC": f", friction {s.friction:g}"}.get(s.method, f", D = {s.scale:g}, C = {s.offset:g}")
    return f"h = {s.step_size:g}{own}"


def right_tables(found: Results) -> list[str]:
    """KL against steps: the chosen settings and the grid."""
    chains, powers = found.sizes.right
    steps = [FIRST * 3**k for k in range(powers + 1)]
    rows = [
        f"Target U = θ₁⁴/10 + (4(θ₂ + 1.2) − θ₁²)²/2, gradient noise N(0, I), B̂ = V. {chains} independent chains from "
        "(0.7, −0.9); the histogram of one chain from its first step on; mean over chains (±: standard error of the "
        "last). *best*: the setting of the grid below with the least mean of log KL for up to "
        f"{found.horizon} steps, *best at the end*: with the least KL there, both chosen with other random numbers.",
        "",
        f"| method | | {' | '.join(map(str, steps))} | ± | lost chains |",
        f"|---|---|{'---|' * len(steps)}---|---|",
    ]
    groups = [] if found.quick else [(s, "equal h: ") for group in experiment.equal_steps() for s in group]
    best = [(s, "best: ") for s in found.tuned] + [(s, "best at the end: ") for s in found.tuned_last]
    for s, name in [*groups, *best]:
        rows.append(_path_row(s.method, name + describe(s), found.path(s)))
    rows.append(_path_row("exact sampler", "", found.path(plane("SGLD", 0.02), kind="independent path")))
    powers = found.sizes.tuning[1]
    steps = [FIRST * 3**k for k in range(powers + 1)]
    rows += [
        "",
        "### The grid",
        "",
        f"{found.sizes.tuning[0]} chains. A chain is lost when it leaves the finite numbers; such a setting is not "
        "chosen.",
        "",
        f"| method | | {' | '.join(map(str, steps))} | ± | lost chains |",
        f"|---|---|{'---|' * len(steps)}---|---|",
    ]
    for s in experiment.tuning(found.quick):
        rows.append(_path_row(s.method, describe(s), found.path(s, tuning=True)))
    return [*rows, ""]


def _path_row(method: str, setting: str, path: tuple[np.ndarray, int] | None) -> str:
    if path is None:
        return f"| {method} | {setting} | missing |"
    kl, lost = path
    values = " | ".join(number(v, 3) for v in kl.mean(axis=0))
    return f"| {method} | {setting} | {values} | {number(mean_and_error(kl[:, -1])[1])} | {lost} |"


def method_section(found: Results) -> str:
    """Method, and what the paper does not state."""
    classes = {name: cells_of(name).classes for name in (*found.targets, PLANE)}
    return render(
        "experiments/ma2015-figure2-method.md.j2",
        singular=SINGULAR,
        draws=int(np.prod(found.sizes.left)),
        cells=", ".join((f"{k} ({PEAKS.get(name, 'plane')})" for name, k in classes.items())),
        rare=f"{RARE:g}",
    )


# Figures -----------------------------------------------------------------------------------------------------------


def draw_left(found: Results, path: Path) -> None:
    """Bars as in the paper, and KL against the step size."""
    figure, axes = new_figure(1, 1 + len(found.targets), (4.2 + 3.6 * len(found.targets), 3.9))
    bars(found, axes[0, 0])
    for axis, target in zip(axes[0, 1:], found.targets, strict=True):
        curves(found, axis, target)
    handles, labels = axes[0, -1].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=7, loc="outside lower center", ncols=6)
    figure.savefig(path, dpi=110)


def bars(found: Results, axis: Any) -> None:
    """Sampled KL by method and target, with the exact KL and the exact sampler."""
    places, labels = [], []
    for i, method in enumerate(METHODS):
        for j, target in enumerate(found.targets):
            s = dataclasses.replace(found.base, method=method, target=target)
            sample, law, at = found.sampled(s), found.exact(s), 2.6 * i + j
            assert sample is not None
            axis.bar(
                at, sample[0], 0.85, yerr=2 * sample[1], color=COLOURS[method], edgecolor="black", lw=0.6, capsize=3
            )
            if law is not None:
                label = "exact stationary law" if (i, j) == (0, 0) else None
                axis.plot(at, law[0], "D", ms=5, mfc="white", mec="black", ls="none", label=label)
            floor = found.floor(target)
            assert floor is not None
            label = "exact sampler, as many draws" if (i, j) == (0, 0) else None
            axis.hlines(floor[0], at - 0.46, at + 0.46, color="black", lw=1.6, ls=(0, (1.5, 0.8)), label=label)
            if method == METHODS[2]:
                own = found.sampled(s, "kl_wrong")
                assert own is not None
                label = r"sampled, to its own law $e^{-U} G^{1/2}$" if j == 0 else None
                axis.errorbar(
                    at, own[0], 2 * own[1], fmt="v", ms=6, mfc="white", mec="black", ecolor="black", label=label
                )
            places.append(at)
            labels.append(str(j + 1))
        axis.text(
            2.6 * i + 0.5 * (len(found.targets) - 1),
            -0.11,
            method.replace(" ", "\n"),
            ha="center",
            va="top",
            transform=axis.get_xaxis_transform(),
            fontsize=8,
        )
    axis.set_xticks(places, labels, fontsize=8)
    axis.set_ylabel("KL divergence")
    axis.set_ylim(0, 1.45 * axis.get_ylim()[1])
    axis.set_title(f"1: one peak, 2: two peaks; h = {found.base.step_size}, bars ± 2 s.e.", fontsize=9)
    axis.legend(fontsize=7, loc="upper right")


def curves(found: Results, axis: Any, target: str) -> None:
    """Exact KL against the step size; sampled points less the bias of the exact sampler."""
    for method in METHODS:
        curve = [row for row in _curve(found, method, target) if row[1] > row[2]]
        style = {"color": COLOURS[method], "marker": MARKERS[method], "ms": 5, "mec": "black", "mew": 0.4}
        axis.plot(*np.array(curve)[:, :2].T, dashes=DASHES[method], label=method, **style)
    own = _curve(found, METHODS[2], target, "kl_wrong")
    axis.plot(
        *np.array(own)[:, :2].T,
        color="#D55E00",
        ls=(0, (1, 2)),
        marker="v",
        mfc="white",
        ms=6,
        label=r"naive, to its own law $e^{-U} G^{1/2}$",
    )
    limit = closed_form(Setting(METHODS[2], target))
    axis.axhline(limit, color="0.4", lw=0.9, ls="--", label="naive, closed form for h → 0")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("step size h")
    axis.set_ylabel("exact KL divergence")
    axis.set_title(f"{PEAKS[target]}, {FORMULAS[target]}", fontsize=9)
    axis.grid(alpha=0.25, which="both", lw=0.4)


def draw_right(found: Results, path: Path) -> None:
    """KL against steps at equal and at chosen settings, and the first samples over the contours."""
    groups = [] if found.quick else [(f"all with h = {g[0].step_size}", g) for g in experiment.equal_steps()]
    groups.append((f"best up to {found.horizon} steps (grey line)", found.tuned))
    figure, axes = new_figure(2, 3, (10.8, 6.8))
    floor = found.path(plane("SGLD", 0.02), kind="independent path")
    assert floor is not None
    for axis, (title, settings) in zip(axes[0], groups, strict=False):
        for s in settings:
            kl = found.path(s)
            assert kl is not None
            _steps_line(
                axis, kl[0], COLOURS[s.method], MARKERS[s.method], DASHES[s.method], f"{s.method} ({describe(s)})"
            )
        _steps_line(axis, floor[0], "0.35", ".", (1, 2), "exact sampler")
        axis.set_yscale("log")
        axis.set_xlabel("log₃(steps/100) + 1")
        axis.set_ylabel("KL divergence")
        axis.set_title(title, fontsize=9)
        axis.grid(alpha=0.25, which="both", lw=0.4)
        axis.legend(fontsize=6.5, loc="lower left")
    axes[0, len(groups) - 1].axvline(found.sizes.tuning[1] + 1, color="0.6", lw=0.8)
    for axis in axes[0, len(groups) :]:
        axis.set_axis_off()
    for axis, s in zip(axes[1], found.tuned, strict=True):
        contours(axis)
        points = found.result(Cell("first samples", s, (10,)))
        assert points is not None
        where = np.array(points["points"])
        axis.plot(*where.T, color=COLOURS[s.method], marker=MARKERS[s.method], ms=6, lw=1.2, mec="black", mew=0.5)
        axis.plot(*where[0], marker="*", ms=12, mfc="white", mec="black", ls="none", label="start")
        axis.set_title(f"{s.method}: first 10 samples, 50 steps apart", fontsize=9)
        axis.set_xlabel("θ₁")
        axis.set_ylabel("θ₂")
        axis.legend(fontsize=7, loc="upper center")
    figure.savefig(path, dpi=100)


def _steps_line(axis: Any, kl: np.ndarray, colour: str, marker: str, dashes: tuple[int, ...], label: str) -> None:
    """Mean over chains with two standard errors."""
    at = np.arange(1, kl.shape[1] + 1)
    error = 2 * kl.std(axis=0, ddof=1) / np.sqrt(len(kl))
    axis.errorbar(
        at, kl.mean(axis=0), error, color=colour, marker=marker, ms=4, lw=1.3, capsize=2, dashes=dashes, label=label
    )


def contours(axis: Any) -> None:
    """Contours of the density of the plane."""
    x, y = np.meshgrid(np.linspace(-3.2, 3.2, 161), np.linspace(-2.4, 2.2, 141))
    energy = x**4 / 10 + (4 * (y + 1.2) - x**2) ** 2 / 2
    axis.contour(x, y, np.exp(-energy), levels=[0.01, 0.1, 0.3, 0.6, 0.9], colors="0.55", linewidths=0.7)
