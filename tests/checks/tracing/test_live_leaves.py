"""Leaves of a state that the position depends on."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.third_party import row
from sgmcmc_verification.checks.tracing.live_leaves import live_leaves
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.simple import simple_sampler

PLANE = find_target("gaussian-correlated-2d")


class Kept(NamedTuple):
    """A position with what a training loop carries along."""

    position: Any
    average: Any
    momentum: Any
    count: Any


def init(key, position, estimator):
    del key, estimator
    return Kept(position, position, jnp.zeros_like(position), jnp.zeros((), int))


def logged(key, state, h, estimator):
    """The average is logged, the momentum is a function of itself alone, the count of nothing."""
    x = state.position - h * estimator.estimate(key, (), state.position)[0].gradient
    x = x + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)
    return Kept(x, 0.9 * state.average + 0.1 * x**2, state.momentum / 2, state.count + 1)


def read_late(key, state, h, estimator):
    """The average enters the momentum, and the momentum the position a step later."""
    after = logged(key, state, h, estimator)
    return after._replace(position=after.position + h * state.momentum, momentum=state.average)


def counted(key, state, h, estimator):
    """The count decides whether there is noise."""
    after = logged(key, state, h, estimator)
    return after._replace(position=jnp.where(state.count > 1000, state.position, after.position))


def in_a_loop(key, state, h, estimator):
    """The momentum is read in a loop."""
    after = logged(key, state, h, estimator)
    return after._replace(position=jax.lax.fori_loop(0, 2, lambda _, x: x + h * state.momentum, after.position))


@pytest.mark.parametrize(
    ("step", "live"),
    [
        (logged, [True, False, False, False]),
        (read_late, [True, True, True, False]),
        (counted, [True, False, False, True]),
        (in_a_loop, [True, False, True, False]),
    ],
)
def test_what_a_later_position_depends_on(step, live):
    sampler, estimator = simple_sampler(step, init=init), Exact(PLANE)
    state = init(None, jnp.asarray(PLANE.example), estimator)
    assert live_leaves(sampler, state, estimator, 0.1) == live


def test_a_logged_square_leaves_the_recursion_linear_and_its_law_that_of_the_bare_step():
    from sgmcmc_verification.checks.core.candidate import Subject
    from sgmcmc_verification.checks.exact_laws.lyapunov import position_law
    from sgmcmc_verification.checks.tracing.step_map import step_map

    def bare(key, x, h, estimator):
        return logged(key, init(None, x, estimator), h, estimator).position

    default = {"euclidean": ("gaussian-correlated-2d",)}
    kept, plain = (
        position_law(step_map(Subject(row(f"file.py:{name}", value, (), default, find_target)), PLANE), 0.01)
        for name, value in (("kept", simple_sampler(logged, init=init)), ("bare", simple_sampler(bare)))
    )
    np.testing.assert_allclose(kept[1], plain[1], rtol=1e-12)
