"""The pages of reports/findings are what the published results say."""

from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.conclusion import Plan
from sgmcmc_verification.checks.runner import expected_failures
from sgmcmc_verification.reports.pages import findings_index, verdict_table
from sgmcmc_verification.reports.records.results import load
from tests.helpers.result_lines import DTYPES, KS, LIMIT, header, result, written


def test_index_is_the_one_of_the_published_results():
    text = findings_index.PAGE.read_text(encoding="utf-8")
    assert findings_index.page(text) == text, "run python -m sgmcmc_verification.reports.pages.findings_index --write"


@pytest.mark.parametrize("path", findings_index.libraries(), ids=lambda path: path.stem)
def test_a_page_that_shows_verdicts_shows_those_of_its_results(path: Path):
    page = findings_index.FINDINGS / f"{path.stem}.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    assert "## Verdicts" not in text or verdict_table.table(load(path)) in text


def _with_deviations():
    return [p for p in findings_index.libraries() if p.with_suffix(".expected_failures.toml").exists()]


@pytest.mark.parametrize("path", _with_deviations(), ids=lambda path: path.stem)
def test_each_failure_of_a_library_is_a_stated_deviation_and_each_deviation_a_failure(path: Path):
    entries = expected_failures.read(path.with_suffix(".expected_failures.toml"))
    hits = set()
    for outcome in load(path).outcomes():
        r = outcome.result
        known = [e for e in entries if e.matches(r.sampler, outcome.row, r.statement, r.target)]
        hits.update(known)
        # an error that is not stated is one of the suite, not of the library
        if r.verdict not in ("not-applicable", "out-of-reach") and (known or r.verdict != "error"):
            assert bool(known) == (r.verdict != "pass"), (r.sampler, r.statement, r.target)
    assert hits == set(entries)


def test_a_page_without_a_place_for_the_table_is_refused():
    with pytest.raises(ValueError, match="needs the lines"):
        findings_index.page("# Findings")


def test_a_sampler_is_judged_by_what_it_was_run_in(tmp_path):
    """Two SGLD in one file, the second without statistical tiers: the cell of these is empty."""
    both = [result(statement=LIMIT, sampler="a/one"), result(sampler="a/one"), result(statement=LIMIT, sampler="a/two")]
    lines = verdict_table.table(load(written(tmp_path / "a.jsonl", *both))).splitlines()
    assert lines[0] == "| sampler | law | invariance | law | conduct |"
    assert lines[-2:] == [
        "| a/one | 1 pass | 1 pass | **holds** | not examined |",
        "| a/two | 1 pass |  | **holds** | not examined |",
    ]


def test_law_and_conduct_are_told_apart_and_a_part_is_said_to_be_one(tmp_path):
    """REVIEW V2, F4: a dtype was the headline of a sampler with the right law."""
    folder = tmp_path / "published"
    folder.mkdir()
    plan = Plan(3, ("gaussian",), part="--tier law")
    found = (result("fail", DTYPES), result("error", KS), result(statement=LIMIT))
    written(folder / "lib-1.0.jsonl", *found)
    written(folder / "lib-2.0.jsonl", header(lib_sgld=plan), *found)
    assert [path.stem for path in findings_index.libraries(folder)] == ["lib-1.0", "lib-2.0"]
    whole, part = (findings_index.rows(path)[0] for path in findings_index.libraries(folder))
    assert (whole.law, whole.conduct, whole.failing) == ("undecided", "major: shapes_and_dtypes", {"error": {KS}})
    assert (part.library, part.law) == ("lib 2.0", "undecided (part: --tier law)")
