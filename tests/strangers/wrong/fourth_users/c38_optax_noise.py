"""Langevin dynamics as optax transformations; gradients are of the mean over num_data."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

KEYS = 10_000


class NoiseState(NamedTuple):
    count: jax.Array
    key: Any


def sgld(learning_rate, num_data=1000, seed=0):
    """SGLD; each leaf has a key of its own, folded from the count of steps."""

    def init(params):
        del params
        return NoiseState(jnp.zeros([], jnp.int32), jax.random.PRNGKey(seed))

    def update(updates, state, params=None):
        del params
        leaves, tree = jax.tree.flatten(updates)
        scale = jnp.sqrt(2 * learning_rate / num_data)
        moved = [
            -learning_rate * g + scale * jax.random.normal(jax.random.fold_in(state.key, state.count + i), g.shape, g.dtype)
            for i, g in enumerate(leaves)
        ]
        return jax.tree.unflatten(tree, moved), NoiseState(optax.safe_increment(state.count), state.key)

    return optax.GradientTransformation(init, update)


def scheduled_sgld(learning_rate, num_data=1000, seed=0):
    """SGLD with a learning rate that may be a schedule of optax."""

    rate = learning_rate(0) if callable(learning_rate) else learning_rate

    def init(params):
        del params
        return NoiseState(jnp.zeros([], jnp.int32), jax.random.PRNGKey(seed))

    def update(updates, state, params=None):
        del params
        key, noise_key = jax.random.split(state.key)
        leaves, tree = jax.tree.flatten(updates)
        keys = jax.random.split(noise_key, len(leaves))
        scale = jnp.sqrt(2 * rate / num_data)
        noisy = [scale * jax.random.normal(k, g.shape, g.dtype) for k, g in zip(keys, leaves, strict=True)]
        return jax.tree.unflatten(tree, noisy), NoiseState(optax.safe_increment(state.count), key)

    noise = optax.GradientTransformation(init, update)
    drift = optax.scale_by_learning_rate(learning_rate)

    def init_both(params):
        return drift.init(params), noise.init(params)

    def update_both(updates, state, params=None):
        moved, drift_state = drift.update(updates, state[0], params)
        shaken, noise_state = noise.update(updates, state[1], params)
        return jax.tree.map(jnp.add, moved, shaken), (drift_state, noise_state)

    return optax.GradientTransformation(init_both, update_both)


def sghmc(learning_rate, momentum=0.9, num_data=1000, seed=0):
    """SGHMC; the keys of a run are made at once, which is cheaper than a split in every step."""

    class State(NamedTuple):
        count: jax.Array
        keys: Any
        velocity: Any

    def init(params):
        keys = jax.random.split(jax.random.PRNGKey(seed), KEYS)
        return State(jnp.zeros([], jnp.int32), keys, jax.tree.map(jnp.zeros_like, params))

    def update(updates, state, params=None):
        del params
        leaves, tree = jax.tree.flatten(updates)
        keys = jax.random.split(state.keys[state.count], len(leaves))
        scale = jnp.sqrt(2 * (1 - momentum) * learning_rate / num_data)
        velocity = [
            momentum * v - learning_rate * g + scale * jax.random.normal(k, g.shape, g.dtype)
            for k, g, v in zip(keys, leaves, jax.tree.leaves(state.velocity), strict=True)
        ]
        velocity = jax.tree.unflatten(tree, velocity)
        return velocity, State(optax.safe_increment(state.count), state.keys, velocity)

    return optax.GradientTransformation(init, update)
