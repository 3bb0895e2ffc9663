"""SGHMC as a chain of optax transformations, with a learning rate of its own for vectors.

    decayed weights -> gradient noise -> momentum (optax.trace) -> minus the learning rate

Noise of standard deviation sqrt(2 (1 - momentum) T / (N lr)) is added to the gradient of a mean loss before the momentum, so that
what a draw moves in all is in balance with what a gradient does. Matrices and vectors (biases, scales) are two partitions.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class GradientNoiseState(NamedTuple):
    key: jax.Array


def gradient_noise(deviation, key) -> optax.GradientTransformation:
    """Adds independent normal numbers to all gradients."""

    def init_fn(params):
        del params
        return GradientNoiseState(key)

    def update_fn(updates, state, params=None):
        del params
        next_key, draw_key = jax.random.split(state.key)
        leaves, tree = jax.tree.flatten(updates)
        noisy = [
            leaf + deviation * jax.random.normal(jax.random.fold_in(draw_key, i), leaf.shape, leaf.dtype)
            for i, leaf in enumerate(leaves)
        ]
        return jax.tree.unflatten(tree, noisy), GradientNoiseState(next_key)

    return optax.GradientTransformation(init_fn, update_fn)


def _one_partition(rate, key, num_data, temperature, momentum, nesterov, weight_decay):
    deviation = jnp.sqrt(2 * (1 - momentum) * temperature / (num_data * rate))
    return optax.chain(
        optax.add_decayed_weights(weight_decay),
        gradient_noise(deviation, key),
        optax.trace(decay=momentum, nesterov=nesterov),
        optax.scale(-rate),
    )


def _kind(params):
    return jax.tree.map(lambda p: "matrix" if jnp.ndim(p) > 1 else "vector", params)


def partitioned_sghmc(
    learning_rate,
    num_data=200,
    temperature=1.0,
    momentum=0.6,
    nesterov=False,
    weight_decay=1e-3,
    vector_rate=0.5,
    seed=0,
) -> optax.GradientTransformation:
    if not 0 <= momentum < 1:
        raise ValueError("momentum is at least 0 and below 1")
    if not vector_rate > 0:
        raise ValueError("vector_rate is positive")
    matrix_key, vector_key = jax.random.split(jax.random.PRNGKey(seed))
    common = (num_data, temperature, momentum, nesterov, weight_decay)
    return optax.multi_transform(
        {
            "matrix": _one_partition(learning_rate, matrix_key, *common),
            "vector": _one_partition(learning_rate * vector_rate, vector_key, *common),
        },
        _kind,
    )
