"""Riemannian Langevin with a diagonal metric G(theta), small near zero, and its Gamma term from autodiff."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def g_inv(t):
    """Inverse metric of one coordinate, between 1/2 (at 0) and 1 (far out)."""
    return (0.5 + t**2) / (1.0 + t**2)


G = jax.vmap(g_inv)
GAMMA = jax.vmap(jax.grad(g_inv))


def rld_step(key, position, step_size, estimator):
    key_grad, key_noise = jax.random.split(key)
    theta, unravel = ravel_pytree(position)
    grad, _ = ravel_pytree(estimator.estimate(key_grad, (), position)[0].gradient)

    precond = G(theta)
    drift = -precond * grad + GAMMA(theta)
    xi = jax.random.normal(key_noise, theta.shape, theta.dtype)
    return unravel(theta + step_size * drift + jnp.sqrt(2 * step_size * precond) * xi)


rld = simple_sampler(rld_step)
