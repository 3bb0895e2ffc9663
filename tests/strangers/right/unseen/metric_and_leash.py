"""A preconditioner that moves, with its Gamma, and a point on a leash; gradients by the estimator that is given."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


class RankOne:
    """Preconditioned SGLD with D = I + v v', v = sin(x) / sqrt(d), and Gamma_i = sum_j d_j D_ij written out."""

    def init(self, key, position, estimator):
        return {"position": position, "estimator": estimator.init(key, position)}

    def step(self, key, state, h, estimator):
        k_batch, k_noise, k_one = jax.random.split(key, 3)
        x, back = ravel_pytree(state["position"])
        estimate, estate = estimator.estimate(k_batch, state["estimator"], state["position"])
        g = ravel_pytree(estimate.gradient)[0]
        v, slope = jnp.sin(x) / x.size**0.5, jnp.cos(x) / x.size**0.5
        gamma = slope * v + v * jnp.sum(slope)
        noise = jax.random.normal(k_noise, x.shape, x.dtype) + v * jax.random.normal(k_one, (), x.dtype)
        return {
            "position": back(x - h * (g + v * jnp.dot(v, g) - gamma) + (2 * h) ** 0.5 * noise),
            "estimator": estate,
        }


class Pair(NamedTuple):
    """The weights and the point that is tied to them."""

    position: jax.Array
    follower: jax.Array


@dataclass(frozen=True)
class Leash:
    """Langevin dynamics of exp(-U(x) - rho |x - y|^2 / 2): y is integrated out, so x has the law exp(-U)."""

    rho: float = 1.0

    def init(self, key, position, estimator):
        return Pair(position, position + jax.random.normal(key, position.shape, position.dtype) / self.rho**0.5)

    def step(self, key, state, h, estimator):
        k_batch, k_x, k_y = jax.random.split(key, 3)
        x, y = state
        g = estimator.estimate(k_batch, (), x)[0].gradient
        x = x - h * (g + self.rho * (x - y)) + (2 * h) ** 0.5 * jax.random.normal(k_x, x.shape, x.dtype)
        kept = jnp.exp(-self.rho * h).astype(x.dtype)
        spread = jnp.sqrt(-jnp.expm1(-2 * self.rho * h) / self.rho).astype(x.dtype)
        return Pair(x, x + kept * (y - x) + spread * jax.random.normal(k_y, x.shape, x.dtype))
