"""Boxes and products with a line: steps that keep the law pass, what is wrong at a face fails, targets are there."""

import pytest

from sgmcmc_verification.checks.core.lookup import DEFAULT_TARGETS, resolve_object
from sgmcmc_verification.checks.core.obligations import LINE, MANIFOLD
from sgmcmc_verification.checks.runner.due import due
from sgmcmc_verification.checks.tiers.invariance import law_of_steps
from tests.helpers.strangers import decide
from tests.strangers.right.rarer import boxes as right
from tests.strangers.wrong.rarer import c30_boxes as wrong

LINE_TARGET = "truncated-interval"


@pytest.mark.parametrize("name", ["folded", "folded_walk"])
def test_steps_that_keep_the_law_of_a_box_pass(name):
    assert decide(law_of_steps, getattr(right, name), LINE_TARGET, step_size=0.05).verdict == "pass"


@pytest.mark.parametrize("name", ["box_clip", "box_torus", "box_redrawn"])
def test_steps_that_are_wrong_at_a_face_fail(name):
    assert decide(law_of_steps, getattr(wrong, name), LINE_TARGET, step_size=0.05).verdict == "fail"


def test_a_box_owes_a_law_on_a_line_and_one_in_the_plane():
    (subject, *_) = resolve_object("mine", right.folded)
    assert subject.row.targets == DEFAULT_TARGETS["box"]
    assert {LINE, MANIFOLD} <= set(due(subject))


@pytest.mark.parametrize("name", ["sphere_and_line", "positive_and_line", "simplex_and_line"])
def test_a_product_has_a_target_of_its_own(name):
    sampler = getattr(right, name)
    (subject, *_) = resolve_object("mine", sampler)
    assert subject.row.targets == DEFAULT_TARGETS[sampler.claims.spaces[0]]
