"""Riemannian Langevin dynamics with a radially stretched metric.

For heavy-tailed posteriors plain Langevin dynamics crawls back from the tails.  We let the diffusion grow along the ray
through the origin and leave it alone across it,

    D(x) = I + s x x^T / q(x),        q(x) = w^2 + |x|^2,

so that far out a step is sqrt(1 + s) times as long in the radial direction.  The dynamics

    dx = (-D(x) grad U(x) + Gamma(x)) dt + sqrt(2 D(x)) dW,      Gamma_i = sum_j d_j D_ij,

leave exp(-U) invariant.  Everything is rank one: a step costs O(d), no factorisation is needed.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


@dataclass(frozen=True)
class RadialRiemannianLangevin:
    """Euler-Maruyama scheme; `stretch` is s and `width` is w above."""

    stretch: float = 1.0
    width: float = 1.0

    def __post_init__(self):
        if self.stretch <= -1 or self.width <= 0:
            raise ValueError("need stretch > -1 and width > 0")

    def _q(self, x):
        return self.width**2 + jnp.dot(x, x)

    def apply_metric(self, x, v):
        """D(x) v."""
        return v + self.stretch * x * jnp.dot(x, v) / self._q(x)

    def apply_root(self, x, v):
        """D(x)^(1/2) v, with the symmetric root I + (sqrt(1 + a r^2) - 1) / r^2 x x^T, a = s / q, written so that r = 0 is safe."""
        a = self.stretch / self._q(x)
        return v + a / (1 + jnp.sqrt(1 + a * jnp.dot(x, x))) * x * jnp.dot(x, v)

    def divergence(self, x):
        """Gamma(x): the product rule on x_i x_j, and on 1 / q."""
        q = self._q(x)
        of_outer = 2 * x / q
        of_inverse = -2 * jnp.dot(x, x) * x / q**2
        return self.stretch * (of_outer + of_inverse)

    def step(self, key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        gradient, _ = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        drift = self.divergence(x) - self.apply_metric(x, gradient)
        return unravel(x + step_size * drift + jnp.sqrt(2 * step_size) * self.apply_root(x, noise))
