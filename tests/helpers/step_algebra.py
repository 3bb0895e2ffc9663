"""Exact mean and covariance of one step that is affine in its Gaussian noise, from the noise tape."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.tracing.noise_tape import Noise, record


def step_program(sampler, estimator, z, step_size):
    """The step from z as a function of its noise: `(Noise) -> flat z'`, and the number of normals it draws."""
    key = jax.random.key(0)
    state = sampler.pack(key, z, estimator)

    def step(key, state):
        return ravel_pytree(sampler.unpack(sampler.step(key, state, step_size, estimator)))[0]

    program = record(step, key, state)
    assert not program.unintercepted
    return lambda noise: program(noise, key, state), program.count("normal")


def step_mean_and_covariance(sampler, estimator, z, step_size):
    """Mean and covariance of z' given z, for a step that is affine in its noise."""
    run, count = step_program(sampler, estimator, z, step_size)
    empty = jnp.zeros(0)
    draws = jnp.concatenate([jnp.zeros((1, count)), jnp.eye(count)])
    rows = np.asarray(jax.vmap(lambda w: run(Noise(w, empty, empty)))(draws))
    columns = rows[1:] - rows[0]
    return rows[0], columns.T @ columns
