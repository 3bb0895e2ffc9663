"""Run one check safely: whatever the sampler under test does, a `Result` comes back."""

import dataclasses
import functools
import hashlib
import platform
import time
import tomllib
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from checks.core.candidate import Subject
from checks.core.check import Case, Check, Inconclusive, NotApplicable
from checks.core.error_origin import SUITE, one_line, place
from checks.core.finding import Finding
from checks.core.lookup import BadInput, find_target, resolve
from checks.core.preflight import dtype_of, preflight
from checks.core.result import Result
from checks.end_points.error_rates import current_fraction, fraction_of_chains
from samplers.entry import WORKLOAD
from samplers.estimators.host import Unintercepted
from samplers.interface.capabilities import IsolatedSampler, on_host
from targets.target import Target


@functools.cache
def suite_version() -> str:
    """Version of the suite: of the checkout if this is one, else of the installed distribution."""
    project = SUITE / "pyproject.toml"
    if project.is_file():
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
    return metadata.version("sgmcmc-verification")


def default_seed(sampler: str) -> int:
    """The seed of a sampler that nobody chose: a hash of the version of the suite and the sampler's name."""
    digest = hashlib.sha256(f"{suite_version()}:{sampler}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


@functools.lru_cache(maxsize=256)
def cached_target(name: str) -> Target:
    """The same object for the same name, so that what a check compiles for a target is found again."""
    return find_target(name)


@functools.cache
def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def versions(subject: Subject) -> dict[str, str]:
    """Versions of Python, the array libraries, the suite and the library under test."""
    found = {"python": platform.python_version(), "suite": suite_version()}
    reference = subject.reference or subject.row.name
    library = reference.split("/")[0] if ":" not in reference and "/" in reference else None
    library = None if WORKLOAD in subject.row.tiers else library
    if ":" in reference and not reference.rpartition(":")[0].endswith(".py"):
        library = reference.split(".")[0].split(":")[0]
    for name in ("jax", "jaxlib", "numpy", library):
        version = _installed(name) if name else None
        if name and version:
            found[name] = version
    return found


def reproduction(subject: Subject, check: Check, target: str | None, seed: int, step_size: float | None = None) -> str:
    """A shell line and Python lines that run this one check again."""
    reference = subject.reference or subject.row.name
    shell = ["pytest checks", f"--sampler {reference}"]
    shell += [f"--target {target}"] if target else []
    shell += [f"--tier {check.tier}", f"--seed {seed}"]
    shell += [f"--step-size {step_size}"] if step_size is not None else []
    fraction = current_fraction()
    shell += [f"--chains {fraction}"] if fraction != 1 else []
    shell += [f'--option "{k}={v!r}"' for k, v in subject.options.items()]
    shell += [f"-k {check.name}"]
    arguments = [repr(reference), repr(check.name), repr(target), f"seed={seed}"]
    arguments += [f"options={dict(subject.options)!r}"] if subject.options else []
    arguments += [f"step_size={step_size}"] if step_size is not None else []
    arguments += [f"chains={fraction}"] if fraction != 1 else []
    python = f"from checks.execute import run_check\nprint(run_check({', '.join(arguments)}).to_json())"
    return " ".join(shell) + "\n" + python


def recorded(blank: Callable[..., Result], finding: Finding, target: str) -> Result:
    """The record of a finding: `blank(verdict, reason)` with its numbers."""
    test = finding.significance
    result = dataclasses.replace(
        blank(finding.verdict, finding.explanation),
        target=target,
        step_size=finding.step_size,
        statistic=finding.statistic,
        effect=finding.effect,
        unit=finding.unit,
        allowance=finding.tolerance.value,
        allowance_source=finding.tolerance.source,
        power=1.0 if test is None else test.power,
        detectable=finding.minimum_detectable_effect,
        n=finding.samples,
        gradients=finding.gradients,
        dtype=finding.dtype,
        detail=dict(finding.measurements),
    )
    if finding.equation is not None:
        result = dataclasses.replace(result, equation=finding.equation)
    if test is None:
        return result
    return dataclasses.replace(result, standard_error=test.standard_error, p_value=test.p_value, alpha=test.alpha)


def execute(
    check: Check,
    subject: Subject,
    target: str | None,
    seed: int,
    unsupported: str | None = None,
    step_size: float | None = None,
) -> Result:
    """Run a check and fill in what every result has: seconds, versions, dtype, backend, seed, options, reproduction.

    `NotApplicable` and `Inconclusive` become those verdicts. Any other exception is the verdict `error` with one line
    that names the place in the code under test. Interrupts pass through.

    Args:
        check: a row of `CHECKS`.
        subject: a sampler at given options.
        target: name of the target, None for a result about no target.
        seed: seed of everything random in the check.
        unsupported: if given, the check is not run: the verdict is `not-applicable` with this reason.
        step_size: a step size that the caller forced, for the reproduction.
    """
    began = time.perf_counter()
    blank = functools.partial(
        Result, check.name, check.tier, check.equation, subject.name, target=target, options=dict(subject.options)
    )
    backend = dtype = None
    found = versions(subject)
    if unsupported is not None:
        result = blank("not-applicable", unsupported)
    else:
        try:
            law = cached_target(target or subject.row.targets[0])
            if check.tier != WORKLOAD:
                preflight(subject, law)
            sampler = subject.sampler(law)
            backend = "host" if on_host(sampler) else "jax"
            if isinstance(sampler, IsolatedSampler):
                found |= sampler.library_versions
            dtype = dtype_of(law)
            result = recorded(blank, check(Case(subject, law), seed), law.name)
        except NotApplicable as reason:
            result = blank("not-applicable", str(reason))
        except Inconclusive as reason:
            result = blank("inconclusive", str(reason))
        except Unintercepted as draw:
            result = blank("inconclusive", f"a draw that the generator cannot feed: {draw}")
        except BadInput as reason:
            result = blank("error", str(reason))
        except Exception as error:
            result = blank("error", one_line(error) + place(error))
    return dataclasses.replace(
        result,
        target=target if result.target is None else result.target,
        options=dict(subject.options),
        seconds=round(time.perf_counter() - began, 3),
        backend=result.backend or backend,
        dtype=result.dtype or dtype,
        seed=seed,
        versions=found,
        reproduction=reproduction(subject, check, target, seed, step_size),
    )


def run_check(
    sampler: str,
    check: str,
    target: str | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    step_size: float | None = None,
    chains: float = 1.0,
) -> Result:
    """One check from Python; switches JAX to float64, as `pytest checks` does.

    Args:
        sampler: any value of `--sampler`.
        check: name of a check, such as `key_discipline`.
        target: name of a target; None for the first one of the check.
        seed: None for the default seed of the sampler.
        options: options of the sampler.
        step_size: replaces the usual step size.
        chains: fraction of the chains of a check that samples.

    Raises:
        BadInput: for unknown names.
    """
    import jax

    from checks.registry import find_check

    jax.config.update("jax_enable_x64", True)
    subject = resolve(sampler, options, step_size, (target,) if target else ())[0]
    row = find_check(check)
    name = target or row.targets(subject)[0]
    with fraction_of_chains(chains):
        return execute(
            row, subject, name, default_seed(subject.row.name) if seed is None else seed, step_size=step_size
        )
