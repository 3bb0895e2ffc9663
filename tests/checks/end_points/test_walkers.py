"""Runs of all walkers from exact draws decide what keeps that law; what does not is run as any other kernel.

Oracles: the law of the first walker is that of the target where its own test is right, whatever the others have.
"""

import numpy as np
import pytest

from sgmcmc_verification.checks.end_points.functions import functions_of
from sgmcmc_verification.checks.end_points.walkers import copies_of, of_walkers
from sgmcmc_verification.checks.tiers.invariance import law_of_runs
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.targets.registry import target
from tests.helpers.ensembles import Ensemble
from tests.helpers.strangers import decide, subject

PLANE = "gaussian-correlated-2d"
EXACT = Claims(Source("", "none"), ExactLaw())
RIGHT = {
    "all draws of the target": Ensemble(claims=EXACT),
    "all draws of the target, nothing claimed": Ensemble(),
}


@pytest.mark.parametrize("name", RIGHT)
def test_walkers_that_are_draws_of_the_target_are_run_from_draws_of_all(name):
    finding = decide(law_of_runs, RIGHT[name], PLANE)
    assert finding.verdict == "pass", finding.reason
    assert finding.measurements["walkers"] == 4


WRONG = {
    "the temperature of the first": Ensemble((1.3, 1.0, 1.0, 1.0), claims=EXACT),
    "the temperature of all": Ensemble((1.3,) * 4, claims=EXACT),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_one_walker_or_with_all_fails(name):
    assert decide(law_of_runs, WRONG[name], PLANE).verdict == "fail"


def test_walkers_of_other_temperatures_leave_the_position_its_law():
    """The proposals of a walker are symmetric, given the others."""
    finding = decide(law_of_runs, Ensemble((1.0, 1.0, 2.0, 2.0), claims=EXACT), PLANE)
    assert finding.verdict == "pass", finding.reason
    assert "walkers" not in finding.measurements


def test_functions_of_walkers_are_means_over_all_and_those_of_the_first():
    law = target(PLANE)
    functions = functions_of(law, 1.0)
    of_all = of_walkers(functions, 2)
    z = np.random.default_rng(0).normal(size=(7, 8))
    each = functions.values(z.reshape(7, 4, 2))
    assert np.allclose(of_all.values(z), np.concatenate([each.mean(axis=1), each[:, 0]], axis=1))
    assert np.allclose(of_all.values(z[3]), of_all.values(z)[3])
    assert len(of_all.names) == len(of_all.expected) == 2 * len(functions.names)


def test_copies_are_counted_and_a_momentum_is_none():
    assert copies_of(subject(Ensemble(), PLANE), target(PLANE)).number == 3
    assert copies_of(subject(Ensemble(), "gaussian-matrix"), target("gaussian-matrix")).number == 3
