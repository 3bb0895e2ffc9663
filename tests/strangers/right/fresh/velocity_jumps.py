"""Piecewise deterministic samplers in discrete time: velocities that flip, bounce and are reflected. The splitting of
the zig-zag errs by O(h^2); the kernels that accept and reject are exact, with velocities independent of positions."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw


def estimate(estimator, x):
    """(U, grad U)."""
    found = estimator.estimate(jax.random.key(0), (), x)[0]
    return found.potential, found.gradient


def reflect(v, g):
    """v mirrored at the plane across g."""
    square = jnp.sum(g * g)
    return v - 2 * jnp.sum(v * g) * g / jnp.where(square > 0, square, 1.0)


class ZigZag:
    """Drift, jump, drift (Bertazzi, Bierkens and Dobson): v_i flips with probability 1 - exp(-h max(0, v_i U_i)).

    The rates are frozen in the middle of the step, so that the flips of a step are drawn exactly. The step is drawn
    from h (1/2 ... 3/2), or positions would stay on a lattice; the splitting is symmetric for each of them.
    """

    claims = Claims(Source("", "Bertazzi, Bierkens and Dobson (2023)"), StationaryLaw(order=2))

    def init(self, key, position, estimator):
        return {"position": position, "v": jax.random.rademacher(key, position.shape, position.dtype)}

    def step(self, key, state, step_size, estimator):
        a, b, noise = jax.random.split(key, 3)
        h = step_size * jax.random.uniform(a, dtype=state["v"].dtype, minval=0.5, maxval=1.5)
        x, v = state["position"] + h / 2 * state["v"], state["v"]
        rate = jnp.maximum(0.0, v * estimator.estimate(noise, (), x)[0].gradient)
        flips = jax.random.uniform(b, v.shape, v.dtype) < 1 - jnp.exp(-h * rate)
        v = jnp.where(flips, -v, v)
        return {"position": x + h / 2 * v, "v": v}


zigzag = ZigZag()


class HostZigZag:
    """The same on the host, events of each coordinate by exponential clocks: v_i flips if its clock is up within h."""

    backend = "host"

    def init(self, key, position, estimator):
        x = np.array(position)
        return [x, np.where(key.random(x.shape) < 0.5, -1.0, 1.0).astype(x.dtype)]

    def step(self, key, state, step_size, estimator):
        x, v = state
        h = step_size * key.uniform(0.5, 1.5)
        x = x + h / 2 * v
        g = np.asarray(estimator.estimate(key, (), x)[0].gradient)
        clocks = key.exponential(size=x.shape)
        v = np.where(clocks < h * np.maximum(v * g, 0), -v, v)
        return [(x + h / 2 * v).astype(v.dtype), v]

    def position(self, state):
        return state[0]


host_zigzag = HostZigZag()


class Bouncing(NamedTuple):
    u: Any
    x: Any


class DiscreteBouncy:
    """Sherlock and Thiery: x + h u; if rejected, a bounce there and a second move; if that is rejected too, u -> -u.

    Delayed rejection with deterministic proposals that keep volume: the second is taken with the probability
    min(1, pi(y) (1 - a(y, way back)) / (pi(x) (1 - a(x)))), a the first probability. u is refreshed in part.
    """

    claims = Claims(Source("", "Sherlock and Thiery (2022)"), ExactLaw())

    def init(self, key, position, estimator):
        return Bouncing(jax.random.normal(key, position.shape, position.dtype), position)

    def step(self, key, state, h, estimator):
        a, b, c = jax.random.split(key, 3)
        u, x = state
        energy = lambda x: estimate(estimator, x)[0]
        middle = x + h * u
        here, there, slope = energy(x), *estimate(estimator, middle)
        first = jax.random.uniform(a, dtype=x.dtype) < jnp.exp(here - there)
        bounced = reflect(u, slope)
        end = middle + h * bounced
        last = energy(end)
        missed = 1 - jnp.minimum(1.0, jnp.exp(here - there))
        back = 1 - jnp.minimum(1.0, jnp.exp(last - there))
        rate = jnp.exp(here - last) * back / jnp.where(missed > 0, missed, 1.0)
        second = jax.random.uniform(b, dtype=x.dtype) < rate
        x = jnp.where(first, middle, jnp.where(second, end, x))
        u = jnp.where(first, u, jnp.where(second, bounced, -u))
        return Bouncing(jnp.sqrt(0.8) * u + jnp.sqrt(0.2) * jax.random.normal(c, u.shape, u.dtype), x)

    def position(self, state):
        return state.x


discrete_bouncy = DiscreteBouncy()


def _hug(key, x, h, estimator):
    # Ludkin and Sherlock: half a move, a bounce, half a move, three times, along the contour; then a walk across it.
    a, b, c, d = jax.random.split(key, 4)
    t = jnp.sqrt(h)
    v = jax.random.normal(a, x.shape, x.dtype)
    y, w = x, v
    for _ in range(3):
        y = y + t / 2 * w
        w = reflect(w, estimate(estimator, y)[1])
        y = y + t / 2 * w
    u = lambda x: estimate(estimator, x)[0]
    ok = -jax.random.exponential(b, dtype=x.dtype) < u(x) - u(y) + (jnp.sum(v * v) - jnp.sum(w * w)) / 2
    x = jnp.where(ok, y, x)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(c, x.shape, x.dtype)
    return jnp.where(-jax.random.exponential(d, dtype=x.dtype) < u(x) - u(y), y, x)


# Hug and a random walk, in turn within a step.
hug_and_walk = simple_sampler(_hug, claims=Claims(Source("", "Ludkin and Sherlock (2022)"), ExactLaw()))
