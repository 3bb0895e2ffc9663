"""SGLD for optax, as a chain of transformations.

    optimiser = sgld(1e-5, num_data=50_000, weight_decay=1e-4)

Gradients are those of the mean loss; updates are -lr (grad + weight_decay w) + N(0, 2 lr T / num_data).  The noise is a
function of a seed and of the number of the step, so that a run that is resumed from a checkpoint goes on with
the draws that it would have had.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class LangevinNoiseState(NamedTuple):
    count: jax.Array
    key: jax.Array


def _noise_like(key, count, tree):
    """Standard normal noise in the shape of a tree, with a key for each leaf and each step."""
    leaves, structure = jax.tree.flatten(tree)
    noise = [
        jax.random.normal(jax.random.fold_in(key, count + i), leaf.shape, leaf.dtype) for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, noise)


def add_langevin_noise(learning_rate, num_data, temperature=1.0, seed=0):
    """Adds the noise of Langevin dynamics to updates that have been multiplied by the learning rate."""

    def init(params):
        del params
        return LangevinNoiseState(jnp.zeros((), jnp.int32), jax.random.PRNGKey(seed))

    def update(updates, state, params=None):
        del params
        rate = learning_rate(state.count) if callable(learning_rate) else learning_rate
        scale = jnp.sqrt(2 * rate * temperature / num_data)
        noise = _noise_like(state.key, state.count, updates)
        updates = jax.tree.map(lambda u, n: u + scale.astype(u.dtype) * n, updates, noise)
        return updates, LangevinNoiseState(optax.safe_increment(state.count), state.key)

    return optax.GradientTransformation(init, update)


def sgld(learning_rate, num_data=1000, temperature=1.0, weight_decay=0.0, seed=0):
    """Stochastic gradient Langevin dynamics; the learning rate is a number or a schedule of optax."""
    return optax.chain(
        optax.add_decayed_weights(weight_decay),
        optax.scale_by_learning_rate(learning_rate),
        add_langevin_noise(learning_rate, num_data, temperature, seed),
    )
