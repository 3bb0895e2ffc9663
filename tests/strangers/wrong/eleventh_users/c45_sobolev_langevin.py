"""Langevin dynamics in a Sobolev metric, for parameters that are a discretised function (splines, fields, filters).

The mass matrix is M = I + smoothness * (chain Laplacian); rough modes have large masses and move slowly,

    x' = x - h M^-1 grad U(x) + sqrt(2 h) M^-1/2 xi,    M = L L^T.

M is constant, so that no divergence term appears.  It is factorised once per call; with jit that is folded into a constant.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular


def chain_laplacian(size, dtype):
    """2 on the diagonal (1 at free ends), -1 beside it."""
    off = -jnp.ones(size - 1, dtype)
    full = jnp.diag(off, 1) + jnp.diag(off, -1)
    return full - jnp.diag(full.sum(1))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SobolevMetric:
    """M = L L^T of which L is kept."""

    factor: jax.Array

    @classmethod
    def create(cls, size, smoothness, dtype):
        mass = jnp.eye(size, dtype=dtype) + smoothness * chain_laplacian(size, dtype)
        return cls(jnp.linalg.cholesky(mass))

    def solve(self, v):
        """M^-1 v."""
        return jax.scipy.linalg.cho_solve((self.factor, True), v)

    def solve_root(self, v):
        """M^-1/2 v, by one triangular solve."""
        return solve_triangular(self.factor, v, lower=True)


@dataclasses.dataclass(frozen=True)
class SobolevLangevin:
    smoothness: float = 1.0

    def __post_init__(self):
        if self.smoothness < 0:
            raise ValueError("smoothness is at least 0")

    def step(self, key, position, step_size, estimator):
        key_gradient, key_noise = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        gradient = ravel_pytree(estimator.estimate(key_gradient, (), position)[0].gradient)[0]
        metric = SobolevMetric.create(x.size, self.smoothness, x.dtype)
        noise = metric.solve_root(jax.random.normal(key_noise, x.shape, x.dtype))
        return unravel(x - step_size * metric.solve(gradient) + jnp.sqrt(2 * step_size) * noise)
