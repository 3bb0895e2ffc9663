"""Corpus of real bugs: verdicts on each before and after its correction, beside the tests that others use.

    python -m sgmcmc_verification.reports.pages.corpus [--only TEXT] [--limit SECONDS] [--out FILE.jsonl]

The bugs are in `tests/strangers/corpus`, described in `bugs.toml`. Both objects of a bug are put to all that
`pytest checks --sampler FILE:OBJECT` decides, and to the tests of `reports.statistics.rivals`. A line is appended as
soon as both are decided, a run that is started again goes on where it stopped. The page of the published file is a page
of the documentation; that of another file is written beside it.
"""

import argparse
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from sgmcmc_verification.checks.core.compilation import configure
from sgmcmc_verification.checks.core.importer import load_object
from sgmcmc_verification.reports.pages import strangers
from sgmcmc_verification.reports.pages.out_file import complete, require_lines
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.jsonl import ROOT, read
from sgmcmc_verification.reports.statistics.rivals import RIVALS
from sgmcmc_verification.reports.templates import render

PUBLISHED = ROOT / "reports" / "published" / "corpus.jsonl"
PAGE = ROOT / "docs" / "pages" / "corpus.md"
FOLDER = strangers.FOLDER / "corpus"
NAMED_BY: dict[str, tuple[str, ...]] = {
    "noise scale": ("noise", "covariance"),
    "noise mean": ("mean of the noise", "drift"),
    "noise law": ("noise", "draws of"),
    "noise missing": ("noise",),
    "data factor": ("noise", "data", "likelihood"),
    "prior": ("prior",),
    "preconditioner": ("noise", "preconditioner", "covariance"),
    "friction": ("friction", "noise"),
    "schedule": ("noise", "step size", "depends on time"),
    "stale value": ("stale", "rejected", "start of the step", "cached"),
    "stages": ("drift", "velocity", "momentum"),
    "momentum": ("momentum", "velocity", "kinetic"),
    "mass": ("mass", "force", "gradient", "drift"),
    "initial value": ("velocity", "momentum"),
    "acceptance": ("accept", "ratio"),
    "sign": ("sign", "factor -1", "accept", "ratio"),
    "Jacobian": ("Jacobian", "y / x", "densit"),
    "not a number": ("not a number", "NaN", "support"),
    "key reuse": ("key", "same draw"),
    "metric": ("metric", "natural gradient", "drift"),
    "dimension": ("dimension", "kinetic", "temperature"),
    "proposal": ("proposal", "symmetric"),
    "adaptation": ("adapt", "step size", "Gamma"),
}
"""Class of a bug -> words of which a diagnosis that names its cause has at least one. Written before any was run."""


@dataclass(frozen=True)
class Bug:
    """A bug of the corpus; the fields are explained at the head of `bugs.toml`."""

    id: str
    library: str
    link: str
    title: str
    kind: str
    effect: str
    file: str
    before: str
    after: str
    confirmed: bool
    acknowledged: bool
    reason: str = ""
    correction: str = ""
    variance: str = ""
    word: str = "fail"

    @property
    def objects(self) -> tuple[str, str]:
        """Both for `--sampler`, before and after the correction."""
        return f"{FOLDER / self.file}:{self.before}", f"{FOLDER / self.file}:{self.after}"


def bugs() -> list[Bug]:
    """All bugs, in the order of the file."""
    with (FOLDER / "bugs.toml").open("rb") as file:
        found = tomllib.load(file)["bug"]
    return [Bug(kind=entry.pop("class"), **entry) for entry in found]


def seen_by_rivals(reference: str, limit: int = 0) -> dict[str, dict[str, Any]]:
    """Rival -> what it says of an object; nothing where it does not run, or not in `limit` seconds."""
    found = {}
    for name, test in RIVALS.items():
        with jax.enable_x64(True):
            try:
                with strangers.within(limit):
                    found[name] = test(load_object(reference))._asdict()
            except strangers.OutOfTime:
                found[name] = {"sees": None, "why": f"not decided in {limit} s"}
            except Exception as error:  # of a sampler that another test does not know how to run
                found[name] = {"sees": None, "why": f"{type(error).__name__}: {error}"[:200]}
    return found


def decide(bug: Bug, revision: str, limit: int = 0) -> dict[str, Any]:
    """The line of a bug; each of its objects is left undecided after `limit` seconds, if there is a limit."""
    line: dict[str, Any] = {"id": bug.id, "commit": revision}
    for when, name, reference in zip(("before", "after"), (bug.before, bug.after), bug.objects, strict=True):
        found = strangers.decide(strangers.Entry("corpus", bug.file, name), revision, limit)
        kept = {key: found[key] for key in found if key not in ("kind", "file", "commit")}
        line[when] = kept | {"rivals": seen_by_rivals(reference, limit)}
    return line


