"""Multiplier moves for positive parameters, as in phylogenetic and population models.

With probability `joint` all parameters are multiplied by one common factor c = exp(tuning * N(0, 1)), which moves along the
direction in which rates and times are confounded; otherwise each parameter is multiplied by a factor of its own,
exp(sqrt(2 h) * N(0, 1)).  Both proposals are symmetric in log x, so the Hastings ratio is the Jacobian of the move.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def single_moves(key, x, scale):
    """A factor for each parameter; returns the proposal and the log Hastings ratio."""
    log_factor = scale * jax.random.normal(key, x.shape, x.dtype)
    return x * jnp.exp(log_factor), jnp.sum(log_factor)


def joint_move(key, x, scale):
    """One factor for all of them."""
    log_factor = scale * jax.random.normal(key, (), x.dtype)
    return x * jnp.exp(log_factor), log_factor


def multiplier_sampler(tuning=0.5, joint=0.3):
    if tuning <= 0 or not 0 <= joint < 1:
        raise ValueError("tuning > 0 and 0 <= joint < 1")

    def step(key, position, step_size, estimator):
        batch_key, coin_key, single_key, joint_key, accept_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)

        def potential(flat):
            return estimator.estimate(batch_key, (), unravel(flat))[0].potential

        apart, apart_ratio = single_moves(single_key, x, jnp.sqrt(2 * step_size))
        together, together_ratio = joint_move(joint_key, x, tuning)
        coin = jax.random.bernoulli(coin_key, joint)
        proposal = jnp.where(coin, together, apart)
        log_hastings = jnp.where(coin, together_ratio, apart_ratio)
        log_alpha = potential(x) - potential(proposal) + log_hastings
        accept = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_alpha
        return unravel(jnp.where(accept, proposal, x))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",)))
