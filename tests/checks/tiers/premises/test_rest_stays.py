"""Samplers of a part: those that leave the rest pass; what moves or misreads it fails where it is meant to."""

import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.tiers.law import gaussian_limit
from sgmcmc_verification.checks.tiers.premises import rest_stays
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Moves, Source
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import decide
from tests.strangers.right.rarer import parts
from tests.strangers.wrong.rarer import c29_parts as wrong

PLANE = "gaussian-correlated-2d"


@pytest.mark.parametrize("name", ["gibbs_block", "host_masked", "last_layer", "masked", "masked_underdamped"])
def test_samplers_that_leave_the_rest_pass(name):
    assert decide(rest_stays, getattr(parts, name), PLANE).verdict == "pass"


@pytest.mark.parametrize(
    ("name", "moved"), [("rest_slides", "2 of 2"), ("rest_diffuses", "2 of 2"), ("body_decays", "3 of 3")]
)
def test_samplers_that_move_the_rest_fail(name, moved):
    finding = decide(rest_stays, getattr(wrong, name), PLANE)
    assert finding.verdict == "fail"
    assert moved in finding.reason


@pytest.mark.parametrize("name", ["last_layer", "masked"])
def test_the_law_of_the_part_given_the_rest_is_the_target(name):
    finding = decide(gaussian_limit, getattr(parts, name), PLANE)
    assert finding.verdict == "pass"
    assert finding.minimum_detectable_effect < 1e-6


@pytest.mark.parametrize("name", ["rest_read_as_zero"])
def test_a_part_given_another_rest_has_another_law(name):
    assert decide(rest_stays, getattr(wrong, name), PLANE).verdict == "pass"
    assert decide(gaussian_limit, getattr(wrong, name), PLANE).verdict == "fail"


def of_size(size):
    claims = Claims(Source("", ""), ExactLaw(), Moves(lambda part: jnp.zeros(size).at[1:].set(part)))
    return simple_sampler(lambda key, x, h, estimator: x, claims=claims)


def test_a_mask_of_one_size_has_the_targets_that_fit():
    (subject, *_) = resolve_object("mine", of_size(3))
    assert PLANE in subject.row.targets
    assert {target(name).size for name in subject.row.targets} == {2}


def test_a_mask_that_fits_no_target_is_bad_input():
    with pytest.raises(BadInput, match=r"Moves\.whole: each number"):
        resolve_object("mine", of_size(90))
