"""SGLD with gradient accumulation, for optax.

Where a batch does not fit on the device, the gradients of `accumulate` micro-batches are averaged before the
parameters move. The transformation keeps the running average and gives updates of zero until it is complete, so that
the training loop stays as it is:

    sampler = accumulated_sgld(1e-3, num_data=50_000, accumulate=8)
    state = sampler.init(params)
    for batch in batches:
        updates, state = sampler.update(jax.grad(loss)(params, batch), state, params)
        params = optax.apply_updates(params, updates)

The loss is the mean over the data, the prior of all parameters N(0, 1 / prior_precision).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class AccumulatedState(NamedTuple):
    key: jax.Array
    count: jax.Array
    average: optax.Updates


def langevin_move(key, gradients, params, learning_rate, num_data, prior_precision):
    """One step of SGLD as a tree of moves."""
    leaves, structure = jax.tree.flatten(gradients)
    keys = jax.tree.unflatten(structure, list(jax.random.split(key, len(leaves))))
    scale = jnp.sqrt(2 * learning_rate / num_data)

    def move(k, g, p):
        noise = jax.random.normal(k, g.shape, g.dtype)
        return -learning_rate * (g + prior_precision / num_data * p) + scale.astype(g.dtype) * noise

    return jax.tree.map(move, keys, gradients, params)


def accumulated_sgld(learning_rate, num_data=1000, prior_precision=1.0, accumulate=1, seed=0):
    """SGLD that moves once in `accumulate` calls, by the average over them."""
    if accumulate < 1:
        raise ValueError("accumulate is at least 1")

    def init(params):
        return AccumulatedState(
            jax.random.PRNGKey(seed), jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params)
        )

    def update(gradients, state, params=None):
        if params is None:
            raise ValueError("the prior needs the parameters")
        key, noise_key = jax.random.split(state.key)
        moves = langevin_move(noise_key, gradients, params, learning_rate, num_data, prior_precision)
        count = state.count + 1
        average = jax.tree.map(lambda a, m: a + (m - a) / count, state.average, moves)
        complete = count >= accumulate
        updates = jax.tree.map(lambda a: jnp.where(complete, a, jnp.zeros_like(a)), average)
        kept = jax.tree.map(lambda a: jnp.where(complete, jnp.zeros_like(a), a), average)
        return updates, AccumulatedState(key, jnp.where(complete, 0, count), kept)

    return optax.GradientTransformation(init, update)
