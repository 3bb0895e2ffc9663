"""Plan of `pytest checks`: the cases, in an order that keeps one subject's together, and what they have to show."""

import ast
import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import closest, find_target, workload_rows
from sgmcmc_verification.checks.core.check import UNCLAIMED, Check, Statement
from sgmcmc_verification.checks.core.conclusion import Plan as Record
from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.checks.core.preflight import preflight
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.checks.core.time_limit import BUDGET
from sgmcmc_verification.checks.registry import STATEMENTS, check_of, find_check
from sgmcmc_verification.checks.runner.check_sets import CheckSet, find_set, newest
from sgmcmc_verification.checks.runner.due import due as due_of
from sgmcmc_verification.checks.runner.execute import cached_target, default_seed
from sgmcmc_verification.checks.runner.expected_failures import ExpectedFailure, read, unmatched
from sgmcmc_verification.checks.runner.stability import refuse_unstable
from sgmcmc_verification.checks.runner.tags import left_out
from sgmcmc_verification.samplers.entry import DETERMINISTIC_TIERS, STATISTICAL_TIERS, TIERS, WORKLOAD
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.registry import SAMPLERS

GROUPS = {"deterministic": DETERMINISTIC_TIERS, "statistical": STATISTICAL_TIERS, "all": TIERS}


@dataclass(frozen=True, eq=False)
class PlannedStatement:
    """One statement of one subject on one target."""

    subject: Subject
    statement: Statement
    target: str
    seed: int


@dataclass(frozen=True, eq=False)
class PlannedCheck:
    """The statements of one check and tier about one subject on one target, which are one item of pytest."""

    check: Check
    cases: tuple[PlannedStatement, ...]

    @property
    def subject(self) -> Subject:
        """The sampler at given options."""
        return self.cases[0].subject

    @property
    def tier(self) -> str:
        """Of its statements."""
        return self.cases[0].statement.tier

    @property
    def id(self) -> str:
        """`sgld-weak_order-anharmonic`."""
        return "-".join([self.subject.name.replace("::", "."), self.check.name, self.cases[0].target])


