"""Usability of the samplers, beside their laws: largest stable step and bias, against the reference of the dynamics.

    python -m sgmcmc_verification.reports.pages.usability [--sampler NAME ...] [--out FILE.jsonl]

On a Gaussian, at the default options: the largest step size at which the variance of the position stays bounded; the
relative error of that variance at the default step size, beside its leading term as a proof reads it from the program,
and both on a quartic line; the largest error of a variance where curvatures range from 1 to 100, at the default step
size of the largest, beside the reference's; and the error at the step size where the reference of the same dynamics
errs by 1%. The variance is the mean over the whitened coordinates, exact where the step is affine (a Lyapunov equation)
and, on the quartic line, where z has at most two coordinates (the transfer operator on a grid), else the average of
independent runs. Both samplers have the friction that their rows have by default.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Inconclusive, NotApplicable
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.checks.core.selection import any_dimension
from sgmcmc_verification.checks.end_points.functions import Functions
from sgmcmc_verification.checks.end_points.runs import Runs
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import position_rule
from sgmcmc_verification.checks.exact_laws.lyapunov import position_law
from sgmcmc_verification.checks.exact_laws.transfer_operator import GRIDS, auxiliary_spread, discrete_law, require_grid
from sgmcmc_verification.checks.proof.leading_bias import LeadingTerm, leading_term
from sgmcmc_verification.checks.tiers.law.gaussian import whitened_bias
from sgmcmc_verification.checks.tiers.law.usual_step import REFERENCES as WITH_CLOSED_FORMS
from sgmcmc_verification.checks.tiers.law.usual_step import ROUNDOFF, at_usual_step
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.reports.pages.out_file import complete, publish, require_lines
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.jsonl import ROOT, read
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.adapters.common import MissingLibrary
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeMissing
from sgmcmc_verification.samplers.adapters.registry import ADAPTERS
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import StationaryLaw
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.targets.target import Target

PUBLISHED = ROOT / "reports" / "published" / "usability.jsonl"
TARGETS = ("gaussian-1d-scaled", "gaussian-correlated-2d")
"""The first on which a sampler runs."""
SPECTRUM = "gaussian-anisotropic"
"""Curvatures from 1 to 100."""
QUARTIC = "anharmonic"
"""U = x^4 / 4 + x^2 / 2: no step is affine there."""
REFERENCES = {**WITH_CLOSED_FORMS, 3: "sgnht-splitting"}
"""Variables to a coordinate, rounded up -> the reference sampler; the third one is a thermostat."""
ERROR = 0.01
"""Relative error of the variance at which the reference is compared with."""
DIGITS = 0.1
"""Relative error of a leading term that is shown."""
LARGEST = 10.0
"""Variance, in units of the target's, above which a step size counts as unstable."""
CHAINS, TIME, MOST = 1 << 11, 60.0, 6000
"""Independent runs where the variance is sampled, their length in units of the target's time, and steps at most."""


def variance_of(subject: Subject, target: Target) -> tuple[Callable[[float], float], bool]:
    """Step size -> variance of the position over the target's, infinite where it has none; and whether it is exact.

    Raises:
        NotApplicable, Inconclusive: for a sampler that cannot be run on the target.
    """
    step, law = step_map(subject, target), target.gaussian
    assert law is not None  # of the targets
    precision, size = np.asarray(law.precision), target.size

    def exact(h: float) -> float:
        _, covariance, found = position_law(step, h)
        return float(np.trace(precision @ covariance)) / size if found.radius < 1 else np.inf

    try:
        exact(1e-3 * subject.step_size(target))
    except (NotApplicable, Inconclusive):
        pass
    else:
        return exact, True
    if on_host(step.sampler):
        raise NotApplicable("a step in Python that is not affine: its runs would take hours")
    return sampled_variance(subject, target, np.asarray(law.mean), precision), False


def sampled_variance(
    subject: Subject, target: Target, mean: np.ndarray, precision: np.ndarray
) -> Callable[[float], float]:
    """Step size -> the average of (x - mean)^T P (x - mean) / d over independent runs, infinite where it has none."""
    squares = sampled_squares(subject, target, mean, precision)

    def sampled(h: float) -> float:
        steps = int(min(MOST, max(200, TIME / (h * target.curvature**subject.row.step_power))))
        found = float(np.mean(squares(h, steps)))
        return found if np.isfinite(found) else np.inf

    return sampled


