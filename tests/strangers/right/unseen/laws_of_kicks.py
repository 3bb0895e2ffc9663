"""Weak Langevin schemes: four laws of kicks of mean 0, variance 1 and third moment 0 in the place of normal ones."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler


def langevin(kick):
    """One Euler step on any tree; `kick(key, flat)` gives the increments of the noise for a step of unit variance."""

    def step(key, position, step_size, estimator):
        for_gradient, for_kick = jax.random.split(key)
        flat, back = ravel_pytree(position)
        slope, _ = ravel_pytree(estimator.estimate(for_gradient, (), position)[0].gradient)
        return back(flat - step_size * slope + (2 * step_size) ** 0.5 * kick(for_kick, flat))

    return step


def ones_of_a_word(key, flat):
    """Number of ones among 32 random bits, less 16, over the root of 8: no normal generator is needed."""
    words = jax.random.bits(key, flat.shape, jnp.uint32)
    return (jax.lax.population_count(words).astype(flat.dtype) - 16) / 8**0.5


def student(key, flat):
    """Student's t with ten degrees of freedom, a scale mixture of normals, at unit variance: E 4 / Gamma(5) = 1."""
    top, bottom = jax.random.split(key)
    z = jax.random.normal(top, flat.shape, flat.dtype)
    return z * jnp.sqrt(4 / jax.random.gamma(bottom, 5.0, flat.shape, flat.dtype))


def shell(key, flat):
    """A uniform point of the sphere of radius sqrt(d): its covariance is the identity."""
    z = jax.random.normal(key, flat.shape, flat.dtype)
    return z * (flat.size**0.5 / jnp.linalg.norm(z))


popcount = simple_sampler(langevin(ones_of_a_word))
scaled_t = simple_sampler(langevin(student))
on_a_shell = simple_sampler(langevin(shell))


class Ahead(NamedTuple):
    """A point and the kick that it will get next."""

    x: jax.Array
    kick: jax.Array


def logistic(key, x):
    """Difference of two Gumbel variables, cut from one long draw, over pi / sqrt(3)."""
    long = jax.random.gumbel(key, (2 * x.size,), x.dtype)
    return ((long[: x.size] - long[x.size :]) * (3**0.5 / jnp.pi)).reshape(x.shape).astype(x.dtype)


def _step(key, state, step_size, estimator):
    for_gradient, for_kick = jax.random.split(key)
    g = estimator.estimate(for_gradient, (), state.x)[0].gradient
    moved = state.x - step_size * g + (2 * step_size) ** 0.5 * state.kick
    return Ahead(moved, logistic(for_kick, state.x))


gumbel_pairs_ahead = simple_sampler(
    _step, init=lambda key, x, estimator: Ahead(x, logistic(key, x)), position=lambda state: state.x
)
