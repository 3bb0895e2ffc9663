"""Adaptive random-walk Metropolis (Haario, Saksman and Tamminen, 2001).

Proposals have the covariance 2.38^2 / d (C + eps 1), where C is the covariance of the chain so far, kept by a recursion in its state. Old
draws are forgotten at the rate `rate`, so that a bad start does not stay in the estimate for the whole of a run.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class AdaptiveState(NamedTuple):
    position: object
    mean: jax.Array
    covariance: jax.Array


def recursion(mean, covariance, x, rate):
    """Weighted mean and covariance with one more draw."""
    deviation = x - mean
    mean = mean + rate * deviation
    covariance = (1 - rate) * (covariance + rate * jnp.outer(deviation, deviation))
    return mean, covariance


@dataclass(frozen=True)
class AdaptiveMetropolis:
    rate: float = 0.05
    ridge: float = 0.01

    claims = Claims(Source("haario2001", "equations 2 and 3"), ExactLaw())

    def __post_init__(self):
        if not 0 < self.rate < 1 or self.ridge <= 0:
            raise ValueError("a rate between 0 and 1, and a positive ridge")

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        return AdaptiveState(position, jnp.zeros_like(x), jnp.eye(x.size, dtype=x.dtype))

    def proposal(self, key, x, covariance):
        dim = x.size
        root = jnp.linalg.cholesky(covariance + self.ridge * jnp.eye(dim, dtype=x.dtype))
        return x + (2.38 / dim**0.5) * root @ jax.random.normal(key, x.shape, x.dtype)

    def step(self, key, state, step_size, estimator):
        move_key, batch_key, accept_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        energy = lambda q: estimator.estimate(batch_key, (), unravel(q))[0].potential
        y = self.proposal(move_key, x, state.covariance)
        accept = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < energy(x) - energy(y)
        x = jnp.where(accept, y, x)
        mean, covariance = recursion(state.mean, state.covariance, x, self.rate)
        return AdaptiveState(unravel(x), mean, covariance)
