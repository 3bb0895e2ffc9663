"""Gradient transformations of optax with Langevin noise, for losses that are means over `num_data` observations."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class NoiseState(NamedTuple):
    key: jax.Array


def _langevin_noise(variance, seed):
    """Add N(0, variance) to the updates."""

    def init(params):
        return NoiseState(jax.random.key(seed))

    def update(updates, state, params=None):
        key, sub = jax.random.split(state.key)
        leaves, treedef = jax.tree.flatten(updates)
        keys = treedef.unflatten(list(jax.random.split(sub, len(leaves))))
        updates = jax.tree.map(
            lambda u, k: u + jnp.sqrt(variance) * jax.random.normal(k, u.shape, u.dtype), updates, keys
        )
        return updates, NoiseState(key)

    return optax.GradientTransformation(init, update)


def sgld(learning_rate, num_data=1000, seed=0):
    """Stochastic gradient Langevin dynamics."""

    def init(params):
        return NoiseState(jax.random.key(seed))

    def update(grads, state, params=None):
        key, noise_key = jax.random.split(state.key)
        sigma = jnp.sqrt(2 * learning_rate / num_data)
        updates = jax.tree.map(
            lambda g: -learning_rate * g + sigma * jax.random.normal(noise_key, g.shape, g.dtype), grads
        )
        return updates, NoiseState(key)

    return optax.GradientTransformation(init, update)


class AccumulatedState(NamedTuple):
    key: jax.Array
    count: jax.Array
    total: Any


def accumulated_sgld(learning_rate, num_data=1000, every_k=4, seed=0):
    """SGLD that moves along the mean of `every_k` gradients, as with large batches on a small device."""

    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return AccumulatedState(jax.random.key(seed), jnp.zeros((), jnp.int32), zeros)

    def update(grads, state, params=None):
        key, sub = jax.random.split(state.key)
        count = state.count + 1
        emit = count >= every_k
        total = jax.tree.map(jnp.add, state.total, grads)
        leaves, treedef = jax.tree.flatten(grads)
        keys = treedef.unflatten(list(jax.random.split(sub, len(leaves))))
        sigma = jnp.sqrt(2 * learning_rate / num_data)

        def move(t, k):
            step = jnp.where(emit, -learning_rate / every_k * t, jnp.zeros_like(t))
            return step + sigma * jax.random.normal(k, t.shape, t.dtype)

        updates = jax.tree.map(move, total, keys)
        total = jax.tree.map(lambda t: jnp.where(emit, jnp.zeros_like(t), t), total)
        return updates, AccumulatedState(key, jnp.where(emit, 0, count), total)

    return optax.GradientTransformation(init, update)


def momentum_langevin(learning_rate, momentum=0.9, num_data=1000, seed=0):
    """SGD with momentum, and Langevin noise of the learning rate."""
    return optax.chain(
        optax.trace(decay=momentum),
        optax.scale(-learning_rate),
        _langevin_noise(2 * learning_rate / num_data, seed),
    )


def cosine_langevin(learning_rate, num_data=1000, seed=0):
    """SGLD with a cosine schedule: from the learning rate to a tenth of it within a thousand steps."""
    schedule = optax.cosine_decay_schedule(1.0, decay_steps=1000, alpha=0.1)
    return optax.chain(
        optax.scale(-learning_rate),
        optax.scale_by_schedule(schedule),
        _langevin_noise(2 * learning_rate / num_data, seed),
    )
