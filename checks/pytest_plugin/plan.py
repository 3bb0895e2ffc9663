"""Plan of `pytest checks`: the cases, in an order that keeps one subject's together, with their estimated cost."""

import ast
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from checks.core.candidate import Subject
from checks.core.check import UNCLAIMED, Check
from checks.core.lookup import BadInput, adapter_rows, closest, find_target, resolve, workload_rows
from checks.core.selection import claims_of
from checks.pytest_plugin.execute import default_seed
from checks.pytest_plugin.known_failures import Deviation, read, unmatched
from checks.registry import CHECKS
from samplers.entry import DETERMINISTIC_TIERS, STATISTICAL_TIERS, TIERS, WORKLOAD
from samplers.interface.claims import DensityEstimate
from samplers.registry import SAMPLERS

GROUPS = {"deterministic": DETERMINISTIC_TIERS, "statistical": STATISTICAL_TIERS, "all": TIERS}
LAW_TIERS = {"deterministic": ("order", "law"), "statistical": STATISTICAL_TIERS}
"""A sampler passes only if a check of the law of each kind passed, as far as tiers of this kind were selected."""
NO_TARGET = "no target of this sampler suits the check"


@dataclass(frozen=True, eq=False)
class PlannedCheck:
    """One check of one subject on one target; `unsupported` is the reason why it is not run at all."""

    subject: Subject
    check: Check
    target: str | None
    seed: int
    unsupported: str | None = None

    @property
    def id(self) -> str:
        """`sgld-local_weak_order-anharmonic`."""
        return "-".join([self.subject.name.replace("::", "."), self.check.name, self.target or "any"])


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a run of the checks will do.

    Attributes:
        cases: in the order of execution.
        tiers: the tiers that were selected and that one of the samplers can have.
        deviations: known failures.
        step_size: forced by the caller, or None.
        chains: fraction of the chains of the checks that sample.
        strangers: the default subjects that no registry knows, for the preflight.
    """

    cases: tuple[PlannedCheck, ...]
    tiers: tuple[str, ...]
    deviations: tuple[Deviation, ...] = ()
    step_size: float | None = None
    chains: float = 1.0
    strangers: tuple[Subject, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the samplers, in order, without options."""
        return tuple(dict.fromkeys(case.subject.row.name for case in self.cases))

    @property
    def estimate(self) -> float:
        """Seconds on one core, from the stored cost of each check."""
        return sum(0.0 if c.unsupported else c.check.cost for c in self.cases)

    def smoothed(self, row: str) -> bool:
        """True for particles with an estimate of their own density: no noise, and a law in a limit only."""
        subject = next(case.subject for case in self.cases if case.subject.row.name == row)
        if not subject.row.targets:
            return False
        claims = subject.sampler(find_target(subject.row.targets[0])).claims
        return DensityEstimate in claims

    def of_tier(self, tier: str) -> tuple[PlannedCheck, ...]:
        """The cases of one tier."""
        return tuple(case for case in self.cases if case.check.tier == tier)


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


def make_plan(
    samplers: Iterable[str] = (),
    targets: Iterable[str] = (),
    tiers: Iterable[str] = (),
    seed: str | None = None,
    step_size: str | None = None,
    options: Iterable[str] = (),
    deviations_file: str | None = None,
    chains: str | None = None,
) -> Plan:
    """The plan for the values of the command line.

    Raises:
        BadInput: for any mistake in them, before any work starts.
    """
    chosen = parse_tiers(tiers)
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
    entries = read(deviations_file) if deviations_file else ()
    cases: list[PlannedCheck] = []
    everything: list[PlannedCheck] = []
    strangers: list[Subject] = []
    for name in names:
        subjects = resolve(name, parsed, h, only)
        strangers += subjects[:1] if ":" in name else []
        for position, subject in enumerate(subjects):
            for case in _cases(subject, position == 0, number):
                everything.append(case)
                if case.check.tier in chosen and (not only or case.target is None or case.target in only):
                    cases.append(case)
    if not any(c.unsupported is None for c in cases):
        raise BadInput(_nothing_runs(cases, only, names))
    known = (*(r.name for r in (*SAMPLERS, *workload_rows())), *(r.name for r in (adapter_rows() if entries else ())))
    lost = unmatched(entries, [(c.subject.name, c.subject.row.name, c.check.name, c.target) for c in everything], known)
    if lost:
        entry = lost[0]
        raise BadInput(
            f"--deviations {deviations_file}: the entry sampler={entry.sampler!r} check={entry.check!r} "
            f"target={entry.target!r} matches no check; remove it"
        )
    # an ordinary sampler has no cases in the tier of kernels, nor has a kernel others
    decide = tuple(t for t in chosen if any((t == WORKLOAD) == (WORKLOAD in c.subject.row.tiers) for c in cases))
    return Plan(tuple(cases), decide, entries, h, fraction, tuple(strangers), parsed)


def _all_rows(tiers: tuple[str, ...]) -> tuple[str, ...]:
    """The reference samplers, and the kernels where their tier was chosen; the kernels alone if nothing else was."""
    samplers = () if tiers == (WORKLOAD,) else tuple(row.name for row in SAMPLERS)
    return (*samplers, *(row.name for row in workload_rows())) if WORKLOAD in tiers else samplers


def _nothing_runs(cases: list[PlannedCheck], only: tuple[str, ...], names: tuple[str, ...]) -> str:
    refused = [c for c in cases if c.unsupported != NO_TARGET and not (c.unsupported or "").startswith(UNCLAIMED)]
    if refused:
        return f"--sampler {names[0]}: no selected tier applies ({refused[0].unsupported})"
    if only:
        return f"--target {only[0]}: no selected check of {', '.join(names)} runs on it"
    return f"--sampler {names[0]}: no selected check applies"


def _cases(subject: Subject, default: bool, seed: int | None) -> list[PlannedCheck]:
    """Every case of one subject, tier by tier; checks that run once are left to the default options.

    Within a tier all checks on one target come together, because they share compiled programs and end points.
    """
    row = subject.row
    chosen = default_seed(row.name) if seed is None else seed
    cases = []
    for check in CHECKS:
        if (check.once and not default) or (check.tier == WORKLOAD) != (WORKLOAD in row.tiers):
            continue
        if check.tier not in row.tiers or check.tier in row.unsupported:
            reason = row.unsupported.get(check.tier, f"the row of {row.name} does not list the tier {check.tier}")
            cases.append(PlannedCheck(subject, check, None, chosen, reason))
            continue
        names = check.targets(subject)
        if not names:
            lacking = None if check.tier == WORKLOAD or not row.targets else check.missing(claims_of(subject))
            cases.append(PlannedCheck(subject, check, None, chosen, lacking or NO_TARGET))
        cases += [PlannedCheck(subject, check, name, chosen) for name in names]
    targets = list(dict.fromkeys(case.target for case in cases))
    return sorted(cases, key=lambda case: (TIERS.index(case.check.tier), targets.index(case.target)))
