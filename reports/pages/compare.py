"""What changed between two files of results, and whether it matters.

    python -m reports compare OLD.jsonl NEW.jsonl

Prints Markdown, for a pull request or a terminal. The exit code is 1 if something became worse: a check that passed or
did not apply fails, errs or does not decide any more, or is not there any more.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from checks.core.result import Result
from reports.records.results import Key, by_key, load

RANK = {"pass": 0, "not-applicable": 0, "inconclusive": 1, "error": 2, "fail": 3}
"""The larger the worse."""


class Change(NamedTuple):
    """Results of one key in the two files; None where one has none.

    Attributes:
        kind: `worse`, `better`, `lost`, `new`, `moved` (the effect, by more than the two runs can hide) or `same`.
        note: what was found, in a few words.
    """

    key: Key
    old: Result | None
    new: Result | None
    kind: str
    note: str


def worst(results: Iterable[Result]) -> Result:
    """The worst of several seeds; of equals the one with the largest effect."""
    return max(results, key=lambda r: (RANK[r.verdict], abs(r.effect or 0.0)))


def resolution(result: Result) -> float:
    """How far an effect may be off: its standard error times 6, or the error bound of a check without noise."""
    if result.standard_error is not None:
        return 6 * result.standard_error
    return result.detectable or 0.0


def judge(old: Result, new: Result) -> tuple[str, str]:
    """(kind, note) of two results of one key."""
    if RANK[old.verdict] != RANK[new.verdict]:
        kind = "worse" if RANK[new.verdict] > RANK[old.verdict] else "better"
        return kind, f"{old.verdict} -> {new.verdict}: {new.reason if kind == 'worse' else old.reason}"
    if old.effect is None or new.effect is None:
        return "same", ""
    shift, hidden = abs(new.effect - old.effect), resolution(old) + resolution(new)
    if shift > hidden:
        unit = f" {new.unit}" if new.unit else ""
        return "moved", f"effect {old.effect:.3g} -> {new.effect:.3g}{unit}, allowance {new.allowance or 0.0:.3g}"
    return "same", ""


def changes(old: Sequence[Result], new: Sequence[Result]) -> list[Change]:
    """Every key of the two files, those that got worse first.

    Only keys of samplers that both files have can be lost: a run of fewer samplers loses nothing.
    """
    before, after = by_key(old), by_key(new)
    samplers = {key[0] for key in after}
    found = []
    for key in dict.fromkeys((*before, *after)):
        a, b = (worst(group[key]) if key in group else None for group in (before, after))
        if a is not None and b is not None:
            found.append(Change(key, a, b, *judge(a, b)))
        elif a is not None and key[0] in samplers:
            found.append(Change(key, a, None, "lost", f"was {a.verdict}, is not there"))
        elif b is not None:
            found.append(Change(key, None, b, "new", b.verdict))
    order = ("worse", "lost", "moved", "better", "new", "same")
    return sorted(found, key=lambda change: order.index(change.kind))


def name(key: Key) -> str:
    """`sghmc[friction=2.0] end_point_ks on gaussian`."""
    sampler, check, target, options, factor = key
    chosen = "[" + ", ".join(f"{k}={v}" for k, v in options) + "]" if options else ""
    step = f" at {factor:g} of the step size" if factor not in (None, 1.0) else ""
    return f"{sampler}{chosen} {check}" + (f" on {target}" if target else "") + step


HEADINGS = {
    "worse": "Worse",
    "lost": "Not there any more",
    "moved": "Effects that moved by more than both runs can hide; the verdict is the same",
    "better": "Better",
    "new": "New",
}


def report(found: Sequence[Change]) -> str:
    """Markdown: a line of counts, then what changed; new keys are only counted if there are many."""
    counts = {kind: sum(c.kind == kind for c in found) for kind in (*HEADINGS, "same")}
    verdict = "**Nothing became worse.**" if not worsened(found) else "**Something became worse.**"
    lines = [verdict + " " + ", ".join(f"{n} {kind}" for kind, n in counts.items() if n) + ".", ""]
    for kind, heading in HEADINGS.items():
        mine = [c for c in found if c.kind == kind]
        if not mine:
            continue
        lines += [f"### {heading}", ""]
        if kind == "new" and len(mine) > 20:
            lines += [f"{len(mine)} results of {len({c.key[0] for c in mine})} samplers.", ""]
            continue
        lines += ["| what | found |", "|---|---|"]
        lines += [f"| {name(c.key)} | {c.note.replace('|', chr(92) + '|')} |" for c in mine]
        lines.append("")
    return "\n".join(lines)


def worsened(found: Sequence[Change]) -> bool:
    """True if the exit code has to say so."""
    return any(c.kind in ("worse", "lost") for c in found)


def compare(old: Path, new: Path) -> tuple[str, bool]:
    """(Markdown, whether something became worse) of two files. Raises ResultsError."""
    found = changes(load(old), load(new))
    return report(found), worsened(found)
