"""Richardson extrapolation of Langevin dynamics: a chain at h and one at h/2 that share their noise."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


class Levels(NamedTuple):
    coarse: jax.Array
    fine: jax.Array


def init(key, position, estimator):
    return Levels(coarse=position, fine=position)


def euler(x, h, noise, gradient):
    return x - h * gradient(x) + jnp.sqrt(2 * h) * noise


def step(key, levels, step_size, estimator):
    batch_key, *noise_keys = jax.random.split(key, 3)
    gradient = lambda q: estimator.estimate(batch_key, (), q)[0].gradient
    noises = [jax.random.normal(k, levels.fine.shape, levels.fine.dtype) for k in noise_keys]

    fine = levels.fine
    for noise in noises:
        fine = euler(fine, step_size / 2, noise, gradient)
    coarse = euler(levels.coarse, step_size, noises[0], gradient)
    return Levels(coarse, fine)


def extrapolate(levels):
    """The error of order h cancels."""
    return 2 * levels.fine - levels.coarse


richardson = simple_sampler(step, init=init, position=extrapolate)
