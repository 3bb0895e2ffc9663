"""Constants of a run that its start made: they are kept, and what else a state holds is not taken for one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification import check_sampler
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import Kept, gradient, normal

TARGET = target("gaussian-correlated-2d")


def scale_of(g):
    return 1 / (1 + jnp.sqrt(1 + g**2))


def preconditioned(kept=lambda scale, g: scale, noise=lambda scale: scale):
    """SGLD with a scale from the gradient at the start, and what a step makes of it."""

    def step(key, state, h, estimator):
        gradient_key, key = jax.random.split(key)
        x, scale = state
        g = gradient(estimator, x, gradient_key)
        scale = kept(scale, g)
        return Kept(x - h * scale * g + jnp.sqrt(2 * h * noise(scale)) * normal(key, x), scale)

    init = lambda key, x, estimator: Kept(x, scale_of(gradient(estimator, x, key)))
    return simple_sampler(step, init=init, position=lambda state: state.position)


def scales(sampler):
    """The scales that states of two positions have."""
    (subject, *_) = resolve_object("mine", sampler)
    filled, estimator = subject.sampler(TARGET), Exact(TARGET)
    places = jnp.array([0.3, -0.2]), jnp.array([2.0, 1.0])
    return [np.asarray(filled.init(jax.random.key(0), x, estimator).kept) for x in places]


def test_a_constant_of_the_start_is_the_same_for_every_first_position():
    one, other = scales(preconditioned())
    np.testing.assert_array_equal(one, other)
    assert len(set(one.tolist())) == 2, "not that of a point at which the gradient vanishes"


@pytest.mark.parametrize("kept", [lambda scale, g: scale_of(g), lambda scale, g: 0.9 * scale + 0.1 * scale_of(g)])
def test_what_a_step_changes_is_no_constant(kept):
    one, other = scales(preconditioned(kept))
    assert not np.allclose(one, other)


def test_a_preconditioner_of_the_start_passes():
    assert check_sampler(preconditioned()).conclusion.word == "pass"


@pytest.mark.parametrize(
    "wrong",
    [
        preconditioned(noise=lambda scale: scale**2),
        preconditioned(kept=lambda scale, g: scale_of(g)),  # Gamma is missing
        preconditioned(kept=lambda scale, g: scale, noise=lambda scale: 1.0),
    ],
)
def test_a_wrong_one_fails(wrong):
    assert check_sampler(wrong).conclusion.word == "fail"
