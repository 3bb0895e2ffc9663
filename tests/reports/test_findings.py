"""The pages of reports/findings are what the published results say."""

from dataclasses import replace
from pathlib import Path

import pytest

from checks.core.result import Result
from checks.pytest_plugin import known_failures
from checks.pytest_plugin.terminal import Outcome
from reports.pages import findings_index, verdict_table


def test_index_is_the_one_of_the_published_results():
    text = findings_index.PAGE.read_text(encoding="utf-8")
    assert findings_index.page(text) == text, "run python -m reports.pages.findings_index --write"


@pytest.mark.parametrize("path", findings_index.libraries(), ids=lambda path: path.stem)
def test_a_page_that_shows_verdicts_shows_those_of_its_results(path: Path):
    page = findings_index.FINDINGS / f"{path.stem}.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    assert "## Verdicts" not in text or verdict_table.table(verdict_table.read(path)) in text


def _with_deviations():
    return [p for p in findings_index.libraries() if p.with_suffix(".deviations.toml").exists()]


@pytest.mark.parametrize("path", _with_deviations(), ids=lambda path: path.stem)
def test_each_failure_of_a_library_is_a_stated_deviation_and_each_deviation_a_failure(path: Path):
    entries = known_failures.read(path.with_suffix(".deviations.toml"))
    hits = set()
    for outcome in verdict_table.read(path):
        r = outcome.result
        known = [e for e in entries if e.matches(r.sampler, outcome.row, r.check, r.target)]
        hits.update(known)
        # an error that is not stated is one of the suite, not of the library
        if r.verdict != "not-applicable" and (known or r.verdict != "error"):
            assert bool(known) == (r.verdict != "pass"), (r.sampler, r.check, r.target)
    assert hits == set(entries)


def test_a_page_without_a_place_for_the_table_is_refused():
    with pytest.raises(ValueError, match="needs the lines"):
        findings_index.page("# Findings")


def test_a_sampler_is_judged_in_the_tiers_that_it_was_run_in():
    """Two SGLD in one file, the second without statistical tiers: both pass, and its cells are empty."""
    result = Result(check="gaussian_limit", tier="law", equation="", sampler="a/one", verdict="pass", reason="")
    sampled = replace(result, check="end_point_moments", tier="invariance")
    both = [Outcome("a/one", result), Outcome("a/one", sampled), Outcome("a/two", replace(result, sampler="a/two"))]
    assert [v.verdict for v in verdict_table.judged(both)] == ["pass", "pass"]
    assert verdict_table.table(both).splitlines()[-1] == "| a/two | 1 pass |  | **pass** |"


@pytest.mark.parametrize(
    ("sampler", "verdict"), [("blob", "pass"), ("csgld", "inconclusive"), ("a/one", "inconclusive")]
)
def test_a_file_whose_statistical_checks_did_not_apply_is_judged_by_the_claims_of_the_sampler(sampler, verdict):
    """Particles that estimate their own density have no noise; any other sampler needs a statistical check."""
    law = Result(check="gaussian_limit", tier="law", equation="", sampler=sampler, verdict="pass", reason="")
    sampled = replace(law, check="end_point_moments", tier="invariance", verdict="not-applicable")
    found = [Outcome(sampler, law), Outcome(sampler, sampled)]
    assert [v.verdict for v in verdict_table.judged(found)] == [verdict]
    assert verdict_table.table(found).splitlines()[-1] == f"| {sampler} | 1 pass | 1 n/a | **{verdict}** |"
