"""Adaptive Metropolis with a scale for each coordinate (after Haario, Saksman and Tamminen 2001).

The proposal is a Gaussian walk with 2.4 / sqrt(d) standard deviations of the target in each coordinate. Means and variances are learned on
the way as exponential averages, which forget the start of a run. There is no step size to choose.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

REGULARISATION = 1e-2  # added to variances, as the epsilon of Haario et al.


class AdaptiveState(NamedTuple):
    position: Any
    mean: jax.Array
    variance: jax.Array


def updated(mean, variance, x, rate):
    """Exponential averages of the mean and the variance after one more point."""
    deviation = x - mean
    mean = mean + rate * deviation
    variance = (1 - rate) * (variance + rate * deviation**2)
    return mean, variance


@dataclass(frozen=True)
class AdaptiveWalk:
    """`rate` is the weight of the newest point in the averages."""

    rate: float = 0.05
    scale: float = 2.4

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        return AdaptiveState(position, x, jnp.ones_like(x))

    def step(self, key, state, step_size, estimator):
        batch_key, move_key, accept_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)

        def energy(q):
            return estimator.estimate(batch_key, (), unravel(q))[0].potential

        deviation = self.scale / x.size**0.5 * jnp.sqrt(state.variance + REGULARISATION)
        y = x + deviation * jax.random.normal(move_key, x.shape, x.dtype)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < energy(x) - energy(y)
        x = jnp.where(accepted, y, x)
        mean, variance = updated(state.mean, state.variance, x, self.rate)
        return AdaptiveState(unravel(x), mean, variance)
