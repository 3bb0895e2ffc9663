"""SGLD with noise made in other ways."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def langevin(position, gradient, noise, step_size):
    """x - h g + sqrt(2 h) n for every leaf."""

    def move(x, g, n):
        h = jnp.asarray(step_size, x.dtype)
        return x - h * g + jnp.sqrt(2 * h) * n

    return jax.tree.map(move, position, gradient, noise)


def leafwise(draw):
    """A function of a key and a tree that calls draw(key, leaf) with a key for each leaf."""

    def make(key, tree):
        leaves, treedef = jax.tree.flatten(tree)
        keys = jax.random.split(key, len(leaves))
        return treedef.unflatten([draw(k, x) for k, x in zip(keys, leaves, strict=True)])

    return make


def sgld(draw):
    """SGLD with draw(key, leaf) for the noise of a leaf."""

    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), position)[0].gradient
        return langevin(position, gradient, leafwise(draw)(noise_key, position), step_size)

    return simple_sampler(step)


def rows_and_columns(key, x):
    """Noise of a large weight matrix from a vector for its rows and one for its columns."""
    if x.ndim < 2:
        return jax.random.normal(key, x.shape, x.dtype)
    row_key, column_key = jax.random.split(key)
    rows = jax.random.normal(row_key, (*x.shape[:-1], 1), x.dtype)
    columns = jax.random.normal(column_key, (x.shape[-1],), x.dtype)
    return (rows + columns) / jnp.sqrt(2).astype(x.dtype)


def brain_float(key, x):
    """Noise drawn in bfloat16, half of the memory."""
    return jax.random.normal(key, x.shape, jnp.bfloat16).astype(x.dtype)


matrix_noise, half_noise = sgld(rows_and_columns), sgld(brain_float)


class Paired(NamedTuple):
    """Position, noise of the last step, and whether it waits for its opposite."""

    position: Any
    noise: Any
    waiting: jax.Array


class AntitheticSGLD:
    """SGLD with antithetic noise: every draw is used with both signs, for estimates of a smaller variance."""

    def init(self, key, position, estimator):
        return Paired(position, jax.tree.map(jnp.zeros_like, position), jnp.asarray(False))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        fresh = leafwise(lambda k, x: jax.random.normal(k, x.shape, x.dtype))(noise_key, state.position)
        noise = jax.tree.map(lambda old, new: jnp.where(state.waiting, -old, new), state.noise, fresh)
        return Paired(langevin(state.position, gradient, noise, step_size), noise, ~state.waiting)
