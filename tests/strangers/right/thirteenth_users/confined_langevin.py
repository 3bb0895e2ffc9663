"""Langevin dynamics in the unit box with elastic walls: A B O B A with reflected flight.

A particle flies freely and bounces off the faces, which turns the sign of the velocity component normal to the face. The
flight with all its bounces is exact, however many there are, and leaves the uniform law in the box and the normal law of
velocities as they are. Gradients may be stochastic: one is asked for, in the middle of the flight. Cf. splitting schemes
for confined Langevin dynamics (Leimkuhler, Sharma and Tretyakov, 2024).
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


@partial(jax.tree_util.register_dataclass, data_fields=["position", "velocity"], meta_fields=[])
@dataclass(frozen=True)
class Particle:
    position: jax.Array
    velocity: jax.Array


def fly(particle, time):
    """Free flight between the walls at 0 and 1: the walls are mirrors, and the path unfolded has the period 2."""
    unfolded = jnp.mod(particle.position + time * particle.velocity, 2.0)
    mirrored = unfolded > 1
    return Particle(
        jnp.where(mirrored, 2 - unfolded, unfolded), jnp.where(mirrored, -particle.velocity, particle.velocity)
    )


@dataclass(frozen=True)
class ConfinedLangevin:
    friction: float = 2.0

    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("box",))

    def __post_init__(self):
        if self.friction <= 0:
            raise ValueError("friction is positive")

    def init(self, key, position, estimator):
        return Particle(position, jax.random.normal(key, position.shape, position.dtype))

    def step(self, key, state, step_size, estimator):
        force_key, noise_key = jax.random.split(key)
        half = step_size / 2
        middle = fly(state, half)
        push = -half * estimator.estimate(force_key, (), middle.position)[0].gradient
        velocity = self._thermalise(noise_key, middle.velocity + push, step_size) + push
        return fly(Particle(middle.position, velocity), half)

    def _thermalise(self, key, velocity, time):
        kept = jnp.exp(-self.friction * time)
        spread = jnp.sqrt(-jnp.expm1(-2 * self.friction * time))
        return kept * velocity + spread * jax.random.normal(key, velocity.shape, velocity.dtype)
