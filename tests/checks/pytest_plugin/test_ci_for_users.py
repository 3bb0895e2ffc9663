"""The CI of somebody else: a scratch package with a right and a wrong sampler, exit codes, summary and badge."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from checks.core.result import Result
from reports.__main__ import main
from reports.pages.summary import COLOURS

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = """
import jax

from samplers.simple import simple_sampler


def sampler(noise):
    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), position)[0].gradient
        normal = jax.random.normal(noise_key, position.shape, position.dtype)
        return position - step_size * gradient + (noise * step_size) ** 0.5 * normal

    return simple_sampler(step)


right, wrong = sampler(2.0), sampler(1.0)
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
    """Run `.ci/verify` on an object of a package in a folder of its own; returns (exit code, folder of the output)."""
    (tmp_path / "scratch_langevin").mkdir()
    (tmp_path / "scratch_langevin" / "__init__.py").write_text(PACKAGE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)

    def run(name, *options):
        out = tmp_path / name
        environment = os.environ | {"PYTHON_READY": sys.executable, "OUT": str(out), "PYTHONPATH": path}
        command = [ROOT / ".ci" / "verify", ".", f"scratch_langevin:{name}", *FEW, *options]
        return subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE).returncode, out

    return run


def message(out: Path) -> str:
    """Of the badge; the two forms of it say the same."""
    shown = json.loads((out / "badge.json").read_text())
    picture = ElementTree.parse(out / "badge.svg").getroot()
    assert picture.attrib["aria-label"] == f"{shown['label']}: {shown['message']}"
    assert shown["color"] == COLOURS[shown["message"]]
    return shown["message"]


def test_a_wrong_sampler_fails_the_job_and_turns_the_badge(verify):
    code, out = verify("wrong")
    assert (code, message(out)) == (1, "failing")
    assert "1 of 1 samplers do not pass" in (out / "summary.md").read_text()


def test_a_right_sampler_passes_with_a_file_of_deviations_beside_the_package(verify, tmp_path):
    (tmp_path / "known.toml").write_text(DEVIATIONS.format(sampler="blackjax/sghmc"))  # not selected, so left alone
    code, out = verify("right", "--deviations", "known.toml")
    assert (code, message(out)) == (0, "verified")


def test_a_command_without_a_sampler_says_how():
    result = subprocess.run([ROOT / ".ci" / "verify", "."], capture_output=True, text=True)
    assert result.returncode == 4
    assert ".ci/verify PACKAGE SAMPLER" in result.stderr


# The summary itself ---------------------------------------------------------------------------------------------------


def line(verdict, check="gaussian_limit", sampler="lib/sgld", **rest):
    return Result(check, "law", "pi_h -> pi | as h -> 0", sampler, verdict, target="g", reason="a|b", **rest).to_json()


def summarised(tmp_path, capsys, *lines, flags=()):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(text + "\n" for text in lines))
    code = main(["summary", str(path), *flags])
    return code, capsys.readouterr()


def test_verdicts_and_exit_codes(tmp_path, capsys):
    code, shown = summarised(tmp_path, capsys, line("pass"))
    assert code == 0
    assert "| lib/sgld | ✅ pass |" in shown.out
    code, shown = summarised(tmp_path, capsys, line("pass"), line("fail", effect=0.5, allowance=0.1))
    assert code == 1
    assert "<summary>lib/sgld gaussian_limit g: pi_h -&gt; pi | as h -&gt; 0</summary>" in shown.out
    code, shown = summarised(tmp_path, capsys, line("inconclusive"), flags=["--badge", str(tmp_path / "b.json")])
    assert code == 1
    assert json.loads((tmp_path / "b.json").read_text())["message"] == "undecided"


@pytest.mark.parametrize(
    ("lines", "flags", "text"),
    [
        ((), (), "holds no results"),
        ((line("pass"),), ("--badge", "badge.png"), "--badge badge.png: must end in .svg or .json"),
        ((line("pass"),), ("--deviations", "nowhere.toml"), "--deviations nowhere.toml: cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, capsys, lines, flags, text):
    code, shown = summarised(tmp_path, capsys, *lines, flags=flags)
    assert code == 2
    assert text in shown.err


def test_a_known_failure_is_listed_and_does_no_harm(tmp_path, capsys):
    (tmp_path / "known.toml").write_text(DEVIATIONS.format(sampler="lib/sgld"))
    flags = ["--deviations", str(tmp_path / "known.toml")]
    code, shown = summarised(tmp_path, capsys, line("fail"), flags=flags)
    assert code == 0
    assert "Known deviations: half of the noise (https://example.org/1)" in shown.out
    code, shown = summarised(tmp_path, capsys, line("pass"), flags=flags)
    assert code == 1  # an unexpected pass


def test_many_findings_are_cut(tmp_path, capsys):
    _, shown = summarised(tmp_path, capsys, *(line("fail", sampler=f"lib/s{i}") for i in range(30)))
    assert shown.out.count("<details>") == 20
    assert "… and 10 more." in shown.out
