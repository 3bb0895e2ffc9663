"""The CI of somebody else, by executing the very scripts that its templates call, on samplers right, wrong, unusable.

The cases of the review are REVIEW R2.
"""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sgmcmc_verification.checks.core.conclusion import Plan
from sgmcmc_verification.reports.__main__ import main
from sgmcmc_verification.reports.pages import annotations
from sgmcmc_verification.reports.pages.summary import NOTHING, WORDS
from tests.helpers.result_lines import LIMIT, header, result, written

ROOT = Path(__file__).resolve().parents[2]
SAMPLERS = """
import jax

from sgmcmc_verification.samplers.simple import simple_sampler


def step_of(noise):
    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), position)[0].gradient
        normal = jax.random.normal(noise_key, position.shape, position.dtype)
        return position - step_size * gradient + (noise * step_size) ** 0.5 * normal

    return step


def no_step(key, position, step_size, estimator):
    return position.sum() + position.missing


right, wrong = simple_sampler(step_of(2.0)), simple_sampler(step_of(1.0))
unusable = simple_sampler(no_step)
"""
LINE_OF_STEP = SAMPLERS.splitlines().index("    def step(key, position, step_size, estimator):") + 1
LINE_OF_ERROR = SAMPLERS.splitlines().index("    return position.sum() + position.missing") + 1
LATE = """
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
FEW = ("--target", "gaussian-1d-scaled", "--tier", "law", "-k", "gaussian_limit")
OUTPUTS = {"summary.md", "badge.svg", "badge.json", "codequality.json", "errors.txt"}


class Repository:
    """A repository with samplers in `src`, and the scripts run in it as a job would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "src").mkdir()
        (folder / "src" / "mine.py").write_text(SAMPLERS)
        (folder / "src" / "late.py").write_text(LATE)
        (folder / "src" / "exits.py").write_text("import os\nos._exit(0)\n")
        (folder / "pyproject.toml").write_text('[project]\nname = "scratch"\nversion = "0"\n')

    def run(self, script: str, *arguments: str, out: str = "out", **given: str) -> subprocess.CompletedProcess[str]:
        """A script of `.ci` with the interpreter of the tests; `given` are variables of the environment."""
        environment = {name: text for name, text in os.environ.items() if not name.startswith(("GITHUB_", "CI_"))}
        environment |= {"PYTHON_READY": sys.executable, "OUT": out, "GITHUB_ACTIONS": "true", **given}
        command = [str(ROOT / ".ci" / script), *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def text(self, name: str, out: str = "out") -> str:
        return (self.folder / out / name).read_text(encoding="utf-8")

    def badge(self, out: str = "out") -> str:
        """Text of the badge; its two forms say the same."""
        shown = json.loads(self.text("badge.json", out))
        picture = ElementTree.fromstring(self.text("badge.svg", out))
        assert picture.attrib["aria-label"] == f"{shown['label']}: {shown['message']}"
        assert (shown["message"], shown["color"]) in {(w.badge, w.colour) for w in (*WORDS.values(), NOTHING)}
        return shown["message"]


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_a_right_sampler_at_a_relative_path_leaves_all_files_and_a_few_statements_are_a_part(repository):
    done = repository.run("verify", ".", "src/mine.py:right", *FEW)
    assert done.returncode == 0, done.stderr
    assert repository.badge() == "part"
    assert "--target gaussian-1d-scaled" in repository.text("summary.md")
    assert {path.name for path in (repository.folder / "out").iterdir()} == OUTPUTS | {"results.jsonl", "results.xml"}
    assert json.loads(repository.text("codequality.json")) == []
    assert "::error" not in done.stdout


def test_a_wrong_sampler_fails_the_job_turns_the_badge_and_is_annotated_at_its_step(repository):
    page = repository.folder / "page.md"
    done = repository.run("verify", ".", "src/mine.py:wrong", *FEW, GITHUB_STEP_SUMMARY=str(page))
    assert (done.returncode, repository.badge()) == (1, "law violated"), done.stderr
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("::")]
    assert line.startswith(f"::error file=src/mine.py,line={LINE_OF_STEP},title=src/mine.py%3Awrong%3A the law is")
    assert "the variance of the noise" in line.split("::")[2]
    (entry,) = json.loads(repository.text("codequality.json"))
    assert entry["location"] == {"path": "src/mine.py", "lines": {"begin": LINE_OF_STEP}}
    assert page.read_text().strip() == repository.text("summary.md").strip()
    assert "### ❌ The law is violated" in page.read_text()
    assert "reproduce   sgmcmc-verify src/mine.py:wrong --target" in page.read_text()


