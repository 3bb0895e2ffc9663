"""Two stochastic Runge-Kutta schemes for dx = -grad U dt + sqrt(2) dW."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def heun_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    # three-point variables of Kloeden and Platen: moments of a normal up to the fifth
    values = jnp.array([-(3**0.5), 0.0, 3**0.5], x.dtype)
    xi = jax.random.choice(k3, values, x.shape, p=jnp.array([1 / 6, 2 / 3, 1 / 6], x.dtype))
    dw = jnp.sqrt(2 * h) * xi
    g = grad(estimator, k1, x)
    ahead = x - h * g + dw
    return x - h / 2 * (g + grad(estimator, k2, ahead)) + dw


def midpoint_step(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    tau = jax.random.uniform(k1, (), x.dtype)
    w = jnp.sqrt(2 * h * tau) * jax.random.normal(k2, x.shape, x.dtype)
    rest = jnp.sqrt(2 * h * (1 - tau)) * jax.random.normal(k3, x.shape, x.dtype)
    middle = x - tau * h * grad(estimator, k4, x) + w
    return x - h * grad(estimator, k5, middle) + w + rest


heun = simple_sampler(heun_step)
randomized_midpoint = simple_sampler(midpoint_step)
