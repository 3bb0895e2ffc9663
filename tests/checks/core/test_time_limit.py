"""The limit of time: raised where the code is, again if it is caught, not at all if the code is done."""

import signal
import subprocess
import sys
import time

import pytest

from sgmcmc_verification.checks.core import time_limit as module
from sgmcmc_verification.checks.core.error_origin import place
from sgmcmc_verification.checks.core.time_limit import OutOfTime, time_limit

LOOP = """
import {header}

class Loop:
    backend = "{backend}"

    def step(self, key, state, step_size, estimator):
        {body}
        return state

sampler = Loop()
"""


def test_the_traceback_is_that_of_the_code_that_runs():
    def never():
        while True:
            pass

    with pytest.raises(OutOfTime, match=r"more than 0\.05 s") as error, time_limit(0.05):
        never()
    assert place(error.value).endswith("in never")


def test_code_that_catches_it_is_interrupted_again(monkeypatch):
    monkeypatch.setattr(module, "AGAIN", 0.05)
    caught = []

    def stubborn():
        while True:
            try:
                time.sleep(1)
            except OutOfTime as error:
                caught.append(error)
                if len(caught) == 3:
                    raise

    with pytest.raises(OutOfTime), time_limit(0.05):
        stubborn()
    assert len(caught) == 3


def test_nothing_is_left_behind():
    before = signal.getsignal(signal.SIGALRM)
    for limit in (60.0, None):
        with time_limit(limit):
            pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def run(tmp_path, **parts):
    path = tmp_path / "mine.py"
    path.write_text(LOOP.format(**parts), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "checks", "-p", "no:cacheprovider", "--time-limit", "3"]
    return subprocess.run(
        [*command, "--sampler", f"{path}:sampler"], capture_output=True, text=True, check=False, timeout=300
    )


def test_a_step_that_does_not_end_is_one_line_with_its_place(tmp_path):
    found = run(tmp_path, header="time", backend="host", body="while True: pass")
    assert found.returncode == 4, found.stdout + found.stderr
    assert "OutOfTime: it took more than 3 s (--time-limit) at " in found.stderr
    assert "mine.py:8, in step" in found.stderr


def test_a_compiled_loop_that_does_not_end_ends_the_process(tmp_path, monkeypatch):
    code = (
        "import jax\n"
        "from sgmcmc_verification.checks.core import time_limit\n"
        "time_limit.GRACE = 1.0\n"
        "with time_limit.time_limit(0.5):\n"
        "    jax.lax.while_loop(lambda x: x < 1, lambda x: 0 * x, 0).block_until_ready()\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert found.returncode == 1
    assert "ERROR: no interrupt ends what took more than 0.5 s" in found.stderr
