"""Generalised Langevin dynamics with a Prony-series memory kernel.

    dx = p dt
    dp = -grad U(x) dt + sum_k c_k s_k dt
    ds_k = -(c_k p + a_k s_k) dt + sqrt(2 a_k T) dW_k

Eliminating s gives a friction kernel K(t) = sum_k c_k^2 exp(-a_k t) and the coloured noise that belongs to it.
The coupling of p and s is a skew matrix of rank two, so its flow is a rotation in one plane and needs no matrix
exponential. The step is the palindrome A R O B O R A of exact flows, with one gradient at the middle.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class GLEState(NamedTuple):
    position: Any
    momentum: jax.Array  # (d,)
    memory: jax.Array  # (modes, d)


def rotate(momentum, memory, coupling, time):
    """Flow of dp = c.s dt, ds = -c p dt: turns p and the component of s along c."""
    size = float(np.linalg.norm(coupling))
    axis = jnp.asarray(coupling / size, momentum.dtype)
    along = axis @ memory
    cos, sin = jnp.cos(size * time), jnp.sin(size * time)
    turned = cos * along - sin * momentum
    return cos * momentum + sin * along, memory + axis[:, None] * (turned - along)


@dataclass(frozen=True)
class GeneralisedLangevin:
    """`modes` exponentials with rates spaced geometrically from `slowest` to `fastest`."""

    modes: int = 2
    slowest: float = 0.8
    fastest: float = 3.0
    strength: float = 1.5
    temperature: float = 1.0

    def __post_init__(self):
        if self.modes < 1 or min(self.slowest, self.fastest, self.strength, self.temperature) <= 0:
            raise ValueError("modes, rates, strength and temperature have to be positive")

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=2, temperature=self.temperature))

    @property
    def rates(self):
        return np.geomspace(self.slowest, self.fastest, self.modes)

    @property
    def coupling(self):
        return np.full(self.modes, self.strength / np.sqrt(self.modes))

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        p_key, s_key = jax.random.split(key)
        scale = self.temperature**0.5
        momentum = scale * jax.random.normal(p_key, flat.shape, flat.dtype)
        memory = scale * jax.random.normal(s_key, (self.modes, flat.size), flat.dtype)
        return GLEState(position, momentum, memory)

    def thermalise(self, key, memory, time):
        kept = jnp.exp(-jnp.asarray(self.rates, memory.dtype) * time)[:, None]
        noise = jax.random.normal(key, memory.shape, memory.dtype)
        return kept * memory + jnp.sqrt(self.temperature * (1 - kept**2)) * noise

    def step(self, key, state, step_size, estimator):
        before, force, after = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)
        p, s = state.momentum, state.memory

        x = x + h / 2 * p
        p, s = rotate(p, s, self.coupling, h / 2)
        s = self.thermalise(before, s, h / 2)

        gradient, _ = ravel_pytree(estimator.estimate(force, (), unravel(x))[0].gradient)
        p = p - h * gradient

        s = self.thermalise(after, s, h / 2)
        p, s = rotate(p, s, self.coupling, h / 2)
        x = x + h / 2 * p
        return GLEState(unravel(x), p, s)