def test_an_unusable_sampler_is_annotated_at_the_line_that_raised_and_has_no_conclusion(repository):
    done = repository.run("verify", ".", "src/mine.py:right", "src/mine.py:unusable", *FEW)
    assert (done.returncode, repository.badge()) == (4, "no conclusion"), done.stderr
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("::")]
    assert line.startswith(f"::error file=src/mine.py,line={LINE_OF_ERROR},title=the checks could not start::")
    assert "src/mine.py:unusable on gaussian-1d-scaled: init or step raises AttributeError" in line
    assert "unusable" in repository.text("summary.md")


@pytest.mark.parametrize("sampler", ["src/late.py:late", "src/exits.py:any"])
def test_a_sampler_that_ends_the_process_fails_the_job_whatever_an_earlier_run_left(repository, sampler):
    """REVIEW R2: `os._exit(0)` gave the exit code 0, beside the results of an earlier run."""
    earlier = repository.folder / "out"
    earlier.mkdir()
    written(earlier / "results.jsonl", result("pass", LIMIT))
    (earlier / "results.xml").write_text("<earlier/>")
    assert main(["conclude", str(earlier), "--code", "0"]) == 0
    assert repository.badge() == "law holds"
    done = repository.run("verify", ".", sampler, *FEW)
    assert (done.returncode, repository.badge()) == (1, "no conclusion")
    assert "the run did not come to its end" in done.stderr


def test_words_of_a_template_are_no_shell_and_no_option_hides_a_failure(repository):
    """`options: --law-only || true` was a way to a green job, as was a second report."""
    few = " ".join(FEW)
    given = {"SAMPLERS": "src/mine.py:wrong", "PACKAGE": "none"}
    assert repository.run("verify", OPTIONS=few, **given).returncode == 1
    for words in ("|| true", "; exit 0", "$(touch hacked) || :"):
        done = repository.run("verify", OPTIONS=f"{few} {words}", **given)
        assert done.returncode == 4, (words, done.stdout, done.stderr)
        assert repository.badge() == "no conclusion"
    assert not (repository.folder / "hacked").exists()
    for words in ("--report other.jsonl", "--report=other.jsonl", "--junit-xml x", "--junitxml=x"):
        done = repository.run("verify", OPTIONS=f"{few} {words}", **given)
        assert done.returncode == 4
        assert "name another folder in OUT" in done.stderr
    done = repository.run("verify", OPTIONS=few, PYTEST_ADDOPTS="--collect-only --report x.jsonl", **given)
    assert (done.returncode, repository.badge()) == (1, "law violated")


def test_a_command_without_a_sampler_says_how(repository):
    for script, arguments in (("verify", (".",)), ("verify", (".", "--law-only")), ("merge", ())):
        done = repository.run(script, *arguments)
        assert done.returncode == 4
        assert f".ci/{script} " in done.stderr


def test_shards_are_merged_to_what_one_machine_finds(repository):
    both = ("src/mine.py:right", "src/mine.py:wrong", *FEW)
    assert repository.run("verify", "none", *both, out="whole").returncode == 1
    codes = [repository.run("verify", "none", *both, "--shard", f"{i}/2", out=f"shard-{i}").returncode for i in (1, 2)]
    assert sorted(codes) == [0, 1]  # one has the right sampler, one the wrong one
    done = repository.run("merge", "shard-1", "shard-2", out="merged")
    assert (done.returncode, repository.badge("merged")) == (1, "law violated"), done.stderr
    assert f"line={LINE_OF_STEP}" in done.stdout
    rows = lambda out: sorted(
        line for line in repository.text("summary.md", out).splitlines() if line.startswith("| src")
    )
    assert rows("merged") == rows("whole")
    assert len(rows("merged")) == 2
    done = repository.run("merge", "shard-1", out="merged")
    assert (done.returncode, repository.badge("merged")) == (4, "no conclusion")
    assert "shards missing 2/2; each has to be there once" in repository.text("summary.md", "merged")


# In kept environments, comments and badges ----------------------------------------------------------------------------

STAND_IN = """#!/usr/bin/env bash
# An interpreter whose pip writes down what it is asked for, and whose environments are copies of itself.
case "$*" in
"-m venv --clear "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && echo "venv" >>"$LOG" ;;
"-m pip "*) echo "$*" >>"$LOG" ;;
*) exec "$REAL" "$@" ;;
esac
"""


