"""Metropolis sampler that does not waste an iteration: a step proposes until a proposal is accepted."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

MAX_TRIES = 200


class Attempt(NamedTuple):
    key: jax.Array
    proposal: jax.Array
    accepted: jax.Array
    tries: jax.Array


def step(key, x, step_size, estimator):
    batch_key, loop_key = jax.random.split(key)

    def energy(q):
        return estimator.estimate(batch_key, (), q)[0].potential

    current = energy(x)

    def again(attempt):
        return ~attempt.accepted & (attempt.tries < MAX_TRIES)

    def propose(attempt):
        next_key, move_key, accept_key = jax.random.split(attempt.key, 3)
        y = x + jnp.sqrt(2 * step_size) * jax.random.normal(move_key, x.shape, x.dtype)
        accepted = jnp.log(jax.random.uniform(accept_key)) < current - energy(y)
        return Attempt(next_key, y, accepted, attempt.tries + 1)

    last = jax.lax.while_loop(again, propose, Attempt(loop_key, x, jnp.asarray(False), jnp.asarray(0)))
    return jnp.where(last.accepted, last.proposal, x)


sampler = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
