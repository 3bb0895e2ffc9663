"""One JSON document for programs, which is the same to the byte when the same is run again.

So it has neither date nor seconds, which the lines of `--report` have, and its results come in the order of the plan,
whatever process they came from. Its JSON Schema is published with the documentation, made from `Document`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sgmcmc_verification.checks.core.conclusion import Conclusion
from sgmcmc_verification.checks.core.conclusion import Plan as Record
from sgmcmc_verification.checks.core.result import Result, plain
from sgmcmc_verification.checks.runner.plan import Plan
from sgmcmc_verification.checks.runner.record import record_of
from sgmcmc_verification.checks.runner.text import Outcome, conclusions


@dataclass(frozen=True)
class Document:
    """The plan of a run, what is concluded of each sampler, and the results that it is concluded from.

    Attributes:
        schema: of the results.
        command: that was run.
        commit: of the suite.
        versions: of Python, the suite and the array libraries.
        platform: operating system and processor.
        chains: fraction of the chains of what samples.
        law_only: major faults of conduct do not count.
        check_set: the year of the statements by which the samplers are judged.
        shard: `i/n` for one of several shards of a run; empty for the whole.
        plan: sampler -> what was to be decided; a run that was cut short has fewer results than its plan has cases.
        good: True if the command exits with 0.
        conclusions: one for each sampler.
        results: one for each statement, target and option value; `seconds` is null.
    """

    schema: int
    command: str
    commit: str
    versions: Mapping[str, str]
    platform: str
    chains: float
    law_only: bool
    check_set: str
    shard: str
    plan: Mapping[str, Record]
    good: bool
    conclusions: Sequence[Conclusion]
    results: Sequence[Result]


def document(plan: Plan, outcomes: Sequence[Outcome], command: str) -> Document:
    """The document of a run, or of as much of it as there is.

    Args:
        plan: of the run.
        outcomes: in any order.
        command: as the user gave it.
    """
    planned = {(case.subject.name, case.statement.name, case.target): i for i, case in enumerate(plan.cases)}
    place = lambda r: planned.get((r.sampler, r.statement, r.target), len(planned))  # what samples by itself is last
    ordered = sorted(outcomes, key=lambda o: (place(o.result), o.row, o.result.statement, str(o.result.target)))
    concluded = conclusions(plan, ordered)
    record: dict[str, Any] = {name: value for name, value in record_of(plan, command).items() if name != "date"}
    record["plan"] = plan.records
    return Document(
        **record,
        good=all(conclusion.good for conclusion in concluded),
        conclusions=concluded,
        results=[replace(o.result, seconds=None) for o in ordered],
    )


def to_json(found: Document) -> str:
    """The document as text; numbers that are not finite become null."""
    return json.dumps(plain(asdict(found)), allow_nan=False, indent=1) + "\n"
