"""Samplers that are different at the start: a step size that is learnt and then frozen, a rate that is warmed up, a
descent before the noise, a temperature that falls. After that each is one kernel for ever, with the law exp(-U)
(+ O(h) for the Langevin ones), and the start is forgotten."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler


class Adapted(NamedTuple):
    position: Any
    log_scale: Any
    count: Any


class FrozenMALA:
    """MALA whose log step size is learnt for 100 steps (Robbins and Monro, acceptance 0.574) and is then frozen."""

    def init(self, key, position, estimator):
        return Adapted(position, jnp.zeros((), position.dtype), jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        a, b, c = jax.random.split(key, 3)
        x, log_scale, count = state
        h = step_size * jnp.exp(log_scale)
        here = estimator.estimate(c, (), x)[0]
        y = x - h * here.gradient + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
        there = estimator.estimate(c, (), y)[0]
        forth = jnp.sum((y - x + h * here.gradient) ** 2)
        back = jnp.sum((x - y + h * there.gradient) ** 2)
        rate = jnp.exp(jnp.minimum(0.0, here.potential - there.potential + (forth - back) / (4 * h)))
        x = jnp.where(jax.random.uniform(b, dtype=x.dtype) < rate, y, x)
        learnt = jnp.clip(log_scale + (rate - 0.574) / jnp.sqrt(1.0 + count), -1.0, 1.0)
        return Adapted(x, jnp.where(count < 100, learnt, log_scale).astype(x.dtype), count + 1)


frozen_mala = FrozenMALA()


class Warming(NamedTuple):
    x: Any
    steps: Any


def _warming(key, state, h, estimator):
    x, steps = state
    a, b = jax.random.split(key)
    h = h * jnp.minimum(1.0, (steps + 1) / 20).astype(x.dtype)
    x = x - h * estimator.estimate(a, (), x)[0].gradient + jnp.sqrt(2 * h) * jax.random.normal(b, x.shape, x.dtype)
    return Warming(x, steps + 1)


# SGLD whose step size grows linearly over the first twenty steps, in drift and noise alike.
warm_up = simple_sampler(
    _warming, init=lambda key, x, estimator: Warming(x, jnp.zeros((), jnp.int32)), position=lambda state: state.x
)


def _descent_first(key, state, h, estimator):
    x, left = state["x"], state["left"]
    a, b = jax.random.split(key)
    heat = jnp.where(left > 0, 0.0, 1.0).astype(x.dtype)
    noise = heat * jax.random.normal(b, x.shape, x.dtype)
    x = x - h * estimator.estimate(a, (), x)[0].gradient + jnp.sqrt(2 * h) * noise
    return {"left": jnp.maximum(left - 1, 0), "x": x}


# Thirty steps of gradient descent, counted down, and SGLD ever after.
descent_first = simple_sampler(
    _descent_first,
    init=lambda key, x, estimator: {"left": jnp.full((), 30, jnp.int32), "x": x},
    position=lambda state: state["x"],
)


class Annealed:
    """SGLD on the host; the temperature falls from 5 to 1 over fifty steps and stays there."""

    backend = "host"

    def init(self, key, position, estimator):
        return {"n": 0, "x": np.array(position)}

    def step(self, key, state, step_size, estimator):
        x, n = state["x"], state["n"]
        temperature = 1 + 4 * max(0.0, 1 - n / 50)
        g = np.asarray(estimator.estimate(key, (), x)[0].gradient)
        x = x - step_size * g + np.sqrt(2 * step_size * temperature) * key.standard_normal(x.shape)
        return {"n": n + 1, "x": x.astype(state["x"].dtype)}

    def position(self, state):
        return state["x"]


host_annealed = Annealed()
