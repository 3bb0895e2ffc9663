"""Runs of all walkers from exact draws decide what keeps that law; what does not is run as any other kernel.

Oracles: the law of the first walker is that of the target where its own test is right, whatever the others have.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.end_points.functions import Copies, functions_of
from sgmcmc_verification.checks.end_points.walkers import laws_of_walkers, of_walkers
from sgmcmc_verification.checks.tiers.invariance import law_of_runs
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.targets.registry import target
from tests.helpers.ensembles import Ensemble
from tests.helpers.strangers import decide, normal, potential, subject

PLANE = "gaussian-correlated-2d"
EXACT = Claims(Source("", "none"), ExactLaw())
LADDER = np.array([1.0, 2.0, 5.0])


class Listed(Ensemble):
    widths = (1.0, 2.0, 4.0, 8.0)


class Tempering:
    """Random walks at three temperatures, and the exchange of a pair of neighbours, perhaps at a wrong ratio."""

    claims = EXACT

    def __init__(self, wrong=False, form="attribute"):
        self.wrong = 2.0 if wrong else 1.0
        if form == "attribute":
            self.betas = 1 / LADDER
        self.form = form

    def init(self, key, position, estimator):
        return jnp.stack([position] * 3)

    def position(self, state):
        return state[0]

    def ladder(self):
        if self.form == "made":
            return jnp.array([1.0, 2.0, 5.0]) ** -1.0
        return jnp.array(self.betas)

    def step(self, key, state, step_size, estimator):
        x, betas = state, self.ladder()
        walk, coins, pair, coin = jax.random.split(key, 4)
        energy = jax.vmap(lambda point: potential(estimator, point))
        y = x + jnp.sqrt(2 * step_size / betas)[:, None] * normal(walk, x)
        accept = jnp.log(jax.random.uniform(coins, (3,))) < betas * (energy(x) - energy(y))
        x = jnp.where(accept[:, None], y, x)
        i, u = jax.random.randint(pair, (), 0, 2), energy(x)
        ratio = self.wrong * (betas[i] - betas[i + 1]) * (u[i] - u[i + 1])
        order = jnp.arange(3).at[i].set(i + 1).at[i + 1].set(i)
        return jnp.where(jnp.log(jax.random.uniform(coin)) < ratio, x[order], x)


class PythonTempering:
    """One pair of temperatures, made in a step."""

    backend = "host"

    def init(self, rng, position, estimator):
        return np.stack([position, position + 1.0])

    def position(self, state):
        return state[0]

    def step(self, rng, state, step_size, estimator):
        temperatures = [1.0, 3.0]
        new = state.copy()
        for k, t in enumerate(temperatures):
            y = new[k] + np.sqrt(2 * step_size * t) * rng.standard_normal(new[k].shape)
            u, v = (float(estimator.estimate(rng, (), x)[0].potential) for x in (new[k], y))
            if np.log(rng.random()) < (u - v) / t:
                new[k] = y
        return new


class Momentum(PythonTempering):
    def step(self, rng, state, step_size, estimator):
        return state + 0.1 * rng.standard_normal(state.shape)


class Remembering:
    """Random walks at a ladder of a closure; energies of the walkers, which rise at first, come before it."""

    backend = "host"

    def __init__(self):
        betas = 1 / LADDER
        self.accept = lambda rng, k, gain: np.log(rng.random()) < betas[k] * gain

    def init(self, rng, position, estimator):
        walkers = position + np.arange(3.0)[:, None] * (2.0 + rng.random((3, 1)))
        energies = np.array([float(estimator.estimate(rng, (), x)[0].potential) for x in walkers])
        return {"energies": energies, "walkers": walkers}

    def position(self, state):
        return state["walkers"][0]

    def step(self, rng, state, step_size, estimator):
        walkers, energies = state["walkers"].copy(), state["energies"].copy()
        for k in range(3):
            y = walkers[k] + np.sqrt(2 * step_size) * rng.standard_normal(walkers[k].shape)
            energy = float(estimator.estimate(rng, (), y)[0].potential)
            if self.accept(rng, k, energies[k] - energy):
                walkers[k], energies[k] = y, energy
        return {"energies": energies, "walkers": walkers}


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
    assert finding.measurements["walkers"] == 4


def test_a_list_that_is_no_ladder_is_no_harm():
    finding = decide(law_of_runs, Listed(claims=EXACT), PLANE)
    assert finding.verdict == "pass", finding.reason
    assert finding.measurements["walkers"] == 4


@pytest.mark.parametrize("wrong", [False, True])
def test_tempering_is_run_from_draws_at_all_temperatures(wrong):
    finding = decide(law_of_runs, Tempering(wrong), "gaussian-1d-scaled")
    assert finding.verdict == ("fail" if wrong else "pass"), finding.reason


LADDERS = {
    "inverse temperatures of an attribute": (Tempering(), (2.0, 5.0)),
    "made in a step": (Tempering(form="made"), (2.0, 5.0)),
    "two walkers, in Python": (PythonTempering(), (3.0,)),
    "of a closure, beside energies in the state": (Remembering(), (2.0, 5.0)),
    "none": (Ensemble(), (1.0, 1.0, 1.0)),
}


@pytest.mark.parametrize("name", LADDERS)
def test_temperatures_are_found_where_they_are_held_or_made(name):
    sampler, temperatures = LADDERS[name]
    law = target(PLANE)
    first = laws_of_walkers(subject(sampler, PLANE), law)[0]
    np.testing.assert_allclose(first.temperatures, temperatures, rtol=1e-6)


def test_one_walker_beside_the_position_may_be_a_momentum():
    assert laws_of_walkers(subject(Momentum(), PLANE), target(PLANE)) == []


def test_functions_of_walkers_are_means_over_all_and_those_of_the_first():
    law = target(PLANE)
    functions = functions_of(law, 1.0)
    of_all = of_walkers(functions, Copies(law, (1.0, 1.0, 1.0)))
    z = np.random.default_rng(0).normal(size=(7, 8))
    each = functions.values(z.reshape(7, 4, 2))
    assert np.allclose(of_all.values(z), np.concatenate([each.mean(axis=1), each[:, 0]], axis=1))
    assert np.allclose(of_all.values(z[3]), of_all.values(z)[3])
    assert len(of_all.names) == len(of_all.expected) == 2 * len(functions.names)


def test_copies_are_counted_and_a_momentum_is_none():
    assert laws_of_walkers(subject(Ensemble(), PLANE), target(PLANE))[0].size == 6
    law = target("gaussian-matrix")
    assert laws_of_walkers(subject(Ensemble(), "gaussian-matrix"), law)[0].size == 3 * law.size
