"""The sequential procedure: its level, its cost and its power are the derived ones."""

import math

import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.statistics.sequential import Decision, decide_sequentially, detectable, stage_levels
from tests.helpers.statistics_tools import RATE, assert_rate_at_least


def outcome(p: float, n: int = 1) -> Outcome:
    return Outcome("p", 0.0, "1", None, 0.0, math.log(p), n, lambda alpha: 0.0, lambda alpha, power: 0.0)


def decisions(draw, alpha: float, stages: int, runs: int) -> list[Decision]:
    return [decide_sequentially(lambda stage, n: draw(), alpha, 10, stages) for _ in range(runs)]


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_level_and_cost_are_exact_for_one_uniform_p_value(stages):
    rng, alpha, runs = np.random.default_rng(stages), 0.2, 20_000
    found = decisions(lambda: [outcome(1 - rng.random())], alpha, stages, runs)
    rejected = sum(d.rejected for d in found)
    assert stats.binomtest(rejected, runs, alpha).pvalue > RATE
    _, gamma = stage_levels(alpha, stages)
    cost = np.array([d.n_total for d in found])
    exact = 10 * sum((4 * gamma) ** i for i in range(stages))
    assert abs(cost.mean() - exact) <= 4.9 * cost.std() / math.sqrt(runs)


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_level_is_kept_by_several_dependent_and_conservative_p_values(power):
    rng, alpha, runs = np.random.default_rng(7), 0.2, 10_000

    def draw():
        u = 1 - rng.random(5)
        u[1] = u[0]
        return [outcome(p) for p in (u if power == 2.0 else np.sqrt(u))]  # sqrt(u) >= u is super-uniform

    rejected = sum(d.rejected for d in decisions(draw, alpha, 3, runs))
    assert stats.binom.sf(rejected - 1, runs, alpha) > RATE


def test_a_procedure_that_spends_the_whole_level_at_every_stage_would_be_seen():
    """The planted error: no correction for the number of stages, beta = alpha in place of alpha/k."""
    rng, alpha, runs = np.random.default_rng(8), 0.2, 20_000
    found = decisions(lambda: [outcome(1 - rng.random())], 0.2 * 1.5, 3, runs)
    assert stats.binom.sf(sum(d.rejected for d in found) - 1, runs, alpha) < RATE


@pytest.mark.parametrize("effect", ["detectable", "ten times"])
def test_an_effect_is_rejected_at_the_promised_rate(effect):
    alpha, first_n, power = 1e-10, 400, 0.9

    def run(seed, shift):
        def stage_of(stage, n):
            values = np.random.default_rng([seed, stage]).normal(size=(2, n))
            return [mean_test(values[0] + shift, 0.0), mean_test(values[1], 0.0)]

        return stage_of

    size = detectable(run(0, 0.0)(0, first_n), alpha, power)
    assert size < 0.8 * run(0, 0.0)(0, first_n)[0].detectable(alpha / 2, power)  # the level of a stage is what counts
    size *= 10 if effect == "ten times" else 1
    found = [decide_sequentially(run(seed, size), alpha, first_n) for seed in range(1, 301)]
    assert_rate_at_least(sum(d.rejected for d in found), 300, power)
    if effect == "ten times":
        assert {d.stages for d in found} == {1}


def test_one_per_cent_of_a_variance_is_detected_with_a_million_and_a_half():
    x = np.random.default_rng(9).normal(size=1_500_000)
    outcomes = [mean_test(x**2, 1.0, unit="relative")] * 40
    assert detectable(outcomes, 1e-9, 0.99) < 0.01


def test_stages_grow_and_levels_follow():
    seen = []

    def run(stage, n):
        seen.append((stage, n))
        return [outcome(1e-4)]  # in doubt at every stage but the last, where 1e-4 < gamma

    found = decide_sequentially(run, 1e-10, 100)
    _, gamma = stage_levels(1e-10, 3)
    assert seen == [(0, 100), (1, 400), (2, 1600)]
    assert (found.rejected, found.n_total, found.stages) == (True, 2100, 3)
    assert found.level == pytest.approx(gamma)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((lambda s, n: [], 1e-10, 10), "no outcomes"),
        ((lambda s, n: [outcome(0.5)], 0.0, 10), "alpha is 0"),
        ((lambda s, n: [outcome(0.5)], 0.5, 10), "is derived for at most"),
        ((lambda s, n: [outcome(0.5)], 1e-10, 0), "first_n is 0"),
        ((lambda s, n: [outcome(0.5)], 1e-10, 10, 0), "stages is 0"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        decide_sequentially(*arguments)
