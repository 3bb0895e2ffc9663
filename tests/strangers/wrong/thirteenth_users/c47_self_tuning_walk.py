"""Random-walk Metropolis that tunes its own scale.

The log of the scale follows the acceptance probability of each proposal by a Robbins-Monro recursion,

    log s  <-  log s + gain (alpha(x, y) - target_accept),

so that no pilot run is due, and the scale follows where the target is wider or narrower than it was at the start. See C. Andrieu and J.
Thoms, A tutorial on adaptive MCMC, Statistics and Computing 18 (2008), algorithm 4. The proposal is normal with standard
deviation s / sqrt(d) in every coordinate, s = 1 at first. There is no step size.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class Tuned(NamedTuple):
    position: jax.Array
    log_scale: jax.Array


def self_tuning_walk(gain=0.1, target_accept=0.44):
    """The sampler; 0.44 is the best acceptance in one dimension, 0.234 in many."""
    if not 0 < target_accept < 1:
        raise ValueError("target_accept is a probability")
    if not 0 < gain < 1:
        raise ValueError("gain has to be between 0 and 1")

    def init(key, position, estimator):
        del key, estimator
        return Tuned(position, jnp.zeros((), ravel_pytree(position)[0].dtype))

    def step(key, state, step_size, estimator):
        del step_size
        batch_key, move_key, accept_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)

        def potential(q):
            return estimator.estimate(batch_key, (), unravel(q))[0].potential

        scale = jnp.exp(state.log_scale) / x.size**0.5
        y = x + scale * jax.random.normal(move_key, x.shape, x.dtype)
        alpha = jnp.exp(jnp.minimum(0.0, potential(x) - potential(y))).astype(x.dtype)
        accepted = jax.random.uniform(accept_key, dtype=x.dtype) < alpha
        return Tuned(
            unravel(jnp.where(accepted, y, x)),
            state.log_scale + gain * (alpha - target_accept),
        )

    return simple_sampler(step, init=init, claims=Claims(Source("", "Andrieu and Thoms (2008), algorithm 4"), ExactLaw()))
