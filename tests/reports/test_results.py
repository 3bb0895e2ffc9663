"""Files of results: what is read, what is refused, what is concluded from them, what a comparison says."""

import dataclasses
import json
import subprocess
import sys

import pytest

from sgmcmc_verification.checks.core.conclusion import WORDS, Plan
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.registry import CHECKS, STATEMENTS, check_of
from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.pages.compare import changes, report, worsened
from sgmcmc_verification.reports.records import results
from sgmcmc_verification.reports.records.frames import frame
from sgmcmc_verification.reports.records.jsonl import ROOT, appended, read
from sgmcmc_verification.reports.records.results import WORST_LAST, ResultsError, load, read_renamed
from tests.helpers.result_lines import DTYPES, LIMIT, former, header, result, written


def test_results_are_read_as_they_were_written(tmp_path):
    one = result(effect=0.1, options={"friction": 2.0}, detail={"stages": 1}, meets=["gaussian"])
    found = load(written(tmp_path / "a.jsonl", one))
    assert found.results == (one,)
    assert (found.header, found.cut) == (None, False)


def test_the_plan_is_the_first_line_and_no_result(tmp_path):
    plan = Plan(2, ("gaussian", "line"), 1, 0.5, ("option x",), "")
    found = load(written(tmp_path / "a.jsonl", header(lib_sgld=plan), result()))
    assert found.header is not None
    assert (found.header.command, found.header.commit) == ("pytest checks", "abc")
    assert found.plan_of("lib/sgld") == plan
    assert found.results == (result(),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plan": []}, r"line 1: not the plan of a run .*Expected `object`, got `array`"),
        ({"plan": {"s": {"cases": "many"}}}, r"line 1: not the plan .*got `str`"),
        (
            {"plan": {"s": {"cases": 1, "due": ["everything"]}}},
            "line 1: not the plan .*Invalid enum value 'everything'",
        ),
        ({"colour": "red"}, "line 1: not the plan .*unknown field `colour`"),
        ({"schema": 3}, "line 1: has the schema 3, this version of the suite reads 2"),
        ({"chains": None}, r"line 1: not the plan .*Expected `float`, got `null`"),
    ],
)
def test_a_plan_of_another_form_is_refused(tmp_path, change, message):
    line = json.dumps({**json.loads(header()), **change})
    with pytest.raises(ResultsError, match=message):
        load(written(tmp_path / "a.jsonl", line, result()))


def test_lines_of_schema_1_are_read_under_the_names_of_today(tmp_path, monkeypatch):
    one = result(statement=LIMIT, target="gaussian-correlated-2d")
    path = written(tmp_path / "a.jsonl", former(one), former(result("fail", DTYPES)))
    law, form = load(path).results
    assert (law.statement, law.check, law.decides, law.schema) == (LIMIT, "gaussian_law", "law", 2)
    assert law.meets == ["gaussian"]
    assert (form.check, form.decides, form.severity, form.meets) == ("interface", "conduct", "major", [])
    # a statement that was joined with another since
    monkeypatch.setitem(results.SUCCESSORS, "covariance_limit", LIMIT)
    old = json.dumps({**json.loads(former(one)), "check": "covariance_limit"})
    joined = written(tmp_path / "old.jsonl", old)
    assert load(joined).results == (law,)
    assert [(line["statement"], line["check"]) for line in read_renamed(joined)] == [(LIMIT, "gaussian_law")]
    # one that nobody knows keeps its name, and says nothing of a law
    unknown = json.dumps({**json.loads(former(one)), "check": "forgotten"})
    (lost,) = load(written(tmp_path / "lost.jsonl", unknown)).results
    assert (lost.statement, lost.check, lost.decides) == ("forgotten", "forgotten", None)


def test_what_a_target_meets_is_not_asked_where_data_would_have_to_be_read(tmp_path):
    one = former(result(statement=LIMIT, target="logistic-covertype"))
    assert load(written(tmp_path / "a.jsonl", one)).results[0].meets == []


@pytest.mark.parametrize("bytes_left", [1, 20, 200])
def test_a_line_that_was_cut_off_is_dropped_and_the_file_is_a_part(tmp_path, bytes_left):
    path = written(tmp_path / "a.jsonl", result())
    path.write_bytes(path.read_bytes() + result().to_json().encode()[:bytes_left])
    found = load(path)
    assert (len(found.results), found.cut) == (1, True)
    (conclusion,) = found.conclusions()
    assert (conclusion.word, conclusion.law) == ("part", "not examined")
    assert found.part("lib/sgld") == "the file ends within a line"


