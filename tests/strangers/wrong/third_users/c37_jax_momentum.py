"""Kinetic samplers in JAX: splittings, thermostats, masses."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def force_at(estimator, key, x):
    """-grad U, flat."""
    return -ravel_pytree(estimator.estimate(key, (), x)[0].gradient)[0]


def gauss(key, v):
    return jax.random.normal(key, v.shape, v.dtype)


# 1 ------------------------------------------------------------------------------------------------ BAOAB, one force


class Phase(NamedTuple):
    position: Any
    momentum: jax.Array
    force: jax.Array


@dataclass(frozen=True)
class OneForceBAOAB:
    """BAOAB that evaluates one force per step and keeps it for the first kick of the next one. Order two."""

    friction: float = 1.0

    claims = Claims(Source("leimkuhler2013", "BAOAB"), StationaryLaw(order=2))

    def init(self, key, position, estimator):
        k1, k2 = jax.random.split(key)
        flat, _ = ravel_pytree(position)
        return Phase(position, gauss(k1, flat), force_at(estimator, k2, position))

    def step(self, key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        q, back = ravel_pytree(state.position)
        p = state.momentum + h / 2 * state.force
        q = q + h / 2 * p
        force = force_at(estimator, k1, back(q))
        kept = jnp.exp(-self.friction * h)
        p = kept * p + jnp.sqrt(1 - kept**2) * gauss(k2, p)
        q = q + h / 2 * p
        p = p + h / 2 * force
        return Phase(back(q), p, force)


# 2 ------------------------------------------------------------------------------------------- a thermostat per layer


@dataclass(frozen=True)
class LayerThermostats:
    """SGNHT with one thermostat for each array of the parameters."""

    diffusion: float = 1.0
    inertia: float = 5.0

    def init(self, key, position, estimator):
        leaves, form = jax.tree.flatten(position)
        keys = jax.random.split(key, len(leaves))
        momentum = form.unflatten([gauss(k, x) for k, x in zip(keys, leaves)])
        xi = tuple(jnp.full((), self.diffusion, x.dtype) for x in leaves)
        return {"position": position, "momentum": momentum, "xi": xi}

    def step(self, key, state, h, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = jax.tree.leaves(estimator.estimate(gradient_key, (), state["position"])[0].gradient)
        xs, form = jax.tree.flatten(state["position"])
        ps = jax.tree.leaves(state["momentum"])
        keys = jax.random.split(noise_key, len(xs))
        thermostats = []
        for p, old in zip(ps, state["xi"]):
            xi = old + h * (jnp.mean(p * p) - 1) / self.inertia
            thermostats.append(xi)
        scale = jnp.sqrt(2 * self.diffusion * h)
        moved = [p - h * g - h * xi * p + scale * gauss(k, p) for p, g, k in zip(ps, gradient, keys)]
        return {
            "position": form.unflatten([x + h * p for x, p in zip(xs, moved)]),
            "momentum": form.unflatten(moved),
            "xi": tuple(thermostats),
        }


# 3 --------------------------------------------------------------------------------- a thermostat that cannot go wild


def positive_thermostat(diffusion=0.5):
    """SGNHT; xi is a friction, so it is kept non-negative, or the momentum would be driven and explode."""

    def init(key, position, estimator):
        flat, _ = ravel_pytree(position)
        return position, gauss(key, flat), jnp.full((), diffusion, flat.dtype)

    def step(key, state, h, estimator):
        x, p, xi = state
        k1, k2 = jax.random.split(key)
        p = p + h * force_at(estimator, k1, x) - h * xi * p + jnp.sqrt(2 * diffusion * h) * gauss(k2, p)
        q, back = ravel_pytree(x)
        xi = jnp.maximum(xi + h * (jnp.mean(p**2) - 1), 0.0)
        return back(q + h * p), p, xi

    return simple_sampler(step, init=init, position=lambda state: state[0])


# 4 ----------------------------------------------------------------------------------------- a bath that "breathes"


def _breathing_init(key, position, estimator):
    flat, _ = ravel_pytree(position)
    return {"position": position, "v": gauss(key, flat), "time": jnp.zeros((), flat.dtype)}


def _breathing_step(key, state, h, estimator):
    """A slow modulation of the bath, on average 1, helps over barriers."""
    k1, k2 = jax.random.split(key)
    temperature = 1 + 0.25 * jnp.sin(state["time"] / 50)
    q, back = ravel_pytree(state["position"])
    v = state["v"] + h * force_at(estimator, k1, state["position"])
    kept = jnp.exp(-h)
    v = kept * v + jnp.sqrt((1 - kept**2) * temperature) * gauss(k2, v)
    return {"position": back(q + h * v), "v": v, "time": state["time"] + h}


breathing_bath = simple_sampler(_breathing_step, init=_breathing_init)


# 5 ------------------------------------------------------------------------------------------------- a mass per unit


@jax.tree_util.register_dataclass
@dataclass
class Heavy:
    position: Any
    momentum: Any


class HeavyRows:
    """Underdamped Langevin; the mass grows from 1 to 2 along the units (the first axis) of each array."""

    def __init__(self, friction=1.0):
        self.friction = friction

    @staticmethod
    def mass_of_units(x):
        units = x.shape[0] if x.ndim else 1
        ramp = 1 + jnp.arange(units, dtype=x.dtype) / units
        return ramp.reshape((units,) + (1,) * (x.ndim - 1)) if x.ndim else ramp[0]

    @staticmethod
    def mass_of_numbers(x):
        return (1 + jnp.arange(x.size, dtype=x.dtype) / x.size).reshape(x.shape)

    def init(self, key, position, estimator):
        leaves, form = jax.tree.flatten(position)
        keys = jax.random.split(key, len(leaves))
        drawn = [jnp.sqrt(self.mass_of_units(x)) * gauss(k, x) for k, x in zip(keys, leaves)]
        return Heavy(position, form.unflatten(drawn))

    def step(self, key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        gradient = estimator.estimate(k1, (), state.position)[0].gradient
        leaves, form = jax.tree.flatten(state.momentum)
        keys = form.unflatten(list(jax.random.split(k2, len(leaves))))
        kept = jnp.exp(-self.friction * h)

        def kick(p, g, k):
            return kept * (p - h * g) + jnp.sqrt((1 - kept**2) * self.mass_of_numbers(p)) * gauss(k, p)

        momentum = jax.tree.map(kick, state.momentum, gradient, keys)
        position = jax.tree.map(lambda x, p: x + h * p / self.mass_of_units(x), state.position, momentum)
        return Heavy(position, momentum)


# 6 ---------------------------------------------------------------------------- OABAO with one block of normals a step


def overlapping_bath(friction=1.0):
    """Both half baths of a step take their numbers from one block, which saves half of the generator's work."""

    def init(key, position, estimator):
        return position, gauss(key, ravel_pytree(position)[0])

    def step(key, state, h, estimator):
        x, p = state
        k1, k2 = jax.random.split(key)
        q, back = ravel_pytree(x)
        block = jax.random.normal(k2, (q.size + 1,), q.dtype)
        kept = jnp.exp(-friction * h / 2)
        spread = jnp.sqrt(1 - kept**2)
        p = kept * p + spread * block[:-1]
        q = q + h / 2 * p
        p = p + h * force_at(estimator, k1, back(q))
        q = q + h / 2 * p
        p = kept * p + spread * block[1:]
        return back(q), p

    return simple_sampler(step, init=init, position=lambda state: state[0])
