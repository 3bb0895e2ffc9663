"""All that `pytest checks --sampler` decides, from Python, for an object or a name."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.compilation import compiled_for_checks
from sgmcmc_verification.checks.core.conclusion import Judged
from sgmcmc_verification.checks.core.lookup import resolve, resolve_object
from sgmcmc_verification.checks.core.time_limit import BUDGET, time_limit
from sgmcmc_verification.checks.end_points.budget import Show
from sgmcmc_verification.checks.end_points.budget import budget as end_after
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.runner.check_sets import find_set
from sgmcmc_verification.checks.runner.execute import name_of
from sgmcmc_verification.checks.runner.expected_failures import ExpectedFailure, chosen, read
from sgmcmc_verification.checks.runner.fallback import sample
from sgmcmc_verification.checks.runner.plan import Plan, PlannedStatement, parse_tiers, plan_of, refuse_unmatched
from sgmcmc_verification.checks.runner.proved import decide
from sgmcmc_verification.checks.runner.report import Report
from sgmcmc_verification.checks.runner.text import Outcome
from sgmcmc_verification.samplers.interface.claims import Claims


def check_sampler(  # noqa: PLR0913 (each is an option of the command line)
    sampler: Any,
    targets: Iterable[str] | None = None,
    tiers: Iterable[str] = (),
    claims: Claims | None = None,
    *,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    step_size: float | None = None,
    seed: int | None = None,
    chains: float = 1.0,
    expected_failures: Mapping[str, str] | str | Path | None = None,
    law_only: bool = False,
    numerics: bool = False,
    check_set: str | None = None,
    budget: float | None = BUDGET,
) -> Report:
    """Verify a sampler; double precision is on while it runs, and as it was before afterwards.

    Args:
        sampler: an object with `step(key, state, step_size, estimator)`, its class, a function of a Target that returns
            one; or a text as `--sampler` takes it.
        targets: names of targets; None for those that suit the spaces it claims. Naming some makes it a part of a run.
        tiers: as `--tier` takes them; () for the deterministic ones.
        claims: what it is held to; None for its own claims, else the target up to O(h).
        name: under which it is reported; None for the name of the class or function.
        options: of the sampler; None for its defaults and variations of them.
        step_size: the usual one on a target of unit curvature, in time of the differential equation.
        seed: of everything random; None for a seed that the name decides.
        chains: fraction of the chains of the checks that sample, above 0 and at most 1.
        expected_failures: statement -> reason why it is expected to fail, or a file of entries; None for the file
            `expected_failures.toml` of the repository of the current folder, "off" for none. A failure that is expected
            does not count, one that passes does.
        law_only: faults of conduct do not count.
        numerics: run statements for which a proof stands as well.
        check_set: the year of the statements by which it is judged; None for the newest.
        budget: seconds of CPU for runs of it where statements leave its law open; None for no end.

    Raises:
        BadInput: for unknown names, and for an object that is no sampler or cannot take a step.
    """
    if budget is not None and not budget > 0:
        raise BadInput(f"budget {budget}: must be positive")
    command = f"checks.check_sampler({sampler if isinstance(sampler, str) else (name or name_of(sampler))})"
    with compiled_for_checks():
        plan = plan_for(sampler, targets, tiers, claims, name, options, step_size, seed, expected_failures, check_set)
        options = {"chains": chains, "law_only": law_only, "numerics": numerics, "budget": budget}
        plan = dataclasses.replace(plan, step_size=step_size, **options)
        plan.preflight()
        outcomes = [decided(plan, case) for case in plan.cases]
        outcomes += sampled(plan, plan.cases[0].subject, [o.judged for o in outcomes], plan.cases[0].seed)
    return Report(plan, outcomes, command)


def plan_for(  # noqa: PLR0913 (those of `check_sampler`)
    sampler: Any,
    targets: Iterable[str] | None = None,
    tiers: Iterable[str] = (),
    claims: Claims | None = None,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    step_size: float | None = None,
    seed: int | None = None,
    expected_failures: Mapping[str, str] | str | Path | None = None,
    check_set: str | None = None,
) -> Plan:
    """The plan for one sampler; the arguments are those of `check_sampler`. Raises BadInput."""
    only, selected = tuple(dict.fromkeys(targets or ())), parse_tiers(tiers)
    for each in only:
        find_target(each)
    subjects: tuple[Subject, ...]
    if isinstance(sampler, str):
        if claims is not None:
            raise BadInput(f"claims: only for an object; {sampler} is a name")
        subjects = resolve(sampler, options, step_size, only)
    else:
        subjects = resolve_object(name or name_of(sampler), sampler, options, step_size, only, claims)
    plan, everything = plan_of([subjects], selected, only, seed, find_set(check_set))
    if not plan.cases:
        raise BadInput(f"{subjects[0].row.name}: no check of the tiers {', '.join(selected)} applies")
    return dataclasses.replace(plan, expected_failures=_expected(expected_failures, everything))


def _expected(
    given: Mapping[str, str] | str | Path | None, everything: Sequence[PlannedStatement]
) -> tuple[ExpectedFailure, ...]:
    """The entries of a mapping or a file. Raises BadInput for one that nothing could show."""
    if isinstance(given, Mapping):
        known = {case.statement.name for case in everything}
        for each, reason in given.items():
            if each not in known:
                name = everything[0].subject.row.name
                raise BadInput(f"expected_failures: no statement {each!r} is about {name}; remove it")
            if not isinstance(reason, str) or not reason.strip():
                raise BadInput(f"expected_failures: {each!r} needs a reason, a text")
        return tuple(ExpectedFailure("*", each, reason, "expected_failures") for each, reason in given.items())
    file = chosen(given, Path.cwd())
    entries = read(file) if file else ()
    refuse_unmatched(entries, everything, file)
    return entries


def decided(plan: Plan, case: PlannedStatement) -> Outcome:
    """The outcome of one statement of a plan."""
    with fraction_of_chains(plan.chains), time_limit(plan.timeout):
        result = decide(case.statement, case.subject, case.target, case.seed, plan.step_size, plan.numerics)
    return outcome(plan, case.subject.row.name, result)


def sampled(
    plan: Plan, subject: Subject, judged: Sequence[Judged], seed: int, show: Show | None = None
) -> list[Outcome]:
    """The outcomes of runs for what the statements of a sampler leave open.

    Args:
        plan: of the run.
        subject: the sampler at its default options.
        judged: the results of its statements.
        seed: of the runs.
        show: is called with a line that says how far they are.
    """
    row = subject.row.name
    with fraction_of_chains(plan.chains), time_limit(plan.timeout), end_after(plan.budget, show):
        return [outcome(plan, row, result) for result in sample(subject, judged, plan.records[row], seed)]


def outcome(plan: Plan, row: str, result: Any) -> Outcome:
    """A result of a row with the known failure of the plan that it matches."""
    known = [d for d in plan.expected_failures if d.matches(result.sampler, row, result.statement, result.target)]
    return Outcome(row, result, known[0] if known else None)
