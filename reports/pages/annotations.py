"""Annotations of a run: what is wrong, at the line of the code that a continuous integration shows it at.

A statement in error points to the line that raised, everything else that is not good to the step of the sampler.
Forms: the workflow commands of GitHub Actions (docs.github.com, "Workflow commands"), and a report of GitLab's Code
Quality (docs.gitlab.com, "Implement a custom tool": description, check_name, fingerprint, severity, location).
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from sgmcmc_verification.checks.core.conclusion import WORDS, Conclusion
from sgmcmc_verification.checks.core.error_origin import places_in
from sgmcmc_verification.reports.records.results import Run

Level = Literal["error", "warning"]
SEVERITIES: dict[Level, str] = {"error": "critical", "warning": "minor"}
"""Levels of GitHub -> severities of GitLab."""
NOWHERE = ("README.md", 1)
"""File and line of what belongs to no line: a report of Code Quality needs one."""


class Annotation(NamedTuple):
    """A message at a line; `place` is None where no line is known."""

    level: Level
    title: str
    message: str
    place: tuple[str, int] | None


def in_repository(file: str) -> str:
    """The path in the repository of a file that was imported as it is installed: below `src` if it is there alone."""
    beside = Path("src") / file
    return beside.as_posix() if not Path(file).is_file() and beside.is_file() else file


def _at(text: str) -> tuple[str, int] | None:
    found = places_in(text)
    return (in_repository(found[-1][0]), found[-1][1]) if found else None


def of_run(run: Run, conclusions: Sequence[Conclusion]) -> list[Annotation]:
    """One for each sampler that is not good or known to be wrong, and one for each line at which it raised."""
    found: dict[Annotation, None] = {}
    for conclusion in conclusions:
        if conclusion.good and conclusion.word != "known":
            continue
        plan = run.plan_of(conclusion.sampler)
        step = _at(plan.place) if plan else None
        raised = [r.reason for r in run.by_row[conclusion.sampler] if r.verdict == "error" and places_in(r.reason)]
        level: Level = "warning" if conclusion.good else "error"
        title = f"{conclusion.sampler}: {WORDS[conclusion.word]}"
        found |= dict.fromkeys(Annotation("error", title, reason, _at(reason)) for reason in raised)
        if conclusion.word != "error" or not raised:
            found[Annotation(level, title, _reason(conclusion), step)] = None
    return list(found)


def _reason(conclusion: Conclusion) -> str:
    """The diagnosis, or what is violated, open or at fault."""
    violated = [f"{name}: {equation}" for name, equation in conclusion.violated]
    faults = [f"{fault.statement}: {fault.reason}" for fault in conclusion.faults]
    texts = [conclusion.diagnosis] if conclusion.diagnosis else violated or list(conclusion.open) or faults
    return "; ".join(texts[:3] or conclusion.known)


def of_refusal(lines: Iterable[str]) -> list[Annotation]:
    """Of a run that did not start: the lines of its standard error that begin with `ERROR:`."""
    texts = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return [Annotation("error", "the checks could not start", text, _at(text)) for text in texts]


def _escaped(text: str, of_property: bool = False) -> str:
    """Text in which nothing is a command of the runner."""
    pairs = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), *(((":", "%3A"), (",", "%2C")) if of_property else ()))
    for character, code in pairs:
        text = text.replace(character, code)
    return text


def github(annotations: Iterable[Annotation]) -> list[str]:
    """Workflow commands, `::error file=src/x.py,line=12,title=...::message`."""
    lines = []
    for level, title, message, place in annotations:
        where = f"file={_escaped(place[0], True)},line={place[1]}," if place else ""
        lines.append(f"::{level} {where}title={_escaped(title, True)}::{_escaped(message)}")
    return lines


def gitlab(annotations: Iterable[Annotation]) -> str:
    """A report of Code Quality."""
    found = []
    for level, title, message, place in annotations:
        file, line = place or NOWHERE
        text = f"{title}: {message}"
        found.append(
            {
                "description": text,
                "check_name": "sgmcmc-verification",
                "fingerprint": hashlib.sha256(f"{file}:{line}:{text}".encode()).hexdigest(),
                "severity": SEVERITIES[level],
                "location": {"path": file, "lines": {"begin": line}},
            }
        )
    return json.dumps(found, indent=1) + "\n"
