"""Usability of the samplers, beside their laws: largest stable step and bias, against the reference of the dynamics.

    python -m sgmcmc_verification.reports.pages.usability [--sampler NAME ...] [--out FILE.jsonl]

On a Gaussian, at the default options: the largest step size at which the variance of the position stays bounded; the
relative error of that variance at the default step size, beside its leading term as a proof reads it from the program;
the largest error of a variance where curvatures range from 1 to 100, at the default step size of the largest, beside
the reference's; and the error at the step size where the reference of the same dynamics errs by 1%. The variance is the
mean over the whitened coordinates, exact where the step is affine (a Lyapunov equation), else the average of
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
from sgmcmc_verification.checks.exact_laws.lyapunov import position_law
from sgmcmc_verification.checks.proof.leading_bias import leading_term
from sgmcmc_verification.checks.tiers.law.gaussian import whitened_bias
from sgmcmc_verification.checks.tiers.law.usual_step import REFERENCES as WITH_CLOSED_FORMS
from sgmcmc_verification.checks.tiers.law.usual_step import at_usual_step
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.reports.pages.out_file import complete, publish, require_lines
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.jsonl import ROOT, read
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.adapters.common import MissingLibrary
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
REFERENCES = {**WITH_CLOSED_FORMS, 3: "sgnht-splitting"}
"""Variables to a coordinate, rounded up -> the reference sampler; the third one is a thermostat."""
ERROR = 0.01
"""Relative error of the variance at which the reference is compared with."""
LARGEST = 10.0
"""Variance, in units of the target's, above which a step size counts as unstable."""
CHAINS, HOST_CHAINS, TIME, MOST = 1 << 11, 96, 60.0, 6000
"""Independent runs where the variance is sampled (of a host, one by one), their length in units of the target's time,
and steps at most."""


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
    square = Functions(lambda x: ((x - law.mean) @ precision @ (x - law.mean))[None] / size, np.ones(1), ("y^2",))
    runs = Runs(subject, target, square)
    starts = runs.starts(7, HOST_CHAINS if runs.host else CHAINS)
    power = subject.row.step_power

    def sampled(h: float) -> float:
        steps = int(min(MOST, max(200, TIME / (h * target.curvature**power))))
        means, _ = runs.means(11, starts, h, steps, steps // 4)
        found = float(np.mean(means))
        return found if np.isfinite(found) else np.inf

    return sampled, False


def _way(line: dict[str, Any]) -> str:
    """Words for the way to the variance, with the standard error of an average over runs."""
    chains = HOST_CHAINS if line.get("host") else CHAINS
    return "exact" if line["exact"] else f"runs, {100 * np.sqrt(2 / (chains * 0.75 * TIME / 2)):.1f}%"


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


def leading_error(subject: Subject, target: Target, h: float) -> float | None:
    """Leading term of the relative error of the variance at step size h; None where it is not read from the program."""
    law = target.gaussian
    if law is None or target.size != 1:
        return None
    try:
        found = leading_term(subject)
        return found.of_variance(float(law.precision[0, 0])) * h ** float(found.order)
    except NotApplicable:
        return None


def errors_on_spectrum(subject: Subject) -> dict[str, Any]:
    """Largest errors of a variance, of a sampler and of its reference; nothing for steps that are not affine."""
    target = find_target(SPECTRUM)
    if not any_dimension(subject):
        return {}
    h, d = subject.step_size(target), target.size
    try:
        step = step_map(subject, target)
        entries, radius, _ = whitened_bias(step, h, step.sampler.claims.temperature)
    except (NotApplicable, Inconclusive, ValueError):
        return {}
    if not radius < 1:
        return {"spectrum_error": np.inf}
    found = at_usual_step(entries[d:].reshape(d, d), h, target, -(-step.size // d))
    return {"spectrum_error": found["error"], "spectrum_reference_error": found.get("reference_error")}


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
    except (NotApplicable, Inconclusive, BadInput, MissingLibrary) as reason:
        return line | {"reason": str(reason)}
    h, other = subject.step_size(target), REFERENCES.get(size)
    line |= {
        "target": where,
        "exact": exact,
        "host": on_host(subject.sampler(target)),
        "step_size": h,
        "error": variance(h) - 1,
        "limit": largest_stable(variance, h),
        "leading": leading_error(subject, target, h),
        **errors_on_spectrum(subject),
    }
    if other is not None:
        limit, at = reference(other, where)
        line |= {"reference": other, "limit_ratio": line["limit"] / limit, "at": at, "error_there": variance(at) - 1}
    return {key: None if isinstance(v, float) and not np.isfinite(v) else v for key, v in line.items()}


def run(path: Path, names: Sequence[str]) -> None:
    """Measure what the file lacks and append it."""
    complete(path, {name: name for name in names}, lambda line: line["sampler"], decide, "sampler")


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The Markdown page of a file of results."""
    measured = [line for line in lines if "reason" not in line]
    percent = lambda value: "unstable" if value is None else f"{100 * value:.2g}%"
    number = lambda value: "none" if value is None else f"{value:.3g}"
    spectrum = lambda line, name: percent(line[name]) if name in line else "–"
    rows = [
        [
            line["sampler"],
            line["target"],
            _way(line),
            number(line["step_size"]),
            percent(line["error"]),
            "–" if line["leading"] is None else percent(line["leading"]),
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
