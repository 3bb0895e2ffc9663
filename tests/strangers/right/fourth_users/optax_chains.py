"""Functions of a learning rate that return transformations of optax."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class NoiseState(NamedTuple):
    key: jax.Array


def langevin_noise(variance, seed):
    def init(params):
        del params
        return NoiseState(jax.random.PRNGKey(seed))

    def update(updates, state, params=None):
        del params
        key, noise_key = jax.random.split(state.key)
        leaves, tree = jax.tree.flatten(updates)
        keys = jax.random.split(noise_key, len(leaves))
        noisy = [u + jnp.sqrt(variance) * jax.random.normal(k, u.shape, u.dtype) for k, u in zip(keys, leaves)]
        return jax.tree.unflatten(tree, noisy), NoiseState(key)

    return optax.GradientTransformation(init, update)


def sgld(learning_rate, num_data=1000, temperature=1.0, seed=0):
    """SGLD of a mean loss: w - lr/2 N g + N(0, lr T)."""
    return optax.chain(
        optax.scale(num_data),
        optax.scale(-learning_rate / 2),
        langevin_noise(learning_rate * temperature, seed),
    )


def masked_decay(learning_rate, num_data=1000, weight_decay=1e-3):
    """SGLD of a mean loss; matrices have a Gaussian prior, vectors and scalars (biases) a flat one.

    The noise is that of optax; with gamma = 0 it does not anneal.
    """
    matrices = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    return optax.chain(
        optax.add_decayed_weights(weight_decay, mask=matrices),
        optax.scale(-learning_rate),
        optax.add_noise(2 * learning_rate / num_data, 0.0, 17),
    )


class CountedNoiseState(NamedTuple):
    key: jax.Array
    count: jax.Array


def heavy_ball(learning_rate, momentum=0.9, temperature=1.0):
    """Noise that is added to the gradient of a summed loss, and goes through the momentum with it.

    The key stays, and the count of steps is folded into it.
    """
    scale = (2 * temperature / learning_rate) ** 0.5

    def init(params):
        del params
        return CountedNoiseState(jax.random.PRNGKey(3), jnp.zeros((), jnp.int32))

    def update(updates, state, params=None):
        del params
        key = jax.random.fold_in(state.key, state.count)
        leaves, tree = jax.tree.flatten(updates)
        noisy = [
            u + scale * jax.random.normal(jax.random.fold_in(key, i), u.shape, u.dtype) for i, u in enumerate(leaves)
        ]
        return jax.tree.unflatten(tree, noisy), CountedNoiseState(state.key, state.count + 1)

    return optax.chain(
        optax.GradientTransformation(init, update),
        optax.trace(decay=momentum),
        optax.scale(-(1 - momentum) * learning_rate),
    )
