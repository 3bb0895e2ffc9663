"""Several processes: the items of a sampler are of one of them, whatever its name and the distribution."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WALKS = """
import jax, jax.numpy as jnp

class Walk:
    def step(self, key, state, step_size, estimator):
        first, second = jax.random.split(key)
        gradient = estimator.estimate(first, (), state)[0].gradient
        return state - step_size * gradient + jnp.sqrt(2 * step_size) * jax.random.normal(second, state.shape)

grün, other = Walk(), Walk()
"""


@pytest.mark.parametrize("dist", ["load", "loadgroup"])
def test_a_sampler_is_of_one_process_which_so_has_all_results_that_its_runs_stand_on(tmp_path, dist):
    (tmp_path / "mine.py").write_text(WALKS, encoding="utf-8")
    samplers = [f"--sampler={tmp_path}/mine.py:{name}" for name in ("grün", "other")]
    options = ["-n", "2", "--dist", dist, "-v", "--tier", "contract", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "checks", *options, *samplers]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=environment)
    items = re.findall(r"^\[(gw\d)\].*\[.*mine\.py:(gr\\xfcn|other)-\w+-", run.stdout, re.MULTILINE)
    assert run.returncode == 0, run.stdout + run.stderr
    assert {name for _, name in items} == {"gr\\xfcn", "other"}
    assert len(items) > 2 * len(set(items))
    assert len(set(items)) == 2, "each sampler of one process, and so as many pairs as samplers"
    assert len({process for process, _ in items}) == 2, "all processes have work"
