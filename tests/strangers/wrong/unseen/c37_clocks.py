"""Samplers with schedules and clocks, and a tamed one."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler

EPOCH, WARM_UP, TAMING = 100, 10, 0.05


def parts(key, position, estimator):
    """Flat position, how to shape it, its gradient, and a normal draw."""
    gradient_key, noise_key = jax.random.split(key)
    x, unravel = ravel_pytree(position)
    g, _ = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)
    return x, unravel, g, jax.random.normal(noise_key, x.shape, x.dtype)


class WarmUpSGLD:
    """SGLD that is plain gradient descent for the first batches of training."""

    def init(self, key, position, estimator):
        return {"position": position, "batch": jnp.zeros((), jnp.int32)}

    def step(self, key, state, step_size, estimator):
        x, unravel, g, n = parts(key, state["position"], estimator)
        h = jnp.asarray(step_size, x.dtype)
        temperature = jnp.where(state["batch"] < WARM_UP, 0.0, 1.0).astype(x.dtype)
        x = x - h * g + jnp.sqrt(2 * h * temperature) * n
        return {"position": unravel(x), "batch": (state["batch"] + 1) % EPOCH}


class Slow(NamedTuple):
    """Fast weights (the position), slow weights, and steps since they met."""

    position: Any
    slow: Any
    since: jax.Array


@dataclass(frozen=True)
class LookaheadSGLD:
    """SGLD as the inner optimiser of Lookahead: k fast steps, then slow weights take a share of the way."""

    k: int = 5
    share: float = 0.5

    def init(self, key, position, estimator):
        return Slow(position, position, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        x, unravel, g, n = parts(key, state.position, estimator)
        h = jnp.asarray(step_size, x.dtype)
        fast = unravel(x - h * g + jnp.sqrt(2 * h) * n)
        since = (state.since + 1) % self.k
        slow = jax.tree.map(lambda s, f: jnp.where(since == 0, s + self.share * (f - s), s), state.slow, fast)
        return Slow(jax.tree.map(lambda s, f: jnp.where(since == 0, s, f), slow, fast), slow, since)


class Bouncing(NamedTuple):
    """Position and velocities, each -1 or 1."""

    position: Any
    velocity: jax.Array


class ZigZag:
    """Zig-zag process in small steps of time: a velocity turns at the rate of its uphill slope, then all move."""

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        return Bouncing(position, jax.random.rademacher(key, x.shape, x.dtype))

    def step(self, key, state, step_size, estimator):
        gradient_key, clock_key = jax.random.split(key)
        x, unravel = ravel_pytree(state.position)
        g, _ = ravel_pytree(estimator.estimate(gradient_key, (), state.position)[0].gradient)
        h, v = jnp.asarray(step_size, x.dtype), state.velocity
        turns = jax.random.uniform(clock_key, (), x.dtype) < -jnp.expm1(-h * jnp.maximum(v * g, 0))
        v = jnp.where(turns, -v, v)
        return Bouncing(unravel(x + h * v), v)


def tamed_step(key, position, step_size, estimator):
    """Tamed Langevin algorithm: the drift stays bounded far away."""
    x, unravel, g, n = parts(key, position, estimator)
    h = jnp.asarray(step_size, x.dtype)
    drift = g / (1 + TAMING * jnp.sqrt(g @ g))
    return unravel(x - h * drift + jnp.sqrt(2 * h) * n)


tamed = simple_sampler(tamed_step)
