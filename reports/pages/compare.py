"""Comparison of two files of results: verdicts that changed, and effects that moved.

    python -m reports compare OLD.jsonl NEW.jsonl

Prints Markdown, for a pull request or a terminal. The exit code is 1 if something became worse: a check that passed or
did not apply fails, errs or does not decide any more, or is not there any more.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from checks.core.result import Result
from reports.records.frames import markdown, results_frame
from reports.records.results import Key

RANK = {"pass": 0, "not-applicable": 0, "inconclusive": 1, "error": 2, "fail": 3}
"""The larger the worse."""
HEADINGS = {
    "worse": "Worse",
    "lost": "Not there any more",
    "moved": "Effects that moved by more than both runs can hide; the verdict is the same",
    "better": "Better",
    "new": "New",
}
KINDS = (*HEADINGS, "same")
"""Of changes: a key of `HEADINGS`, or `same`. An effect has moved if it did by more than the two runs can hide."""


def worst(results: Iterable[Result]) -> Result:
    """The worst of several results; of equals the one with the largest effect."""
    return max(results, key=lambda r: (RANK[r.verdict], abs(r.effect or 0.0)))


def worst_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """The worst result of each key over its seeds, in the order of the keys, with the `rank` of its verdict.

    `resolution` bounds the error of the effect: six standard errors, or the error bound of a check without noise.
    """
    ranked = results.assign(
        rank=results.verdict.map(RANK).astype(int),
        size=results.effect.abs().fillna(0.0),
        place=results.groupby("key", sort=False).ngroup(),
        resolution=(6 * results.standard_error).fillna(results.detectable).fillna(0.0),
    )
    return ranked.sort_values(["place", "rank", "size"], ascending=[True, False, False]).drop_duplicates("key")


def changes(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Join of two frames of results: every key with the `kind` of its change and a `note`, the worse ones first.

    Only keys of samplers that both files have can be lost: a run of fewer samplers loses nothing.
    """
    before, after = worst_seeds(old), worst_seeds(new)
    kept = before[before.key.isin(after.key) | before.row.isin(after.row)]
    both = kept.merge(after, on="key", how="left", suffixes=("_old", "_new"))
    added = after.loc[~after.key.isin(before.key)].rename(columns=lambda name: name if name == "key" else f"{name}_new")
    found = pd.concat([both, added], ignore_index=True)
    shift = (found.effect_new - found.effect_old).abs()
    moved = (shift > found.resolution_old + found.resolution_new).fillna(False).astype(bool)
    cases = {
        "new": found.verdict_old.isna(),
        "lost": found.verdict_new.isna(),
        "worse": found.rank_new > found.rank_old,
        "better": found.rank_new < found.rank_old,
        "moved": moved,
    }
    found["kind"] = np.select(list(cases.values()), list(cases), "same")
    found["note"] = [_note(change) for change in found.itertuples()]
    return found.sort_values("kind", key=lambda kind: kind.map(KINDS.index), kind="stable")


def _note(change) -> str:
    """Finding in a few words."""
    match change.kind:
        case "new":
            return change.verdict_new
        case "lost":
            return f"was {change.verdict_old}, is not there"
        case "worse" | "better":
            reason = change.reason_new if change.kind == "worse" else change.reason_old
            return f"{change.verdict_old} -> {change.verdict_new}: {reason}"
        case "moved":
            unit = f" {change.unit_new}" if change.unit_new else ""
            allowance = 0.0 if pd.isna(change.allowance_new) else change.allowance_new
            return f"effect {change.effect_old:.3g} -> {change.effect_new:.3g}{unit}, allowance {allowance:.3g}"
    return ""


def name(key: Key) -> str:
    """`sghmc[friction=2.0] end_point_ks on gaussian`."""
    sampler, check, target, options, factor = key
    chosen = "[" + ", ".join(f"{k}={v}" for k, v in options) + "]" if options else ""
    step = f" at {factor:g} of the step size" if factor not in (None, 1.0) else ""
    return f"{sampler}{chosen} {check}" + (f" on {target}" if target else "") + step


def report(found: pd.DataFrame) -> str:
    """Markdown: a line of counts, then what changed; new keys are only counted if there are many."""
    verdict = "**Something became worse.**" if worsened(found) else "**Nothing became worse.**"
    counts = found.kind.value_counts().reindex(KINDS, fill_value=0)
    lines = [f"{verdict} {', '.join(f'{n} {kind}' for kind, n in counts.items() if n)}.", ""]
    for kind, heading in HEADINGS.items():
        mine = found[found.kind == kind]
        if mine.empty:
            continue
        lines += [f"### {heading}", ""]
        if kind == "new" and len(mine) > 20:
            lines += [f"{len(mine)} results of {mine.row_new.nunique()} samplers.", ""]
            continue
        lines += [*markdown(("what", "found"), zip(mine.key.map(name), mine.note, strict=True)), ""]
    return "\n".join(lines)


def worsened(found: pd.DataFrame) -> bool:
    """True if the exit code has to say so."""
    return bool(found.kind.isin(("worse", "lost")).any())


def compare(old: Path, new: Path) -> tuple[str, bool]:
    """(Markdown, True if something became worse) of two files. Raises ResultsError."""
    found = changes(results_frame(old), results_frame(new))
    return report(found), worsened(found)
