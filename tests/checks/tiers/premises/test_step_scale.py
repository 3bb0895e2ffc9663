"""A floor, a least step size or a switch at small step sizes is found; one power of h passes."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from checks.tiers.premises.step_scale import step_scale
from tests.helpers.strangers import MALA, Euler, Underdamped, decide, gradient, normal


class Rescaled:
    """Euler's method with the step size that `change` makes of the one that it is given."""

    def __init__(self, change, noise=lambda h: jnp.sqrt(2 * h)):
        self.change, self.noise = change, noise

    def step(self, key, x, step_size, estimator):
        h = self.change(step_size)
        return x - h * gradient(estimator, x) + self.noise(h) * normal(key, x)


class HostWalk:
    """SGLD in NumPy, its noise at least `least`."""

    backend = "host"

    def __init__(self, least):
        self.least = least

    def step(self, rng, x, step_size, estimator):
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        return x - step_size * g + max(np.sqrt(2 * step_size), self.least) * rng.standard_normal(np.shape(x))


BROKEN = {
    "a floor in the variance": Rescaled(lambda h: h, lambda h: jnp.sqrt(jnp.maximum(2 * h, 1e-6))),
    "a constant added to the variance": Rescaled(lambda h: h, lambda h: jnp.sqrt(2 * h + 1e-6)),
    "a least step size": Rescaled(lambda h: jnp.maximum(h, 1e-5)),
    "half of the noise below a step size": Rescaled(
        lambda h: h, lambda h: jnp.where(h < 1e-5, 0.5, 1) * jnp.sqrt(2 * h)
    ),
    "a difference that is not finite": Rescaled(lambda h: h, lambda h: jnp.sqrt(2 * h - 1e-6)),
    "a host sampler with a floor": HostWalk(1e-3),
}
ONE_POWER = {
    "Euler": Euler(),
    "a momentum": Underdamped(),
    "MALA": MALA(),
    "noise of an exact Ornstein-Uhlenbeck step": Rescaled(lambda h: h, lambda h: jnp.sqrt(-jnp.expm1(-2 * h))),
    "a drift tamed by h": Euler(lambda g, h: g / (1 + h * jnp.linalg.norm(g))),
    "gradient noise, a third of the injected one at a hundredth of the step size": Rescaled(
        lambda h: h, lambda h: jnp.sqrt(2 * h) + 100 * h
    ),
    "a host sampler": HostWalk(0.0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_step_that_scales_otherwise_below_some_size_fails(name):
    finding = decide(step_scale, BROKEN[name], "gaussian-correlated-2d")
    assert finding.verdict == "fail", finding.reason
    assert "h^" in finding.reason or "is nan at a step size" in finding.reason


@pytest.mark.parametrize("name", ONE_POWER)
def test_one_power_of_h_passes(name):
    finding = decide(step_scale, ONE_POWER[name], "gaussian-correlated-2d")
    assert finding.verdict == "pass", finding.reason


def test_the_power_below_and_the_step_size_where_it_begins_are_named():
    """A variance of at least 1e-6 is reached at h = 5e-7, between the fourth and the fifth step size."""
    reason = decide(step_scale, BROKEN["a floor in the variance"], "gaussian-correlated-2d").reason
    assert re.search(r"the noise goes like .* above a step size of 2\.62e-07, like h\^-?0\.000 below", reason), reason
