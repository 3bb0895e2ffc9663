"""Affine-invariant interacting Langevin dynamics, ALDI (Garbuno-Inigo, Nüsken and Reich, 2020).

J particles follow dX_j = -C(X) grad U(X_j) dt + (d + 1) / J (X_j - mean) dt + sqrt(2) C(X)^(1/2) dW_j, where C is their covariance. The square
root of C is the matrix of deviations, so that no factorisation is needed: it takes J normal numbers a particle. The second term of the
drift is the divergence of C, without which a finite ensemble has another law.
"""

import dataclasses

import jax
import jax.numpy as jnp


@dataclasses.dataclass
class Swarm:
    particles: jax.Array  # (J, d)
    shape: tuple

    @property
    def position(self):
        return self.particles[0].reshape(self.shape)


jax.tree_util.register_dataclass(Swarm, data_fields=["particles"], meta_fields=["shape"])


class InteractingLangevin:
    """At least `particles` particles, and in many coordinates twice as many as coordinates: C has to have full rank."""

    def __init__(self, particles: int = 12, spread: float = 1.0):
        if particles < 3 or spread <= 0:
            raise ValueError("three particles or more, spread out by a positive number")
        self.particles, self.spread = particles, spread

    def init(self, key, position, estimator):
        number = max(self.particles, 2 * position.size)
        cloud = self.spread * jax.random.normal(key, (number, position.size), position.dtype)
        return Swarm(position.reshape(-1) + cloud.at[0].set(0), position.shape)

    def drift(self, key, swarm, estimator):
        x = swarm.particles
        number, dim = x.shape
        slope = lambda q: estimator.estimate(key, (), q.reshape(swarm.shape))[0].gradient.reshape(-1)
        gradients = jax.vmap(slope)(x)
        covariance = jnp.atleast_2d(jnp.cov(x, rowvar=False))
        divergence = (dim + 1) / number * (x - jnp.mean(x, 0))
        return divergence - gradients @ covariance

    def diffuse(self, key, swarm):
        """A draw from N(0, C) for each particle."""
        x = swarm.particles
        number = len(x)
        root = (x - jnp.mean(x, 0)) / jnp.sqrt(number).astype(x.dtype)
        return jax.random.normal(key, (number, number), x.dtype) @ root

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x = state.particles
        moved = x + step_size * self.drift(gradient_key, state, estimator) + jnp.sqrt(2 * step_size) * self.diffuse(noise_key, state)
        return Swarm(moved.astype(x.dtype), state.shape)
