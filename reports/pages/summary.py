"""Summary of a run of the checks: Markdown for a comment, and a badge.

    python -m reports summary RESULTS.jsonl [--deviations FILE.toml] [--badge badge.svg] [--badge badge.json]

The exit code is that of the run as a whole: 0 if every sampler passes, 1 if not, 2 if the file cannot be used. A
badge is an SVG, or the JSON that shields.io reads from an address ("endpoint"), by the suffix of its name.
"""

import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from checks.pytest_plugin.known_failures import read as read_deviations
from checks.pytest_plugin.terminal import Outcome, SamplerVerdict, block
from reports.pages.verdict_table import judged
from reports.records.results import ResultsError, load, row_of

MARKS = {"pass": "✅", "fail": "❌", "error": "❌", "inconclusive": "❔"}
MOST = 20
"""Findings that are shown in full; a comment has a limited length."""
COLOURS = {"verified": "#0072b2", "failing": "#d55e00", "undecided": "#7a7f87"}
"""Of badges: colours that the colour-blind tell apart."""
LABEL = "SG-MCMC law"


def outcomes(path: Path, deviations: Path | None = None) -> list[Outcome]:
    """The results of a file, each with the known failure that it matches, if any.

    Raises:
        ResultsError: if the file cannot be used or is empty.
        BadInput: if the deviations cannot be used.
    """
    results = load(path)
    if not results:
        raise ResultsError(f"{path}: holds no results; was the run interrupted?")
    known = read_deviations(deviations) if deviations else ()
    found = []
    for result in results:
        row = row_of(result)
        about = (result.sampler, row, result.check, result.target)
        found.append(Outcome(row, result, next((d for d in known if d.matches(*about)), None)))
    return found


def passed(verdicts: Sequence[SamplerVerdict]) -> bool:
    """True if every sampler passes."""
    return all(v.verdict == "pass" for v in verdicts)


def state(verdicts: Sequence[SamplerVerdict]) -> str:
    """A key of `COLOURS`: `failing` if anything fails, `undecided` if anything else does not pass."""
    if passed(verdicts):
        return "verified"
    return "failing" if any(v.verdict in ("fail", "error") for v in verdicts) else "undecided"


def markdown(found: Sequence[Outcome]) -> str:
    """A table of samplers, then what does not pass, folded up."""
    verdicts = judged(found)
    counts = Counter(o.kind for o in found)
    lines = [
        f"### {MARKS['pass'] if passed(verdicts) else MARKS['fail']} "
        + (
            "Every sampler has the law that it claims"
            if passed(verdicts)
            else f"{sum(v.verdict != 'pass' for v in verdicts)} of {len(verdicts)} samplers do not pass"
        ),
        "",
        ", ".join(f"{n} {kind}" for kind, n in counts.most_common()) + ".",
        "",
        "| sampler | verdict | why |",
        "|---|---|---|",
        *(f"| {v.sampler} | {MARKS[v.verdict]} {v.verdict} | {_cell(v.reason)} |" for v in verdicts),
        "",
    ]
    bad = [o for o in found if not o.ok]
    known = [o for o in found if o.kind == "known deviation"]
    for outcome in bad[:MOST]:
        r = outcome.result
        title = " ".join(filter(None, (r.sampler, r.check, r.target)))
        text = block(r, outcome.deviation).replace("```", "'''")
        lines += [f"<details><summary>{escape(title)}: {escape(r.equation)}</summary>", "", "```text", text, "```", ""]
        lines += ["</details>", ""]
    if len(bad) > MOST:
        lines += [f"… and {len(bad) - MOST} more.", ""]
    if known:
        links = dict.fromkeys((o.deviation.reason, o.deviation.issue) for o in known if o.deviation)
        lines += ["Known deviations: " + "; ".join(f"{reason} ({issue})" for reason, issue in links) + ".", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def endpoint(verdicts: Sequence[SamplerVerdict]) -> str:
    """The JSON of a badge as shields.io reads it from an address (schema version 1)."""
    name = state(verdicts)
    shown = {"schemaVersion": 1, "label": LABEL, "message": name, "color": COLOURS[name], "isError": name != "verified"}
    return json.dumps(shown) + "\n"


def svg(verdicts: Sequence[SamplerVerdict]) -> str:
    """The badge as a picture."""
    name = state(verdicts)
    left, right = 7 * len(LABEL) + 10, 7 * len(name) + 12
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{LABEL}: {name}">'
        f"<title>{LABEL}: {name}</title>"
        f'<rect width="{width}" height="20" rx="3" fill="#444"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="{COLOURS[name]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{LABEL}</text><text x="{left + right / 2}" y="14">{name}</text></g></svg>\n'
    )


def write_badge(path: Path, verdicts: Sequence[SamplerVerdict]) -> None:
    """Write the badge of a name that ends in .svg or .json. Raises ResultsError for another."""
    makers = {".svg": svg, ".json": endpoint}
    if path.suffix not in makers:
        raise ResultsError(f"--badge {path}: must end in .svg or .json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(makers[path.suffix](verdicts), encoding="utf-8")


def summary(path: Path, deviations: Path | None, badges: Sequence[Path]) -> tuple[str, bool]:
    """(Markdown, whether every sampler passes) of a file; writes the badges. Raises ResultsError, BadInput."""
    found = outcomes(path, deviations)
    verdicts = judged(found)
    for badge in badges:
        write_badge(badge, verdicts)
    return markdown(found), passed(verdicts)
