"""Comparison of two files of results: conclusions and verdicts that changed, and effects that moved.

    python -m sgmcmc_verification.reports compare OLD.jsonl NEW.jsonl [--part]

Prints Markdown, for a pull request or a terminal. The exit code is 1 if something became worse: the conclusion of a
sampler; a statement that passed or did not apply fails, errs or does not decide any more; one that said something is
not there any more, be it for want of its sampler. With --part nothing is lost by what NEW set out to leave out:
samplers that it does not name, tiers that it has nothing of, and statements of those that its plan has in part. What an
interrupted run did not reach is lost.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from sgmcmc_verification.checks.core.conclusion import Conclusion
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.reports.records.frames import frame, markdown
from sgmcmc_verification.reports.records.results import WORST_LAST, Key, Run, loaded

RANK = {"pass": 0, "not-applicable": 0, "out-of-reach": 1, "inconclusive": 2, "error": 3, "fail": 4}
"""Verdicts, the larger the worse."""
HEADINGS = {
    "worse": "Worse",
    "lost": "Not there any more",
    "moved": "Effects that moved by more than both runs can hide; the verdict is the same",
    "better": "Better",
    "new": "New",
}
KINDS = (*HEADINGS, "left out", "same")
"""Of changes: a key of `HEADINGS`, `left out` with its sampler, or `same`.

An effect has moved if it did by more than the two runs can hide.
"""


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


def changes(
    old: pd.DataFrame, new: pd.DataFrame, left_out: Collection[str] = (), tiers: Collection[str] = ()
) -> pd.DataFrame:
    """Join of two frames of results: every key with the `kind` of its change and a `note`, the worse ones first.

    What did not apply and is out of reach now, or is not there, has lost nothing: files of schema 1 do not tell the two
    apart, and have a line for each claim that is not made.

    Args:
        old, new: the two.
        left_out: samplers whose results `new` need not have: they are `left out` instead of `lost`, as is what did not
            apply before.
        tiers: of which `new` need not have anything, likewise.
    """
    before, after = worst_seeds(old), worst_seeds(new)
    both = before.merge(after, on="key", how="left", suffixes=("_old", "_new"))
    added = after.loc[~after.key.isin(before.key)].rename(columns=lambda name: name if name == "key" else f"{name}_new")
    found = pd.concat([both, added], ignore_index=True)
    shift = (found.effect_new - found.effect_old).abs()
    moved = (shift > found.resolution_old + found.resolution_new).fillna(False).astype(bool)
    apart = (found.verdict_old == "not-applicable") & (found.verdict_new == "out-of-reach")
    cases = {
        "new": found.verdict_old.isna(),
        "left out": found.verdict_new.isna()
        & (
            found.row_old.isin(list(left_out))
            | found.tier_old.isin(list(tiers))
            | (found.verdict_old == "not-applicable")
        ),
        "lost": found.verdict_new.isna(),
        "worse": (found.rank_new > found.rank_old) & ~apart,
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
    sampler, statement, target, options, factor = key
    chosen = "[" + ", ".join(f"{k}={v}" for k, v in options) + "]" if options else ""
    step = f" at {factor:g} of the step size" if factor not in (None, 1.0) else ""
    return f"{sampler}{chosen} {statement}" + (f" on {target}" if target else "") + step


class Change(NamedTuple):
    """Conclusions of one sampler in two files."""

    old: Conclusion
    new: Conclusion

    @property
    def worse(self) -> bool:
        """True if the later one is worse: by its word, or because its law does not hold any more."""
        lost = self.old.law == "holds" and self.new.law != "holds"
        return lost or WORST_LAST.index(self.new.word) > WORST_LAST.index(self.old.word)


def turned(old: Run, new: Run) -> list[Change]:
    """Conclusions that differ, of the samplers that both have.

    Where one of the files has no plan, both are drawn from their results alone: more is asked of a run with a plan.
    """
    planned = old.header is not None and new.header is not None
    before = {c.sampler: c for c in old.conclusions(planned=planned)}
    after = {c.sampler: c for c in new.conclusions(planned=planned)}
    pairs = [Change(before[name], after[name]) for name in after if name in before]
    return [pair for pair in pairs if (pair.old.word, pair.old.law) != (pair.new.word, pair.new.law)]


def report(found: pd.DataFrame, conclusions: Sequence[Change] = (), parts: Sequence[tuple[str, str]] = ()) -> str:
    """Markdown: a line of counts, then what changed; new keys are only counted if there are many.

    Args:
        found: `changes`.
        conclusions: that differ.
        parts: samplers that were run in part, with the reason.
    """
    worse = worsened(found, conclusions)
    verdict = "**Something became worse.**" if worse else "**Nothing became worse.**"
    counts = found.kind.value_counts().reindex(KINDS, fill_value=0)
    lines = [f"{verdict} {', '.join(f'{n} {kind}' for kind, n in counts.items() if n)}.", ""]
    if parts:
        lines += ["**NEW is a part of a run.**", ""]
        lines += [*(f"- {sampler}: {why}" for sampler, why in parts), ""]
    if conclusions:
        rows = [(c.new.sampler, _in_words(c.old), _in_words(c.new), "worse" if c.worse else "") for c in conclusions]
        lines += ["### Conclusions", "", *markdown(("sampler", "was", "is", ""), rows), ""]
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


def _in_words(conclusion: Conclusion) -> str:
    return f"{conclusion.word}: law {conclusion.law_in_words()}"


def worsened(found: pd.DataFrame, conclusions: Sequence[Change] = ()) -> bool:
    """True if the exit code has to say so."""
    return bool(found.kind.isin(("worse", "lost")).any()) or any(change.worse for change in conclusions)


def compare(old: Path, new: Path, part: bool = False) -> tuple[str, bool]:
    """(Markdown, True if something became worse) of two files.

    Args:
        old, new: the files.
        part: what NEW set out to leave out is not lost.

    Raises:
        ResultsError: if one of them cannot be used or holds no results.
    """
    before, after = loaded(old), loaded(new)
    parts = [(row, why) for row in after.by_row if (why := after.part(row))]
    chosen = {row for row in after.by_row if (plan := after.plan_of(row)) and plan.part} if part else set()
    left_out = chosen | (set(before.by_row) - set(after.by_row)) if part else set()
    whole = part and after.header is not None and not parts  # what was cut off has left out nothing
    tiers = {r.tier for r in before.results} - {r.tier for r in after.results} if whole else set()
    found = changes(frame(before.results), frame(after.results), left_out, tiers)
    conclusions = [change for change in turned(before, after) if change.new.sampler not in chosen]
    return report(found, conclusions, parts), worsened(found, conclusions)