def sampled_squares(
    subject: Subject, target: Target, mean: np.ndarray, precision: np.ndarray
) -> Callable[[float, int], np.ndarray]:
    """Step size and steps -> averages (d,) of the squares of L^T (x - mean), P = L L^T, over independent runs."""
    root, d = np.linalg.cholesky(precision), target.size
    runs = Runs(subject, target, Functions(lambda x: ((x - mean) @ root) ** 2, np.ones(d), ("y^2",) * d))
    starts = runs.starts(7, CHAINS)
    return lambda h, steps: runs.means(11, starts, h, steps, steps // 4)[0].mean(axis=0)


def _way(line: dict[str, Any]) -> str:
    """Words for the way to the variance, with the standard error of an average over runs."""
    return "exact" if line["exact"] else f"runs, {100 * np.sqrt(2 / (CHAINS * 0.75 * TIME / 2)):.1f}%"


def largest_stable(variance: Callable[[float], float], start: float) -> float:
    """Largest step size whose variance is below `LARGEST`, by doubling and six bisections; infinite if all are."""
    low, high = 0.0, start
    for _ in range(12):
        if not abs(variance(high)) < LARGEST:
            break
        low, high = high, 2 * high
    else:
        return np.inf
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if abs(variance(middle)) < LARGEST else (low, middle)
    return low


@lru_cache(maxsize=8)
def reference(name: str, where: str) -> tuple[float, float]:
    """Largest stable step size of a reference sampler, and the one at which its variance errs by `ERROR`."""
    subject, target = Subject(find_row(name)), find_target(where)
    variance, _ = variance_of(subject, target)
    limit = largest_stable(variance, subject.step_size(target))
    low, high = limit * 2.0**-12, limit
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if abs(variance(middle) - 1) < ERROR else (low, middle)
    return limit, low


def leading_error(found: LeadingTerm | None, target: Target, h: float, mean: float, variance: float) -> float | None:
    """Leading term of the relative error of the variance at step size h; None where it is not read from the program."""
    if found is None:
        return None
    try:
        value, gap = found.bias(target, lambda x: (x - mean) ** 2)
    except (NotApplicable, Inconclusive):
        return None
    return value / variance * h ** float(found.order) if gap <= DIGITS * abs(value) + ROUNDOFF else None


def term_of(subject: Subject) -> LeadingTerm | None:
    """The leading term of the bias; None where it is not read from the program."""
    try:
        return leading_term(subject)
    except NotApplicable:
        return None


def on_quartic(subject: Subject, term: LeadingTerm | None) -> dict[str, Any]:
    """Error of the variance on the quartic line at the default step size, and its leading term."""
    target = find_target(QUARTIC)
    if QUARTIC not in subject.row.targets:
        return {}
    step, h = step_map(subject, target), subject.step_size(target)
    if on_host(step.sampler):
        return {}
    temperature = step.sampler.claims.temperature
    points, weights = position_rule(target, temperature)
    variance = float(weights @ points[:, 0] ** 2)  # the mean is 0
    try:
        traced = require_grid(step)
        law = discrete_law(traced, h, temperature, GRIDS[step.size][1], auxiliary_spread(traced))
        found, exact = float(law.expectations[1]), True
    except (NotApplicable, Inconclusive):
        found, exact = variance * sampled_variance(subject, target, np.zeros(1), np.eye(1) / variance)(h), False
    leading = leading_error(term, target, h, 0.0, variance)
    return {"quartic_error": found / variance - 1, "quartic_exact": exact, "quartic_leading": leading}


def errors_on_spectrum(subject: Subject) -> dict[str, Any]:
    """Largest errors of a variance, of a sampler and of its reference; nothing where none can be had."""
    target = find_target(SPECTRUM)
    if not any_dimension(subject):
        return {}
    h, d = subject.step_size(target), target.size
    try:
        step = step_map(subject, target)
        size = -(-step.size // d)
        try:
            entries, radius, _ = whitened_bias(step, h, step.sampler.claims.temperature)
        except (NotApplicable, Inconclusive, ValueError):  # not affine
            if on_host(step.sampler):
                return {}  # steps in Python, one run after another
            other = sampled_error(REFERENCES[size], h) if size in REFERENCES else None
            return {"spectrum_error": sampled_error(subject.name, h), "spectrum_reference_error": other}
    except (NotApplicable, Inconclusive):
        return {}
    if not radius < 1:
        return {"spectrum_error": np.inf}
    found = at_usual_step(entries[d:].reshape(d, d), h, target, size)
    return {"spectrum_error": found["error"], "spectrum_reference_error": found.get("reference_error")}


@lru_cache(maxsize=64)
def sampled_error(name: str, h: float) -> float:
    """The error of a variance on the spectrum of curvatures that is largest in size, averaged over runs."""
    target = find_target(SPECTRUM)
    law = target.gaussian
    assert law is not None  # of the target
    found = sampled_squares(Subject(find_row(name)), target, np.asarray(law.mean), np.asarray(law.precision))(h, MOST)
    return float(max(found - 1, key=abs)) if np.all(np.isfinite(found)) else np.inf


def decide(name: str, revision: str) -> dict[str, Any]:
    """The line of a sampler."""
    line: dict[str, Any] = {"sampler": name, "commit": revision}
    try:
        subject = Subject(find_row(name))
        where = next((each for each in TARGETS if each in subject.row.targets), None)
        if where is None:
            raise NotApplicable(f"runs on none of {', '.join(TARGETS)}")
        target = find_target(where)
        if StationaryLaw not in subject.sampler(target).claims:
            raise NotApplicable("claims no law with a bias: it is exact, or has no fixed step size")
        variance, exact = variance_of(subject, target)
        size = -(-step_map(subject, target).size // target.size)
    except (NotApplicable, Inconclusive, BadInput, MissingLibrary, BridgeMissing) as reason:
        return line | {"reason": str(reason)}
    h, other, law = subject.step_size(target), REFERENCES.get(size), target.gaussian
    assert law is not None  # of the targets
    term = term_of(subject)
    line |= {
        "target": where,
        "exact": exact,
        "step_size": h,
        "error": variance(h) - 1,
        "limit": largest_stable(variance, h),
        "leading": leading_error(term, target, h, float(law.mean[0]), 1 / float(law.precision[0, 0])),
        **on_quartic(subject, term),
        **errors_on_spectrum(subject),
    }
    if other is not None:
        limit, at = reference(other, where)
        line |= {"reference": other, "limit_ratio": line["limit"] / limit, "at": at, "error_there": variance(at) - 1}
    return {key: None if isinstance(v, float) and not np.isfinite(v) else v for key, v in line.items()}


def run(path: Path, names: Sequence[str]) -> None:
    """Measure what the file lacks and append it."""
    complete(path, {name: name for name in names}, lambda line: line["sampler"], decide, "sampler")


def percent(value: float | None) -> str:
    """A relative error; None, and what is far beyond the variance of the target, is unstable."""
    if value is None or abs(value) > LARGEST:
        return "unstable"
    return "0%" if abs(value) < ROUNDOFF else f"{100 * value:.2g}%"


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The Markdown page of a file of results."""
    measured = [line for line in lines if "reason" not in line]
    number = lambda value: "none" if value is None else f"{value:.3g}"
    spectrum = lambda line, name: percent(line[name]) if name in line else "–"
    quartic = lambda line, name: "–" if line.get(name) is None else percent(line[name])
    rows = [
        [
            line["sampler"],
            line["target"],
            _way(line),
            number(line["step_size"]),
            percent(line["error"]),
            "–" if line["leading"] is None else percent(line["leading"]),
            quartic(line, "quartic_error") + (", runs" if line.get("quartic_exact") is False else ""),
            quartic(line, "quartic_leading"),
            spectrum(line, "spectrum_error"),
            "–" if line.get("spectrum_reference_error") is None else percent(line["spectrum_reference_error"]),
            number(line["limit"]),
            line.get("reference", "–"),
            number(line["limit_ratio"]) if "reference" in line else "–",
            percent(line["error_there"]) if "reference" in line else "–",
        ]
        for line in measured
    ]
    title = (
        *("sampler", "target", "variance", "default step h", "error at h", "its leading term"),
        *("error on a quartic line", "its leading term there"),
        *("largest error, curvatures 1 to 100", "of the reference", "largest stable step", "reference"),
        *("its limit / the reference's", "error where the reference errs by 1%"),
    )
    return render(
        "usability.md.j2",
        lines=lines,
        table=markdown(title, rows),
        left=[(line["sampler"], line["reason"]) for line in lines if "reason" in line],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.usability",
        description="Largest stable step and bias of every sampler.",
    )
    parser.add_argument("--sampler", action="append", default=[], metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    require_lines(parser, given.out)
    try:
        names = [find_row(name).name for name in given.sampler]
    except BadInput as error:
        parser.error(str(error))
    jax.config.update("jax_enable_x64", True)
    run(given.out, names or [row.name for row in (*SAMPLERS, *ADAPTERS)])
    return publish(page(read(given.out)), given.out)


if __name__ == "__main__":
    raise SystemExit(main())
