"""Summary and badge of a run, and the CI of somebody else: a part of a run, or a known failure, is never the whole.

The cases are those of the review: REVIEW V1 (what was called verified), R2 (`.ci/verify`) and R3.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sgmcmc_verification.checks.core.conclusion import WORDS as MEANINGS
from sgmcmc_verification.checks.core.conclusion import Plan
from sgmcmc_verification.checks.core.result import Result, Verdict
from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.pages.summary import WORDS
from tests.helpers.result_lines import LIMIT, header
from tests.helpers.result_lines import result as result_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = """
import jax

from sgmcmc_verification.samplers.simple import simple_sampler


def sampler(noise):
    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), position)[0].gradient
        normal = jax.random.normal(noise_key, position.shape, position.dtype)
        return position - step_size * gradient + (noise * step_size) ** 0.5 * normal

    return simple_sampler(step)


right, wrong = sampler(2.0), sampler(1.0)
"""
SUICIDE = """
import os

import jax

from sgmcmc_verification.samplers.simple import simple_sampler

seen = []


def step(key, position, step_size, estimator):
    seen.append(key)
    if len(seen) > 3:
        os._exit(0)
    return position + (2 * step_size) ** 0.5 * jax.random.normal(key, position.shape, position.dtype)


late = simple_sampler(step)
"""
DEVIATIONS = """
[[deviation]]
sampler = "{sampler}"
check = "gaussian_limit"
reason = "half of the noise"
issue = "https://example.org/1"
"""
FEW = ("--target", "gaussian-1d-scaled", "--tier", "law", "-k", "gaussian_limit", "-p", "no:cacheprovider")


@pytest.fixture
def verify(tmp_path):
    """Run `.ci/verify` on a sampler of a package in a folder of its own; returns (process, folder of the output)."""
    package = tmp_path / "scratch_langevin"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    (package / "suicide.py").write_text(SUICIDE)
    (package / "at_import.py").write_text("import os\nos._exit(0)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)

    def run(sampler, *options, few=FEW):
        out = tmp_path / "out"
        environment = os.environ | {"PYTHON_READY": sys.executable, "OUT": str(out), "PYTHONPATH": path}
        command = [ROOT / ".ci" / "verify", ".", sampler, *few, *options]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True), out

    return run


def message(out: Path) -> str:
    """Of the badge; the two forms of it say the same."""
    shown = json.loads((out / "badge.json").read_text())
    picture = ElementTree.parse(out / "badge.svg").getroot()
    assert picture.attrib["aria-label"] == f"{shown['label']}: {shown['message']}"
    assert (shown["message"], shown["color"]) in {(word.badge, word.colour) for word in WORDS.values()}
    return shown["message"]


def test_a_wrong_sampler_fails_the_job_and_turns_the_badge(verify):
    done, out = verify("scratch_langevin:wrong")
    assert (done.returncode, message(out)) == (1, "law violated")
    assert "### ❌ The law is violated" in (out / "summary.md").read_text()
    assert ElementTree.parse(out / "results.xml").getroot() is not None


def test_a_few_statements_about_a_right_sampler_are_a_part(verify, tmp_path):
    (tmp_path / "known.toml").write_text(DEVIATIONS.format(sampler="blackjax/sghmc"))  # not selected, so left alone
    done, out = verify("scratch_langevin/__init__.py:right", "--deviations", "known.toml")
    assert (done.returncode, message(out)) == (0, "part")
    assert "--target gaussian-1d-scaled" in (out / "summary.md").read_text()


@pytest.mark.parametrize("module", ["suicide:late", "at_import:any"])
def test_a_sampler_that_ends_the_process_fails_the_job(verify, tmp_path, module):
    """REVIEW R2: `os._exit(0)` gave the exit code 0, beside the results of an earlier run."""
    earlier = tmp_path / "out"
    earlier.mkdir()
    (earlier / "results.jsonl").write_text(line("pass") + "\n")
    flags = [word for kind in ("svg", "json") for word in ("--badge", str(earlier / f"badge.{kind}"))]
    assert main(["summary", str(earlier / "results.jsonl"), *flags]) == 0
    assert message(earlier) == "law holds"
    for name in ("results.xml", "summary.md"):
        (earlier / name).write_text("<earlier/>")
    done, out = verify(f"scratch_langevin.{module}")
    assert done.returncode == 1
    assert "the run did not come to its end" in done.stderr
    assert not (out / "badge.json").exists() or message(out) == "part"


def test_a_second_report_is_refused(verify):
    """REVIEW R2: it emptied the folder of the first."""
    done, _ = verify("scratch_langevin:right", "--report", "other.jsonl")
    assert done.returncode == 4
    assert "name another folder in OUT" in done.stderr


def test_a_command_without_a_sampler_says_how():
    result = subprocess.run([ROOT / ".ci" / "verify", "."], capture_output=True, text=True)
    assert result.returncode == 4
    assert ".ci/verify PACKAGE SAMPLER" in result.stderr


# The summary itself ---------------------------------------------------------------------------------------------------


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
    """REVIEW V1: deviations that cover a failure of the law made the badge say verified."""
    (tmp_path / "known.toml").write_text(DEVIATIONS.format(sampler="lib/sgld"))
    flags = ["--deviations", str(tmp_path / "known.toml")]
    code, shown, badge = summarised(tmp_path, capsys, line("fail"), line("pass", "defect"), flags=flags)
    assert (code, badge) == (0, "law violated (known)")
    assert "| lib/sgld | ❗ violated (known): gaussian_limit |" in shown.out
    assert "Known deviations: half of the noise (https://example.org/1)" in shown.out
    assert summarised(tmp_path, capsys, line("pass"), flags=flags)[0] == 1  # an unexpected pass


@pytest.mark.parametrize(
    ("lines", "flags", "text"),
    [
        ((), (), "holds no results"),
        ((header(lib_sgld=Plan(3)),), (), "holds no results"),
        ((line("pass"),), ("--badge", "badge.png"), "--badge badge.png: must end in .svg or .json"),
        ((line("pass"),), ("--deviations", "nowhere.toml"), "--deviations nowhere.toml: cannot be read"),
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
