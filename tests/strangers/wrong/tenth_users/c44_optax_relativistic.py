"""Relativistic stochastic-gradient HMC (Lu et al., 2017) as a GradientTransformation of optax.

The kinetic energy K(p) = c^2 sqrt(|p|^2 / c^2 + 1) bounds the velocity by the speed c, whatever a gradient is:

    p <- p - h (grad U + friction grad K(p)) + sqrt(2 friction h) N(0, 1)
    w <- w + h grad K(p)

The loss is U, the potential summed over the data; h is the learning rate.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class RelativisticState(NamedTuple):
    key: jax.Array
    momentum: optax.Params


def velocity(momentum, speed):
    """grad K: the momentum over its relativistic mass."""
    squared = sum(jnp.sum(p * p) for p in jax.tree.leaves(momentum))
    mass = jnp.sqrt(1 + squared / speed**2)
    return jax.tree.map(lambda p: p / mass, momentum)


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)])


def relativistic_sghmc(learning_rate, speed=1.0, friction=1.0, seed=0):
    if speed <= 0 or friction <= 0:
        raise ValueError("speed and friction must be positive")

    def init(params):
        key, momentum_key = jax.random.split(jax.random.key(seed))
        return RelativisticState(key, normal_like(momentum_key, params))

    def update(gradients, state, params=None):
        del params
        key, noise_key = jax.random.split(state.key)
        noise = normal_like(noise_key, gradients)

        def kick(p, gradient, xi):
            force = gradient + friction * velocity(p, speed)
            return p - learning_rate * force + jnp.sqrt(2 * friction * learning_rate) * xi

        momentum = jax.tree.map(kick, state.momentum, gradients, noise)
        updates = jax.tree.map(lambda v: learning_rate * v, velocity(momentum, speed))
        return updates, RelativisticState(key, momentum)

    return optax.GradientTransformation(init, update)