def run(path: Path, only: str = "", limit: int = 0) -> None:
    """Decide the bugs that the file lacks and append them."""
    wanted: dict[Hashable, Bug] = {bug.id: bug for bug in bugs() if only in f"{bug.file}:{bug.id}"}
    complete(path, wanted, lambda line: line["id"], lambda bug, revision: decide(bug, revision, limit), "bug")


def names_cause(bug: Bug, line: Mapping[str, Any]) -> bool | None:
    """True if the diagnosis before the correction has a word of the bug's class; None if there is no diagnosis."""
    text = line["before"].get("diagnosis") or ""
    return any(word in text for word in NAMED_BY[bug.kind]) if text else None


def page(lines: Sequence[Mapping[str, Any]]) -> str:
    """The Markdown page of a file of results."""
    decided = {line["id"]: line for line in lines}
    kinds = list(NAMED_BY)
    everything = sorted(bugs(), key=lambda bug: kinds.index(bug.kind))
    tried = [(bug, decided[bug.id]) for bug in everything if bug.id in decided]
    return render(
        "corpus.md.j2",
        lines=lines,
        table=markdown(
            ("class", "bug", "effect", "before", "after", "cause named", *RIVALS),
            [_row(bug, decided.get(bug.id)) for bug in everything],
        ),
        bugs=everything,
        tried=len(tried),
        failing=sum(bug.word == "fail" for bug, _ in tried),
        right=sum(_is_right(bug, line) for bug, line in tried if bug.word == "fail"),
        others=[(bug.id, bug.word, _is_right(bug, line)) for bug, line in tried if bug.word != "fail"],
        seen={name: _count(tried, name) for name in RIVALS},
        wrong=[f"`{bug.id}`: {_what(bug, line)}" for bug, line in tried if not _is_right(bug, line)],
        diagnoses=[(bug.id, line["before"]["diagnosis"]) for bug, line in tried if line["before"].get("diagnosis")],
        unconfirmed=[(bug.id, bug.reason) for bug in everything if not bug.confirmed],
        open_ones=[bug.id for bug in everything if not bug.acknowledged],
    )


def _row(bug: Bug, line: Mapping[str, Any] | None) -> list[str]:
    name = f"{bug.library}, [{bug.id}]({bug.link}): {bug.title}"
    if line is None:
        return [bug.kind, name, bug.effect, *["not run"] * (3 + len(RIVALS))]
    named = {None: "–", True: "yes", False: "no"}[names_cause(bug, line)]
    rivals = [_said(line["before"]["rivals"][name], line["after"]["rivals"][name]) for name in RIVALS]
    return [bug.kind, name, bug.effect, line["before"]["word"], line["after"]["word"], named, *rivals]


def _said(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The word of a rival of a bug, and a false alarm after its correction."""
    word = {None: "no word", True: "sees it", False: "misses it"}[before["sees"]]
    return word + (", false alarm after" if after["sees"] else "")


def _is_right(bug: Bug, line: Mapping[str, Any]) -> bool:
    return line["before"]["word"] == bug.word and line["after"]["word"] == "pass"


def _what(bug: Bug, line: Mapping[str, Any]) -> str:
    """The words of a bug that is not told from its correction, with the reasons."""
    texts = [f"{when} {line[when]['word']}" for when in ("before", "after")]
    due = [f"`{bug.word}` is due before"] if line["before"]["word"] != bug.word else []
    why = line["after"].get("violated") or line["after"].get("open") or []
    reasons = [str(why[0])[:200]] if line["after"]["word"] != "pass" and why else []
    return "; ".join([*texts, *due, *reasons])


def _count(tried: Sequence[tuple[Bug, Mapping[str, Any]]], name: str) -> dict[str, int]:
    """Numbers of the bugs that a rival sees, misses and has no word on, and of the corrections that it rejects."""
    before = [line["before"]["rivals"][name]["sees"] for _, line in tried]
    after = [line["after"]["rivals"][name]["sees"] for _, line in tried]
    return {
        "sees": sum(sees is True for sees in before),
        "misses": sum(sees is False for sees in before),
        "no": sum(sees is None for sees in before),
        "alarms": sum(sees is True for sees in after),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.corpus",
        description="Verdicts on real bugs, before and after their corrections.",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="those with this in FILE:ID")
    parser.add_argument("--limit", type=int, default=0, metavar="SECONDS", help="for one object; default: none")
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    require_lines(parser, given.out)
    configure()
    run(given.out, given.only, given.limit)
    text = page(read(given.out))
    (PAGE if given.out == PUBLISHED else given.out.with_suffix(".md")).write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