def test_a_last_line_without_its_end_is_whole(tmp_path):
    path = written(tmp_path / "a.jsonl", result())
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    found = load(path)
    assert (len(found.results), found.cut) == (1, False)
    with appended(path) as append:
        append(result("fail").to_json())
    assert [r.verdict for r in load(path).results] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 3}, "line 2: has the schema 3, this version of the suite reads 1 and 2"),
        ({"colour": "red"}, "line 2: not the result of a statement .*unknown field `colour`"),
        ({"verdict": "fine"}, "line 2: not the result of a statement .*Invalid enum value 'fine'"),
        ({"effect": "large"}, r"line 2: not the result of a statement .*Expected `float \| null`, got `str`"),
        ({"detail": {"factor": "half"}}, r"line 2: .*got `str` - at `\$.detail.factor`"),
        ({"detail": {"step_sizes": 0.1}}, r"line 2: .*Expected `array \| null`, got `float`"),
        ({"meets": ["everything"]}, "line 2: .*Invalid enum value 'everything'"),
        ({"statement": 1}, r"line 2: .*Expected `str`, got `int`"),
        ({"statement": None}, "line 2: not the result of a statement"),
    ],
)
def test_lines_of_another_form_are_refused(tmp_path, change, message):
    line = {**json.loads(result().to_json()), **change}
    path = written(tmp_path / "a.jsonl", result(), json.dumps({k: v for k, v in line.items() if v is not None}))
    with pytest.raises(ResultsError, match=message):
        load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ResultsError, match="no such file"):
        load(tmp_path / "none.jsonl")


