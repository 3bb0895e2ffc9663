"""Stochastic-gradient Langevin dynamics as a transformation of optax.

    optimiser = sgld(optax.polynomial_schedule(1e-2, 1e-4, 0.55, 10_000), num_data=len(train))
    state = optimiser.init(params)
    updates, state = optimiser.update(grads, state, params)

Gradients are those of the mean loss of a minibatch, without the prior, which is given as `weight_decay`: a Gaussian with mean 0 and
precision `num_data * weight_decay`. Draws of a posterior are the parameters after the burn-in.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class LangevinNoiseState(NamedTuple):
    count: jax.Array
    key: jax.Array


def noise_deviation(learning_rate, num_data, temperature):
    """Standard deviation of the noise of one step: w' = w - lr grad + N(0, 2 lr T / N)."""
    return jnp.sqrt(2.0 * learning_rate * temperature / num_data)


def add_langevin_noise(learning_rate, num_data, temperature, seed) -> optax.GradientTransformation:
    """Adds the noise to updates that have been multiplied by the learning rate."""
    initial_rate = learning_rate(0) if callable(learning_rate) else learning_rate
    deviation = noise_deviation(initial_rate, num_data, temperature)

    def init(params):
        del params
        return LangevinNoiseState(jnp.zeros((), jnp.int32), jax.random.key(seed))

    def update(updates, state, params=None):
        del params
        key, step_key = jax.random.split(state.key)
        leaves, structure = jax.tree.flatten(updates)
        keys = jax.random.split(step_key, len(leaves))
        noisy = [
            u + (deviation * jax.random.normal(k, u.shape, u.dtype)).astype(u.dtype) for u, k in zip(leaves, keys)
        ]
        return structure.unflatten(noisy), LangevinNoiseState(optax.safe_int32_increment(state.count), key)

    return optax.GradientTransformation(init, update)


def sgld(
    learning_rate: optax.ScalarOrSchedule,
    num_data: int = 1000,
    temperature: float = 1.0,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> optax.GradientTransformation:
    """SGLD with a fixed or a scheduled learning rate.

    Args:
      learning_rate: of the mean loss; a number, or a schedule of the count of steps.
      num_data: number N of training data.
      temperature: of the posterior, 1 for Bayes.
      weight_decay: precision of the prior divided by N.
      seed: of the noise.
    """
    chain = [optax.add_decayed_weights(weight_decay), optax.scale_by_learning_rate(learning_rate)]
    return optax.chain(*chain, add_langevin_noise(learning_rate, num_data, temperature, seed))