@dataclass(frozen=True, eq=False)
class PlannedSampling:
    """Runs of a sampler, if the statements before have left its law open: the last item of a sampler.

    Attributes:
        subject: the sampler at its default options.
        tier: whose items come last.
        seed: of the runs.
    """

    subject: Subject
    tier: str
    seed: int
    cases: tuple[PlannedStatement, ...] = ()

    @property
    def id(self) -> str:
        """`sgld-sampling`."""
        return f"{self.subject.name.replace('::', '.')}-sampling"


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a run of the checks will do.

    Attributes:
        cases: in the order of execution.
        records: what is set out for each sampler, by the name of its row.
        claims: claims that a statement asks for and a sampler does not make, by the name of its row.
        tiers: the tiers that were selected and that one of the samplers can have.
        expected_failures: of any sampler.
        step_size: forced by the caller, or None.
        chains: fraction of the chains of the checks that sample.
        law_only: faults of conduct do not fail the run.
        timeout: seconds for one statement; None for no limit.
        budget: seconds of CPU for the runs of one sampler where its statements leave its law open; None for no end.
        numerics: statements for which a proof stands run as well.
        strangers: the default subjects that no registry knows, for the preflight.
        check_set: by which the samplers are judged.
        shard: `i/n` if it is one of several shards of a run; empty for the whole.
    """

    cases: tuple[PlannedStatement, ...]
    records: dict[str, Record]
    claims: dict[str, tuple[str, ...]]
    tiers: tuple[str, ...]
    expected_failures: tuple[ExpectedFailure, ...] = ()
    step_size: float | None = None
    chains: float = 1.0
    strangers: tuple[Subject, ...] = ()
    law_only: bool = False
    numerics: bool = False
    timeout: float | None = None
    budget: float | None = BUDGET
    check_set: CheckSet = field(default_factory=newest)
    shard: str = ""

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the samplers, in order, without options."""
        return tuple(dict.fromkeys(case.subject.row.name for case in self.cases))

    @property
    def estimate(self) -> float:
        """Seconds on one core, from the stored cost of each statement."""
        return sum(case.statement.cost for case in self.cases)

    @cached_property
    def checks(self) -> tuple[PlannedCheck | PlannedSampling, ...]:
        """The cases, those of one check, tier, subject and target together, and runs for what they leave open."""
        groups: dict[tuple[str, str, str, str], list[PlannedStatement]] = {}
        for case in self.cases:
            check = check_of(case.statement.name)
            assert check is not None  # every statement of the registry is part of a check
            key = (case.subject.name, case.statement.tier, case.target, check.name)
            groups.setdefault(key, []).append(case)
        found = [PlannedCheck(find_check(key[-1]), tuple(group)) for key, group in groups.items()]
        last = {each.subject.row.name: each for each in found}
        first = {each.subject.row.name: each for each in reversed(found)}
        whole = [name for name, record in self.records.items() if not record.part and record.due and name in last]
        runs = [PlannedSampling(first[n].subject, last[n].tier, first[n].cases[0].seed) for n in whole]
        order = {name: i for i, name in enumerate(self.records)}
        return tuple(sorted([*found, *runs], key=lambda each: order[each.subject.row.name]))

    def preflight(self) -> None:
        """Try the samplers that no registry knows on each of their targets, and a step size that was asked for.

        Raises:
            BadInput: with one line.
        """
        for subject in self.strangers:
            for position, name in enumerate(subject.row.targets):
                preflight(subject, cached_target(name), step=position == 0)
        if self.step_size is not None:
            for case in {case.subject.row.name: case for case in reversed(self.cases)}.values():
                refuse_unstable(case.subject)

    def of_tier(self, tier: str) -> tuple[PlannedCheck | PlannedSampling, ...]:
        """The checks of one tier."""
        return tuple(check for check in self.checks if check.tier == tier)


