"""Summary of a run of the checks: Markdown for a comment, and a badge.

    python -m sgmcmc_verification.reports summary RESULTS.jsonl [--expected-failures FILE.toml]
        [--badge badge.svg] [--badge badge.json]

The exit code is that of the conclusions: 0 if every one is good, 1 if not, 2 if the file cannot be used. A badge is an
SVG, or the JSON that shields.io reads from an address ("endpoint"), by the suffix of its name. Its text is that of the
worst sampler; what was run in part is called a part, whatever came out.
"""

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from sgmcmc_verification.checks.core.conclusion import Conclusion, Word
from sgmcmc_verification.checks.runner.expected_failures import chosen, read
from sgmcmc_verification.checks.runner.text import Outcome, block
from sgmcmc_verification.reports.records.frames import markdown as table
from sgmcmc_verification.reports.records.results import Header, ResultsError, Run, conduct, loaded, worst_word

MOST = 20
"""Findings that are shown in full; a comment has a limited length."""
SHOWN = 3
"""Reasons and things not examined that a cell names."""
LABEL = "SG-MCMC"
GOOD, BAD, OPEN = "#0072b2", "#d55e00", "#6b7078"
"""Colours that the colour-blind tell apart."""


class Shown(NamedTuple):
    """A word of a conclusion in a comment and on a badge."""

    mark: str
    headline: str
    badge: str
    colour: str


WORDS: dict[Word, Shown] = {
    "pass": Shown("✅", "The law holds, and the conduct has no major fault", "law holds", GOOD),
    "fail": Shown("❌", "The law is violated", "law violated", BAD),
    "error": Shown("❌", "A sampler raised", "error", BAD),
    "inconclusive": Shown("❔", "The law is undecided", "undecided", OPEN),
    "fault": Shown("❌", "The conduct has a major fault", "conduct", BAD),
    "known": Shown("❗", "The law is violated, as is expected", "law violated (known)", BAD),
    "part": Shown("◐", "A part of a run: the law as a whole was not examined", "part", OPEN),
}


def markdown(run: Run, found: Sequence[Outcome], conclusions: Sequence[Conclusion]) -> str:
    """A table of samplers, then what is not good, folded up."""
    word = worst_word(conclusions)
    count = f" ({sum(c.word == word for c in conclusions)} of {len(conclusions)} samplers)"
    rows = [
        (c.sampler, f"{WORDS[c.word].mark} {_law(c, run)}", conduct(c, run.by_row[c.sampler]), _unseen(c))
        for c in conclusions
    ]
    lines = [
        f"### {WORDS[word].mark} {WORDS[word].headline}" + count * (len(conclusions) > 1),
        "",
        ", ".join(f"{n} {kind}" for kind, n in Counter(o.kind for o in found).most_common()) + ".",
        *([_source(run.header)] if run.header else []),
        "",
        *table(("sampler", "law", "conduct", "not examined"), rows),
        "",
        *_findings([o for o in found if not o.ok]),
    ]
    if known := dict.fromkeys((o.expected.reason, o.expected.issue) for o in found if o.expected):
        lines += ["Expected failures: " + "; ".join(f"{reason} ({issue})" for reason, issue in known) + ".", ""]
    return "\n".join(lines)


def _law(conclusion: Conclusion, run: Run) -> str:
    """The law in words, with what it violates, what keeps it open, or why it was examined in part."""
    plan = run.plan_of(conclusion.sampler)
    words = conclusion.law_in_words(plan.temperature if plan else 1.0)
    why = [name for name, _ in conclusion.violated] or list(conclusion.known) or list(conclusion.open)
    parts = [f"part: {part}"] if (part := run.part(conclusion.sampler)) else []
    return ": ".join(filter(None, (words, "; ".join(filter(None, (*parts, _some(why)))))))


def _some(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return "; ".join(texts[:SHOWN]) + more


def _unseen(conclusion: Conclusion) -> str:
    """Everything that tags leave out, and some of what was not examined."""
    left_out = [f"left out: {text}" for text in conclusion.left_out]
    return "; ".join(filter(None, (*left_out, _some(conclusion.not_examined))))


def _source(header: Header) -> str:
    commit = header.commit[:12] + "+" * header.commit.endswith("+")
    judged_by = f"check set {header.check_set}, " if header.check_set else ""
    return f"`{header.command.replace('`', '')}`, {judged_by}commit {commit}, {header.date}, {header.platform}."


def _findings(bad: Sequence[Outcome]) -> list[str]:
    """All that is not good, the same finding elsewhere as a line of the first."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in bad:
        r = outcome.result
        about = r.reason if r.verdict == "error" else r.statement
        groups.setdefault((outcome.row, r.verdict, about), []).append(outcome)
    lines = []
    for first, *others in list(groups.values())[:MOST]:
        r = first.result
        title = " ".join(filter(None, (r.sampler, r.statement, r.target)))
        text = block(r, first.expected)
        same = dict.fromkeys(f"{o.result.sampler} {o.result.statement} on {o.result.target}" for o in others)
        text += f"\n  the same    {', '.join(same)}" if same else ""
        lines += [f"<details><summary>{escape(title)}: {escape(r.equation)}</summary>", "", "```text"]
        lines += [text.replace("```", "'''"), "```", "", "</details>", ""]
    return lines + ([f"… and {len(groups) - MOST} more.", ""] if len(groups) > MOST else [])


NOTHING = Shown("❌", "No conclusion", "no conclusion", BAD)
"""Of a run from which none can be drawn."""


def _badge(word: Word | None) -> Shown:
    return NOTHING if word is None else WORDS[word]


def endpoint(word: Word | None) -> str:
    """The JSON of a badge as shields.io reads it from an address (schema version 1); None for no conclusion."""
    _, _, text, colour = _badge(word)
    shown = {"schemaVersion": 1, "label": LABEL, "message": text, "color": colour, "isError": colour == BAD}
    return json.dumps(shown) + "\n"


def svg(word: Word | None) -> str:
    """The badge as a picture; None for no conclusion."""
    _, _, text, colour = _badge(word)
    left, right = 7 * len(LABEL) + 10, 7 * len(text) + 12
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{LABEL}: {text}">'
        f"<title>{LABEL}: {text}</title>"
        f'<rect width="{width}" height="20" rx="3" fill="#444"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{LABEL}</text><text x="{left + right / 2}" y="14">{text}</text></g></svg>\n'
    )


def write_badge(path: Path, word: Word | None) -> None:
    """Write the badge of a name that ends in .svg or .json; None for no conclusion. Raises ResultsError for another."""
    makers = {".svg": svg, ".json": endpoint}
    if path.suffix not in makers:
        raise ResultsError(f"--badge {path}: must end in .svg or .json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(makers[path.suffix](word), encoding="utf-8")


def summary(path: Path, expected_failures: Path | None, badges: Sequence[Path]) -> tuple[str, bool]:
    """(Markdown, whether every conclusion is good) of a file; writes the badges. Raises ResultsError, BadInput."""
    file = chosen(expected_failures, Path.cwd())
    known = read(file) if file else ()
    run = loaded(path)
    found, conclusions = run.outcomes(known), run.conclusions(known)
    for badge in badges:
        write_badge(badge, worst_word(conclusions))
    return markdown(run, found, conclusions), all(c.good for c in conclusions)
