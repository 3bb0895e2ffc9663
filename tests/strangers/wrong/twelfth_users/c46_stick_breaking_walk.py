"""Random-walk Metropolis on the probability simplex, in the coordinates of stick breaking.

A point x of K probabilities is written as x_k = z_k (1 - z_1) .. (1 - z_(k-1)), and y_k = logit z_k + log (K - k) is real, with y = 0 for equal
probabilities. The walk is one of y; the target is a density of x, so that the acceptance has the volume |dx/dy| of both ends.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def offsets(size, dtype):
    """log (K - k), k = 1 .. K - 1."""
    return jnp.log(jnp.arange(size - 1, 0, -1, dtype=dtype))


def to_real(x):
    """y of a point of the simplex."""
    remaining = jnp.cumsum(x[::-1])[::-1]
    return jnp.log(x[:-1]) - jnp.log(remaining[1:]) + offsets(x.size, x.dtype)


def to_simplex(y):
    """The point of the simplex that belongs to y, by logarithms."""
    logits = y - offsets(y.size + 1, y.dtype)
    log_break, log_rest = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
    zero = jnp.zeros(1, y.dtype)
    log_stick = jnp.concatenate([zero, jnp.cumsum(log_rest)])
    return jnp.exp(jnp.concatenate([log_break, zero]) + log_stick)


def log_volume(y):
    """log |dx/dy|: dx/dy is triangular, since x_k depends on y_1 .. y_k alone, with z_k (1 - z_k) from each logistic function."""
    logits = y - offsets(y.size + 1, y.dtype)
    return jnp.sum(jax.nn.log_sigmoid(logits) + jax.nn.log_sigmoid(-logits))


def heavy_tailed(key, shape, dtype, degrees):
    """Student's t, so that now and then a walk makes a long move."""
    normal_key, scale_key = jax.random.split(key)
    z = jax.random.normal(normal_key, shape, dtype)
    gamma = jax.random.gamma(scale_key, degrees / 2, (), dtype) / (degrees / 2)
    return z / jnp.sqrt(gamma)


def stick_breaking_walk(degrees=5.0, local=False):
    """A walk with steps of Student's law, or normal ones if it is to be `local`."""
    if degrees <= 0:
        raise ValueError("degrees of freedom are positive")

    def step(key, x, step_size, estimator):
        move_key, batch_key, accept_key = jax.random.split(key, 3)
        log_density = lambda q: -estimator.estimate(batch_key, (), q)[0].potential
        y = to_real(x)
        if local:
            move = jax.random.normal(move_key, y.shape, y.dtype)
        else:
            move = heavy_tailed(move_key, y.shape, y.dtype, degrees)
        new_y = y + jnp.sqrt(2 * jnp.asarray(step_size, y.dtype)) * move
        new_x = to_simplex(new_y)
        log_ratio = log_density(new_x) + log_volume(new_y) - log_density(x) - log_volume(y)
        accept = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return jnp.where(accept, new_x, x)

    return simple_sampler(step, claims=Claims(Source("", "own; coordinates as in Stan"), ExactLaw(), spaces=("simplex",)))
