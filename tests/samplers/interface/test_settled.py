"""Counts that matter at the start alone are put past it; those that matter for ever are left as they are."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.tiers.premises import closed_state
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.first_state import first_state
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.interface.settled import LIVED, ON_HOST, settled
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import decide, gradient, normal
from tests.strangers.right.fresh.settled import descent_first, host_annealed, warm_up

LINE = "gaussian-1d-scaled"
gaussian_limit = find_statement("gaussian_limit")


class Counted(NamedTuple):
    x: Any
    n: Any


def counted(scale):
    """SGLD with the step size h `scale(n)` in step n."""

    def step(key, state, h, estimator):
        x, n = state
        h = h * scale(n)
        return Counted(x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * normal(key, x), n + 1)

    init = lambda key, x, estimator: Counted(x, jnp.zeros((), jnp.int32))
    return simple_sampler(step, init=init, position=lambda state: state.x)


class HostCounted:
    """The same in NumPy."""

    backend = "host"

    def __init__(self, scale):
        self.scale = scale

    def init(self, key, position, estimator):
        return {"n": 0, "x": np.array(position)}

    def position(self, state):
        return state["x"]

    def step(self, key, state, step_size, estimator):
        x, h = state["x"], step_size * self.scale(state["n"])
        g = np.asarray(estimator.estimate(key, (), x)[0].gradient)
        return {"n": state["n"] + 1, "x": x - h * g + np.sqrt(2 * h) * key.standard_normal(x.shape)}


def found(sampler, host=False):
    law = target(LINE)
    estimator = HostExact(law) if host else Exact(law)
    make_key = np.random.default_rng if host else jax.random.key
    start = first_state(sampler, make_key(0), law.example, estimator)
    return settled(sampler, start, estimator, 0.1 / law.curvature, make_key)


@pytest.mark.parametrize(
    ("sampler", "values"),
    [
        (warm_up, [LIVED[1]]),
        (descent_first, [0]),
        (counted(lambda n: jnp.where(n < 900, 0.5, 1.0)), [LIVED[1]]),
        (counted(lambda n: jnp.where(n < 5_000, 0.5, 1.0)), []),
        (counted(lambda n: 1.0), []),
        (counted(lambda n: (1 + n) ** -0.3), []),
        (counted(lambda n: jnp.where(n % 10 == 0, 0.5, 1.0)), []),
        (counted(lambda n: 1 + 0.5 * jnp.cos(0.01 * n)), []),
    ],
    ids=[
        "a warm-up",
        "a count down",
        "a long start",
        "a late change",
        "a record",
        "a schedule for ever",
        "each tenth",
        "a wave",
    ],
)
def test_a_count_that_matters_at_the_start_alone_is_put_past_it(sampler, values):
    assert [int(v) for v in found(sampler).values()] == values


@pytest.mark.parametrize(
    ("sampler", "values"),
    [
        (host_annealed, [ON_HOST[1]]),
        (HostCounted(lambda n: 1.0), []),
        (HostCounted(lambda n: (1 + n) ** -0.3), []),
        (HostCounted(lambda n: 0.5 if n % 10 == 0 else 1.0), []),
    ],
    ids=["annealed", "a record", "a schedule for ever", "each tenth"],
)
def test_the_same_on_the_host(sampler, values):
    assert list(found(complete(sampler), host=True).values()) == values


@pytest.mark.parametrize("sampler", [warm_up, descent_first, host_annealed])
def test_the_state_is_closed_after_the_start(sampler):
    assert decide(closed_state, sampler, LINE).verdict == "pass"


@pytest.mark.parametrize(
    "scale",
    [
        lambda n: (1 + n) ** -0.3,
        lambda n: jnp.where(n > 200_000, 0.5, 1.0),
        lambda n: jnp.where(n < 20, 0.1, 1.0) * jnp.where(n > 60_000, 0.5, 1.0),
    ],
    ids=["a schedule", "a late change", "a warm-up, and a late change"],
)
def test_a_kernel_that_goes_on_to_change_is_not_closed(scale):
    assert decide(closed_state, counted(scale), LINE).verdict == "fail"


def test_the_law_is_that_after_the_start():
    """The noise halves at step 500, for ever: the law of later steps is another one."""

    def step(key, state, h, estimator):
        x, n = state
        noise = jnp.where(n < 500, 1.0, 0.5) * jnp.sqrt(2 * h) * normal(key, x)
        return Counted(x - h * gradient(estimator, x) + noise, n + 1)

    init = lambda key, x, estimator: Counted(x, jnp.zeros((), jnp.int32))
    halved = simple_sampler(step, init=init, position=lambda state: state.x)
    assert decide(closed_state, halved, LINE).verdict == "pass"
    assert decide(gaussian_limit, halved, LINE).verdict == "fail"
