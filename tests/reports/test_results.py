"""Files of results: what is read, what is refused, what a comparison says."""

import dataclasses
import json
import subprocess
import sys

import pytest

from checks.core.result import Result
from reports.__main__ import main
from reports.pages.compare import changes, report, worsened
from reports.pages.conclusion import conclude
from reports.records.frames import frame
from reports.records.jsonl import ROOT, appended, read
from reports.records.results import ResultsError, load


def result(verdict="pass", check="end_point_ks", tier="invariance", sampler="lib/sgld", **rest) -> Result:
    return Result(check, tier, "a . z = b", sampler, verdict, "a reason", target="gaussian", **rest)


def written(path, *results):
    path.write_text("".join(r.to_json() + "\n" for r in results))
    return path


def test_results_are_read_as_they_were_written(tmp_path):
    one = result(effect=0.1, options={"friction": 2.0}, detail={"stages": 1})
    assert load(written(tmp_path / "a.jsonl", one)) == [one]


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    path = written(tmp_path / "a.jsonl", result())
    path.write_text(path.read_text() + '{"check": "x", "ver')
    assert len(load(path)) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "line 2: has the schema 2"),
        ({"colour": "red"}, "line 2: not the result of a check .*unknown field `colour`"),
        ({"verdict": "fine"}, "line 2: not the result of a check .*Invalid enum value 'fine'"),
        ({"effect": "large"}, r"line 2: not the result of a check .*Expected `float \| null`, got `str`"),
        ({"check": None}, None),
    ],
)
def test_lines_of_another_schema_are_refused(tmp_path, change, message):
    line = {**json.loads(result().to_json()), **change}
    if message is None:
        line.pop("check")
        message = "line 2: not the result of a check"
    path = tmp_path / "a.jsonl"
    path.write_text(result().to_json() + "\n" + json.dumps(line) + "\n")
    with pytest.raises(ResultsError, match=message):
        load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ResultsError, match="no such file"):
        load(tmp_path / "none.jsonl")


# Comparison ---------------------------------------------------------------------------------------------------------


def compared(old, new):
    return changes(frame(old), frame(new))


def test_a_verdict_that_becomes_worse_or_is_lost_decides_the_exit_code():
    old = [result(), result(check="defect", tier="order")]
    assert not worsened(compared(old, old))
    assert worsened(compared(old, [result("fail"), old[1]]))
    assert worsened(compared(old, [result("inconclusive"), old[1]]))
    assert worsened(compared(old, old[:1]))
    assert not worsened(compared([result("fail")], [result()]))


def test_samplers_that_were_not_run_again_are_not_lost():
    old = [result(), result(sampler="lib/sghmc")]
    assert not worsened(compared(old, old[:1]))


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


def test_files_without_results_are_compared():
    assert report(compared([], [])).startswith("**Nothing became worse.**")
    assert list(compared([], [result()]).kind) == ["new"]
    assert list(compared([result()], []).kind) == []


def test_the_command_prints_markdown_and_its_exit_code_says_what_became_worse(tmp_path, capsys):
    old = written(tmp_path / "old.jsonl", result())
    new = written(tmp_path / "new.jsonl", result("fail"))
    assert main(["compare", str(old), str(new)]) == 1
    assert "| lib/sgld end_point_ks on gaussian | pass -> fail: a reason |" in capsys.readouterr().out
    assert main(["compare", str(old), str(old)]) == 0
    assert main(["compare", str(old), str(tmp_path / "none.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err


# Conclusions --------------------------------------------------------------------------------------------------------

ORDER, KS = result(check="defect", tier="order"), result()


@pytest.mark.parametrize(
    ("results", "standing"),
    [
        ([ORDER, KS], "confirmed"),
        ([ORDER], "in part"),
        ([KS], "in part"),
        ([ORDER, KS, result("fail", "gaussian_limit", "law")], "fails"),
        ([ORDER, KS, result("inconclusive", "gaussian_limit", "law")], "undecided"),
        ([result(check="movement", tier="contract")], "undecided"),
        # neither a discrepancy that is blind to far modes nor the contract says anything about the law
        ([ORDER, result(check="kernel_stein_discrepancy", tier="convergence")], "in part"),
        ([ORDER, KS, result("fail", "shapes_and_dtypes", "contract")], "confirmed"),
    ],
)
def test_a_law_is_confirmed_by_checks_of_both_kinds_and_by_nothing_else(results, standing):
    assert conclude("lib/sgld", results).standing == standing


def test_what_does_not_pass_is_named():
    found = conclude("lib/sgld", [result("fail"), result("error", "shapes_and_dtypes", "contract")])
    assert found.violated == (("end_point_ks", "a . z = b"),)
    assert found.interface == ("shapes_and_dtypes",)


# Files that several runs write --------------------------------------------------------------------------------------

WRITER = """
import json, sys
from pathlib import Path
from reports.records.jsonl import appended
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
