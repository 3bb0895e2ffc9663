"""SGLD with Poisson subsampling, as in private learning: each datum is in a minibatch independently of the others."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.types import Estimator, Position, Sampler
from sgmcmc_verification.targets.target import Target


def poisson_subsampling(target: Target, expected_size: int = 1) -> Sampler:
    """SGLD whose minibatches have a random size; the sum over a minibatch is scaled by N over that size."""
    terms = target.terms

    def gradient(key: jax.Array, position: Position, estimator: Estimator) -> Position:
        if terms is None:
            return estimator.estimate(key, (), position)[0].gradient
        chosen = jax.random.uniform(key, (terms.size,)) < expected_size / terms.size
        count = jnp.maximum(jnp.sum(chosen), 1)  # no division by zero

        def energy(x: Position) -> jax.Array:
            each = jax.vmap(terms.datum, (None, 0))(x, jax.tree.map(jnp.asarray, terms.data))
            return terms.prior(x) + terms.size / count * jnp.sum(jnp.where(chosen, each, 0))

        return jax.grad(energy)(position)

    def step(key: jax.Array, position: Position, step_size: float, estimator: Estimator) -> Position:
        batch_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        slope = ravel_pytree(gradient(batch_key, position, estimator))[0]
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x - step_size * slope + jnp.sqrt(2 * step_size) * noise)

    return simple_sampler(step)
