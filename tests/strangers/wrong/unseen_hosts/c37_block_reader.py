"""SGLD whose minibatches are consecutive rows of the data, which is much faster than gathering scattered ones."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.types import Estimator, Position, Sampler
from sgmcmc_verification.targets.target import Target


def block_reader(target: Target, batch_size: int = 3) -> Sampler:
    """SGLD with a block of rows that starts at a random one; a block is never all of the data."""
    terms = target.terms
    rows = 1 if terms is None else max(1, min(batch_size, terms.size - 1))

    def gradient(key: jax.Array, position: Position, estimator: Estimator) -> Position:
        if terms is None:
            return estimator.estimate(key, (), position)[0].gradient
        start = jax.random.randint(key, (), 0, terms.size)
        block = jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(jnp.asarray(a), start, rows), terms.data)

        def energy(x: Position) -> jax.Array:
            return terms.prior(x) + terms.size / rows * jnp.sum(jax.vmap(terms.datum, (None, 0))(x, block))

        return jax.grad(energy)(position)

    def step(key: jax.Array, position: Position, step_size: float, estimator: Estimator) -> Position:
        block_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        slope = ravel_pytree(gradient(block_key, position, estimator))[0]
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x - step_size * slope + jnp.sqrt(2 * step_size) * noise)

    return simple_sampler(step)
