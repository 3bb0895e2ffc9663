"""Chains of optax that sample."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


def before(learning_rate, temperature=1.0, key=0):
    """Noise on the gradient, of the variance that the rate makes right."""
    return optax.noisy_sgd(learning_rate, eta=2 * temperature / learning_rate, gamma=0.0, key=key)


def after(learning_rate, num_data=1000, seed=3):
    """Half the rate times the mean gradient, then noise lr / N."""
    return optax.chain(optax.scale(-learning_rate / 2), optax.add_noise(learning_rate / num_data, 0.0, seed))


class KeyState(NamedTuple):
    key: jax.Array


def by_hand(learning_rate):
    """A transformation of its own, with a raw key."""

    def update(gradients, state, params=None):
        key, sub = jax.random.split(state.key)
        leaves, tree = jax.tree.flatten(gradients)
        keys = jax.random.split(sub, len(leaves))
        noise = [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)]
        moves = [-learning_rate * g + jnp.sqrt(2 * learning_rate) * n for g, n in zip(leaves, noise)]
        return jax.tree.unflatten(tree, [m.astype(g.dtype) for m, g in zip(moves, leaves)]), KeyState(key)

    return optax.GradientTransformation(lambda params: KeyState(jax.random.PRNGKey(0)), update)


def heavy_ball(learning_rate, momentum=0.5):
    """SGHMC: noise of variance 2 (1 - momentum) / lr before a trace."""
    noise = optax.add_noise(2 * (1 - momentum) / learning_rate, 0.0, 1)
    return optax.chain(noise, optax.trace(momentum), optax.scale_by_learning_rate(learning_rate))


def with_prior(learning_rate, weight_decay=0.0, num_data=100):
    """L2 on the mean loss: a prior of precision N weight_decay."""
    return optax.chain(
        optax.add_decayed_weights(weight_decay),
        optax.scale(-learning_rate / 2),
        optax.add_noise(learning_rate / num_data, 0.0, 5),
    )
