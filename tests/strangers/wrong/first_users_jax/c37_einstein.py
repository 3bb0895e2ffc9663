"""Brownian dynamics with a friction and a temperature, for our coarse-grained model."""

from dataclasses import dataclass

import jax


@dataclass(frozen=True)
class Brownian:
    friction: float = 1.0
    temperature: float = 1.0

    def init(self, key, position, estimator):
        return position

    def step(self, key, x, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        force = -estimator.estimate(gradient_key, (), x)[0].gradient
        mobility = 1 / self.friction
        diffusion = self.friction / self.temperature  # Einstein relation
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return x + step_size * mobility * force + (2 * diffusion * step_size) ** 0.5 * noise
