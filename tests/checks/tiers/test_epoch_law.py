"""Laws at the end of an epoch: right orders pass however the sampler is written, orders that are claimed wrongly fail.

Orders of the right ones: with an exact Ornstein-Uhlenbeck flow a symmetric splitting has an error O(h^2) at the end of
an epoch in random order, a scheme of weak order one O(h). A scheme that reads the gradient of another batch than its
own, or noise in the gradient that is not centred over an epoch, loses an order or the law.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.tiers.law.epochs import epoch_law
from sgmcmc_verification.samplers.types import Claims, EpochLaw, Source, StationaryLaw
from tests.helpers.strangers import Kept, decide, normal

DATA = "tiny-regression"


def claims(order: int) -> Claims:
    """The law in the limit, and an order at the end of an epoch."""
    return Claims(Source("", "a stranger"), StationaryLaw(), EpochLaw(order))


def flow(key, p, t):
    """The exact Ornstein-Uhlenbeck flow of friction one."""
    keep = jnp.exp(-t)
    return keep * p + jnp.sqrt(1 - keep**2) * normal(key, p)


def slope(estimator, x, key):
    """The gradient of the batch of this step."""
    return estimator.estimate(key, (), x)[0].gradient


@dataclass
class Overdamped:
    """SGLD, whose noise may be that of the step before as well."""

    order: int = 1
    noise: float = 1.0

    @property
    def claims(self):
        return claims(self.order)

    def step(self, key, x, step_size, estimator):
        a, b = jax.random.split(key)
        return x - step_size * slope(estimator, x, b) + self.noise * jnp.sqrt(2 * step_size) * normal(a, x)


class Chain(NamedTuple):
    momentum: Any
    place: dict


class Nested:
    """BAOAB with one gradient, in a state whose momentum comes first and whose position is in a dictionary."""

    claims = claims(2)

    def init(self, key, position, estimator):
        return Chain(normal(key, position), {"now": position})

    def position(self, state):
        return state.place["now"]

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        x, h = state.place["now"], step_size
        p = state.momentum - h / 2 * slope(estimator, x, a)
        x = x + h / 2 * p
        p = flow(b, p, h)
        x = x + h / 2 * p
        return Chain(p - h / 2 * slope(estimator, x, c), {"now": x})


@dataclass
class OneGradient:
    """A Hamiltonian splitting between two halves of an Ornstein-Uhlenbeck flow: move, kick, move with one gradient."""

    order: int = 2
    force: float = 1.0
    back: float = 0.5

    @property
    def claims(self):
        return claims(self.order)

    def init(self, key, position, estimator):
        return Kept(position, normal(key, position))

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        x, h = state.position, step_size
        p = flow(a, state.kept, h / 2)
        x = x + self.back * h * p
        p = p - self.force * h * slope(estimator, x, b)
        x = x + (1 - self.back) * h * p
        return Kept(x, flow(c, p, h / 2))


@dataclass
class Explicit:
    """SGHMC by Euler steps of both equations."""

    order: int = 1

    @property
    def claims(self):
        return claims(self.order)

    def init(self, key, position, estimator):
        return {"p": jnp.zeros_like(position), "x": position}

    def position(self, state):
        return state["x"]

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, p, h = state["x"], state["p"], step_size
        new = p - h * slope(estimator, x, a) - h * p + jnp.sqrt(2 * h) * normal(b, p)
        return {"p": new, "x": x + h * p}


class Cached(NamedTuple):
    position: Any
    momentum: Any
    gradient: Any


@dataclass
class Carried:
    """OBABO with one gradient a step, whose first kick has the gradient that the step before has ended with.

    The two kicks of a batch are at one place, on both sides of the noise: B/2 O B/2 A is symmetric in each batch. With
    `late` the kicks are by the gradient of the step before at the place where that has begun.
    """

    late: bool = False

    claims = claims(2)

    def init(self, key, position, estimator):
        return Cached(position, normal(key, position), slope(estimator, position, key))

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        x, p, g = state
        h = step_size
        p = flow(a, p, h / 2) - h / 2 * g
        x = x + h * p
        new = slope(estimator, x, b)
        return Cached(x, flow(c, p - h / 2 * (g if self.late else new), h / 2), new)


class Squared(Nested):
    """Noise that the square of the gradient of the batch adds to: it is not centred over an epoch."""

    def step(self, key, state, step_size, estimator):
        x, h = state.place["now"], step_size
        moved = super().step(key, state, h, estimator)
        ones = slope(estimator, jnp.zeros_like(x), key)
        return moved._replace(momentum=moved.momentum - 0.02 * h * jnp.abs(ones))


RIGHT = {
    "SGLD of order one": Overdamped(),
    "BAOAB in a nested state": Nested(),
    "one gradient in the middle": OneGradient(),
    "one gradient, and less claimed than holds": OneGradient(order=1),
    "Euler steps of SGHMC": Explicit(),
    "a move of a third and of two thirds": OneGradient(order=1, back=1 / 3),
    "the first kick by the gradient of the batch before": Carried(),
}
WRONG = {
    "SGLD claims order two": Overdamped(order=2),
    "Euler steps of SGHMC claim order two": Explicit(order=2),
    "a move of a third claims order two": OneGradient(back=1 / 3),
    "the force has the factor 0.9": OneGradient(force=0.9),
    "noise of variance 1.1": Overdamped(noise=1.1**0.5),
    "kicks by the gradient of the step before": Carried(late=True),
    "a drift by the size of the gradient of a batch": Squared(),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_order_passes(name):
    finding = decide(epoch_law, RIGHT[name], DATA)
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", WRONG)
def test_an_order_that_is_claimed_wrongly_fails(name):
    finding = decide(epoch_law, WRONG[name], DATA)
    assert finding.verdict == "fail", finding.reason
