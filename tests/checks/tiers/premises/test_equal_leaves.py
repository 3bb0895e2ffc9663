"""Two leaves of a pytree: what all coordinates share answers to each alike, or the leaves have a number each."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.tiers.premises.leaves import equal_leaves
from tests.helpers.strangers import Euler, Underdamped, decide, gradient

LINE = "gaussian-1d-scaled"


def noise_like(key, tree):
    flat, unravel = ravel_pytree(tree)
    return unravel(jax.random.normal(key, flat.shape, flat.dtype))


@dataclass
class Thermostat:
    """SGNHT on trees, d xi = drive(momentum), with a friction `of(xi)` for each leaf."""

    drive: Any
    start: Any = lambda momentum: jnp.ones(())
    of: Any = lambda xi, momentum: jax.tree.map(lambda _: xi, momentum)

    def init(self, key, position, estimator):
        momentum = jax.tree.map(jnp.zeros_like, position)
        return {"momentum": momentum, "position": position, "xi": self.start(momentum)}

    def step(self, key, state, step_size, estimator):
        h, x = step_size, state["position"]
        kick = lambda p, g, xi, e: p - h * g - h * xi * p + jnp.sqrt(2 * h) * e
        friction = self.of(state["xi"], state["momentum"])
        noise = noise_like(key, x)
        p = jax.tree.map(kick, state["momentum"], gradient(estimator, x, key), friction, noise)
        xi = jax.tree.map(lambda old, rate: old + h * rate, state["xi"], self.drive(p))
        return {"momentum": p, "position": jax.tree.map(lambda a, b: a + h * b, x, p), "xi": xi}


def leaves(p):
    return jax.tree.leaves(p)


def all_of(p):
    return jnp.concatenate([jnp.ravel(leaf) for leaf in leaves(p)])


WRONG = {
    "the mean of the leaves' means": lambda p: jnp.mean(jnp.stack([jnp.mean(leaf**2) for leaf in leaves(p)])) - 1,
    "the product of the leaves' means": lambda p: jnp.prod(jnp.stack([jnp.mean(leaf**2) for leaf in leaves(p)])) - 1,
    "the sum of the leaves' norms": lambda p: sum(jnp.linalg.norm(leaf) for leaf in leaves(p)) / all_of(p).size - 1,
    "the last leaf twice": lambda p: (sum(jnp.sum(a**2) for a in leaves(p)) + jnp.sum(leaves(p)[-1] ** 2)) / 9 - 1,
    "the mean over leaves padded to one length": lambda p: (
        sum(jnp.sum(a**2) / max(a.size, 4) for a in leaves(p)) / 2 - 1
    ),
}
RIGHT = {
    "the mean of all": Thermostat(lambda p: jnp.mean(all_of(p) ** 2) - 1),
    "the sum of the leaves' sums": Thermostat(lambda p: sum(jnp.sum(a**2) for a in leaves(p)) / all_of(p).size - 1),
    "means that are weighed by their numbers": Thermostat(
        lambda p: sum(a.size * jnp.mean(a**2) for a in leaves(p)) / all_of(p).size - 1
    ),
    "a thermostat for each leaf": Thermostat(
        lambda p: jax.tree.map(lambda a: jnp.mean(a**2) - 1, p),
        lambda p: jax.tree.map(lambda _: jnp.ones(()), p),
        lambda xi, p: xi,
    ),
    "a pair of thermostats": Thermostat(
        lambda p: jnp.stack([jnp.mean(all_of(p) ** 2) - 1, jnp.mean(all_of(p) ** 2 - all_of(p) ** 4 / 3)]),
        lambda p: jnp.ones(2),
        lambda xi, p: jax.tree.map(lambda _: xi.sum(), p),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_thermostat_of_all_that_weighs_leaves_fails(name):
    with jax.enable_x64(True):
        finding = decide(equal_leaves, Thermostat(WRONG[name]), LINE)
    assert finding.verdict == "fail", finding.reason
    assert "a coordinate of a leaf of 2" in finding.reason


@pytest.mark.parametrize("name", RIGHT)
def test_thermostats_that_treat_coordinates_alike_pass(name):
    with jax.enable_x64(True):
        finding = decide(equal_leaves, RIGHT[name], LINE)
    assert finding.verdict == "pass", finding.reason


def test_a_thermostat_for_each_coordinate_shares_nothing():
    each = Thermostat(
        lambda p: jax.tree.map(lambda a: a**2 - 1, p), lambda p: jax.tree.map(jnp.ones_like, p), lambda xi, p: xi
    )
    with jax.enable_x64(True), pytest.raises(NotApplicable):
        decide(equal_leaves, each, LINE)


class OnHost:
    """The same in NumPy, on lists of leaves."""

    backend = "host"

    def __init__(self, mean):
        self.mean = mean

    def init(self, rng, position, estimator):
        return {"p": jax.tree.map(np.zeros_like, position), "x": position, "xi": 1.0}

    def position(self, state):
        return state["x"]

    def step(self, rng, state, h, estimator):
        g = estimator.estimate(rng, (), state["x"])[0].gradient
        kick = lambda p, g: p - h * g - h * state["xi"] * p + np.sqrt(2 * h) * rng.standard_normal(np.shape(p))
        p = jax.tree.map(kick, state["p"], g)
        x = jax.tree.map(lambda a, b: a + h * b, state["x"], p)
        return {"p": p, "x": x, "xi": state["xi"] + h * (self.mean(jax.tree.leaves(p)) - 1)}


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (lambda leaves: np.mean([np.mean(leaf**2) for leaf in leaves]), "fail"),
        (lambda leaves: np.mean(np.concatenate([np.ravel(leaf) for leaf in leaves]) ** 2), "pass"),
    ],
)
def test_samplers_in_python(mean, verdict):
    with jax.enable_x64(True):
        assert decide(equal_leaves, OnHost(mean), LINE).verdict == verdict


@pytest.mark.parametrize("sampler", [Euler(), Underdamped()])
def test_a_state_that_shares_nothing_has_nothing_to_show(sampler):
    with jax.enable_x64(True), pytest.raises(NotApplicable):
        decide(equal_leaves, sampler, LINE)


def test_leaves_with_steps_of_their_own_are_out_of_reach():
    class Layers(Thermostat):
        """A larger step in small leaves."""

        def step(self, key, state, step_size, estimator):
            after = super().step(key, state, step_size, estimator)
            factor = lambda new, old: old + (new - old) / new.size
            return after | {"position": jax.tree.map(factor, after["position"], state["position"])}

    with jax.enable_x64(True), pytest.raises(OutOfReach, match="do not move alike"):
        decide(equal_leaves, Layers(WRONG["the mean of the leaves' means"]), LINE)
