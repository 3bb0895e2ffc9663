"""Stereographic random walk (Yang, Latuszynski and Roberts, Annals of Statistics, 2024).

R^d is wrapped around the unit sphere of R^(d+1) by the inverse of the stereographic projection from the north pole,

    z = (2 R x, |x|^2 - R^2) / (|x|^2 + R^2),        x = R z_(1..d) / (1 - z_(d+1)),

under which a density exp(-U(x)) on R^d is exp(-U(x)) (R^2 + |x|^2)^d on the sphere. A proposal is a normal step in the
tangent space at z, put back on the sphere by its norm; it depends on the angle to z alone, hence it is symmetric. Heavy
tails do no harm: the whole of infinity is one point that the walk steps over.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Info(NamedTuple):
    accepted: jax.Array


def wrap(x, radius):
    square = jnp.sum(x**2)
    return jnp.append(2 * radius * x, square - radius**2) / (square + radius**2)


def unwrap(z, radius):
    return radius * z[:-1] / (1 - z[-1])


def sphere_step(key, z, scale):
    xi = jax.random.normal(key, z.shape, z.dtype)
    moved = z + scale * (xi - jnp.sum(xi * z) * z)
    return moved / jnp.linalg.norm(moved)


class StereographicWalk:
    """The sphere has the radius `radius` sqrt(d), which suits a target whose coordinates have variances near one."""

    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, radius=1.25):
        if radius <= 0:
            raise ValueError("the radius is positive")
        self.radius = radius

    def init(self, key, position, estimator):
        return position

    def step(self, key, position, step_size, estimator):
        batch_key, move_key, accept_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(position)
        radius = self.radius * x.size**0.5

        def log_density(q):
            potential = estimator.estimate(batch_key, (), unravel(q))[0].potential
            return x.size * jnp.log(radius**2 + jnp.sum(q**2)) - potential

        y = unwrap(sphere_step(move_key, wrap(x, radius), jnp.sqrt(2 * step_size) / radius), radius)
        log_uniform = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype))
        accepted = log_uniform < log_density(y) - log_density(x)
        return unravel(jnp.where(accepted, y, x)), Info(accepted)
