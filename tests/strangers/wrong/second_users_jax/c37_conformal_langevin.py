"""Langevin dynamics with a local speed: small steps far out, where gradients are steep."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


@dataclass(frozen=True)
class ConformalLangevin:
    """dx = -s(x) grad U dt + grad s(x) dt + sqrt(2 s(x)) dW with s = (1 + strength mean(x^2))^(-1/2)."""

    strength: float = 1.0

    def speed(self, x):
        # one entry per coordinate, so that it can be swapped for a diagonal metric later
        return jnp.full_like(x, 1.0) * jax.lax.rsqrt(1.0 + self.strength * jnp.mean(x**2))

    def step(self, key, position, step_size, estimator):
        k_grad, k_noise = jax.random.split(key)
        gradient, _ = ravel_pytree(estimator.estimate(k_grad, (), position)[0].gradient)
        x, unravel = ravel_pytree(position)
        s = self.speed(x)
        divergence = jax.grad(lambda q: self.speed(q).sum())(x)
        noise = jax.random.normal(k_noise, x.shape, x.dtype)
        x = x + step_size * (divergence - s * gradient) + jnp.sqrt(2 * step_size * s) * noise
        return unravel(x)


sampler = ConformalLangevin()
