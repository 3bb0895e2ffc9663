"""SGLD with prioritised minibatches: data with a large gradient are drawn more often, and weighted for it."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.types import Estimator, Position, Sampler
from sgmcmc_verification.targets.target import Target


def prioritised(target: Target, batch_size: int = 2, correction: float = 0.5) -> Sampler:
    """SGLD whose minibatches follow the norms of the gradients at the target's example.

    Args:
        target: a posterior; without data it is plain SGLD.
        batch_size: number of draws, with replacement.
        correction: exponent of the importance weights, as in prioritised replay: smaller ones keep the variance low.
    """
    terms = target.terms
    if terms is not None:
        slopes = jax.vmap(lambda datum: ravel_pytree(jax.grad(terms.datum)(target.example, datum))[0])(
            jax.tree.map(jnp.asarray, terms.data)
        )
        norms = jnp.linalg.norm(slopes, axis=1) + 1e-3
        chances = norms / norms.sum()
        weights = (1 / (terms.size * chances)) ** correction

    def gradient(key: jax.Array, position: Position, estimator: Estimator) -> Position:
        if terms is None:
            return estimator.estimate(key, (), position)[0].gradient
        indices = jax.random.choice(key, terms.size, (batch_size,), p=chances)
        batch = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)

        def energy(x: Position) -> jax.Array:
            each = weights[indices] * jax.vmap(terms.datum, (None, 0))(x, batch)
            return terms.prior(x) + terms.size * jnp.mean(each)

        return jax.grad(energy)(position)

    def step(key: jax.Array, position: Position, step_size: float, estimator: Estimator) -> Position:
        batch_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        slope = ravel_pytree(gradient(batch_key, position, estimator))[0]
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x - step_size * slope + jnp.sqrt(2 * step_size) * noise)

    return simple_sampler(step)
