"""Iterations a second of the slice samplers of the Dirichlet-process mixture, and where their time goes.

    pytest benchmarks/test_dp_speed.py --benchmark-only -s

On the Microsoft web data where they are at hand, else on users generated with their sizes: 32,711 users, 294 areas,
batches of 1000. Nothing is asserted of times. The published program of baker2018large makes 12 to 20 iterations a
second at this size, 97% of it in a loop over users.
"""

import cProfile
import pstats
import time

import numpy as np
import pytest

from sgmcmc_verification.samplers.positive.gamma_updates import CIRUpdate, ExactGamma, ExpandedMeanUpdate
from sgmcmc_verification.samplers.topic_models.dp.slice import DPSlice, StepSizes, Users
from sgmcmc_verification.targets.datasets.files import available
from sgmcmc_verification.targets.datasets.msweb import FILES, load_msweb
from sgmcmc_verification.targets.numerics.ragged import SparseRows, sparse_rows
from sgmcmc_verification.targets.topic_models.dp_mixture import DPMixture

WARM_UP, STEPS = 200, 100
CASES = {
    "SCIR, batch 1000": (CIRUpdate(), 0.5, 20, StepSizes(0.1, 0.1), 1000),
    "SGRLD, batch 1000": (ExpandedMeanUpdate(), 0.001, 30, StepSizes(1e-3, 5e-3), 1000),
    "Gibbs, all users": (ExactGamma(), 0.5, 20, StepSizes(1.0, 1.0), None),
}


@pytest.fixture(scope="module")
def users() -> SparseRows:
    """The training users."""
    if available(*FILES):
        return load_msweb().train.users
    generator = np.random.default_rng(0)
    theta, z = generator.dirichlet(np.full(294, 0.05), 20), generator.integers(20, size=32_711)
    return sparse_rows(generator.multinomial(1 + generator.poisson(2.0, z.size), theta[z]))


@pytest.mark.parametrize("case", CASES)
def test_iterations(benchmark, users, case):
    update, base, count, sizes, batch = CASES[case]
    sampler, data = DPSlice(DPMixture(users.width, base), update, count), Users(users, batch)
    generator = np.random.default_rng(0)
    state = sampler.init(generator, data)

    def steps(number):
        nonlocal state
        for _ in range(number):
            state = sampler.step(generator, state, sizes, data)

    steps(WARM_UP)
    benchmark.pedantic(steps, args=(STEPS,), rounds=5, iterations=1)
    # Python's profiler is off while the benchmark runs
    profile = cProfile.Profile()
    profile.runcall(steps, STEPS)
    own = {name[2]: times[3] for name, times in pstats.Stats(profile).stats.items()}  # type: ignore[attr-defined]
    total = max(own.values())
    shares = {name: own.get(name, 0.0) / total for name in ("move_components", "grow", "assign", "draw", "take")}
    began = time.process_time()
    steps(STEPS)
    alone = STEPS / (time.process_time() - began)  # what a core gives that does nothing else
    rate = STEPS / benchmark.stats.stats.median
    extra = {"iterations/s": rate, "iterations/CPU s": alone, "components": len(state.log_sticks)}
    benchmark.extra_info.update(extra | shares)
    print(
        f"\n{case}: {rate:.0f} iterations/s, {alone:.0f} a CPU second, {len(state.log_sticks)} components; shares: "
        + ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    )
