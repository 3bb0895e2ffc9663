"""Metropolis-within-Gibbs with all coordinates in parallel: each worker runs a short chain for its own coordinate."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

INNER = 25
WIDTH = 1.0


def step(key, x, step_size, estimator):
    batch_key, worker_key = jax.random.split(key)

    def worker(key, i):
        """A chain of x[i] given the other coordinates."""

        def energy(value):
            return estimator.estimate(batch_key, (), x.at[i].set(value))[0].potential

        def move(carry, key):
            value, current = carry
            proposal_key, accept_key = jax.random.split(key)
            proposal = value + WIDTH * jax.random.normal(proposal_key, (), x.dtype)
            proposed = energy(proposal)
            accept = jnp.log(jax.random.uniform(accept_key)) < current - proposed
            return (jnp.where(accept, proposal, value), jnp.where(accept, proposed, current)), None

        (value, _), _ = jax.lax.scan(move, (x[i], energy(x[i])), jax.random.split(key, INNER))
        return value

    return jax.vmap(worker)(jax.random.split(worker_key, x.size), jnp.arange(x.size))


sampler = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
