"""Metropolis sampling of large data sets by pseudo-marginal subsampling: the minibatch is a part of the state."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.types import Estimator, Position, Sampler
from sgmcmc_verification.targets.target import Target


class Carried(NamedTuple):
    """Position and the data that its energy was estimated from."""

    position: Position
    indices: jax.Array


def carried_subsample(target: Target, batch_size: int = 2) -> Sampler:
    """Random-walk Metropolis with an unbiased estimate of the energy.

    A proposal has a position and a minibatch of its own. That of the present point is kept until one is accepted,
    as in pseudo-marginal methods, so that the estimates' noise does no harm.
    """
    terms = target.terms
    size = 1 if terms is None else terms.size

    def energy(key: jax.Array, estimator: Estimator, position: Position, indices: jax.Array) -> jax.Array:
        if terms is None:
            return estimator.estimate(key, (), position)[0].potential
        batch = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)
        each = jax.vmap(terms.datum, (None, 0))(position, batch)
        return terms.prior(position) + size * jnp.mean(each)

    def init(key: jax.Array, position: Position, estimator: Estimator) -> Carried:
        del estimator
        return Carried(position, jax.random.randint(key, (batch_size,), 0, size))

    def step(key: jax.Array, state: Carried, step_size: float, estimator: Estimator) -> Carried:
        move_key, batch_key, energy_key, accept_key = jax.random.split(key, 4)
        x, unravel = ravel_pytree(state.position)
        y = unravel(x + jnp.sqrt(2 * step_size) * jax.random.normal(move_key, x.shape, x.dtype))
        proposal = Carried(y, jax.random.randint(batch_key, (batch_size,), 0, size))
        before = energy(energy_key, estimator, *state)
        after = energy(energy_key, estimator, *proposal)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < before - after
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposal, state)

    return simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()))
