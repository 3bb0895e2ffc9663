"""Langevin dynamics with a diagonal diffusion that grows with the position, for heavy tails and shrinkage priors.

The diffusion of coordinate i is D_i(x) = sqrt(floor^2 + v_i), where v_i is x_i^2, pooled in part with the mean square of all
coordinates, so that a coordinate near 0 is not left behind. The drift is -D grad U + Gamma, Gamma_i the derivative of D_i by x_i, and
the step is that of Euler and Maruyama.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def make_diffusion(floor, pooling):
    def diffusion(x):
        square = x**2
        pooled = (1 - pooling) * square + pooling * jnp.mean(square)
        return jnp.sqrt(floor**2 + pooled)

    return diffusion


def elementwise_derivative(function):
    """Derivative of a vector function by coordinate: one reverse pass instead of a Jacobian."""
    return jax.grad(lambda x: jnp.sum(function(x)))


def pooled_langevin(floor=1.0, pooling=0.5):
    """`floor` is the diffusion at the origin, `pooling` the share of the mean square, from 0 to 1."""
    if not 0 <= pooling <= 1:
        raise ValueError("pooling is a share, from 0 to 1")
    diffusion = make_diffusion(floor, pooling)
    correction = elementwise_derivative(diffusion)

    def step(key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        gradient = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)[0]
        drift = -diffusion(x) * gradient + correction(x)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x + h * drift + jnp.sqrt(2 * h * diffusion(x)) * noise)

    return simple_sampler(step, claims=Claims(Source("", "own"), StationaryLaw(order=1)))
