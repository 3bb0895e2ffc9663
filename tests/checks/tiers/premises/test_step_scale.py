"""A floor, a least step size or a switch at small step sizes is found; one power of h passes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.tiers.premises.step_scale import GRID, _stands_out, step_scale
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.helpers.strangers import MALA, Euler, Kept, Underdamped, decide, gradient, normal


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


class VelocityOfPositions:
    """A kinetic Euler step in NumPy that reads its velocity back from two positions, as codes with constraints do."""

    backend = "host"

    def init(self, rng, x, estimator):
        return (x, rng.standard_normal(np.shape(x)))

    def step(self, rng, state, step_size, estimator):
        x, v = state
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        v = v - step_size * (g + v) + np.sqrt(2 * step_size) * rng.standard_normal(np.shape(x))
        y = x + step_size * v
        return (y, (y - x) / step_size)


class InnerSteps:
    """A drift that is divided by a whole number, floor(1 / sqrt(h)), and taken as often: a jump at each of them."""

    def step(self, key, x, step_size, estimator):
        count = jnp.floor(1 / jnp.sqrt(step_size))
        return x - step_size * gradient(estimator, x) * (1 + 1 / count) + jnp.sqrt(2 * step_size) * normal(key, x)


class Barker:
    """Unadjusted Barker proposal: a normal move, its sign by a coin (arXiv:1908.11812)."""

    def step(self, key, x, step_size, estimator):
        draw, coin = jax.random.split(key)
        move = jnp.sqrt(2 * step_size) * jax.random.normal(draw, x.shape, x.dtype)
        forward = jax.random.uniform(coin, x.shape) < jax.nn.sigmoid(-move * gradient(estimator, x))
        return x + jnp.where(forward, move, -move)


class Compensated:
    """SGLD whose injected noise lacks what gradients add, as a method for noise that depends on x has it."""

    def step(self, key, x, step_size, estimator):
        rest = jnp.maximum(2 * step_size - 2e4 * (1 + x**2) * step_size**2, 0.0)
        return x - step_size * gradient(estimator, x) + jnp.sqrt(rest) * normal(key, x)


class OnAShell:
    """SGLD with noise of a fixed length in a uniform direction, which has none where all its draws are 0."""

    def __init__(self, length=lambda h: jnp.sqrt(2 * h), drift=lambda h: h):
        self.length, self.drift = length, drift

    def step(self, key, x, step_size, estimator):
        way = normal(key, x)
        far = self.length(step_size) * jnp.sqrt(x.size) / jnp.linalg.norm(way)
        return x - self.drift(step_size) * gradient(estimator, x) + far * way


class RunningMean:
    """SGLD scaled by a running mean of squared gradients, each step a share of it however small h is; noise floored.

    The mean is the larger of the two at small step sizes, so that a norm of both goes like h there and like 1 below.
    """

    def __init__(self, least=0.0, share=lambda h: 1e-9):
        self.least, self.share = least, share

    def init(self, key, position, estimator):
        return Kept(position, jnp.square(gradient(estimator, position)))

    def step(self, key, state, step_size, estimator):
        x, mean = state
        g = gradient(estimator, x, key)
        scale = 1 / (1 + jnp.sqrt(mean))
        x = x - step_size * scale * g + jnp.sqrt(scale * jnp.maximum(2 * step_size, self.least)) * normal(key, x)
        return Kept(x, mean + self.share(step_size) * (g**2 - mean))


BROKEN = {
    "a floor in the noise, beside a running mean": RunningMean(1e-6),
    "a running mean whose share changes": RunningMean(share=lambda h: jnp.maximum(h, 1e-6)),
    "a floor in the variance": Rescaled(lambda h: h, lambda h: jnp.sqrt(jnp.maximum(2 * h, 1e-6))),
    "a constant added to the variance": Rescaled(lambda h: h, lambda h: jnp.sqrt(2 * h + 1e-6)),
    "a least step size": Rescaled(lambda h: jnp.maximum(h, 1e-5)),
    "half of the noise below a step size": Rescaled(
        lambda h: h, lambda h: jnp.where(h < 1e-5, 0.5, 1) * jnp.sqrt(2 * h)
    ),
    "a difference that is not finite": Rescaled(lambda h: h, lambda h: jnp.sqrt(2 * h - 1e-6)),
    "a host sampler with a floor": HostWalk(1e-3),
    "a direction with a floor in its length": OnAShell(lambda h: jnp.sqrt(jnp.maximum(2 * h, 1e-6))),
    "a direction and a least step size of the drift": OnAShell(drift=lambda h: jnp.maximum(h, 1e-5)),
}
SWITCHED = {
    "a tenth more noise above a step size": Rescaled(
        lambda h: h, lambda h: jnp.where(h > 0.02, 1.1, 1) * jnp.sqrt(2 * h)
    ),
    "no drift above a step size": Euler(lambda g, h: jnp.where(h > 0.02, 0.0, 1.0) * g),
}
ONE_POWER = {
    "a running mean": RunningMean(),
    "Euler": Euler(),
    "a momentum": Underdamped(),
    "MALA": MALA(),
    "noise of an exact Ornstein-Uhlenbeck step": Rescaled(lambda h: h, lambda h: jnp.sqrt(-jnp.expm1(-2 * h))),
    "a drift tamed by h": Euler(lambda g, h: g / (1 + h * jnp.linalg.norm(g))),
    "gradient noise, a third of the injected one at a hundredth of the step size": Rescaled(
        lambda h: h, lambda h: jnp.sqrt(2 * h) + 100 * h
    ),
    "a cap of the step size": Rescaled(lambda h: jnp.minimum(h, 0.02)),
    "a series below a step size": Rescaled(
        lambda h: h, lambda h: jnp.sqrt(jnp.where(h < 1e-2, 2 * h - 2 * h**2 + 4 * h**3 / 3, -jnp.expm1(-2 * h)))
    ),
    "a whole number of inner steps": InnerSteps(),
    "noise less that of gradients, which is more than all of it at the usual step size": Compensated(),
    "coins, of Barker's proposal": Barker(),
    "a host sampler": HostWalk(0.0),
    "a direction": OnAShell(),
    "a velocity that is read back from positions": VelocityOfPositions(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_step_that_scales_otherwise_below_some_size_fails(name):
    finding = decide(step_scale, BROKEN[name], "gaussian-correlated-2d")
    assert finding.verdict == "fail", finding.reason
    assert "h^" in finding.reason or "is nan at a step size" in finding.reason


@pytest.mark.parametrize("name", SWITCHED)
def test_a_switch_between_the_step_sizes_of_this_target_and_those_of_unit_curvature_fails(name):
    finding = decide(step_scale, SWITCHED[name], "gaussian-correlated-2d")
    assert finding.verdict == "fail", finding.reason
    found = re.search(r"jumps by a factor of \S+ where the step size passes (\S+)$", finding.reason)
    assert found, finding.reason
    assert abs(np.log10(float(found[1]) / 0.02)) < 1 / GRID


@pytest.mark.parametrize("name", ONE_POWER)
def test_one_power_of_h_passes(name):
    finding = decide(step_scale, ONE_POWER[name], "gaussian-correlated-2d")
    assert finding.verdict == "pass", finding.reason


def test_the_power_below_and_the_step_size_where_it_begins_are_named():
    """A variance of at least 1e-6 is reached at h = 5e-7, between the fourth and the fifth step size."""
    reason = decide(step_scale, BROKEN["a floor in the variance"], "gaussian-correlated-2d").reason
    assert re.search(r"the noise goes like .* above a step size of 2\.62e-07, like h\^-?0\.000 below", reason), reason


def keeps_scale(scale):
    """SGLD with a random factor of the step size, which is kept for some steps; `scale` makes half its variance."""

    def step(key, state, h, estimator):
        noise_key, coin_key, new_key = jax.random.split(key, 3)
        x, kept = state.position, state.kept
        x = x - h * kept * gradient(estimator, x) + jnp.sqrt(2 * scale(h, kept)) * normal(noise_key, x)
        drawn = 0.5 + jax.random.uniform(new_key, dtype=x.dtype)
        return Kept(x, jnp.where(jax.random.uniform(coin_key) < 0.2, drawn, kept))

    init = lambda key, x, estimator: Kept(x, jnp.ones((), jnp.result_type(x)))
    return simple_sampler(step, init=init, position=lambda state: state.position)


def test_a_number_of_the_state_that_is_positive_stays_so():
    """The noise is the square root of it: at a negative value, which no run has, it is no number."""
    assert decide(step_scale, keeps_scale(lambda h, kept: h * kept)).verdict == "pass"


def test_a_floor_beside_a_positive_number_is_found():
    assert decide(step_scale, keeps_scale(lambda h, kept: jnp.maximum(h, 1e-6) * kept)).verdict == "fail"


def test_a_change_with_no_step_sizes_beside_it_stands_out_by_all_of_it():
    assert np.array_equal(_stands_out(np.array([0.0, 0.4, 0.0])), [0.0, 0.4, 0.0])
    assert np.array_equal(_stands_out(np.array([0.4, 0.3, 0.2, 0.1])), [0.4 - 0.1, 0.3, 0.2, 0.1 - 0.4])
