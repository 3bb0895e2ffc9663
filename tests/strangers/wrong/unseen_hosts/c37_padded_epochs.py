"""SGLD over epochs: the data are shuffled once an epoch and read in batches of one fixed shape."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.types import Estimator, Position, Sampler
from sgmcmc_verification.targets.target import Target


class Epoch(NamedTuple):
    """Position, the order of the data in this epoch, and the batch that comes next."""

    position: Position
    order: jax.Array
    batch: jax.Array


def padded_epochs(target: Target, batch_size: int = 2) -> Sampler:
    """SGLD with minibatches without replacement; the order is padded so that compiled code sees full batches only."""
    terms = target.terms
    size = 1 if terms is None else terms.size
    batches = size // batch_size + 1

    def shuffled(key: jax.Array) -> jax.Array:
        order = jax.random.permutation(key, size)
        return jnp.zeros(batches * batch_size, order.dtype).at[:size].set(order)

    def init(key: jax.Array, position: Position, estimator: Estimator) -> Epoch:
        del estimator
        return Epoch(position, shuffled(key), jnp.zeros((), jnp.int32))

    def gradient(key: jax.Array, position: Position, indices: jax.Array, estimator: Estimator) -> Position:
        if terms is None:
            return estimator.estimate(key, (), position)[0].gradient
        data = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)
        energy = lambda x: terms.prior(x) + size * jnp.mean(jax.vmap(terms.datum, (None, 0))(x, data))
        return jax.grad(energy)(position)

    def step(key: jax.Array, state: Epoch, step_size: float, estimator: Estimator) -> Epoch:
        order_key, gradient_key, noise_key = jax.random.split(key, 3)
        order = jnp.where(state.batch == 0, shuffled(order_key), state.order)
        indices = jax.lax.dynamic_slice_in_dim(order, state.batch * batch_size, batch_size)
        x, unravel = ravel_pytree(state.position)
        slope = ravel_pytree(gradient(gradient_key, state.position, indices, estimator))[0]
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        position = unravel(x - step_size * slope + jnp.sqrt(2 * step_size) * noise)
        return Epoch(position, order, (state.batch + 1) % batches)

    return simple_sampler(step, init=init)
