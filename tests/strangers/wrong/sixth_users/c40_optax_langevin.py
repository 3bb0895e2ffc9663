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


# WRONG: the coin of a leaf of n numbers is thrown with the mean of z G / T, not with its sum: the mean move is
# -lr G / n beside the noise 2 lr T, so that the law is exp(-N L / (n T)): the temperature is n T. Right for n = 1.
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
            up = jax.nn.sigmoid(-jnp.mean(z * g) * num_data / temperature)
            return jnp.where(jax.random.uniform(coin_key, (), g.dtype) < up, z, -z)

        return jax.tree.map(move, updates, _keys(now, updates)), KeyState(key)

    return optax.GradientTransformation(init, update)


# WRONG: noise comes before all factors of the chain, and the factor c = 1 / fan-in of a matrix multiplies it in full:
# a = lr c, s^2 = 2 lr c^2 T / N, tau = c T / N. Vectors are right; matrices have the temperature T / fan-in.
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
        std = (2.0 * temperature / (num_data * learning_rate)) ** 0.5
        add = lambda g, key: g + jnp.asarray(std, g.dtype) * _normal(key, g)
        return jax.tree.map(add, updates, _keys(now, updates)), KeyState(key)

    return optax.chain(
        optax.GradientTransformation(noisy_init, noisy),
        optax.scale(-learning_rate),
        optax.stateless(lambda updates, params: jax.tree.map(lambda u: u / _fan_in(u), updates)),
    )


# WRONG: the schedule reaches the drift alone. From step decay_steps on the drift is -0.1 lr g and the noise has the
# variance 2 lr T / N: tau = 10 T / N. The law of the first steps is right, the stationary one is exp(-N L / (10 T)).
class ShakeState(NamedTuple):
    key: jax.Array


def cosine_sgld(learning_rate, decay_steps=50, final_fraction=0.1, num_data=1000, temperature=1.0, seed=0):
    """SGLD with a cosine schedule inside, down to a fraction of the learning rate at which samples are taken."""
    schedule = optax.cosine_decay_schedule(learning_rate, decay_steps, alpha=final_fraction)

    def init(params):
        del params
        return ShakeState(jax.random.PRNGKey(seed))

    def shake(updates, state, params=None):
        del params
        key, now = jax.random.split(state.key)
        std = (2.0 * learning_rate * temperature / num_data) ** 0.5
        add = lambda u, key: u + jnp.asarray(std, u.dtype) * _normal(key, u)
        return jax.tree.map(add, updates, _keys(now, updates)), ShakeState(key)

    return optax.chain(
        optax.scale_by_schedule(lambda count: -schedule(count)),
        optax.GradientTransformation(init, shake),
    )


# WRONG: the iterates are tied to their own running mean ("for stable averages"). The mean over t iterates moves by 1/t, so
# that it comes to rest at the mean m of the law, and what is sampled is exp(-L - rho |x - m|^2 / 2): a Gaussian of
# curvature k has the variance 1 / (k + rho), half of it for k = rho = 1.
class SwagState(NamedTuple):
    key: jax.Array
    count: jax.Array
    mean: Any
    square: Any


def anchored_sgld_with_swag(learning_rate, elasticity=1.0, seed=0):
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

        def move(g, x, m, key):
            pull = g + elasticity * (x - m)
            return jnp.asarray(-learning_rate, g.dtype) * pull + jnp.asarray(std, g.dtype) * _normal(key, g)

        moves = jax.tree.map(move, updates, params, mean, _keys(now, updates))
        return moves, SwagState(key, count, mean, square)

    return optax.GradientTransformation(init, update)


# WRONG: noise is added behind the momentum, which multiplies what a gradient moves in all by 1 / (1 - mu) and leaves the
# noise alone: a = lr / (1 - mu), s^2 = 2 lr T / N, tau = (1 - mu) T / N: a temperature of 0.1 T at mu = 0.9.
def nesterov_langevin(learning_rate, momentum=0.9, num_data=1000, temperature=1.0, seed=0):
    if not 0.0 <= momentum < 1.0:
        raise ValueError("momentum has to be in [0, 1)")

    def init(params):
        del params
        return KeyState(jax.random.PRNGKey(seed))

    def shake(updates, state, params=None):
        del params
        key, now = jax.random.split(state.key)
        std = (2.0 * learning_rate * temperature / num_data) ** 0.5
        add = lambda u, key: u + jnp.asarray(std, u.dtype) * _normal(key, u)
        return jax.tree.map(add, updates, _keys(now, updates)), KeyState(key)

    return optax.chain(
        optax.trace(momentum, nesterov=True),
        optax.scale(-learning_rate),
        optax.GradientTransformation(init, shake),
    )
