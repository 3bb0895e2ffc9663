"""`pytest checks` from the outside: exit codes, the first line of a file, expected failures, `--law-only`."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.result import SCHEMA, Result

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import jax, jax.numpy as jnp, numpy as np

class Walk:
    noise, kind = 2.0, None

    def step(self, key, state, step_size, estimator):
        gradient = estimator.estimate(key, (), state)[0].gradient
        noise = jax.random.normal(key, state.shape, self.kind or state.dtype)
        return state - step_size * gradient + jnp.sqrt(self.noise * step_size) * noise

class Half(Walk):
    noise = 1.0

class Typed(Walk):
    kind = "float64"

class Slices(Walk):
    backend = "host"

    def step(self, rng, state, step_size, estimator):
        level = lambda x: -float(estimator.estimate(rng, (), x)[0].potential)
        x = np.array(state)
        for i in np.ndindex(x.shape):
            height, low = level(x) - rng.exponential(), x[i] - 2 * rng.random()
            high = low + 2
            while True:
                y = x.copy()
                y[i] = rng.uniform(low, high)
                if level(y) >= height:
                    break
                low, high = (y[i], high) if y[i] < x[i] else (low, y[i])
            x = y
        return x

right, wrong, typed, right_by_slices = Walk(), Half(), Typed(), Slices()
"""
ENTRY = '[[expected_failure]]\nsampler = "{}"\nstatement = "{}"\nreason = "r"\nissue = "i"\n'


@pytest.fixture
def verify(tmp_path, capsys):
    """Run the checks in this process; returns (exit code, what was printed)."""
    path = tmp_path / "mine.py"
    path.write_text(CODE, encoding="utf-8")

    def run(name, *arguments):
        options = ["-p", "no:cacheprovider", "--sampler", f"{path}:{name}"]
        code = pytest.main([str(ROOT / "checks"), *options, *arguments])
        return int(code), capsys.readouterr().out

    return run


@pytest.mark.parametrize("given", ["0", "-1", "soon"])
def test_a_budget_that_is_none_is_a_mistake_on_the_command_line(verify, given):
    code, _ = verify("right", "--budget", given)
    assert code == 4


def test_runs_that_the_budget_has_ended_leave_the_law_undecided_and_say_so(verify):
    code, text = verify("right_by_slices", "--budget", "0.001")
    assert code == 1, text
    assert text.count("INCONCLUSIVE") > 0
    assert "the budget (--budget) had ended before" in " ".join(text.split())


LAW = ("--tier", "law", "--target", "gaussian-1d-scaled", "-k", "gaussian_limit")
KEYS = ("--tier", "contract", "-k", "key_discipline")
TYPES = ("--tier", "contract", "-k", "shapes_and_dtypes")


def test_what_is_right_as_far_as_it_was_run_exits_with_0_and_is_called_a_part(verify):
    code, text = verify("right", *LAW)
    assert code == 0, text
    assert "PART  " in text
    assert "PASS  " not in text


def test_a_violated_law_exits_with_1_whatever_was_asked_for(verify):
    for flags in ((), ("--law-only",)):
        code, text = verify("wrong", *LAW, *flags)
        assert code == 1, text
        assert "FAIL  " in text
        assert "gaussian_limit" in text


def test_a_major_fault_of_conduct_exits_with_1_and_with_law_only_with_0(verify):
    code, text = verify("right", *KEYS)
    assert code == 1, text
    assert "FAULT  " in text
    code, text = verify("right", *KEYS, "--law-only")
    assert code == 0, text
    assert "key_discipline" in text


def test_a_minor_fault_of_conduct_exits_with_0_and_is_said(verify):
    code, text = verify("typed", *TYPES)
    assert code == 0, text
    assert "minor: shapes_and_dtypes" in text
    assert "1 minor fault" in text
    assert "FAULT  " not in text


def test_a_known_violation_exits_with_0_and_is_called_known(verify, tmp_path):
    known = tmp_path / "known.toml"
    known.write_text(ENTRY.format("*:wrong", "gaussian_limit"), encoding="utf-8")
    code, text = verify("wrong", *LAW, "--expected-failures", str(known))
    assert "violated (known)" in text, text
    assert code == 0
    known.write_text(ENTRY.format("*:wrong", "*"), encoding="utf-8")  # the stability of the same check passes
    code, text = verify("wrong", *LAW, "--expected-failures", str(known))
    assert "UNEXPECTED PASS" in text, text
    assert code == 1


def test_end_to_end_report_expected_failure_and_exit_code(tmp_path):
    known = tmp_path / "known.toml"
    known.write_text(ENTRY.format("sgld", "movement"), encoding="utf-8")
    report = tmp_path / "report.jsonl"
    command = [sys.executable, "-m", "pytest", "checks", "-p", "no:cacheprovider", "-n", "1", "--sampler", "sgld"]
    command += ["--tier", "contract", "-k", "movement", "--report", str(report), "--expected-failures", str(known)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "UNEXPECTED PASS" in run.stdout
    first, *lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert first["plan"]["sgld"]["part"].startswith("--tier contract")
    assert first["plan"]["sgld"]["cases"] > len(lines)
    assert "--sampler sgld" in first["command"]
    assert first["schema"] == SCHEMA
    assert {"commit", "versions", "platform", "date", "chains", "law_only"} <= set(first)
    rows = [Result(**line) for line in lines]
    assert "movement" in {row.statement for row in rows}
    assert {row.check for row in rows} == {"inputs_used"}
    assert {row.verdict for row in rows} == {"pass"}


def test_one_target_of_those_that_would_do_is_a_part(verify):
    code, text = verify("typed", "--target", "gaussian-1d-scaled", "--tier", "law")
    assert code == 0, text
    assert "PART  " in text
    assert "(--target gaussian-1d-scaled" in text


class _Full(io.TextIOWrapper):
    """A file on a disk that holds no more than some pieces of text."""

    left = 0

    def write(self, text):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(text)


@pytest.mark.parametrize(("option", "pieces"), [("--report", 0), ("--report", 1), ("--json", 0)])
def test_a_full_disk_is_one_line_and_keeps_what_was_written(verify, tmp_path, monkeypatch, option, pieces):
    written, opened = tmp_path / "written", Path.open

    def full(path, mode="r", *arguments, **named):
        if (path, mode) != (written, "w"):
            return opened(path, mode, *arguments, **named)
        found = _Full(opened(path, "wb"), encoding="utf-8")
        found.left = pieces
        return found

    monkeypatch.setattr(Path, "open", full)
    code, text = verify("right", *LAW, option, str(written))
    assert code == 4
    assert "Traceback" not in text
    assert len(written.read_bytes().splitlines()) == pieces


@pytest.mark.parametrize(("options", "shown"), [((), False), (("-W", "default::DeprecationWarning"), True)])
def test_what_a_library_will_no_longer_support_is_said_where_it_is_asked_for(tmp_path, options, shown):
    """Importing one library with geoopt's 73 old decorators wrote 146 lines before the first result."""
    path = tmp_path / "mine.py"
    path.write_text("import warnings\nwarnings.warn('an old decorator', DeprecationWarning)\n" + CODE, encoding="utf-8")
    command = (sys.executable, "-m", "pytest", "checks", "--sampler", f"{path}:right", "--collect-only", "-q", *options)
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout
    assert ("an old decorator" in done.stderr) is shown
