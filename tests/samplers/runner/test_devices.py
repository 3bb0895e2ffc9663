"""Chains on several devices: the same samples as on one, up to round-off.

The random numbers are the same bits; the arithmetic is compiled for another number of chains, and vectorised otherwise
on some processors.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sgmcmc_verification.samplers.runner.engine import devices_for

pytestmark = pytest.mark.xdist_group("run_devices")  # what the fixture makes serves one worker

EPS = float(np.finfo(float).eps)
PROGRAM = """
import sys
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from sgmcmc_verification.samplers.runner import checkpoint
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.run import run
from sgmcmc_verification.samplers.runner.schedules import decreasing
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.targets.registry import target

folder, devices = sys.argv[1], int(sys.argv[2])
assert len(jax.devices()) == devices
normal, data = target("gaussian-correlated-2d"), target("tiny-gaussian-data")
same = dict(num_steps=20, num_chains=8)
key = jax.random.key(3)
found = {
    "sgld": run(SGLD(), normal, key, step_size=0.1, **same),
    "schedule": run(SGLD(), normal, key, step_size=decreasing(0.1, 10.0, 0.5), burn_in=3, thin=3, **same),
    "average": run(SGHMC(), normal, key, step_size=0.1, keep="average", **same),
    "minibatch": run(SGLD(), Minibatch(data.terms, 2), key, step_size=0.01, position=data.example, **same),
    "uneven": run(SGLD(), normal, key, step_size=0.1, num_steps=20, num_chains=6),
}
half = dict(step_size=0.1, checkpoint=f"{folder}/run.npz", checkpoint_every=5, **same)
if devices == 1:  # stopped after half of the steps; the other process goes on with it
    save = checkpoint.save
    def stopped(path, fingerprint, steps, arrays):
        save(path, fingerprint, steps, arrays)
        if steps == 10:
            raise KeyboardInterrupt
    checkpoint.save = stopped
    try:
        run(SGLD(), normal, key, **half)
    except KeyboardInterrupt:
        found["resumed"] = found["sgld"]
else:
    found["resumed"] = run(SGLD(), normal, key, **half)
if devices > 1:
    assert len(found["sgld"].samples.sharding.device_set) == devices
    assert len(found["uneven"].samples.sharding.device_set) == 3
chosen = {name: r.average if name == "average" else r.samples for name, r in found.items()}
np.savez(f"{folder}/{devices}.npz", **{name: np.asarray(jax.tree.leaves(x)[0]) for name, x in chosen.items()})
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Of the same runs on one device and on four; the checkpoint of the first serves the second."""
    folder = tmp_path_factory.mktemp("devices")
    for devices in (1, 4):
        environment = os.environ | {
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
            "JAX_PLATFORMS": "cpu",
        }
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(folder), str(devices)],
            cwd=Path(__file__).parents[3],
            env=environment,
            check=True,
        )
    return [np.load(folder / f"{devices}.npz") for devices in (1, 4)]


@pytest.mark.parametrize("name", ["sgld", "schedule", "average", "minibatch", "uneven", "resumed"])
def test_samples_do_not_depend_on_the_number_of_devices(samples, name):
    one, four = (found[name] for found in samples)
    # 20 steps, each of a few operations that neither of the contracting chains enlarges
    np.testing.assert_allclose(four, one, rtol=0, atol=20 * 64 * EPS * np.abs(one).max())
    assert np.isfinite(one).all()
    assert len({tuple(chain.ravel()) for chain in one}) == len(one)


@pytest.mark.parametrize(("chains", "count"), [(1, 1), (2, 1), (6, 3), (7, 1), (8, 4), (10, 2), (1000, 4)])
def test_every_device_gets_the_same_number_of_chains_and_at_least_two(monkeypatch, chains, count):
    monkeypatch.setattr("jax.local_devices", lambda: list("abcd"))
    assert len(devices_for(chains)) == count
