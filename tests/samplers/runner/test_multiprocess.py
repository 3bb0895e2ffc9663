"""Chains on two processes that `jax.distributed` connects: the samples of one, up to round-off (`test_run_devices`)."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.runner.multiprocess import run_on_processes
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.targets.registry import target

pytestmark = pytest.mark.xdist_group("run_processes")  # what the fixture makes serves one worker

PROGRAM = """
import sys
import jax, numpy as np
from tests.samplers.runner.test_multiprocess import runs
from sgmcmc_verification.samplers.runner.multiprocess import run_on_processes

folder, address, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(address, num_processes=2, process_id=rank)
assert jax.process_count() == 2
assert len(jax.local_devices()) == 2
found = runs(run_on_processes, folder)
np.savez(f"{folder}/{rank}.npz", **found)
"""
LARGEST = 20 * 64 * float(np.finfo(float).eps)
"""Of the relative differences: round-off of 20 steps of a few operations, which the chains do not enlarge."""
NAMES = ("sgld", "positions", "checkpoint", "state")


def runs(runner, folder=None):
    """Samples of a few runs by name."""
    normal, key = target("gaussian-correlated-2d"), jax.random.key(3)
    same: dict[str, Any] = {"step_size": 0.1, "num_steps": 20, "num_chains": 8}
    far = np.arange(16.0).reshape(8, 2)
    saved = {} if folder is None else {"checkpoint": f"{folder}/run.npz", "checkpoint_every": 5}
    first = runner(SGLD(), normal, key, burn_in=3, **same)
    return {
        "sgld": np.asarray(first.samples),
        "state": np.asarray(first.state.position),
        "positions": np.asarray(runner(SGLD(), normal, key, positions=far, **same).samples),
        "checkpoint": np.asarray(runner(SGLD(), normal, key, **same, **saved).samples),
    }


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """What each of two processes returned."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    started = []
    for rank in (0, 1):
        environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-c", PROGRAM, str(folder), address, str(rank)]
        started.append(subprocess.Popen(command, cwd=Path(__file__).parents[3], env=environment))
    assert [process.wait(timeout=300) for process in started] == [0, 0]
    assert sorted(path.name for path in folder.glob("run.npz.*")) == ["run.npz.0", "run.npz.1"]
    return [np.load(folder / f"{rank}.npz") for rank in (0, 1)]


@pytest.fixture(scope="module")
def alone():
    """Of one process."""
    return runs(run)


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_return_the_samples_of_one(samples, alone, name):
    for found in samples:
        np.testing.assert_allclose(found[name], alone[name], rtol=0, atol=LARGEST * np.abs(alone[name]).max())
    assert len({tuple(chain.ravel()) for chain in alone[name]}) == 8


def test_a_part_of_the_chains_is_that_of_the_whole_run(alone):
    normal, key = target("gaussian-correlated-2d"), jax.random.key(3)
    part = run(SGLD(), normal, key, burn_in=3, step_size=0.1, num_steps=20, num_chains=3, first_chain=4)
    expected = alone["sgld"][4:7]
    np.testing.assert_allclose(part.samples, expected, rtol=0, atol=LARGEST * np.abs(expected).max())


def test_chains_that_the_processes_do_not_share_evenly_are_refused(monkeypatch):
    normal, key = target("gaussian-correlated-2d"), jax.random.key(3)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    for chains in (7, 2):
        with pytest.raises(ValueError, match="num_chains: must be a multiple of the 2 processes, two or more for each"):
            run_on_processes(SGLD(), normal, key, step_size=0.1, num_steps=2, num_chains=chains)
    with pytest.raises(ValueError, match="first_chain: must be an integer"):
        run(SGLD(), normal, key, step_size=0.1, num_steps=2, first_chain=-1)
