"""Underdamped Langevin dynamics of positive numbers x = log(1 + e^y), by a symmetric splitting in y.

The law of y has the potential V(y) = U(softplus(y)) - sum log sigma(y), so that V'(y) = U'(x) sigma(y) - sigma(-y): a Gamma law has tails
in y that are linear on the left, and as those of x on the right. Substeps are O(h/2) A(h/2) B(h) A(h/2) O(h/2), with one gradient a step.
The noise of O is normal, or takes the values -sqrt(3), 0, sqrt(3) with probabilities 1/6, 2/3, 1/6: its moments are those of a normal
variable up to the fifth, which a scheme of weak order two asks for.
"""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Unconstrained:
    y: jax.Array
    momentum: jax.Array

    @property
    def position(self):
        return jax.nn.softplus(self.y)


def inverse_softplus(x):
    return x + jnp.log(-jnp.expm1(-x))


def draw(kind, key, like):
    if kind == "normal":
        return jax.random.normal(key, like.shape, like.dtype)
    u = jax.random.uniform(key, like.shape, like.dtype)
    root = jnp.sqrt(jnp.asarray(3.0, like.dtype))
    return jnp.where(u < 1 / 6, -root, jnp.where(u < 5 / 6, jnp.zeros_like(u), root))


def transformed_slope(estimator, key, y):
    g = estimator.estimate(key, (), jax.nn.softplus(y))[0].gradient
    return g * jax.nn.sigmoid(y) - jax.nn.sigmoid(-y)


def softplus_oabao(friction=1.5, mass=1.0, noise: Literal["normal", "three-point"] = "normal"):
    if friction <= 0 or mass <= 0:
        raise ValueError("friction and mass have to be positive")
    if noise not in ("normal", "three-point"):
        raise ValueError(f"unknown noise {noise!r}")

    def thermostat(key, p, t):
        kept = jnp.exp(-friction * t)
        return kept * p + jnp.sqrt(-mass * jnp.expm1(-2 * friction * t)) * draw(noise, key, p)

    def init(key, position, estimator):
        momentum = mass**0.5 * jax.random.normal(key, position.shape, position.dtype)
        return Unconstrained(inverse_softplus(position), momentum)

    def step(key, state, h, estimator):
        before, after, gradient_key = jax.random.split(key, 3)
        p = thermostat(before, state.momentum, h / 2)
        y = state.y + h / 2 * p / mass
        p = p - h * transformed_slope(estimator, gradient_key, y)
        y = y + h / 2 * p / mass
        return Unconstrained(y, thermostat(after, p, h / 2))

    claims = Claims(Source("", "own"), StationaryLaw(order=2), spaces=("positive",))
    return simple_sampler(step, init=init, position=lambda state: state.position, claims=claims)
