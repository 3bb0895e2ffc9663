"""Non-reversible overdamped Langevin dynamics by the implicit midpoint rule.

    dX = -(1 + spin J) grad U(X) dt + sqrt(2) dW,    J = -J^T constant

J grad U has no divergence under exp(-U), so the circulation changes the speed of convergence and not the law. J couples
neighbours in the flattened position. The implicit equation

    y = x - h (1 + spin J) grad U((x + y) / 2) + sqrt(2 h) xi

is solved by fixed-point sweeps from an explicit Euler step, all with one draw of the noise and of the minibatch.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def circulate(v):
    """J v, with J the skew matrix of ones below and minus ones above the diagonal."""
    padded = jnp.pad(v, 1)
    return padded[:-2] - padded[2:]


def skew_midpoint(spin=0.5, sweeps=3):
    if sweeps < 1:
        raise ValueError("at least one sweep is needed")

    def step(key, position, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)

        def slope(q):
            g, _ = ravel_pytree(estimator.estimate(batch_key, (), unravel(q))[0].gradient)
            return g + spin * circulate(g)

        start = x + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)
        y = start - h * slope(x)
        for _ in range(sweeps):
            y = start - h * slope((x + y) / 2)
        return unravel(y)

    return simple_sampler(step)
