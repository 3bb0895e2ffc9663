"""Zig-zag sampler, as a splitting scheme (Bertazzi, Dobson and Monmarche, 2023): drift, switches, drift.

Each coordinate has a velocity -1 or 1, and switches it at the rate max(0, v_i dU/dx_i) + refresh. Between two switches positions move on
straight lines. One gradient a step, no rejections; the bias of positions is of second order in the step size.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


class Particle(NamedTuple):
    position: jax.Array
    velocity: jax.Array


def switching_rates(velocity, gradient, refresh):
    return jnp.maximum(velocity * gradient, 0) + refresh


def drift(state, time):
    return Particle((state.position + time * state.velocity).astype(state.position.dtype), state.velocity)


def switch(key, state, time, gradient, refresh):
    """Switches within `time` at constant rates: at least one event of a clock with the rate of each coordinate."""
    rates = switching_rates(state.velocity, gradient, refresh)
    stays = jax.random.uniform(key, dtype=state.position.dtype) < jnp.exp(-time * rates)
    return Particle(state.position, jnp.where(stays, state.velocity, -state.velocity))


def start(key, position, estimator):
    velocity = jax.random.rademacher(key, position.shape, position.dtype)
    return Particle(position, velocity)


def drift_switch_drift(key, state, step_size, estimator, *, refresh):
    gradient_key, switch_key = jax.random.split(key)
    state = drift(state, step_size / 2)
    gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
    state = switch(switch_key, state, step_size, gradient, refresh)
    return drift(state, step_size / 2)


def zigzag(refresh: float = 0.1):
    """`refresh` is a rate of switches that do not depend on the potential; 0 is the plain zig-zag."""
    if refresh < 0:
        raise ValueError("rates are not negative")
    return simple_sampler(partial(drift_switch_drift, refresh=refresh), init=start)
