"""Metropolis-adjusted Langevin with a heavy-tailed proposal.

    y = x - h g(x) / sqrt(1 + (tau h |g(x)|)^2) + sqrt(2 h) t,      t ~ multivariate Student of `degrees` degrees of freedom

The drift is tamed, so that a steep potential does not throw the proposal away, and the Student tails let a chain cross
between distant modes. The Hastings ratio has the density of the Student law at both residuals, hence the law is exact for
any step size, any taming and any degrees of freedom.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Place(NamedTuple):
    """A point with its energy and slope, so that a step costs one evaluation."""

    position: Any
    potential: jax.Array
    gradient: Any


@dataclass(frozen=True)
class StudentMALA:
    degrees: float = 5.0
    taming: float = 0.5

    claims = Claims(Source("", "own"), ExactLaw())

    def __post_init__(self):
        if self.degrees <= 0:
            raise ValueError("degrees of freedom are positive")
        if self.taming < 0:
            raise ValueError("taming is not negative")

    def init(self, key, position, estimator):
        return self._visit(key, position, estimator)

    def step(self, key, state, step_size, estimator):
        visit_key, normal_key, gamma_key, accept_key = jax.random.split(key, 4)
        x, unravel = ravel_pytree(state.position)
        centre = x + self._drift(state.gradient, step_size)
        y = centre + jnp.sqrt(2 * step_size) * self._student(normal_key, gamma_key, x)
        proposed = self._visit(visit_key, unravel(y), estimator)
        centre_back = y + self._drift(proposed.gradient, step_size)
        log_ratio = (
            state.potential
            - proposed.potential
            + self._log_density(x - centre_back, step_size)
            - self._log_density(y - centre, step_size)
        )
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposed, state)

    def _visit(self, key, position, estimator):
        found = estimator.estimate(key, (), position)[0]
        return Place(position, found.potential, found.gradient)

    def _drift(self, gradient, step_size):
        g = ravel_pytree(gradient)[0]
        return -step_size * g / jnp.sqrt(1 + (self.taming * step_size) ** 2 * jnp.sum(g**2))

    def _student(self, normal_key, gamma_key, like):
        """N(0, 1) over the root of an independent chi-square / degrees, common to all coordinates."""
        normal = jax.random.normal(normal_key, like.shape, like.dtype)
        mean_square = jax.random.gamma(gamma_key, self.degrees / 2, dtype=like.dtype) / (self.degrees / 2)
        return normal / jnp.sqrt(mean_square)

    def _log_density(self, residual, step_size):
        square = jnp.sum(residual**2) / (2 * step_size)
        return -0.5 * (self.degrees + residual.size) * jnp.log1p(square / self.degrees)
