"""SGLD as a chain of optax transformations.

    optimiser = langevin(optax.cosine_decay_schedule(1e-3, 10_000), num_data=50_000, weight_decay=1e-4)

takes gradients of a loss that is the mean over the data. What is added to the parameters is

    -lr (grad + weight_decay theta) + sqrt(2 lr T / num_data) xi

whose law tends to exp(-num_data (loss + weight_decay |theta|^2 / 2) / T) as lr -> 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class NoiseState(NamedTuple):
    """Steps so far, by which a schedule is read, and the key of the next draw."""

    count: jax.Array
    key: jax.Array


def _normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure, [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)]
    )


def add_thermal_noise(learning_rate, temperature, seed=0) -> optax.GradientTransformation:
    """Adds N(0, 2 lr temperature) to updates that a learning rate has been applied to.

    Args:
        learning_rate: a number, or a schedule, which has to be the one that the updates were scaled by.
        temperature: of the loss whose gradients come in.
        seed: of the draws.
    """

    def init_fn(params):
        del params
        return NoiseState(jnp.zeros((), jnp.int32), jax.random.key(seed))

    def update_fn(updates, state, params=None):
        del params
        lr = learning_rate(state.count) if callable(learning_rate) else learning_rate
        spread = jnp.sqrt(2 * lr * temperature)
        key, draw = jax.random.split(state.key)
        noise = _normal_like(draw, updates)
        updates = jax.tree.map(lambda u, n: u + spread.astype(u.dtype) * n, updates, noise)
        return updates, NoiseState(optax.safe_increment(state.count), key)

    return optax.GradientTransformation(init_fn, update_fn)


def langevin(
    learning_rate,
    num_data: int = 1000,
    temperature: float = 1.0,
    weight_decay: float = 0.0,
    clip_norm: float | None = None,
    seed: int = 0,
) -> optax.GradientTransformation:
    """Stochastic gradient Langevin dynamics.

    Args:
        learning_rate: a number or an optax schedule.
        num_data: data that the loss is the mean of.
        temperature: T of the posterior.
        weight_decay: a normal prior of precision num_data * weight_decay, for T = 1.
        clip_norm: largest norm of a gradient, for a start far away. The law is that of clipped gradients, so none by default.
        seed: of the draws.
    """
    stages = [optax.clip_by_global_norm(clip_norm)] if clip_norm is not None else []
    stages += [
        optax.add_decayed_weights(weight_decay),
        optax.scale_by_learning_rate(learning_rate),
        add_thermal_noise(learning_rate, temperature / num_data, seed),
    ]
    return optax.chain(*stages)
