"""Last step of a run in continuous integration: summary, badges, annotations, and the one exit code.

    python -m sgmcmc_verification.reports conclude FOLDER [--code N]

FOLDER holds `results.jsonl`, and of a run that was made there `results.xml` and `errors.txt`, its standard error.
Added are `summary.md`, `badge.svg`, `badge.json` (which shields.io reads from an address) and `codequality.json` (for
GitLab). On GitHub the annotations are printed and the summary is appended to the page of the job.

All of it comes from the one conclusion. A run from which none can be drawn, because it could not start, something ended
its process or its file was changed, has a badge that says so: no badge of an earlier run may stand for it.
"""

import os
import sys
from pathlib import Path

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.runner.expected_failures import chosen, read
from sgmcmc_verification.reports.pages import annotations
from sgmcmc_verification.reports.pages.summary import markdown, write_badge
from sgmcmc_verification.reports.records.results import ResultsError, loaded, worst_word

RESULTS, FINISHED, ERRORS = "results.jsonl", "results.xml", "errors.txt"
SUMMARY, QUALITY = "summary.md", "codequality.json"
BADGES = ("badge.svg", "badge.json")
STARTED, REFUSED = (0, 1), 4
"""Exit codes of a run that came to its end, and of one whose command line is wrong."""


def conclude(folder: Path, code: int | None = None, expected: Path | None = None) -> int:
    """Write all that is made of a run; returns the exit code.

    Args:
        folder: of the run.
        code: exit code of the run; None for a merged one.
        expected: file of expected failures; None for the one of the repository.

    Returns:
        0 if every conclusion is good; the code of the run where it is another one than 0 or 1; 1 otherwise.
    """
    try:
        if code is not None:
            _require_end(folder, code)
        file = chosen(expected, Path.cwd())
        run, known = loaded(folder / RESULTS), read(file) if file else ()
        found, conclusions = run.outcomes(known), run.conclusions(known)
        good = all(c.good for c in conclusions)
        if code is not None and (code == 0) != good:
            raise ResultsError(f"the run ended with the exit code {code}, and {RESULTS} says otherwise")
    except (ResultsError, BadInput) as error:
        return _without_conclusion(folder, str(error), code)
    word = worst_word(conclusions)
    for name in BADGES:
        write_badge(folder / name, word)
    _written(folder, markdown(run, found, conclusions), annotations.of_run(run, conclusions))
    return code or int(not good)


def _require_end(folder: Path, code: int) -> None:
    """Raise ResultsError unless the run came to its end."""
    if code not in STARTED:
        raise ResultsError(f"the run ended with the exit code {code}")
    if not (folder / FINISHED).is_file() or not (folder / FINISHED).stat().st_size:
        # pytest writes this file when it ends: without it something ended the process in its place
        raise ResultsError("the run did not come to its end; the sampler ended the process")


def _without_conclusion(folder: Path, reason: str, code: int | None) -> int:
    errors = folder / ERRORS
    lines = errors.read_text(encoding="utf-8", errors="replace").splitlines() if errors.is_file() else []
    refusals = annotations.of_refusal(lines) if code == REFUSED else []
    found = refusals or [annotations.Annotation("error", "no conclusion", reason, None)]
    for name in BADGES:
        write_badge(folder / name, None)
    print(reason, file=sys.stderr)
    text = "\n".join(["### ❌ No conclusion", "", *(f"- {note.message}" for note in found), ""])
    _written(folder, text, found)
    return code or 1


def _written(folder: Path, text: str, found: list[annotations.Annotation]) -> None:
    (folder / SUMMARY).write_text(text, encoding="utf-8")
    (folder / QUALITY).write_text(annotations.gitlab(found), encoding="utf-8")
    if os.environ.get("GITHUB_ACTIONS"):
        print("\n".join(annotations.github(found)))
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(page).open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")