def parse_tiers(names: Iterable[str]) -> tuple[str, ...]:
    """Tiers in their fixed order; groups expanded; the deterministic ones by default. Raises BadInput."""
    chosen: set[str] = set()
    for name in names:
        if name in GROUPS:
            chosen.update(GROUPS[name])
        elif name in TIERS:
            chosen.add(name)
        else:
            raise BadInput(f"--tier {name}: no such tier; {closest(name, (*TIERS, *GROUPS))}")
    return tuple(t for t in TIERS if t in chosen) if chosen else DETERMINISTIC_TIERS


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """`["friction=2.0"]` -> `{"friction": 2.0}`. Raises BadInput."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip().isidentifier():
            raise BadInput(f"--option {pair}: must be NAME=VALUE, as in --option friction=2.0")
        try:
            options[name.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError) as error:
            raise BadInput(
                f"--option {pair}: the value must be a Python literal; write a text in quotes, "
                f"as in --option \"{name.strip()}='{text.strip()}'\""
            ) from error
    return options


def parse_number(flag: str, text: str | None, kind: type) -> Any:
    """A number of the command line, or None. Raises BadInput."""
    if text is None:
        return None
    try:
        value = kind(text)
    except ValueError as error:
        raise BadInput(f"{flag} {text}: must be {'an integer' if kind is int else 'a number'}") from error
    if kind is float and not math.isfinite(value):
        raise BadInput(f"{flag} {text}: must be finite")
    if kind is int and not 0 <= value < 2**31:
        raise BadInput(f"{flag} {text}: must lie between 0 and 2**31 - 1")
    return value


def make_plan(  # noqa: PLR0913 (each is an option of the command line)
    samplers: Iterable[str] = (),
    targets: Iterable[str] = (),
    tiers: Iterable[str] = (),
    seed: str | None = None,
    step_size: str | None = None,
    options: Iterable[str] = (),
    expected_failures: str | Path | None = None,
    chains: str | None = None,
    *,
    check_set: str | None = None,
) -> Plan:
    """The plan for the values of the command line.

    Raises:
        BadInput: for any mistake in them, before any work starts.
    """
    chosen, judged_by = parse_tiers(tiers), find_set(check_set)
    parsed = parse_options(options)
    names = tuple(dict.fromkeys(samplers)) or _all_rows(chosen)
    if parsed and len(names) != 1:
        raise BadInput("--option: needs exactly one --sampler, whose option it is")
    only = tuple(dict.fromkeys(targets))
    for name in only:
        find_target(name)
    number, h = parse_number("--seed", seed, int), parse_number("--step-size", step_size, float)
    fraction = parse_number("--chains", chains, float) or 1.0
    if chains is not None and not 0 < float(chains) <= 1:
        raise BadInput(f"--chains {chains}: must be above 0 and at most 1, a fraction of the usual number")
    entries = read(expected_failures) if expected_failures else ()
    groups = [resolve(name, parsed, h, only) for name in names]
    plan, everything = plan_of(groups, chosen, only, number, judged_by)
    if not plan.cases:
        raise BadInput(_nothing_runs(everything, only, names, chosen))
    refuse_unmatched(entries, everything, expected_failures)
    return dataclasses.replace(plan, expected_failures=entries, step_size=h, chains=fraction)


def refuse_unmatched(
    entries: Iterable[ExpectedFailure], everything: Iterable[PlannedStatement], file: str | Path | None
) -> None:
    """Refuse expected failures of samplers of a run that nothing in it could show.

    Args:
        entries: of a file.
        everything: that the samplers could run, in all tiers and check sets.
        file: for the message.

    Raises:
        BadInput: that names the entry.
    """
    cases = [(c.subject.name, c.subject.row.name, c.statement.name, c.target) for c in everything]
    for entry in unmatched(entries, cases):
        raise BadInput(
            f"--expected-failures {file}: the entry sampler={entry.sampler!r} statement={entry.statement!r} "
            f"target={entry.target!r} matches no statement; remove it"
        )


def plan_of(
    groups: Iterable[tuple[Subject, ...]],
    tiers: tuple[str, ...],
    only: tuple[str, ...] = (),
    seed: int | None = None,
    check_set: CheckSet | None = None,
) -> tuple[Plan, list[PlannedStatement]]:
    """The plan for subjects that were found already, and all statements that they could run in any tier and check set.

    Args:
        groups: the subjects of each sampler, the default ones first.
        tiers: that were chosen, in their order.
        only: targets that were chosen; () for all.
        seed: None for the default seed of each sampler.
        check_set: None for the newest.
    """
    judged_by = check_set or newest()
    cases: list[PlannedStatement] = []
    everything: list[PlannedStatement] = []
    strangers: list[Subject] = []
    records: dict[str, Record] = {}
    claims: dict[str, tuple[str, ...]] = {}
    for subjects in groups:
        strangers += subjects[:1] if subjects[0].row.foreign else []
        mine = [case for position, subject in enumerate(subjects) for case in _cases(subject, position == 0, seed)]
        everything += mine
        mine = [case for case in mine if judged_by.has(case.statement.name)]
        tagged = left_out(subjects[0].row.name, subjects[0].row.tags)
        out = dict.fromkeys(case.statement.name for case in mine if case.statement.name in tagged)
        mine = [case for case in mine if case.statement.name not in out]
        chosen = [c for c in mine if c.statement.tier in tiers and (not only or c.target in only)]
        cases += chosen
        usual = [c for c in mine if c.statement.tier in DETERMINISTIC_TIERS]
        part = _part(tiers, only, subjects[0].options, usual, chosen, subjects[0].row.left_out)
        record = _record(subjects[0], len(chosen), part)
        due = tuple(name for name in record.due if name in judged_by.obligations)
        records[subjects[0].row.name] = dataclasses.replace(
            record,
            due=due,
            left_out=tuple(f"{name} ({tagged[name]})" for name in out),
            place=subjects[0].row.place,
        )
        claims[subjects[0].row.name] = _unclaimed(subjects[0], tiers)
    kinds = {case.subject.row.is_kernel for case in cases}
    possible = tuple(tier for tier in tiers if (tier == WORKLOAD) in kinds)
    plan = Plan(tuple(cases), records, claims, possible, strangers=tuple(strangers), check_set=judged_by)
    return plan, everything


def _part(
    tiers: tuple[str, ...],
    only: tuple[str, ...],
    options: Mapping[str, Any],
    everything: list[PlannedStatement],
    chosen: list[PlannedStatement],
    left_out: tuple[str, ...],
) -> str:
    """The reason for which a run is a part of the deterministic statements only; empty if it is not."""
    flags = [f"--target {', '.join(only)}"] if only else []
    flags += [f"--option {', '.join(f'{k}={v!r}' for k, v in options.items())}"] if options else []
    missing = {c.statement.tier for c in everything} - set(tiers)
    flags += [f"--tier {', '.join(tiers)}"] if missing else []
    return "; ".join(flags) if len(chosen) < len(everything) or missing or options or left_out else ""


def _record(subject: Subject, cases: int, part: str) -> Record:
    """The plan for a sampler."""
    if subject.row.is_kernel or not subject.row.targets:
        return Record(cases, part=part, foreign=subject.row.foreign)
    claims = claims_of(subject)
    order = claims.invariant_order
    due = tuple(o.name for o in due_of(subject))
    notes = (*subject.row.notes, *(("branches of the code",) if ParticleLaw in claims else ()))
    return Record(
        cases, due, order, claims.temperature, notes, part, subject.row.foreign, subject.row.off, subject.row.reading
    )


def _unclaimed(subject: Subject, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """Claims that statements of some tiers ask for and a sampler does not make."""
    if subject.row.is_kernel or not subject.row.targets:
        return ()
    claims = claims_of(subject)
    lacking = [s.missing(claims) for s in STATEMENTS if s.tier in tiers]
    return tuple(dict.fromkeys(name for text in lacking if text for name in text.removeprefix(UNCLAIMED).split(", ")))


def _all_rows(tiers: tuple[str, ...]) -> tuple[str, ...]:
    """The reference samplers, and the kernels where their tier was chosen; the kernels alone if nothing else was."""
    samplers = () if tiers == (WORKLOAD,) else tuple(row.name for row in SAMPLERS)
    return (*samplers, *(row.name for row in workload_rows())) if WORKLOAD in tiers else samplers


def _nothing_runs(
    cases: list[PlannedStatement], only: tuple[str, ...], names: tuple[str, ...], tiers: tuple[str, ...]
) -> str:
    if only and any(c.statement.tier in tiers for c in cases):
        return f"--target {only[0]}: no selected check of {', '.join(names)} runs on it"
    return f"--sampler {names[0]}: no check of the tiers {', '.join(tiers)} applies"


def _cases(subject: Subject, default: bool, seed: int | None) -> list[PlannedStatement]:
    """Every case of one subject, tier by tier; statements that run once are left to the default options.

    A statement is left out if the sampler does not make a claim that it needs, if its tier does not apply to the row,
    and if it has no target. Within a tier all on one target come together, because they share compiled programs.
    """
    row = subject.row
    chosen = default_seed(row.name) if seed is None else seed
    cases = []
    for statement in STATEMENTS:
        if (statement.once and not default) or (statement.tier == WORKLOAD) != row.is_kernel:
            continue
        if statement.tier not in row.tiers or statement.tier in row.unsupported:
            continue
        cases += [PlannedStatement(subject, statement, name, chosen) for name in statement.applies_to(subject)]
    targets = list(dict.fromkeys(case.target for case in cases))
    return sorted(cases, key=lambda case: (TIERS.index(case.statement.tier), targets.index(case.target)))
