"""Metropolis sampling with a screen: a minibatch turns bad proposals away before all of the data are read."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.types import Estimator, Position, Sampler
from sgmcmc_verification.targets.target import Target


def screened(target: Target, batch_size: int = 2) -> Sampler:
    """Random-walk Metropolis in two stages (delayed acceptance): first on a minibatch, then on the whole potential."""
    terms = target.terms
    size = 0 if terms is None else min(batch_size, terms.size)

    def step(key: jax.Array, position: Position, step_size: float, estimator: Estimator) -> Position:
        move_key, batch_key, screen_key, full_key, accept_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)
        proposal = unravel(x + jnp.sqrt(2 * step_size) * jax.random.normal(move_key, x.shape, x.dtype))
        passed = jnp.array(True)
        if terms is not None:
            indices = jax.random.choice(batch_key, terms.size, (size,), replace=False)
            batch = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)

            def cheap(point: Position) -> jax.Array:
                return terms.prior(point) + terms.size * jnp.mean(jax.vmap(terms.datum, (None, 0))(point, batch))

            passed = jnp.log(jax.random.uniform(screen_key, dtype=x.dtype)) < cheap(position) - cheap(proposal)

        full = lambda point: estimator.estimate(full_key, (), point)[0].potential
        better = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < full(position) - full(proposal)
        return jax.tree.map(lambda new, old: jnp.where(passed & better, new, old), proposal, position)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
