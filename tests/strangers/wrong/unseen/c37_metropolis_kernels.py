"""Kernels with a Metropolis test, exact at every step size. All work on the raveled position."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def accepted(key, log_ratio):
    return jnp.log(jax.random.uniform(key, (), log_ratio.dtype)) < log_ratio


def widening_walk_step(key, position, step_size, estimator):
    """Random walk whose steps are wider far out: sigma(x)^2 = 2 h (1 + |x|^2 / d), with the ratio of proposals."""
    noise_key, here_key, there_key, accept_key = jax.random.split(key, 4)
    x, unravel = ravel_pytree(position)
    h = jnp.asarray(step_size, x.dtype)

    def width(z):
        return jnp.sqrt(2 * h * (1 + jnp.mean(z**2)))

    def log_q(start, end):
        scaled = (end - start) / width(start)
        return -0.5 * jnp.sum(scaled**2) - jnp.log(width(start))

    y = x + width(x) * jax.random.normal(noise_key, x.shape, x.dtype)
    here = estimator.estimate(here_key, (), position)[0].potential
    there = estimator.estimate(there_key, (), unravel(y))[0].potential
    log_ratio = here - there + log_q(y, x) - log_q(x, y)
    return unravel(jnp.where(accepted(accept_key, log_ratio), y, x))


widening_walk = simple_sampler(widening_walk_step, claims=EXACT)

MAX_TRIES = 100


def persistent_walk_step(key, position, step_size, estimator):
    """Random walk that proposes until something is accepted, so that no step is spent on standing still."""
    start_key, loop_key = jax.random.split(key)
    x, unravel = ravel_pytree(position)
    h = jnp.asarray(step_size, x.dtype)
    here = estimator.estimate(start_key, (), position)[0].potential

    def searching(carry):
        return ~carry[0] & (carry[1] < MAX_TRIES)

    def propose(carry):
        key, noise_key, energy_key, accept_key = jax.random.split(carry[2], 4)
        y = x + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)
        there = estimator.estimate(energy_key, (), unravel(y))[0].potential
        moves = accepted(accept_key, here - there)
        return moves, carry[1] + 1, key, jnp.where(moves, y, x)

    start = (jnp.asarray(False), jnp.asarray(0), loop_key, x)
    return unravel(jax.lax.while_loop(searching, propose, start)[3])


persistent_walk = simple_sampler(persistent_walk_step, claims=EXACT)

BLOCK = 64


def block_sum(values):
    """Sum of a vector, block by block, which keeps round-off small where there are many coordinates."""
    if values.size <= BLOCK:
        return jnp.sum(values)
    blocks = values.size // BLOCK
    return jnp.sum(jnp.sum(values[: blocks * BLOCK].reshape(blocks, BLOCK), axis=1))


def blockwise_mala_step(key, position, step_size, estimator):
    """MALA for long vectors."""
    noise_key, here_key, there_key, accept_key = jax.random.split(key, 4)
    x, unravel = ravel_pytree(position)
    h = jnp.asarray(step_size, x.dtype)

    def log_q(start, gradient, end):
        return -block_sum((end - start + h * gradient) ** 2) / (4 * h)

    here = estimator.estimate(here_key, (), position)[0]
    g = ravel_pytree(here.gradient)[0]
    y = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)
    there = estimator.estimate(there_key, (), unravel(y))[0]
    back = ravel_pytree(there.gradient)[0]
    log_ratio = here.potential - there.potential + log_q(y, back, x) - log_q(x, g, y)
    return unravel(jnp.where(accepted(accept_key, log_ratio), y, x))


blockwise_mala = simple_sampler(blockwise_mala_step, claims=EXACT)

MAX_NORM = 1.0


def clipped(gradient):
    """Gradient clipping by the global norm."""
    norm = jnp.sqrt(jnp.sum(gradient**2))
    return gradient * (MAX_NORM / jnp.maximum(norm, MAX_NORM))


def clipped_mala_step(key, position, step_size, estimator):
    """MALA with clipped gradients, which do not throw proposals far away from the tails; the test makes it exact."""
    noise_key, here_key, there_key, accept_key = jax.random.split(key, 4)
    x, unravel = ravel_pytree(position)
    h = jnp.asarray(step_size, x.dtype)
    here = estimator.estimate(here_key, (), position)[0]
    drift = clipped(ravel_pytree(here.gradient)[0])
    y = x - h * drift + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)
    there = estimator.estimate(there_key, (), unravel(y))[0]
    forward = jnp.sum((y - x + h * drift) ** 2)
    backward = jnp.sum((x - y + h * ravel_pytree(there.gradient)[0]) ** 2)
    log_ratio = here.potential - there.potential + (forward - backward) / (4 * h)
    return unravel(jnp.where(accepted(accept_key, log_ratio), y, x))


clipped_mala = simple_sampler(clipped_mala_step, claims=EXACT)
