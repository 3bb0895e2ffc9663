"""Langevin samplers as optax gradient transformations."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class SGLDState(NamedTuple):
    count: jax.Array
    rng_key: jax.Array


def _normal_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = treedef.unflatten(list(jax.random.split(key, len(leaves))))
    return jax.tree.map(lambda k, leaf: jax.random.normal(k, leaf.shape, leaf.dtype), keys, tree)


def sgld(learning_rate: float = 1e-3, seed: int = 0) -> optax.GradientTransformation:
    """updates = -lr g + sqrt(2 lr) n, for a loss that is the potential."""

    def init_fn(params):
        del params
        return SGLDState(jnp.zeros([], jnp.int32), jax.random.PRNGKey(seed))

    def update_fn(updates, state, params=None):
        del params
        rng_key, noise_key = jax.random.split(state.rng_key)
        noise = _normal_like(noise_key, updates)
        updates = jax.tree.map(lambda g, n: -learning_rate * g + jnp.sqrt(2.0 * learning_rate) * n, updates, noise)
        return updates, SGLDState(optax.safe_increment(state.count), rng_key)

    return optax.GradientTransformation(init_fn, update_fn)


def posterior_sgd(
    learning_rate: float = 1e-3, num_data: int = 500, prior_precision: float = 1.0, seed: int = 42
) -> optax.GradientTransformation:
    """SGLD out of optax's own parts, for the mean loss over num_data data.

    The variance of the noise in the gradient is 2 / (lr N): lr^2 times it is 2 lr / N, temperature 1 / N of the mean.
    """
    return optax.chain(
        optax.add_decayed_weights(prior_precision / num_data),
        optax.add_noise(eta=2.0 / (learning_rate * num_data), gamma=0.0, key=seed),
        optax.scale(-learning_rate),
    )


class UnderdampedState(NamedTuple):
    velocity: Any
    key: jax.Array


def underdamped(
    learning_rate: float = 1e-2, friction: float = 1.0, temperature: float = 1.0
) -> optax.GradientTransformation:
    """Kick - half drift - OU - half drift; learning_rate is the time step, the loss is the potential."""
    if friction <= 0 or temperature <= 0:
        raise ValueError(f"friction and temperature must be positive, got {friction} and {temperature}")

    def init(params):
        return UnderdampedState(jax.tree.map(jnp.zeros_like, params), jax.random.key(1))

    def update(grads, state, params=None):
        h = learning_rate
        key, sub = jax.random.split(state.key)
        c = jnp.exp(-friction * h)
        s = jnp.sqrt(-jnp.expm1(-2 * friction * h) * temperature)
        kicked = jax.tree.map(lambda v, g: v - h * g, state.velocity, grads)
        turned = jax.tree.map(lambda v, n: c * v + s * n, kicked, _normal_like(sub, kicked))
        moves = jax.tree.map(lambda a, b: 0.5 * h * (a + b), kicked, turned)
        return moves, UnderdampedState(turned, key)

    return optax.GradientTransformation(init, update)
