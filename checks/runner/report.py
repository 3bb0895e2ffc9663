"""Report of a sampler: one conclusion, the results that it is drawn from, and their text."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sgmcmc_verification.checks.core.conclusion import Conclusion
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.runner.document import document, to_json
from sgmcmc_verification.checks.runner.plan import Plan
from sgmcmc_verification.checks.runner.record import record_of
from sgmcmc_verification.checks.runner.text import Outcome, conclusions, report


class LawNotShown(AssertionError):
    """Raised where the law of a sampler is violated or undecided; the message is the text of the report."""


@dataclass(frozen=True, eq=False)
class Report:
    """All that was found out about one sampler.

    Attributes:
        plan: what was to be decided.
        outcomes: the results, each with the known failure that it matches.
        command: by which it was made.
    """

    plan: Plan
    outcomes: Sequence[Outcome]
    command: str

    @property
    def sampler(self) -> str:
        """Name of the sampler."""
        return self.plan.rows[0]

    @property
    def results(self) -> tuple[Result, ...]:
        """One for each statement, target and option value."""
        return tuple(outcome.result for outcome in self.outcomes)

    @cached_property
    def conclusion(self) -> Conclusion:
        """The one conclusion from all results, as `pytest checks` draws it."""
        return conclusions(self.plan, self.outcomes)[0]

    @property
    def good(self) -> bool:
        """True if `pytest checks` would exit with 0."""
        return self.conclusion.good

    def raise_for_law(self) -> None:
        """Raise `LawNotShown` unless the law holds, whatever the conduct is. A part of a run shows no law."""
        if self.conclusion.law != "holds":
            raise LawNotShown(str(self))

    def write(self, path: str | Path) -> None:
        """Write a file of results as `pytest checks --report` does: the plan, then a line for each result."""
        first = json.dumps(record_of(self.plan, self.command), sort_keys=True)
        lines = [first, *(result.to_json() for result in self.results)]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def to_json(self) -> str:
        """The document that `pytest checks --json` writes: the same text whenever the same is run again."""
        return to_json(document(self.plan, self.outcomes, self.command))

    def __str__(self) -> str:
        """The text that `pytest checks` prints of the sampler: at most 12 lines if it is good, 40 if not."""
        return "\n".join(report(self.conclusion, self.plan, self.outcomes))

    def __repr__(self) -> str:
        return f"<Report {self.sampler}: {self.conclusion.word}>"

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.good else "#cf222e"
        first, *rest = (html.escape(line) for line in str(self).split("\n"))
        body = "\n".join([f'<b style="color:{colour}">{first}</b>', *rest])
        return f'<pre style="white-space:pre-wrap">{body}</pre>'
