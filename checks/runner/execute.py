"""Run one check safely: whatever the sampler under test does, a `Result` comes back."""

import dataclasses
import functools
import hashlib
import platform
import shlex
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, OutOfReach, Statement
from sgmcmc_verification.checks.core.conclusion import ABOUT_LAW
from sgmcmc_verification.checks.core.error_origin import RAISED, SUITE, one_line, place
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.lookup import is_optimiser, resolve, resolve_object
from sgmcmc_verification.checks.core.preflight import dtype_of, preflight
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.core.time_limit import OutOfTime
from sgmcmc_verification.checks.diagnosis import diagnose, explained, read, read_order
from sgmcmc_verification.checks.end_points.error_rates import current_fraction, fraction_of_chains
from sgmcmc_verification.checks.registry import CHECKS, check_of, find_statement
from sgmcmc_verification.samplers.estimators.host import Unintercepted
from sgmcmc_verification.samplers.interface.capabilities import IsolatedSampler, on_host
from sgmcmc_verification.targets.target import Target

PROVED = "proved for every smooth potential"
"""Begins the reason of a statement for which a proof stands; the name of the proof follows."""
RANK = {"not-applicable": 0, "pass": 1, "out-of-reach": 2, "inconclusive": 3, "error": 4, "fail": 5}
"""Verdicts of several statements: the largest stands for all."""


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


def versions_of(distributions: Iterable[str]) -> dict[str, str]:
    """Versions of Python, of the suite, and of the distributions that are installed."""
    found = {"python": platform.python_version(), "suite": suite_version()}
    return found | {name: version for name in distributions if (version := _installed(name))}


def versions(subject: Subject) -> dict[str, str]:
    """Versions of Python, the array libraries, the suite and the library under test."""
    reference = subject.reference or subject.row.name
    library = reference.split("/")[0] if ":" not in reference and "/" in reference else None
    library = None if subject.row.is_kernel else library
    if ":" in reference and not reference.rpartition(":")[0].endswith(".py"):
        path = reference.partition(":")[2] if is_optimiser(reference) else reference
        library = path.split(".")[0].split(":")[0]
    return versions_of(("jax", "jaxlib", "numpy", *([library] if library else [])))


def reproduction(
    subject: Subject, statement: Statement, target: str | None, seed: int, step_size: float | None = None
) -> str:
    """A shell line and Python lines that run this one check again."""
    reference, options = subject.reference or subject.row.name, {**subject.row.fixed, **subject.options}
    in_clone = (Path.cwd() / "checks").resolve() == SUITE / "checks"
    shell = ["pytest checks --sampler" if in_clone else "sgmcmc-verify", shlex.quote(reference)]
    shell += [f"--target {target}"] if target else []
    shell += [f"--tier {statement.tier}", f"--seed {seed}"]
    shell += [f"--step-size {step_size}"] if step_size is not None else []
    fraction = current_fraction()
    shell += [f"--chains {fraction}"] if fraction != 1 else []
    shell += [f'--option "{k}={v!r}"' for k, v in options.items()]
    shell += [f"-k {statement.name}"]
    arguments = [
        repr(reference) if subject.reference != "" else reference,
        repr(statement.name),
        repr(target),
        f"seed={seed}",
    ]
    arguments += [f"options={options!r}"] if options else []
    arguments += [f"step_size={step_size}"] if step_size is not None else []
    arguments += [f"chains={fraction}"] if fraction != 1 else []
    python = (
        f"from sgmcmc_verification.checks.execute import run_check\nprint(run_check({', '.join(arguments)}).to_json())"
    )
    return python if subject.reference == "" else " ".join(shell) + "\n" + python


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
    if finding.minor:
        result = dataclasses.replace(result, severity="minor")
    if finding.equation is not None:
        result = dataclasses.replace(result, equation=finding.equation)
    if test is None:
        return result
    return dataclasses.replace(result, standard_error=test.standard_error, p_value=test.p_value, alpha=test.alpha)


