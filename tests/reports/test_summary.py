"""Summary and badge of a run: a part of a run, or a known failure, is never the whole.

The cases are those of the review: REVIEW V1 (what was called verified) and R3.
"""

import json
from typing import Any

import pytest

from sgmcmc_verification.checks.core.conclusion import WORDS as MEANINGS
from sgmcmc_verification.checks.core.conclusion import Plan
from sgmcmc_verification.checks.core.result import Result, Verdict
from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.pages.summary import WORDS
from tests.helpers.result_lines import LIMIT, header
from tests.helpers.result_lines import result as result_of

EXPECTED = """
[[expected_failure]]
sampler = "{sampler}"
statement = "gaussian_limit"
reason = "half of the noise"
issue = "https://example.org/1"
"""


def line(verdict: Verdict, statement: str = LIMIT, sampler: str = "lib/sgld", **rest: Any) -> str:
    found: Result = result_of(verdict, statement, sampler, **({"target": "g"} | rest))
    return json.dumps(json.loads(found.to_json()) | {"equation": "pi_h -> pi | as h -> 0", "reason": "a|b"})


def summarised(tmp_path, capsys, *lines, flags=()):
    """(exit code, what was printed, text of the badge)."""
    path, badge = tmp_path / "results.jsonl", tmp_path / "badge.json"
    path.write_text("".join(text + "\n" for text in lines))
    code = main(["summary", str(path), "--badge", str(badge), *flags])
    return code, capsys.readouterr(), json.loads(badge.read_text())["message"] if badge.exists() else ""


def test_every_word_of_a_conclusion_has_a_badge_and_none_calls_a_part_whole():
    assert set(WORDS) == set(MEANINGS)
    assert not any("verified" in "".join(word) for word in WORDS.values())
    assert [name for name, word in WORDS.items() if word.badge == "law holds"] == ["pass"]


def test_verdicts_and_exit_codes(tmp_path, capsys):
    code, shown, badge = summarised(tmp_path, capsys, line("pass"), line("pass", "shapes_and_dtypes"))
    assert (code, badge) == (0, "law holds")
    assert "| lib/sgld | ✅ holds | clean |" in shown.out
    code, shown, badge = summarised(tmp_path, capsys, line("pass"), line("fail", effect=0.5, allowance=0.1))
    assert (code, badge) == (1, "law violated")
    assert "| lib/sgld | ❌ violated: gaussian_limit | not examined |" in shown.out
    assert "<summary>lib/sgld gaussian_limit g: pi_h -&gt; pi | as h -&gt; 0</summary>" in shown.out
    assert summarised(tmp_path, capsys, line("inconclusive"))[::2] == (1, "undecided")
    assert summarised(tmp_path, capsys, line("error"))[::2] == (1, "error")


def test_a_fault_of_conduct_leaves_the_law_and_is_named_with_its_severity(tmp_path, capsys):
    """REVIEW V2."""
    lines = [line("pass"), line("fail", "shapes_and_dtypes", severity="major")]
    code, shown, badge = summarised(tmp_path, capsys, *lines)
    assert (code, badge) == (1, "conduct")
    assert "| lib/sgld | ❌ holds | major: shapes_and_dtypes |" in shown.out
    minor = line("fail", "shapes_and_dtypes", severity="minor")
    code, shown, badge = summarised(tmp_path, capsys, line("pass"), minor)
    assert (code, badge) == (0, "law holds")
    assert "| lib/sgld | ✅ holds | minor: shapes_and_dtypes |" in shown.out
    law_only = json.dumps({**json.loads(header(lib_sgld=Plan(2))), "law_only": True})
    assert summarised(tmp_path, capsys, law_only, *lines)[::2] == (0, "law holds")


DUE = ("gaussian", "closed-state")
WHOLE = (
    line("pass", meets=["gaussian"]),
    line("pass", "closed_state", meets=["closed-state"]),
    line("pass", "shapes_and_dtypes"),
)


def test_a_whole_run_says_what_holds(tmp_path, capsys):
    code, shown, badge = summarised(tmp_path, capsys, header(lib_sgld=Plan(3, DUE, order=1)), *WHOLE)
    assert (code, badge) == (0, "law holds")
    assert "| lib/sgld | ✅ holds to order 1 | clean |" in shown.out
    assert "`pytest checks`, commit abc, 2026-01-01T00:00:00+00:00, Linux." in shown.out


def test_the_contract_alone_is_a_part(tmp_path, capsys):
    """REVIEW V1: `--tier contract` was called verified."""
    plan = header(lib_sgld=Plan(1, DUE, part="--tier contract"))
    code, shown, badge = summarised(tmp_path, capsys, plan, WHOLE[2])
    assert (code, badge) == (0, "part")
    assert "| lib/sgld | ◐ not examined: part: --tier contract | clean |" in shown.out


