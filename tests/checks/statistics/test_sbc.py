"""Simulation-based calibration on a conjugate model: exact uniformity of the ranks, and wrong samplers caught."""

import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.statistics.sbc import _WIDTH, exact_start_draws, sbc_ranks, sbc_test
from tests.helpers import conjugate_model as model
from tests.helpers.statistics_tools import assert_super_uniform, assert_uniform

LEVEL = 1e-10
REVERSED = exact_start_draws(model.gibbs, 2, model.gibbs_reversed)


def outcomes(draws, seed=1, replicates=5000, length=15):
    return sbc_test(
        model.prior,
        model.data,
        draws,
        model.functions,
        seed=seed,
        replicates=replicates,
        length=length,
        names=model.NAMES,
    )


@pytest.mark.parametrize("length", [1, 3, 15])
def test_ranks_of_a_right_sampler_are_exactly_uniform(length):
    u = sbc_ranks(model.prior, model.data, REVERSED, model.functions, seed=2, replicates=20_000, length=length)
    for column in u.T:
        assert_uniform(column)


def test_ranks_with_ties_are_uniform():
    rounded = lambda theta, y: np.round(model.functions(theta, y))
    u = sbc_ranks(model.prior, model.data, REVERSED, rounded, seed=3, replicates=20_000, length=7)
    for column in u.T:
        assert_uniform(column)


def test_p_values_of_a_right_sampler_are_uniform():
    p = np.array([[o.p for o in outcomes(REVERSED, seed, 200, 3)] for seed in range(600)])
    for j in range(p.shape[1]):
        if j % 3 == 0:
            assert_super_uniform(p[:, j])
        else:
            assert_uniform(p[:, j])


def test_independent_draws_need_no_exact_start():
    def exact(rng, theta, y, length):
        # b | y ~ N(sum y/(m + 1/2), 1/(m + 1/2)), as b ~ N(0, 2); then a | b
        precision = model.COUNT + 0.5
        drawn = []
        for _ in range(length):
            b = np.sum(y, axis=1) / precision + rng.normal(size=len(y)) / np.sqrt(precision)
            drawn.append(model.update_a(rng, np.stack([b, b], axis=1), y))
        return drawn

    assert not any(o.rejects(1e-6) for o in outcomes(exact))


@pytest.mark.parametrize("wrong", model.WRONG)
def test_a_wrong_sampler_is_rejected(wrong):
    def steps_only(rng, theta, y, length):  # long runs in place of exact starts: the error is the sampler's
        drawn = []
        for _ in range(length):
            for _ in range(6):
                theta = wrong(rng, theta, y)
            drawn.append(theta)
        return drawn

    assert any(o.rejects(LEVEL) for o in outcomes(steps_only, replicates=20_000))


def sticky(kernel):
    return lambda rng, theta, y: np.where(rng.random((len(theta), 1)) < 0.3, kernel(rng, theta, y), theta)


def test_a_slow_chain_is_no_error_if_the_start_is_exact():
    draws = exact_start_draws(sticky(model.gibbs), 2, sticky(model.gibbs_reversed))
    assert not any(o.rejects(1e-6) for o in outcomes(draws, replicates=20_000))


def test_the_states_of_one_chain_are_not_exchangeable_with_its_start():
    """Why `exact_start_draws` exists: the kernel is right, and the ranks are not uniform."""

    def naive(rng, theta, y, length):
        drawn = []
        for _ in range(length):
            theta = sticky(model.gibbs)(rng, theta, y)
            drawn.append(theta)
        return drawn

    assert any(o.rejects(LEVEL) for o in outcomes(naive, replicates=20_000))


def test_a_reversal_that_is_not_the_reversed_chain_is_rejected():
    assert any(o.rejects(LEVEL) for o in outcomes(exact_start_draws(model.gibbs, 1), replicates=100_000))


def test_skewness_of_the_spread_is_that_of_a_squared_uniform():
    assert stats.beta(0.5, 1).stats("s") == pytest.approx(_WIDTH, rel=1e-12)  # w^2 ~ Beta(1/2, 1)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="length is 0"):
        outcomes(REVERSED, length=0)
    with pytest.raises(ValueError, match="replicates is 1"):
        outcomes(REVERSED, replicates=1)
    with pytest.raises(ValueError, match="steps is 0"):
        exact_start_draws(model.gibbs, 0)
    with pytest.raises(ValueError, match="draws returned 1"):
        outcomes(lambda rng, theta, y, length: [theta], replicates=10)
