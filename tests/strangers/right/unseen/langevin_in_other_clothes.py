"""Five discretisations of Langevin dynamics from a graduate course, each with a state of another kind."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def slope(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


@dataclass(frozen=True)
class FrictionField:
    """BAOAB whose friction base + x^2 / (1 + x^2) depends on the position; the OU part is exact where it acts."""

    base: float = 1.0
    claims = Claims(Source("", "lecture 7"), StationaryLaw(order=2), conditions=("exact gradient",))

    def init(self, key, position, estimator):
        return {"position": position, "momentum": jax.random.normal(key, position.shape, position.dtype)}

    def step(self, key, state, h, estimator):
        first, second, bath = jax.random.split(key, 3)
        x, p = state["position"], state["momentum"]
        p = p - 0.5 * h * slope(estimator, first, x)
        x = x + 0.5 * h * p
        friction = self.base + x**2 / (1 + x**2)
        noise = jax.random.normal(bath, x.shape, x.dtype)
        p = jnp.exp(-friction * h) * p + jnp.sqrt(-jnp.expm1(-2 * friction * h)) * noise
        x = x + 0.5 * h * p
        return {"position": x, "momentum": p - 0.5 * h * slope(estimator, second, x)}


def _bbk(key, state, h, estimator, gamma=1.5):
    """Brunger, Brooks and Karplus, with the velocity kept at half steps."""
    a, b = jax.random.split(key)
    x, v = state
    widened = 1 + 0.5 * gamma * h
    force = -slope(estimator, a, x) * h + (2 * gamma * h) ** 0.5 * jax.random.normal(b, x.shape, x.dtype)
    v = ((1 - 0.5 * gamma * h) * v + force) / widened
    return x + h * v, v


brunger = simple_sampler(
    _bbk,
    init=lambda key, x, estimator: (x, jax.random.normal(key, x.shape, x.dtype)),
    position=lambda state: state[0],
)


@dataclass
class Tossed:
    """OBABO with coins for the two half kicks of the bath, both from one long draw."""

    friction: float = 2.0

    def init(self, key, position, estimator):
        return [position, jnp.zeros_like(position)]

    def position(self, state):
        return state[0]

    def step(self, key, state, h, estimator):
        x, p = state
        one, two, bath = jax.random.split(key, 3)
        coins = jax.random.rademacher(bath, (2 * x.size,), x.dtype)
        kept = jnp.exp(-0.5 * self.friction * h).astype(x.dtype)
        spread = jnp.sqrt(-jnp.expm1(-self.friction * h)).astype(x.dtype)
        p = kept * p + spread * coins[: x.size].reshape(x.shape)
        p = p - 0.5 * h * slope(estimator, one, x)
        x = x + h * p
        p = p - 0.5 * h * slope(estimator, two, x)
        return [x, kept * p + spread * coins[x.size :].reshape(x.shape)]


class TwoStep(NamedTuple):
    """A point and the gradient at the point before it."""

    position: jax.Array
    last: jax.Array


def _two_step(key, state, h, estimator):
    """Adams and Bashforth's two-step rule for the drift of overdamped Langevin dynamics."""
    a, b = jax.random.split(key)
    now = slope(estimator, a, state.position)
    noise = jax.random.normal(b, now.shape, now.dtype)
    return TwoStep(state.position - h * (1.5 * now - 0.5 * state.last) + (2 * h) ** 0.5 * noise, now)


adams_bashforth = simple_sampler(_two_step, init=lambda key, x, est: TwoStep(x, slope(est, key, x)))


def unwarp(y):
    return y + 0.5 * jnp.sin(y)


def _warped(key, state, h, estimator):
    """Euler step of y, where x = y + sin(y) / 2 and exp(-U(x)) dx = exp(-U(x(y))) (1 + cos(y) / 2) dy."""
    a, b = jax.random.split(key)
    y = state["y"]
    stretch = 1 + 0.5 * jnp.cos(y)
    drift = stretch * slope(estimator, a, unwarp(y)) + 0.5 * jnp.sin(y) / stretch
    return {"y": y - h * drift + (2 * h) ** 0.5 * jax.random.normal(b, y.shape, y.dtype)}


warped = simple_sampler(
    _warped,
    init=lambda key, x, est: {"y": jax.lax.fori_loop(0, 80, lambda _, y: x - 0.5 * jnp.sin(y), x)},
    position=lambda state: unwarp(state["y"]),
)
