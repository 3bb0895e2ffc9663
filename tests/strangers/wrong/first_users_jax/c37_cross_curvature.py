"""SGLD that slows down where the first two coordinates are strongly coupled (a Hessian-vector product each step)."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def step(key, x, h, estimator):
    a, b = jax.random.split(key)
    flat = x.reshape(-1)

    def gradient(q):
        return estimator.estimate(a, (), q.reshape(x.shape))[0].gradient.reshape(-1)

    if flat.size < 2:
        g, coupling = gradient(flat), 0.0
    else:
        g, column = jax.jvp(gradient, (flat,), (jnp.zeros_like(flat).at[0].set(1),))
        coupling = column[1]
    speed = 1 / jnp.sqrt(1 + coupling**2)
    noise = jax.random.normal(b, flat.shape, flat.dtype)
    return (flat - h * speed * g + jnp.sqrt(2 * h * speed) * noise).reshape(x.shape)


sampler = simple_sampler(step)