@pytest.mark.parametrize("content", [b"[]\n[]\n", b"\xff\xfe\n{}\n", b"3\n"])
def test_what_is_no_file_of_results_is_one_line(tmp_path, content, capsys):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    assert main(["summary", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# Conclusions --------------------------------------------------------------------------------------------------------


def concluded(tmp_path, *lines: Result | str):
    (found,) = load(written(tmp_path / "c.jsonl", *lines)).conclusions()
    return found


def test_every_word_of_a_conclusion_has_its_place():
    assert sorted(WORST_LAST) == sorted(WORDS)


def test_a_file_without_a_plan_is_concluded_from_its_results(tmp_path):
    assert concluded(tmp_path, result()).word == "pass"
    assert concluded(tmp_path, result(), result("fail", DTYPES)).word == "fault"
    assert concluded(tmp_path, result(), result("fail", LIMIT)).law == "violated"
    assert concluded(tmp_path, result("pass", DTYPES)).word == "inconclusive"


def test_fewer_results_than_were_planned_are_a_part(tmp_path):
    plan = header(lib_sgld=Plan(2, ("gaussian",), 1))
    one = result(statement=LIMIT, meets=["gaussian"])
    short = load(written(tmp_path / "a.jsonl", plan, one))
    assert [(c.word, c.law) for c in short.conclusions()] == [("part", "not examined")]
    assert short.part("lib/sgld") == "1 of 2 statements were run"
    whole = load(written(tmp_path / "b.jsonl", plan, one, result()))
    assert [(c.word, c.law, c.order) for c in whole.conclusions()] == [("pass", "holds", 1)]
    assert whole.part("lib/sgld") == ""


def test_a_sampler_that_was_planned_and_never_run_is_in_the_conclusions(tmp_path):
    plan = header(lib_sgld=Plan(1, ("gaussian",)), lib_sghmc=Plan(3, ("gaussian",)))
    found = load(written(tmp_path / "a.jsonl", plan, result(statement=LIMIT, meets=["gaussian"])))
    assert [(c.sampler, c.word) for c in found.conclusions()] == [("lib/sgld", "pass"), ("lib/sghmc", "part")]
    assert found.part("lib/sghmc") == "0 of 3 statements were run"


def test_results_of_a_sampler_that_was_not_planned_and_of_a_sweep_are_parts(tmp_path):
    other = concluded(tmp_path, header(lib_sgld=Plan(0)), result(sampler="lib/sgld"))
    assert other.word == "pass"
    found = load(written(tmp_path / "a.jsonl", header(lib_sghmc=Plan(0)), result(statement=LIMIT)))
    assert {c.sampler: c.word for c in found.conclusions()} == {"lib/sghmc": "inconclusive", "lib/sgld": "part"}
    swept = load(written(tmp_path / "b.jsonl", result(statement=LIMIT, detail={"factor": 0.5})))
    assert [(c.word, swept.part(c.sampler)) for c in swept.conclusions()] == [("part", "cells of a sweep")]


def test_a_statement_with_the_name_of_a_check_is_part_of_it():
    """`reports run --check` takes both."""
    names = {statement.name for statement in STATEMENTS}
    for check in CHECKS:
        if check.name in names:
            assert check_of(check.name) is check


# Comparison ---------------------------------------------------------------------------------------------------------


def compared(old, new, left_out=()):
    return changes(frame(old), frame(new), left_out)


def test_a_verdict_that_becomes_worse_or_is_lost_decides_the_exit_code():
    old = [result(), result(statement="defect")]
    assert not worsened(compared(old, old))
    assert worsened(compared(old, [result("fail"), old[1]]))
    assert worsened(compared(old, [result("inconclusive"), old[1]]))
    assert worsened(compared(old, [result("out-of-reach"), old[1]]))
    assert worsened(compared(old, old[:1]))
    assert not worsened(compared([result("fail")], [result()]))
    # files of schema 1 do not tell what is irrelevant from what is out of reach
    assert not worsened(compared([result("not-applicable")], [result("out-of-reach")]))


def test_an_effect_matters_when_it_moves_by_more_than_both_runs_can_hide():
    kind = lambda old, new: compared([old], [new]).kind.item()
    noisy = [result(effect=effect, standard_error=0.01) for effect in (0.10, 0.19, 0.30)]
    assert kind(noisy[0], noisy[1]) == "same"
    assert kind(noisy[0], noisy[2]) == "moved"
    exact = [result(effect=effect, detectable=1e-9) for effect in (1e-5, 1.0005e-5)]
    assert kind(*exact) == "moved"


def test_options_seeds_and_targets_are_told_apart():
    a, b = result(options={"friction": 2.0}), result(options={"friction": 0.4})
    found = compared([a, b], [a, dataclasses.replace(b, verdict="fail")])
    assert list(found.kind) == ["worse", "same"]
    assert "friction=0.4" in report(found)
    # of several seeds the worst one counts
    seeds = [result(seed=1), result("fail", seed=2)]
    assert list(compared([result()], seeds).kind) == ["worse"]


def test_frames_without_results_are_compared():
    assert report(compared([], [])).startswith("**Nothing became worse.**")
    assert list(compared([], [result()]).kind) == ["new"]
    assert list(compared([result()], []).kind) == ["lost"]


def test_the_command_prints_markdown_and_its_exit_code_says_what_became_worse(tmp_path, capsys):
    old = written(tmp_path / "old.jsonl", result())
    new = written(tmp_path / "new.jsonl", result("fail"))
    assert main(["compare", str(old), str(new)]) == 1
    shown = capsys.readouterr().out
    assert "| lib/sgld end_point_ks on gaussian | pass -> fail: a reason |" in shown
    assert "| lib/sgld | pass: law holds | fail: law violated | worse |" in shown
    assert main(["compare", str(old), str(old)]) == 0
    assert main(["compare", str(old), str(tmp_path / "none.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_a_file_without_results_is_no_good_run(tmp_path, capsys):
    """REVIEW R3: a comparison with an empty file, or with a plan that nothing followed, said that nothing is worse."""
    good = written(tmp_path / "good.jsonl", result())
    for empty in (written(tmp_path / "empty.jsonl"), written(tmp_path / "plan.jsonl", header(lib_sgld=Plan(9)))):
        for arguments in ([good, empty], [empty, good], [good, empty, "--part"]):
            assert main(["compare", *map(str, arguments)]) == 2
            assert "holds no results; was the run interrupted?" in capsys.readouterr().err


def test_a_sampler_that_was_dropped_is_lost_unless_new_is_said_to_be_a_part(tmp_path, capsys):
    """REVIEW R3."""
    old = written(tmp_path / "old.jsonl", result(), result(sampler="lib/sghmc"), result(statement="defect"))
    new = written(tmp_path / "new.jsonl", result(), result(statement="defect"))
    assert main(["compare", str(old), str(new)]) == 1
    assert "lib/sghmc end_point_ks on gaussian | was pass, is not there" in capsys.readouterr().out
    assert main(["compare", str(old), str(new), "--part"]) == 0
    assert "1 left out" in capsys.readouterr().out
    # of a sampler that is there all statements are expected
    fewer = written(tmp_path / "fewer.jsonl", result())
    assert main(["compare", str(old), str(fewer), "--part"]) == 1


def test_a_part_is_said_to_be_one_and_loses_only_what_it_set_out_to_leave_out(tmp_path, capsys):
    both = [result(statement=LIMIT, meets=["gaussian"]), result(statement="defect")]
    old = written(tmp_path / "old.jsonl", header(lib_sgld=Plan(2, ("gaussian",))), *both)
    chosen = written(tmp_path / "tier.jsonl", header(lib_sgld=Plan(1, ("gaussian",), part="--tier law")), both[0])
    assert main(["compare", str(old), str(chosen)]) == 1
    shown = capsys.readouterr().out
    assert "**NEW is a part of a run.**" in shown
    assert "- lib/sgld: --tier law" in shown
    assert "| lib/sgld | pass: law holds | part: law not examined | worse |" in shown
    assert main(["compare", str(old), str(chosen), "--part"]) == 0
    assert "**NEW is a part of a run.**" in capsys.readouterr().out
    # an interrupted run left out nothing
    cut = written(tmp_path / "cut.jsonl", header(lib_sgld=Plan(2, ("gaussian",))), both[0])
    assert main(["compare", str(old), str(cut), "--part"]) == 1
    shown = capsys.readouterr().out
    assert "- lib/sgld: 1 of 2 statements were run" in shown
    assert "lib/sgld defect on gaussian | was pass, is not there" in shown


def test_a_tier_that_a_finished_run_left_out_and_what_did_not_apply_are_not_lost(tmp_path):
    law, contract = result(statement="defect"), result(statement="key_discipline")
    old = written(tmp_path / "old.jsonl", header(lib_sgld=Plan(2)), law, contract)
    new = written(tmp_path / "new.jsonl", header(lib_sgld=Plan(1)), law)
    assert main(["compare", str(old), str(new)]) == 1
    assert main(["compare", str(old), str(new), "--part"]) == 0
    silent = result("not-applicable", statement="key_discipline")
    silent = written(tmp_path / "silent.jsonl", header(lib_sgld=Plan(2)), law, silent)
    assert main(["compare", str(silent), str(new)]) == 0


def test_a_sampler_that_an_interrupted_run_did_not_reach_is_lost(tmp_path):
    plan = header(lib_sgld=Plan(1), lib_sghmc=Plan(1))
    old = written(tmp_path / "old.jsonl", plan, result(), result(sampler="lib/sghmc"))
    cut = written(tmp_path / "cut.jsonl", plan, result())
    assert main(["compare", str(old), str(cut), "--part"]) == 1


def test_a_law_that_is_not_shown_any_more_is_worse_though_no_verdict_is(tmp_path, capsys):
    """The same verdicts, of which one does not meet what is due any more."""
    plan = header(lib_sgld=Plan(1, ("gaussian",)))
    old = written(tmp_path / "old.jsonl", plan, result(statement=LIMIT, meets=["gaussian"]))
    new = written(tmp_path / "new.jsonl", plan, result(statement=LIMIT))
    assert main(["compare", str(old), str(new)]) == 1
    assert "| lib/sgld | pass: law holds | inconclusive: law undecided | worse |" in capsys.readouterr().out
    # a file without a plan is compared by its results: less was asked of it
    assert main(["compare", str(written(tmp_path / "without.jsonl", result(statement=LIMIT))), str(new)]) == 0


def test_a_file_of_schema_1_is_compared_under_the_names_of_today(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(results.SUCCESSORS, "covariance_limit", LIMIT)
    line = json.dumps({**json.loads(former(result(statement=LIMIT))), "check": "covariance_limit"})
    old = written(tmp_path / "old.jsonl", line)
    assert main(["compare", str(old), str(written(tmp_path / "new.jsonl", result(statement=LIMIT)))]) == 0
    assert "1 same" in capsys.readouterr().out


# Files that several runs write --------------------------------------------------------------------------------------

WRITER = """
import json, sys
from pathlib import Path
from sgmcmc_verification.reports.records.jsonl import appended
with appended(Path(sys.argv[1])) as append:
    for i in range(100):
        append(json.dumps({"writer": sys.argv[2], "i": i, "padding": "x" * 5000}))
"""


def test_two_runs_that_write_to_one_file_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "shared.jsonl"
    runs = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], cwd=ROOT) for name in "ab"]
    assert [run.wait(timeout=120) for run in runs] == [0, 0]
    lines = read(path)
    assert sorted((line["writer"], line["i"]) for line in lines) == [(name, i) for name in "ab" for i in range(100)]


@pytest.mark.parametrize("whole", [0, 1, 3])
def test_what_a_killed_run_left_of_a_line_is_cut_off_before_the_next_one(tmp_path, whole):
    path = tmp_path / "cut.jsonl"
    path.write_text('{"i": 1}\n' * whole + '{"i": 1, "padding": "' + "x" * 10_000)
    with appended(path) as append:
        append('{"i": 2}')
    assert [line["i"] for line in read(path)] == [1] * whole + [2]
