"""Gradients from elsewhere that are right all the same: ahead of the point, behind it, on both sides of it, and noise
that is split over a step or has two values only. Each gradient differs from that at x by O(sqrt h) with mean O(h): the
law is exp(-U) + O(h)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def gradient(estimator, key, x):
    """Grad U at x."""
    return estimator.estimate(key, (), x)[0].gradient


def normal(key, x):
    """Normal of the shape of x."""
    return jax.random.normal(key, x.shape, x.dtype)


class Moving(NamedTuple):
    params: Any
    velocity: Any


class Nesterov:
    """SGHMC with friction 1.5 whose gradient is that at x + h v, as in Nesterov's method."""

    friction = 1.5

    def init(self, key, position, estimator):
        return Moving(position, jnp.zeros_like(position))

    def position(self, state):
        return state.params

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, v, h = *state, step_size
        g = gradient(estimator, a, x + h * v)
        v = v - h * g - h * self.friction * v + jnp.sqrt(2 * self.friction * h) * normal(b, v)
        return Moving(x + h * v, v)


nesterov = Nesterov()


class Remembered(NamedTuple):
    position: Any
    gradient: Any


class Optimistic:
    """x - h (2 g - g_old) + sqrt(2 h) xi, g_old the gradient of the step before: an AR(2) on a Gaussian.

    Its variance there is (1 - h k) 2 / (k (1 + h k) (2 - 3 h k)) = 1 / k + O(h).
    """

    def init(self, key, position, estimator):
        return Remembered(position, gradient(estimator, key, position))

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x = state.position
        g = gradient(estimator, a, x)
        x = x - step_size * (2 * g - state.gradient) + jnp.sqrt(2 * step_size) * normal(b, x)
        return Remembered(x, g)


optimistic = Optimistic()


class TwoPoints(NamedTuple):
    x: Any
    old: Any


class Delayed:
    """The gradient of the step before, as an asynchronous worker hands it in: x - h grad U(x_old) + sqrt(2 h) xi."""

    def init(self, key, position, estimator):
        return TwoPoints(position, position)

    def position(self, state):
        return state.x

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, old = state
        return TwoPoints(x - step_size * gradient(estimator, a, old) + jnp.sqrt(2 * step_size) * normal(b, x), x)


delayed_gradient = Delayed()


def _extragradient(key, x, h, estimator):
    a, b, c = jax.random.split(key, 3)
    ahead = x - h * gradient(estimator, a, x)
    return x - h * gradient(estimator, b, ahead) + jnp.sqrt(2 * h) * normal(c, x)


# The gradient after a step of descent.
extragradient = simple_sampler(_extragradient)


def _two_sides(key, x, h, estimator):
    a, b, c = jax.random.split(key, 3)
    shift = jnp.sqrt(h) * normal(a, x)
    g = (gradient(estimator, b, x + shift) + gradient(estimator, b, x - shift)) / 2
    return x - h * g + jnp.sqrt(2 * h) * normal(c, x)


# The mean of the gradients at an antithetic pair of points beside x.
two_sides = simple_sampler(_two_sides)


def _two_halves(key, x, h, estimator):
    a, b, c = jax.random.split(key, 3)
    noise = jnp.sqrt(2 * h) * normal(c, x)
    for k in (a, b):
        x = x - h / 2 * gradient(estimator, k, x) + noise / 2
    return x


# Two half steps of the drift, with half of one noise each: the sum of the noise is the whole of it.
two_halves = simple_sampler(_two_halves)


class Twins:
    """An antithetic pair of SGLD chains: one normal, used with both signs; the position is the first."""

    def init(self, key, position, estimator):
        return {"position": position, "twin": position}

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        noise = jnp.sqrt(2 * step_size) * normal(b, state["position"])
        move = lambda x, e: x - step_size * gradient(estimator, a, x) + e
        return {"position": move(state["position"], noise), "twin": move(state["twin"], -noise)}


antithetic_twins = Twins()


class Signs:
    """OBABO whose two noises are signs: the momentum's first three moments are those of the normal law."""

    def init(self, key, position, estimator):
        return [position, jax.random.rademacher(key, position.shape, position.dtype)]

    def position(self, state):
        return state[0]

    def step(self, key, state, step_size, estimator):
        a, b, c, d = jax.random.split(key, 4)
        (x, p), h = state, step_size
        keep = jnp.exp(-h / 2)
        part = lambda key, p: keep * p + jnp.sqrt(1 - keep**2) * jax.random.rademacher(key, p.shape, p.dtype)
        p = part(a, p) - h / 2 * gradient(estimator, b, x)
        x = x + h * p
        return [x, part(c, p - h / 2 * gradient(estimator, d, x))]


signs_obabo = Signs()
