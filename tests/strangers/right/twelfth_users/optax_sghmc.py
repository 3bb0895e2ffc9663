"""SGHMC as an optax gradient transformation, for a loss that is the mean over the data.

    v <- (1 - friction) v - lr g + sqrt(2 friction lr T / N) xi,      w <- w + v

in the form with a momentum decay and a learning rate (Chen, Fox and Guestrin 2014, equation 15). As lr -> 0 the law of w is
exp(-N (loss + weight_decay |w|^2 / 2) / T): the decay is added to the gradient and is the prior N(0, 1 / (N weight_decay)) at T = 1.

    optimiser = sghmc(1e-4, num_data=60_000, weight_decay=1e-4)
    optimiser_state = optimiser.init(params)
    updates, optimiser_state = optimiser.update(grads, optimiser_state, params)
    params = optax.apply_updates(params, updates)
"""

from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import optax


class LangevinMomentumState(NamedTuple):
    count: jax.Array
    key: jax.Array
    velocity: Any


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def langevin_momentum(
    learning_rate: float | Callable[[jax.Array], jax.Array], num_data: int, friction: float, temperature: float, seed: int
) -> optax.GradientTransformation:
    """The recursion of the velocity; what it returns is added to the parameters."""

    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return LangevinMomentumState(jnp.zeros((), jnp.int32), jax.random.key(seed), zeros)

    def update(updates, state, params=None):
        del params
        key, noise_key = jax.random.split(state.key)
        rate = learning_rate(state.count) if callable(learning_rate) else learning_rate
        deviation = jnp.sqrt(2 * friction * rate * temperature / num_data)
        velocity = jax.tree.map(
            lambda v, g, z: ((1 - friction) * v - rate * g + deviation * z).astype(v.dtype),
            state.velocity,
            updates,
            normal_like(noise_key, state.velocity),
        )
        return velocity, LangevinMomentumState(state.count + 1, key, velocity)

    return optax.GradientTransformation(init, update)


def sghmc(
    learning_rate: float | Callable[[jax.Array], jax.Array],
    num_data: int = 1_000,
    friction: float = 0.2,
    temperature: float = 1.0,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> optax.GradientTransformation:
    if not 0 < friction <= 1:
        raise ValueError("friction is the share of the velocity that a step loses, in (0, 1]")
    return optax.chain(
        optax.add_decayed_weights(weight_decay),
        langevin_momentum(learning_rate, num_data, friction, temperature, seed),
    )
