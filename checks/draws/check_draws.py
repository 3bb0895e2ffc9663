"""Judgement of draws that any program made, from a folder or from Python."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.result import SCHEMA, Result, plain
from sgmcmc_verification.checks.draws.answers import Draws, given_run, read_run
from sgmcmc_verification.checks.draws.judge import families, judge
from sgmcmc_verification.checks.draws.problems import FILE, Problem, Run, problem, read_problem

LEVEL = 1e-6
"""Probability of a violation that is none, over all problems of a call; approximate."""


@dataclass(frozen=True, eq=False)
class DrawsReport:
    """All that the draws of one problem show.

    Attributes:
        name: under which it is reported: the folder, or the problem.
        results: one for each statement.
        unanswered: runs of the problem without draws.
    """

    name: str
    results: Sequence[Result]
    unanswered: tuple[str, ...] = ()

    @property
    def word(self) -> Literal["pass", "fail", "inconclusive"]:
        """The verdict in one word."""
        verdicts = {result.verdict for result in self.results}
        return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"

    @property
    def good(self) -> bool:
        """True if `pytest checks --draws` would exit with 0."""
        return self.word == "pass"

    def to_json(self) -> str:
        """Verdict and results as one JSON document, the same text whenever the same is judged again."""
        return documents([self])

    def __str__(self) -> str:
        law = {"pass": "no violation found", "fail": "the law is violated", "inconclusive": "the law is undecided"}
        lines = [f"{self.word.upper()}  {self.name}  ({law[self.word]})"]
        for result in self.results:
            lines.append(f"  {result.verdict:13s}{result.statement}  [{result.detail['runs']}]")
            if result.verdict == "fail":
                lines.append(f"  {'equation':13s}{result.equation}")
            seen = "" if result.detectable is None else f"; would see {result.detectable:.2g} {result.unit}"
            lines.append(f"  {'':13s}{result.reason}{seen if result.verdict == 'pass' else ''}")
        if self.unanswered:
            lines.append(f"  {'not examined':13s}{', '.join(self.unanswered)}: no draws")
        return "\n".join(lines)


def documents(reports: Sequence[DrawsReport]) -> str:
    """Reports as one JSON document."""
    found = {
        "schema": SCHEMA,
        "good": all(report.good for report in reports),
        "conclusions": [{"sampler": r.name, "word": r.word, "not_examined": r.unanswered} for r in reports],
        "results": [dataclasses.asdict(result) for report in reports for result in report.results],
    }
    return json.dumps(plain(found), allow_nan=False, indent=1) + "\n"


def check_draws(
    name: str, draws: Mapping[str, Any], *, runs: Sequence[Run | tuple[str, float | None, float]] = ()
) -> DrawsReport:
    """Judge draws that are in memory.

    Args:
        name: of a problem: a target of the suite whose draws can be judged.
        draws: name of a run -> its draws: an array (chains, draws, d), a mapping with `x` and maybe the momenta `p` and
            the energy errors `work`, or an InferenceData of ArviZ with variables of these names.
        runs: (name, step size or None, temperature) of each run; () for those of the problem: `exact`, or `h1`, `h2`
            and `h4` at a step size, its half and its quarter, and the same after `hot_` at twice the temperature.

    Raises:
        BadInput: for an unknown problem or run, a wrong shape, values that are not finite, or step sizes that do not
            halve.
    """
    with jax.enable_x64(True):
        known = problem(name)
        asked = Problem(name, tuple(Run(*run) for run in runs)) if runs else known
        strange = sorted(set(draws) - {run.file for run in asked.runs})
        if strange:
            raise BadInput(f"draws: no run {strange[0]!r} of {name}; known: {', '.join(r.file for r in asked.runs)}")
        size = find_target(name).size
        return _report(name, asked, {run: given_run(run, value, size) for run, value in draws.items()}, LEVEL)


def check_draws_folder(folder: str | Path) -> list[DrawsReport]:
    """Judge the draws of a folder that is a problem, or holds problems: those that have draws.

    Nothing of the folder is executed, and of `problem.json` the name of the problem and the runs alone are used.

    Raises:
        BadInput: if there is no problem, no draws, or something that cannot be read.
    """
    folder = Path(folder)
    places = [folder] if (folder / FILE).is_file() else sorted(path.parent for path in folder.glob(f"*/{FILE}"))
    if not places:
        raise BadInput(
            f"--draws {folder}: there is no {FILE} in it or one folder below; write problems with --problems"
        )
    with jax.enable_x64(True):
        answered = []
        for place in places:
            asked = read_problem(place)
            size = find_target(asked.name).size
            found = {run.file: read_run(place, run.file, size) for run in asked.runs}
            given = {file: draws for file, draws in found.items() if draws is not None}
            if given:
                answered.append((place, asked, given))
        if not answered:
            first = read_problem(places[0]).runs[0].file
            raise BadInput(f"--draws {folder}: there are no draws in it, such as {places[0] / first}.csv")
        return [_report(str(place), asked, given, LEVEL / len(answered)) for place, asked, given in answered]


def _report(name: str, asked: Problem, given: Mapping[str, Draws], level: float) -> DrawsReport:
    target = find_target(asked.name)
    found = families([(run, given[run.file]) for run in asked.runs if run.file in given])
    if not found:
        raise BadInput(f"draws of {name}: there are none; give those of {asked.runs[0].file}")
    unanswered = tuple(run.file for run in asked.runs if run.file not in given)
    return DrawsReport(name, judge(name, target, found, level), unanswered)