def test_the_contract_alone_in_a_file_without_a_plan_leaves_the_law_undecided(tmp_path, capsys):
    assert summarised(tmp_path, capsys, WHOLE[2])[::2] == (1, "undecided")


def test_a_selection_and_an_interrupted_run_are_parts(tmp_path, capsys):
    """REVIEW V1: `-k "stability or shapes"` and Ctrl-C were called verified; both leave fewer results than planned."""
    for few in (WHOLE[2:], WHOLE[:1], WHOLE[:2]):
        code, shown, badge = summarised(tmp_path, capsys, header(lib_sgld=Plan(3, DUE)), *few)
        assert (code, badge) == (0, "part")
        assert f"part: {len(few)} of 3 statements were run" in shown.out


def test_a_run_that_was_killed_within_its_last_line_is_a_part(tmp_path, capsys):
    cut = line("pass")[:-20]
    for lines in ((header(lib_sgld=Plan(4, DUE)), *WHOLE, cut), (*WHOLE, cut)):
        path = tmp_path / "results.jsonl"
        path.write_text("\n".join(lines))
        assert main(["summary", str(path), "--badge", str(tmp_path / "b.json")]) == 0
        assert json.loads((tmp_path / "b.json").read_text())["message"] == "part"
        capsys.readouterr()


def test_a_sampler_that_was_dropped_is_shown_as_a_part(tmp_path, capsys):
    """REVIEW V1, R3: an interrupted run had the samplers alone that it reached."""
    plans = header(lib_sgld=Plan(3, DUE), lib_sghmc=Plan(7, DUE))
    code, shown, badge = summarised(tmp_path, capsys, plans, *WHOLE)
    assert (code, badge) == (0, "part")
    assert "| lib/sghmc | ◐ not examined: part: 0 of 7 statements were run | not examined |" in shown.out
    assert "(1 of 2 samplers)" in shown.out


def test_an_obligation_that_was_not_met_is_named_and_leaves_the_law_undecided(tmp_path, capsys):
    plan = header(lib_sgld=Plan(3, (*DUE, "high-dimension")))
    code, shown, badge = summarised(tmp_path, capsys, plan, *WHOLE)
    assert (code, badge) == (1, "undecided")
    assert "undecided: not shown for fifty coordinates" in shown.out


def test_a_run_in_which_no_law_was_examined_is_undecided(tmp_path, capsys):
    plan = header(lib_sgld=Plan(1))
    assert summarised(tmp_path, capsys, plan, WHOLE[2])[::2] == (1, "undecided")


def test_a_deviation_does_no_harm_and_makes_no_law_hold(tmp_path, capsys):
    """REVIEW V1: expected failures that cover a failure of the law made the badge say verified."""
    (tmp_path / "known.toml").write_text(EXPECTED.format(sampler="lib/sgld"))
    flags = ["--expected-failures", str(tmp_path / "known.toml")]
    code, shown, badge = summarised(tmp_path, capsys, line("fail"), line("pass", "defect"), flags=flags)
    assert (code, badge) == (0, "law violated (known)")
    assert "| lib/sgld | ❗ violated (known): gaussian_limit |" in shown.out
    assert "Expected failures: half of the noise (https://example.org/1)" in shown.out
    assert summarised(tmp_path, capsys, line("pass"), flags=flags)[0] == 1  # an unexpected pass


@pytest.mark.parametrize(
    ("lines", "flags", "text"),
    [
        ((), (), "holds no results"),
        ((header(lib_sgld=Plan(3)),), (), "holds no results"),
        ((line("pass"),), ("--badge", "badge.png"), "--badge badge.png: must end in .svg or .json"),
        ((line("pass"),), ("--expected-failures", "nowhere.toml"), "--expected-failures nowhere.toml: cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, capsys, lines, flags, text):
    code, shown, _ = summarised(tmp_path, capsys, *lines, flags=flags)
    assert code == 2
    assert text in shown.err


def test_the_same_finding_elsewhere_is_a_line_and_many_findings_are_cut(tmp_path, capsys):
    _, shown, _ = summarised(tmp_path, capsys, *(line("fail", target=f"t{i}") for i in range(3)))
    assert shown.out.count("<details>") == 1
    assert "the same    lib/sgld gaussian_limit on t1, lib/sgld gaussian_limit on t2" in shown.out
    _, shown, _ = summarised(tmp_path, capsys, *(line("fail", sampler=f"lib/s{i}") for i in range(30)))
    assert shown.out.count("<details>") == 20
    assert "… and 10 more." in shown.out