def execute(
    statement: Statement,
    subject: Subject,
    target: str | None,
    seed: int,
    step_size: float | None = None,
    proved_by: str = "",
) -> Result:
    """Run a statement and fill in what every result has: seconds, versions, dtype, backend, seed, reproduction.

    `NotApplicable`, `OutOfReach` and `Inconclusive` become those verdicts. Any other exception is the verdict `error`
    with one line that names the place in the code under test. Interrupts pass through.

    Args:
        statement: one of `STATEMENTS`.
        subject: a sampler at given options.
        target: name of the target, None for a result about no target.
        seed: seed of everything random in it.
        step_size: a step size that the caller forced, for the reproduction.
        proved_by: name of a statement whose proof stands for this one, which then does not run.
    """
    began = time.perf_counter()
    blank = _blank(statement, subject, target)
    backend = dtype = None
    found = versions(subject)
    try:
        if proved_by:
            raise NotApplicable(f"{PROVED}: {proved_by}")
        law = cached_target(target or subject.row.targets[0])
        if not subject.row.is_kernel:
            preflight(subject, law)
        sampler = subject.sampler(law)
        backend = "host" if on_host(sampler) else "jax"
        if isinstance(sampler, IsolatedSampler):
            found |= sampler.library_versions
        dtype = dtype_of(law)
        finding = statement(Case(subject, law), seed)
        result = recorded(blank, finding, law.name)
        result = dataclasses.replace(result, meets=[o.name for o in (*statement.meets(law), *finding.meets)])
        # what a premise says of the code is its own diagnosis
        of_law = result.decides in ABOUT_LAW and statement.tier != "contract"
        if result.verdict == "fail" and of_law:
            # what is read from the program wins over what is fitted
            exact = None if subject.row.is_kernel else read(subject, law.terms is not None)
            if exact is not None or "diagnosis" not in result.detail:
                result.detail.update(explained(exact or diagnose(subject, law) or read_order(subject)))
    except OutOfReach as reason:
        due = [o.name for o in statement.meets(cached_target(target or subject.row.targets[0]))]
        result = dataclasses.replace(blank("out-of-reach", str(reason)), detail={"would meet": due} if due else {})
    except NotApplicable as reason:
        result = blank("not-applicable", str(reason))
    except Inconclusive as reason:
        result = blank("inconclusive", str(reason))
    except Unintercepted as draw:
        result = blank("inconclusive", f"a draw that the generator cannot feed: {draw}")
    except BadInput as reason:
        result = blank("error", str(reason))
    except (*RAISED, OutOfTime) as error:
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
        reproduction=reproduction(subject, statement, target, seed, step_size),
    )


def _blank(statement: Statement, subject: Subject, target: str | None) -> Callable[..., Result]:
    """(verdict, reason) -> the result with all that is known of the statement."""
    check = check_of(statement.name)
    return functools.partial(
        Result,
        statement.name,
        statement.name if check is None else check.name,
        statement.tier,
        statement.equation,
        subject.name,
        target=target,
        options=dict(subject.options),
        decides=statement.decides,
        severity=statement.severity if statement.decides == "conduct" else None,
    )


def run_check(
    sampler: Any,
    check: str,
    target: str | None = None,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    step_size: float | None = None,
    chains: float = 1.0,
) -> Result:
    """One check from Python, in double precision as in `pytest checks`. Of several statements the worst result.

    Args:
        sampler: any value of `--sampler`; or an object, its class, or a function of a Target that returns one.
        check: name of a check, such as `gaussian_law`, or of one of its statements, such as `gaussian_limit`.
        target: name of a target; None for the first one of each statement.
        seed: None for the default seed of the sampler.
        options: options of the sampler.
        step_size: replaces the usual step size.
        chains: fraction of the chains of a check that samples.

    Raises:
        BadInput: for unknown names.
    """
    only = (target,) if target else ()
    with jax.enable_x64(True):
        if isinstance(sampler, str):
            subject = resolve(sampler, options, step_size, only)[0]
        else:
            subject = resolve_object(name_of(sampler), sampler, options, step_size, only)[0]
        return _worst(subject, statements_of(check), target, seed, step_size, chains)


def _worst(
    subject: Subject,
    statements: Iterable[Statement],
    target: str | None,
    seed: int | None,
    step_size: float | None,
    chains: float,
) -> Result:
    """The worst result of some statements about a subject. Raises BadInput if none has a target."""
    chosen = default_seed(subject.row.name) if seed is None else seed
    found = []
    for statement in statements:
        names = (target,) if target else statement.targets(subject)[:1]
        for name in names:
            with fraction_of_chains(chains):
                found.append(execute(statement, subject, name, chosen, step_size=step_size))
    if not found:
        named = ", ".join(statement.name for statement in statements)
        raise BadInput(f"{named}: no target of {subject.name} suits it; name one")
    return max(found, key=lambda result: RANK[result.verdict])


def name_of(value: Any) -> str:
    """Name of an object: its own if it is a class or a function, else that of its class."""
    return getattr(value, "__name__", type(value).__name__)


def statements_of(name: str) -> tuple[Statement, ...]:
    """The statements of a check, or the one of this name, a former one included. Raises BadInput."""
    check = next((c for c in CHECKS if c.name == name), None)
    return check.statements if check else (find_statement(name),)
