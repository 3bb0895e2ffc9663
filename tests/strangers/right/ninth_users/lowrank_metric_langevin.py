"""Langevin with a position-dependent, non-diagonal diffusion of rank-one type, with its divergence term.

    D(x) = I + c v(x) v(x)^T,  v(x) = x / sqrt(1 + |x|^2)
    x' = x + h (-D(x) grad U(x) + Gamma(x)) + sqrt(2h) (xi + sqrt(c) v(x) zeta),   xi in R^d, zeta in R
    Gamma_i = sum_j d_j D_ij = c ((v . grad) v_i + v_i div v),   div v = d / s - |x|^2 / s^3,  s = sqrt(1 + |x|^2)

Right: Cov(xi + sqrt(c) v zeta) = D without a matrix root; Euler-Maruyama of dX = (-D grad U + div D) dt + sqrt(2D) dW,
which keeps exp(-U): law right to O(h).   Object: sampler (a function of the option `c`)
"""
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def pull(x):
    return x / jnp.sqrt(1 + jnp.dot(x, x))


def divergence_of_metric(x, c):
    v, along = jax.jvp(pull, (x,), (pull(x),))
    s2 = 1 + jnp.dot(x, x)
    div = x.size / jnp.sqrt(s2) - jnp.dot(x, x) / s2**1.5
    return c * (along + v * div)


def sampler(c=0.8):
    if c < 0:
        raise ValueError("c must not be negative")

    def step(key, position, h, estimator):
        k_grad, k_full, k_line = jax.random.split(key, 3)
        x, unravel = ravel_pytree(position)
        g, _ = ravel_pytree(estimator.estimate(k_grad, (), position)[0].gradient)
        v = pull(x)
        drift = -(g + c * v * jnp.dot(v, g)) + divergence_of_metric(x, c)
        noise = jax.random.normal(k_full, x.shape, x.dtype) + c**0.5 * v * jax.random.normal(k_line, (), x.dtype)
        return unravel((x + h * drift + jnp.sqrt(2 * h) * noise).astype(x.dtype))

    return simple_sampler(step)
