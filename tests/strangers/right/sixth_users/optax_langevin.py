"""Samplers as optax transformations."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class KeyState(NamedTuple):
    key: jax.Array


def _keys(key, tree):
    """A key for each leaf, as a tree."""
    leaves, treedef = jax.tree.flatten(tree)
    return jax.tree.unflatten(treedef, list(jax.random.split(key, len(leaves))))


def _normal(key, g):
    return jax.random.normal(key, g.shape, g.dtype)


# Barker's proposal with one coin a leaf: z ~ N(0, 2 lr T I), u = +z with probability 1 / (1 + exp(z . G / T)), else -z,
# G = N g. E u = E[z tanh(-z.G / (2T))] = -E[z z'] G / (2T) + O(lr^2) = -lr G, E u u' = 2 lr T I; for every leaf apart.
# Law exp(-N L / T) + O(lr).
def leafwise_barker(learning_rate, num_data=1000, temperature=1.0, seed=0):
    def init(params):
        del params
        return KeyState(jax.random.PRNGKey(seed))

    def update(updates, state, params=None):
        del params
        key, now = jax.random.split(state.key)
        std = (2.0 * learning_rate * temperature) ** 0.5

        def move(g, key):
            jump_key, coin_key = jax.random.split(key)
            z = jnp.asarray(std, g.dtype) * _normal(jump_key, g)
            up = jax.nn.sigmoid(-jnp.sum(z * g) * num_data / temperature)
            return jnp.where(jax.random.uniform(coin_key, (), g.dtype) < up, z, -z)

        return jax.tree.map(move, updates, _keys(now, updates)), KeyState(key)

    return optax.GradientTransformation(init, update)


# A leaf with c = 1 / fan-in moves by -lr c g + sqrt(2 lr c T / N) xi: the chain is (g + sqrt(2 T / (N lr c)) xi) times
# -lr, then times c. a = lr c, s^2 = 2 lr c T / N: tau = T / N for each leaf. Law exp(-N L / T) + O(lr).
def _fan_in(x):
    return math.prod(x.shape[:-1]) if x.ndim >= 2 else 1


def fan_in_langevin(learning_rate, num_data=1000, temperature=1.0, seed=0):
    """Langevin with a learning rate a layer, lr / fan_in for matrices (..., in, out)."""

    def noisy_init(params):
        del params
        return KeyState(jax.random.PRNGKey(seed))

    def noisy(updates, state, params=None):
        del params
        key, now = jax.random.split(state.key)

        def add(g, key):
            std = (2.0 * temperature * _fan_in(g) / (num_data * learning_rate)) ** 0.5
            return g + jnp.asarray(std, g.dtype) * _normal(key, g)

        return jax.tree.map(add, updates, _keys(now, updates)), KeyState(key)

    return optax.chain(
        optax.GradientTransformation(noisy_init, noisy),
        optax.scale(-learning_rate),
        optax.stateless(lambda updates, params: jax.tree.map(lambda u: u / _fan_in(u), updates)),
    )


# One rate of the moment, lr_t = lr min(1, (t + 1) / max(warmup, 1)), multiplies the gradient and enters the noise:
# -lr_t g + sqrt(2 lr_t T / N) xi, tau = T / N at each t. After the warmup (none by default) lr_t = lr.
# Law exp(-N L / T) + O(lr).
class WarmState(NamedTuple):
    count: jax.Array
    key: jax.Array


def warmed_up_sgld(learning_rate, warmup=0, num_data=1000, temperature=1.0, seed=0):
    def init(params):
        del params
        return WarmState(jnp.zeros([], jnp.int32), jax.random.PRNGKey(seed))

    def update(updates, state, params=None):
        del params
        rate = learning_rate * jnp.minimum(1.0, (state.count + 1) / jnp.maximum(warmup, 1))
        key, now = jax.random.split(state.key)

        def move(g, key):
            lr = jnp.asarray(rate, g.dtype)
            return -lr * g + jnp.sqrt(2.0 * lr * temperature / num_data) * _normal(key, g)

        moves = jax.tree.map(move, updates, _keys(now, updates))
        return moves, WarmState(optax.safe_increment(state.count), key)

    return optax.GradientTransformation(init, update)


# SGLD on a summed loss, -lr g + sqrt(2 lr) xi, with SWAG's statistics (mean and mean square of the iterates) on the way;
# they are for the user and do not enter any move. Law exp(-L) + O(lr).
class SwagState(NamedTuple):
    key: jax.Array
    count: jax.Array
    mean: Any
    square: Any


def sgld_with_swag(learning_rate, seed=0):
    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return SwagState(jax.random.PRNGKey(seed), jnp.zeros([], jnp.int32), zeros, zeros)

    def update(updates, state, params=None):
        if params is None:
            raise ValueError("update needs params, for the averages")
        key, now = jax.random.split(state.key)
        count = state.count + 1
        mean = jax.tree.map(lambda m, x: m + (x - m) / count, state.mean, params)
        square = jax.tree.map(lambda s, x: s + (x * x - s) / count, state.square, params)
        std = (2.0 * learning_rate) ** 0.5
        moves = jax.tree.map(
            lambda g, key: jnp.asarray(-learning_rate, g.dtype) * g + jnp.asarray(std, g.dtype) * _normal(key, g),
            updates,
            _keys(now, updates),
        )
        return moves, SwagState(key, count, mean, square)

    return optax.GradientTransformation(init, update)


# (g + sqrt(2 T / (N lr)) xi) goes through Nesterov's trace, times -lr (1 - mu). A draw moves w by (1 + mu + mu^2 + ..) =
# 1 / (1 - mu) times what it is multiplied with, as a gradient does: a = lr, s = lr sqrt(2 T / (N lr)),
# tau = s^2 / (2 a) = T / N. Law exp(-N L / T) + O(lr).
def nesterov_langevin(learning_rate, momentum=0.9, num_data=1000, temperature=1.0, seed=0):
    if not 0.0 <= momentum < 1.0:
        raise ValueError("momentum has to be in [0, 1)")

    def init(params):
        del params
        return KeyState(jax.random.PRNGKey(seed))

    def shake(updates, state, params=None):
        del params
        key, now = jax.random.split(state.key)
        std = (2.0 * temperature / (num_data * learning_rate)) ** 0.5
        add = lambda g, key: g + jnp.asarray(std, g.dtype) * _normal(key, g)
        return jax.tree.map(add, updates, _keys(now, updates)), KeyState(key)

    return optax.chain(
        optax.GradientTransformation(init, shake),
        optax.trace(momentum, nesterov=True),
        optax.scale(-learning_rate * (1.0 - momentum)),
    )
