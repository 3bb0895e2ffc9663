"""Expected failures in the repository of a sampler: found by itself, strict, the same for all doors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_verification import checks
from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.runner.expected_failures import FILE, ExpectedFailure, chosen, find, unmatched

NAMESPACE = Path(__file__).resolve().parents[3] / "docs" / "namespace"
CODE = """
import jax


class Right:
    noise = 2.0

    def step(self, key, x, h, estimator):
        draw, batch = jax.random.split(key)
        gradient = estimator.estimate(batch, (), x)[0].gradient
        return x - h * gradient + (self.noise * h) ** 0.5 * jax.random.normal(draw, x.shape, x.dtype)


class Wrong(Right):
    noise = 1.0
"""
OWN = """
from pathlib import Path

from mine import Right, Wrong
from sgmcmc_verification import checks

FEW = {"tiers": ["law"], "targets": ["gaussian-1d-scaled"]}


def test_wrong():
    assert checks.check_sampler(Wrong, **FEW).conclusion.word == "known"


@checks.parametrize_with_checks([Wrong], **FEW)
def test_items(sampler, check):
    check(sampler)
"""
FEW = ("--tier", "law", "--target", "gaussian-1d-scaled")
BY_HAND = ("gaussian_limit", "gradient_noise_limit")
"""Statements of the law on a Gaussian, and with a noisy gradient, that noise of half of its variance violates."""


def entries(sampler: str, *statements: str) -> str:
    text = '[[expected_failure]]\nsampler = "{}"\nstatement = "{}"\nreason = "half"\nissue = "https://example.org/1"\n'
    return "".join(text.format(sampler, each) for each in statements)


@pytest.fixture
def theirs(tmp_path):
    """A repository with a folder of tests, two samplers and their expected failures."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_own.py").write_text(OWN)
    (tmp_path / FILE).write_text(entries("mine.py:Wrong", *BY_HAND) + entries("Wrong", *BY_HAND))
    return tmp_path


def run(folder: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    environment = os.environ | {"PYTHONPATH": str(NAMESPACE)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


COMMAND = "sgmcmc_verification.checks.pytest_plugin.command_line"


@pytest.mark.parametrize(
    "door", [(COMMAND,), ("pytest", "-p", "no:cacheprovider", "--sampler")], ids=["command", "plugin"]
)
def test_the_file_is_found_and_is_strict(theirs, door):
    done = run(theirs, *door, "mine.py:Wrong", *FEW)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "KNOWN  mine.py:Wrong" in done.stdout
    assert "expected failures: 4 entries, 2 about the samplers of this run" in done.stdout
    (theirs / FILE).write_text(entries("mine.py:Wrong", "stability", *BY_HAND))
    done = run(theirs, *door, "mine.py:Wrong", *FEW)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "UNEXPECTED PASS" in done.stdout


def test_what_is_expected_can_be_left_aside(theirs):
    done = run(theirs, COMMAND, "mine.py:Wrong", *FEW, "--expected-failures", "off")
    assert done.returncode == 1
    assert "FAIL  mine.py:Wrong" in done.stdout


def test_their_own_tests_know_the_file_from_any_folder(theirs):
    for folder in (theirs, theirs / "tests"):
        done = run(folder, "pytest", "-q", "-p", "no:cacheprovider")
        assert done.returncode == 0, done.stdout + done.stderr
    (theirs / FILE).write_text(entries("Wrong", "stability", *BY_HAND))
    done = run(theirs, "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 1
    assert "UNEXPECTED PASS" in done.stdout
    assert "test_items[Wrong-gaussian_law-gaussian-1d-scaled]" in done.stdout
    (theirs / FILE).write_text(entries("Wrong", "gaussian_flow"))
    done = run(theirs, "pytest", "-q", "-p", "no:cacheprovider")
    assert "statement='gaussian_flow' target='*' matches no statement; remove it" in done.stdout


def test_the_file_is_the_nearest_one_of_the_repository_and_none_above_it(tmp_path):
    (tmp_path / FILE).write_text("")
    deep = tmp_path / "repository" / "tests" / "unit"
    deep.mkdir(parents=True)
    assert find(tmp_path) == tmp_path / FILE
    assert find(deep) is None  # outside of a repository the folder alone counts
    (tmp_path / "repository" / ".git").mkdir()
    assert find(deep) is None
    (tmp_path / "repository" / FILE).write_text("")
    assert find(deep) == tmp_path / "repository" / FILE
    assert chosen("off", deep) is None
    assert chosen("other.toml", deep) == Path("other.toml")


def test_an_entry_about_another_sampler_waits_for_its_run_and_one_that_nothing_shows_does_not():
    mine = [("p:a", "p:a", "stability", "g")]
    about = lambda sampler, statement: ExpectedFailure(sampler, statement, "r", "i")
    assert unmatched([about("p:a", "stability"), about("p:b", "movement")], mine) == ()
    assert unmatched([about("p:a", "movement")], mine) == (about("p:a", "movement"),)


def test_an_entry_of_python_needs_a_reason():
    for reason in ("", " ", None):
        with pytest.raises(BadInput, match="'gaussian_limit' needs a reason"):
            checks.check_sampler("sgld", expected_failures={"gaussian_limit": reason})
