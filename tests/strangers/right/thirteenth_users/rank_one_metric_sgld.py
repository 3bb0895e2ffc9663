"""Preconditioned SGLD that moves more along the ray from the origin than across it.

    D(x) = base I + stretch x x^T / (width^2 + |x|^2)

    x' = x - h D(x) grad U(x) + h T Gamma(x) + N(0, 2 h T D(x)),        Gamma_i = sum_j d D_ij / d x_j

The divergence is in closed form. With s = width^2 + |x|^2 and d coordinates,

    sum_j d/dx_j (x_i x_j / s) = (d + 1) x_i / s - 2 |x|^2 x_i / s^2.

No root of D is needed: the noise of the isotropic part and that of the ray are independent draws.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


@dataclass(frozen=True)
class RayMetric:
    base: float = 0.6
    stretch: float = 1.2
    width: float = 1.0

    def scale(self, x):
        return self.width**2 + jnp.sum(x**2)

    def apply(self, x, vector):
        return self.base * vector + self.stretch * x * jnp.sum(x * vector) / self.scale(x)

    def divergence(self, x):
        s = self.scale(x)
        return self.stretch * x * ((x.size + 1) / s - 2 * jnp.sum(x**2) / s**2)

    def noise(self, key, x):
        """A draw of N(0, D(x))."""
        all_key, ray_key = jax.random.split(key)
        everywhere = jax.random.normal(all_key, x.shape, x.dtype)
        along = jax.random.normal(ray_key, (), x.dtype)
        return jnp.sqrt(self.base) * everywhere + jnp.sqrt(self.stretch / self.scale(x)) * along * x


class RayLangevin:
    """SGLD in the metric above; vectors, matrices and trees are taken as one vector of all their numbers."""

    def __init__(self, base=0.6, stretch=1.2, width=1.0, temperature=1.0):
        if base <= 0 or stretch < 0 or width <= 0 or temperature <= 0:
            raise ValueError("base, width and temperature are positive, stretch is not negative")
        self.metric = RayMetric(base, stretch, width)
        self.temperature = temperature

    def step(self, key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        slope = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)[0]
        drift = self.temperature * self.metric.divergence(x) - self.metric.apply(x, slope)
        spread = jnp.sqrt(2 * self.temperature * step_size)
        return unravel(x + step_size * drift + spread * self.metric.noise(noise_key, x))
