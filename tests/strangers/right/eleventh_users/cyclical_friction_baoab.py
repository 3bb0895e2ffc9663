"""BAOAB with a cosine cycle of step sizes inside a step, and a friction that depends on the position.

One call is a cycle of substeps B A O A B of sizes h_k = h (1 + depth cos(2 pi k / cycle)). The friction of a coordinate is

    gamma(x) = friction (1 + contrast / (1 + x^2)),

and does not change during O, which moves momenta alone, so that O is the exact Ornstein-Uhlenbeck flow. Gradients are carried over from
one substep to the next. The state owns a chain of keys, so that a run is resumed from its state alone.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw

UNROLL = 2


class ChainState(NamedTuple):
    position: Any
    momentum: Any
    key: jax.Array


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def axpy(a, x, y):
    return jax.tree.map(lambda u, v: a * u + v, x, y)


@dataclass(frozen=True)
class CyclicalBAOAB:
    friction: float = 1.0
    contrast: float = 0.75
    depth: float = 0.4
    cycle: int = 4
    temperature: float = 1.0

    def __post_init__(self):
        if not 0 <= self.depth < 1:
            raise ValueError("depth has to be in [0, 1)")
        if self.cycle < 1 or self.friction <= 0 or self.contrast < 0 or self.temperature <= 0:
            raise ValueError("cycle, friction and temperature have to be positive, contrast not negative")

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=2, temperature=self.temperature))

    def init(self, key, position, estimator):
        momentum_key, chain = jax.random.split(key)
        momentum = jax.tree.map(lambda n: self.temperature**0.5 * n, normal_like(momentum_key, position))
        return ChainState(position, momentum, chain)

    def schedule(self, step_size):
        phase = 2 * jnp.pi * jnp.arange(self.cycle) / self.cycle
        return step_size * (1 + self.depth * jnp.cos(phase))

    def thermostat(self, key, position, momentum, h):
        def leaf(x, p, n):
            rate = self.friction * (1 + self.contrast / (1 + x**2))
            kept = jnp.exp(-rate * h)
            return kept * p + jnp.sqrt(-self.temperature * jnp.expm1(-2 * rate * h)) * n

        return jax.tree.map(leaf, position, momentum, normal_like(key, position))

    def step(self, key, state, step_size, estimator):
        """One cycle; all draws come from the chain of keys in the state."""
        chain, first, sub = jax.random.split(state.key, 3)
        slope = lambda k, x: estimator.estimate(k, (), x)[0].gradient
        dtype = jax.tree.leaves(state.position)[0].dtype

        def substep(carry, inputs):
            x, p, g = carry
            h, substep_key = inputs
            noise_key, gradient_key = jax.random.split(substep_key)
            p = axpy(-h / 2, g, p)
            x = axpy(h / 2, p, x)
            p = self.thermostat(noise_key, x, p, h)
            x = axpy(h / 2, p, x)
            g = slope(gradient_key, x)
            return (x, axpy(-h / 2, g, p), g), None

        start = (state.position, state.momentum, slope(first, state.position))
        inputs = self.schedule(step_size).astype(dtype), jax.random.split(sub, self.cycle)
        (x, p, _), _ = jax.lax.scan(substep, start, inputs, unroll=min(UNROLL, self.cycle))
        return ChainState(x, p, chain)
