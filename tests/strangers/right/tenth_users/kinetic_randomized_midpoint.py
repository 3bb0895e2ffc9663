"""Randomised midpoint method for underdamped Langevin dynamics (Shen and Lee, 2019).

The force enters a step through an integral over time, which is replaced by its integrand at a uniform random time. The
free motion dx = v dt, dv = -friction v dt + sqrt(2 friction) dW is solved exactly on both sides of that time, with one
Brownian path for the midpoint and the end.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

DEPTH = 14  # of the continued fraction


class Kinetic(NamedTuple):
    position: jax.Array
    velocity: jax.Array


def excess(y):
    """y - tanh(y) without cancellation, from Lambert's continued fraction."""
    q = jnp.zeros_like(y)
    for odd in range(2 * DEPTH + 1, 1, -2):
        q = y**2 / (odd + q)
    return y * q / (1 + q)


def kept(t, friction):
    return jnp.exp(-friction * t)


def travel(t, friction):
    """Way of a unit velocity in time t."""
    return -jnp.expm1(-friction * t) / friction


def fall(t, friction):
    """Way of a unit acceleration, from rest, in time t."""
    return (t - travel(t, friction)) / friction


def path_noise(key, like, t, friction):
    """Random parts of position and velocity after time t, jointly Gaussian."""
    velocity_key, position_key = jax.random.split(key)
    a = jax.random.normal(velocity_key, like.shape, like.dtype)
    b = jax.random.normal(position_key, like.shape, like.dtype)
    lost, total = -jnp.expm1(-friction * t), 1 + kept(t, friction)
    shared = lost * jnp.sqrt(lost / total) / friction
    own = 2 * jnp.sqrt(excess(friction * t / 2)) / friction
    return shared * a + own * b, jnp.sqrt(lost * total) * a


def randomized_midpoint(friction=2.0):
    """Two gradients a step; unit mass."""
    if friction <= 0:
        raise ValueError("friction has to be positive")

    def init(key, position, estimator):
        return Kinetic(position, jax.random.normal(key, position.shape, position.dtype))

    def step(key, state, step_size, estimator):
        time_key, left, right, start, middle = jax.random.split(key, 5)
        x, v = state
        h = jnp.asarray(step_size, x.dtype)
        t = h * jax.random.uniform(time_key, (), x.dtype)
        rest = h - t
        left_x, left_v = path_noise(left, x, t, friction)
        right_x, right_v = path_noise(right, x, rest, friction)

        force = -estimator.estimate(start, (), x)[0].gradient
        midpoint = x + travel(t, friction) * v + fall(t, friction) * force + left_x

        force = -estimator.estimate(middle, (), midpoint)[0].gradient
        noise_x = left_x + travel(rest, friction) * left_v + right_x
        noise_v = kept(rest, friction) * left_v + right_v
        return Kinetic(
            x + travel(h, friction) * v + h * travel(rest, friction) * force + noise_x,
            kept(h, friction) * v + h * kept(rest, friction) * force + noise_v,
        )

    return simple_sampler(step, init=init, claims=Claims(Source("", "own"), StationaryLaw(order=2)))
