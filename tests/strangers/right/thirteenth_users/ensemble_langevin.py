"""Two groups of walkers that precondition each other.

While one group moves, the other stands still and lends its empirical covariance S: each walker of the moving group makes a
step of Langevin dynamics with the constant matrix

    C = I + weight S / (1 + tr S / d)

so that no derivative of C is due, as it does not depend on what moves. Then the roles are changed. The law of all walkers
tends to independent draws of the target as h -> 0. The noise N(0, 2 h C) is made of white noise and of the deviations of
the other group, without a factorisation. The matrix is bounded, so that a stray walker does not make the others unstable.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class EnsembleLangevin:
    """`half` walkers in each group; the first walker of the first group is what the sampler shows."""

    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def __init__(self, half=3, weight=0.8):
        if half < 2:
            raise ValueError("a group needs at least two walkers for a covariance")
        if weight < 0:
            raise ValueError("the weight is not negative")
        self.half = half
        self.weight = weight

    def init(self, key, position, estimator):
        flat, unravel = ravel_pytree(position)
        shifts = jax.random.normal(key, (2 * self.half, flat.size), flat.dtype).at[0].set(0)
        return {"walkers": jax.vmap(unravel)(flat + shifts)}

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state["walkers"])

    def step(self, key, state, step_size, estimator):
        first_key, second_key = jax.random.split(key)
        unravel = ravel_pytree(self.position(state))[1]
        walkers = jax.vmap(lambda one: ravel_pytree(one)[0])(state["walkers"])
        first, second = walkers[: self.half], walkers[self.half :]

        def slope(gradient_key, x):
            return ravel_pytree(estimator.estimate(gradient_key, (), unravel(x))[0].gradient)[0]

        first = self._move(first_key, first, second, step_size, slope)
        second = self._move(second_key, second, first, step_size, slope)
        return {"walkers": jax.vmap(unravel)(jnp.concatenate([first, second]))}

    def _move(self, key, moving, standing, step_size, slope):
        gradient_key, white_key, coloured_key = jax.random.split(key, 3)
        factor = self._factor(standing)
        gradients = jax.vmap(slope)(jax.random.split(gradient_key, len(moving)), moving)
        drift = gradients + gradients @ factor.T @ factor
        white = jax.random.normal(white_key, moving.shape, moving.dtype)
        coloured = jax.random.normal(coloured_key, moving.shape[:1] + factor.shape[:1], moving.dtype)
        return moving - step_size * drift + jnp.sqrt(2 * step_size) * (white + coloured @ factor)

    def _factor(self, group):
        """Rows F with F^T F = weight S / (1 + tr S / d)."""
        deviations = (group - jnp.mean(group, axis=0)) / jnp.sqrt(len(group) - 1)
        mean_variance = jnp.sum(deviations**2) / group.shape[1]
        return deviations * jnp.sqrt(self.weight / (1 + mean_variance))