def stand_in(folder: Path, name: str, text: str) -> str:
    """A program of a name in a folder for PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return str(folder / name)


def test_an_environment_is_kept_and_the_package_alone_is_installed_again(repository):
    python = stand_in(repository.folder / "programs", "python", STAND_IN)
    log = repository.folder / "log.txt"
    given = {"PYTHON_READY": "", "PYTHON": python, "REAL": sys.executable, "LOG": str(log)}
    for _ in range(2):
        done = repository.run("verify", ".", "src/mine.py:nothing", VENV="kept", **given)
        assert done.returncode == 4, done.stderr  # there is no such sampler
    words = "-m pip install --quiet --disable-pip-version-check"
    once = [f"{words} -e {ROOT}[reports] .", f"{words} --force-reinstall --no-deps ."]
    assert log.read_text().splitlines() == ["venv", *once, *once]
    log.write_text("")
    repository.run("verify", ".", "src/mine.py:nothing", **given)
    assert log.read_text().splitlines() == ["venv", once[0]]


def test_the_summary_becomes_a_comment_of_the_change_and_of_nothing_else(repository):
    programs = repository.folder / "programs"
    for name in ("gh", "curl"):
        stand_in(programs, name, f'#!/bin/sh\necho {name} "$@"\n')
    given = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    assert repository.run("comment", **given).returncode == 1  # nothing to say
    (repository.folder / "out").mkdir()
    (repository.folder / "out" / "summary.md").write_text("### fine\n")
    assert repository.run("comment", **given).stdout == "no change to comment on, or no token\n"
    done = repository.run("comment", PULL_REQUEST="7", GH_TOKEN="t", **given)
    assert done.stdout == "gh pr comment 7 --body-file out/summary.md --edit-last --create-if-none\n"
    lab = {"CI_MERGE_REQUEST_IID": "3", "CI_PROJECT_ID": "5", "CI_API_V4_URL": "https://lab/api/v4"}
    done = repository.run("comment", VERIFICATION_TOKEN="secret", **lab, **given)
    assert done.stdout.startswith("curl --fail ")
    assert done.stdout.endswith(
        "--data-urlencode body@out/summary.md https://lab/api/v4/projects/5/merge_requests/3/notes\n"
    )


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_badges_are_published_on_a_branch_of_their_own(repository, tmp_path_factory):
    remote = tmp_path_factory.mktemp("remote")
    git(remote, "init", "--quiet", "--bare")
    mine = repository.folder
    git(mine, "init", "--quiet", "--initial-branch", "main")
    git(mine, "remote", "add", "origin", str(remote))
    git(mine, "add", "pyproject.toml")
    git(mine, "commit", "--quiet", "-m", "first")
    assert repository.run("publish-badge").returncode == 1  # there is none
    (mine / "out").mkdir()
    for text in ("one", "two"):
        for name in ("badge.svg", "badge.json"):
            (mine / "out" / name).write_text(text)
        done = repository.run("publish-badge")
        assert done.returncode == 0, done.stderr
        assert git(remote, "show", "verification-badge:badge.json") == text
    assert git(remote, "ls-tree", "--name-only", "verification-badge").split() == ["badge.json", "badge.svg"]
    assert git(remote, "rev-list", "--count", "verification-badge").strip() == "1"
    assert git(mine, "branch", "--show-current").strip() == "main"
    assert git(mine, "diff", "--cached", "--name-only") == ""


# The last step --------------------------------------------------------------------------------------------------------


def concluded(folder: Path, *lines, code: str | None = "0", finished: bool = True) -> tuple[int, str]:
    """(exit code, text of the badge) of a run that left some lines."""
    written(folder / "results.jsonl", *lines)
    (folder / "results.xml").write_text("<testsuites/>" if finished else "")
    found = main(["conclude", str(folder), *(["--code", code] if code else [])])
    return found, json.loads((folder / "badge.json").read_text())["message"]


def test_the_exit_code_is_that_of_the_conclusions_and_of_the_run(tmp_path):
    good, bad = result("pass", LIMIT), result("fail", LIMIT)
    assert concluded(tmp_path, good) == (0, "law holds")
    assert concluded(tmp_path, bad, code="1") == (1, "law violated")
    assert concluded(tmp_path, bad, code=None, finished=False) == (1, "law violated")  # merged
    assert concluded(tmp_path, good, code="2") == (2, "no conclusion")
    assert concluded(tmp_path, good, finished=False) == (1, "no conclusion")
    assert concluded(tmp_path) == (1, "no conclusion")


def test_a_file_that_says_otherwise_than_the_run_is_no_conclusion(tmp_path):
    assert concluded(tmp_path, result("pass", LIMIT), code="1") == (1, "no conclusion")
    assert concluded(tmp_path, result("fail", LIMIT), code="0") == (1, "no conclusion")


def test_a_known_failure_is_a_warning_and_an_error_points_to_its_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "mine.py").touch()
    entry = '[[expected_failure]]\nsampler = "lib/sgld"\nstatement = "gaussian_limit"\nreason = "r"\nissue = "i"\n'
    (tmp_path / "expected_failures.toml").write_text(entry)
    plan = header(lib_sgld=Plan(1, place="src/mine.py:9"))
    assert concluded(tmp_path, plan, result("fail", LIMIT)) == (0, "law violated (known)")
    assert "::warning file=src/mine.py,line=9,title=lib/sgld%3A " in capsys.readouterr().out
    raised = dataclasses.replace(result("error", LIMIT), reason="ValueError: 50% of x at mine.py:4, in f")
    (tmp_path / "expected_failures.toml").unlink()
    assert concluded(tmp_path, plan, raised, code="1") == (1, "error")
    assert "::error file=src/mine.py,line=4,title=lib/sgld%3A the sampler raised::ValueError: 50%25 of x" in (
        capsys.readouterr().out
    )


def test_nothing_in_a_text_is_a_command_of_the_runner():
    note = annotations.Annotation("error", "a:b,c", "one\r\n::stop-commands::x", ("m,n.py", 3))
    (line,) = annotations.github([note])
    assert line == "::error file=m%2Cn.py,line=3,title=a%3Ab%2Cc::one%0D%0A::stop-commands::x"


# Merging --------------------------------------------------------------------------------------------------------------


def shard(folder: Path, number: str, sampler: str, cases: int = 1, **other: object) -> Path:
    first = json.loads(header(**{sampler.replace("/", "_"): Plan(cases)})) | {"shard": number} | other
    return written(
        folder / f"{number.replace('/', '-')}{sampler[-1]}.jsonl", json.dumps(first), result("pass", LIMIT, sampler)
    )


def merged(tmp_path: Path, *files: Path) -> int:
    return main(["merge", str(tmp_path / "whole.jsonl"), *map(str, files)])


def test_files_of_shards_are_one_file_of_the_whole(tmp_path, capsys):
    assert merged(tmp_path, shard(tmp_path, "2/2", "lib/b"), shard(tmp_path, "1/2", "lib/a")) == 0
    first, *lines = map(json.loads, (tmp_path / "whole.jsonl").read_text().splitlines())
    assert set(first["plan"]) == {"lib/a", "lib/b"}
    assert first["shard"] == ""
    assert {line["sampler"] for line in lines} == {"lib/a", "lib/b"}
    assert main(["summary", str(tmp_path / "whole.jsonl")]) == 0


@pytest.mark.parametrize(
    ("shards", "words"),
    [
        ((("1/2", "lib/a"),), "shards missing 2/2"),
        ((("1/2", "lib/a"), ("1/2", "lib/b"), ("2/2", "lib/c")), "twice 1/2"),
        ((("1/2", "lib/a"), ("2/3", "lib/b")), "shards of 2, 3 do not belong together"),
        ((("1/1", "lib/a", 2),), "is cut short (1 of 2 statements of lib/a were run)"),
        ((("", "lib/a"),), "is no shard"),
    ],
)
def test_shards_that_are_no_whole_are_refused(tmp_path, capsys, shards, words):
    assert merged(tmp_path, *(shard(tmp_path, *each) for each in shards)) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "whole.jsonl").exists()


@pytest.mark.parametrize(
    "other", [{"check_set": "2025"}, {"commit": "def"}, {"law_only": True}, {"versions": {"jax": "2"}}]
)
def test_shards_of_different_runs_are_refused(tmp_path, capsys, other):
    assert merged(tmp_path, shard(tmp_path, "1/2", "lib/a"), shard(tmp_path, "2/2", "lib/b", **other)) == 2
    assert f"{next(iter(other))} is" in capsys.readouterr().err
