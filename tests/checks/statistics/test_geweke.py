"""Geweke's test on a conjugate model: right samplers pass, however slow, and wrong ones are caught."""

import numpy as np
import pytest

from sgmcmc_verification.checks.statistics.geweke import joint_test
from tests.helpers import conjugate_model as model
from tests.helpers.statistics_tools import assert_super_uniform, assert_uniform

LEVEL = 1e-10


def outcomes(transition, seed=1, replicates=20_000, **options):
    return joint_test(
        model.prior,
        model.data,
        transition,
        model.functions,
        seed=seed,
        replicates=replicates,
        names=model.NAMES,
        **options,
    )


def test_p_values_of_a_right_sampler_are_uniform():
    p = np.array([[o.p for o in outcomes(model.gibbs, seed, 200)] for seed in range(1000)])
    for j in range(p.shape[1]):
        if j % 2 == 0:
            assert_uniform(p[:, j])
        else:
            assert_super_uniform(p[:, j])


def test_a_chain_that_hardly_moves_is_no_error():
    def slow(rng, theta, y):
        return np.where(rng.random((len(theta), 1)) < 0.01, model.gibbs(rng, theta, y), theta)

    assert not any(o.rejects(1e-6) for o in outcomes(slow))


@pytest.mark.parametrize("wrong", model.WRONG)
def test_a_wrong_sampler_is_rejected(wrong):
    assert any(o.rejects(LEVEL) for o in outcomes(wrong, replicates=200_000))


def test_a_sampler_that_returns_the_prior_is_seen_through_the_likelihood_alone():
    rejected = {o.name for o in outcomes(model.from_the_prior) if o.rejects(LEVEL)}
    assert rejected == {"mean of log likelihood", "law of log likelihood"}


def test_what_is_detected_is_known():
    for o in outcomes(model.gibbs):
        assert 0 < o.detectable(LEVEL, 0.99) < 0.15


@pytest.mark.parametrize(
    ("options", "words"),
    [({"sweeps": 0}, "sweeps is 0"), ({"replicates": 1}, "replicates is 1")],
)
def test_bad_input_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        outcomes(model.gibbs, **options)


def test_functions_of_a_wrong_shape_are_named():
    with pytest.raises(ValueError, match="one row for each of the 10 replicates"):
        joint_test(model.prior, model.data, model.gibbs, lambda t, y: np.zeros((3, 1)), seed=0, replicates=10)
    with pytest.raises(ValueError, match="names has 1 entries"):
        joint_test(model.prior, model.data, model.gibbs, model.functions, seed=0, replicates=10, names=["a"])
