"""Boxes and products with a line: steps that keep the law pass, what is wrong at a face fails, targets are there."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.lookup import DEFAULT_TARGETS, resolve_object
from sgmcmc_verification.checks.core.obligations import HIGH_DIMENSION, LINE, MANIFOLD
from sgmcmc_verification.checks.runner.due import due
from sgmcmc_verification.checks.tiers.invariance import law_of_steps
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source
from tests.helpers.strangers import decide
from tests.strangers.right import sphere
from tests.strangers.right.fresh import gauges
from tests.strangers.right.rarer import boxes as right
from tests.strangers.wrong.fresh import c32_between as between
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


@dataclass
class SphereWalk:
    """Metropolis with a walk on the sphere whose proposal has the scale `scale(n)`; on the host if it is asked for."""

    scale: Any = lambda n: 1.0
    claims = Claims(Source("", "walk"), ExactLaw(), spaces=("sphere",))

    def step(self, key, x, step_size, estimator):
        walk_key, coin_key = jax.random.split(key)
        y = x + self.scale(x.size) * jnp.sqrt(step_size) * jax.random.normal(walk_key, x.shape)
        y = y / jnp.linalg.norm(y)
        energy = lambda a: estimator.estimate(key, (), a)[0].potential
        return jnp.where(jnp.log(jax.random.uniform(coin_key)) < energy(x) - energy(y), y, x)


@pytest.mark.parametrize(
    ("sampler", "owes"),
    [
        (SphereWalk(), False),
        (SphereWalk(lambda n: 1 / n**0.5), False),
        (SphereWalk(lambda n: 1.0 + 1.0 / n), False),
        (SphereWalk(lambda n: 1.0 * min(n, 6)), True),
        (between.sphere_above_six, True),
        (between.simplex_up_to_six, True),
    ],
    ids=["one scale", "a power of n", "that and a constant", "at most six", "another line", "another number"],
)
def test_a_law_in_fifty_coordinates_is_owed_where_the_program_is_another_one(sampler, owes):
    (subject, *_) = resolve_object("mine", sampler)
    assert (HIGH_DIMENSION in due(subject)) == owes


@pytest.mark.parametrize(("sampler", "verdict"), [(sphere.walk, "pass"), (between.sphere_above_six, "fail")])
def test_a_law_in_fifty_coordinates_is_decided_by_steps(sampler, verdict):
    assert decide(law_of_steps, sampler, "vmf-s49").verdict == verdict


def test_a_law_on_frames_is_decided_by_steps():
    """The state is a matrix, and the position its polar factor."""
    assert decide(law_of_steps, gauges.polar_factor, "matrix-langevin-3-2").verdict == "pass"
