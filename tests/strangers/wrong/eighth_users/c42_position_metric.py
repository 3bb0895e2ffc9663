"""Langevin with the position-dependent diffusion D(x) = 1 / (1 + x^2 / 2), each coordinate its own, with its Ito term."""
import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def metric(x):
    return 1 / (1 + x**2 / 2)


def step(key, x, step_size, estimator):
    k_batch, k_noise = jax.random.split(key)
    g = estimator.estimate(k_batch, (), x)[0].gradient
    d, d_slope = jax.jvp(metric, (x,), (jnp.ones_like(x),))
    drift = -d * g + d_slope / 2
    return x + step_size * drift + jnp.sqrt(2 * step_size * d) * jax.random.normal(k_noise, x.shape, x.dtype)


riemannian = simple_sampler(step)
