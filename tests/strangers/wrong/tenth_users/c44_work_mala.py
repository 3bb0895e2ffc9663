"""MALA for models whose log density is not available, only its gradient.

The difference of the potential between the present point and the proposal is the work along the segment between them. The gradients at
both of its ends are needed for the proposal and its reverse in any case, so that the test costs nothing beyond them; the gradient
at the present point is kept in the state.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class State(NamedTuple):
    position: Any
    gradient: jax.Array


def slope(key, position, estimator):
    return ravel_pytree(estimator.estimate(key, (), position)[0].gradient)[0]


def work(x, y, at_x, at_y):
    """U(y) - U(x), as the integral of the gradient along the segment from x to y."""
    return jnp.dot(at_x + at_y, y - x) / 2


def log_proposal(x, y, at_x, h):
    """Log density of the proposal from x at y, up to a constant."""
    return -jnp.sum((y - x + h * at_x) ** 2) / (4 * h)


def init(key, position, estimator):
    return State(position, slope(key, position, estimator))


def step(key, state, step_size, estimator):
    gradient_key, move_key, accept_key = jax.random.split(key, 3)
    x, unravel = ravel_pytree(state.position)
    h = jnp.asarray(step_size, x.dtype)

    y = x - h * state.gradient + jnp.sqrt(2 * h) * jax.random.normal(move_key, x.shape, x.dtype)
    at_y = slope(gradient_key, unravel(y), estimator)

    log_ratio = -work(x, y, state.gradient, at_y)
    log_ratio += log_proposal(y, x, at_y, h) - log_proposal(x, y, state.gradient, h)
    accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio
    return State(unravel(jnp.where(accepted, y, x)), jnp.where(accepted, at_y, state.gradient))


mala = simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()))
