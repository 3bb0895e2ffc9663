"""Metropolis moves for vectors of rates: a walk of each logarithm, and a common rescaling of all of them.

Rates in hierarchical and phylogenetic models are strongly correlated through their overall level. A walk of single logarithms
changes that level slowly, so that a part of the proposals multiplies all rates by one random factor.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def walk_move(key, rates, scale):
    """Each rate times a factor of its own; returns the proposal and the logarithm of its Hastings factor."""
    factors = jnp.exp(scale * jax.random.normal(key, rates.shape, rates.dtype))
    return rates * factors, jnp.sum(jnp.log(factors))


def scale_move(key, rates, scale):
    """All rates times one factor; returns the proposal and the logarithm of its Hastings factor."""
    factor = jnp.exp(scale * jax.random.normal(key, (), rates.dtype))
    return rates * factor, jnp.sum(jnp.log(factor))


def rates_walk(scale_probability=0.5):
    """A sampler of positive vectors; `scale_probability` is the share of proposals that rescale."""

    def step(key, position, step_size, estimator):
        batch_key, which_key, move_key, accept_key = jax.random.split(key, 4)
        rates, unravel = ravel_pytree(position)
        scale = jnp.sqrt(2 * jnp.asarray(step_size, rates.dtype))

        def energy(x):
            return estimator.estimate(batch_key, (), unravel(x))[0].potential

        rescale = jax.random.uniform(which_key, dtype=rates.dtype) < scale_probability
        walk_key, scale_key = jax.random.split(move_key)
        walked, walk_factor = walk_move(walk_key, rates, scale)
        scaled, scale_factor = scale_move(scale_key, rates, scale)
        proposal = jnp.where(rescale, scaled, walked)
        log_factor = jnp.where(rescale, scale_factor, walk_factor)

        log_ratio = energy(rates) - energy(proposal) + log_factor
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=rates.dtype)) < log_ratio
        return unravel(jnp.where(accepted, proposal, rates))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",)))
