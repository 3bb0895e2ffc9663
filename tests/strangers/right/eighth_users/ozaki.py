"""Ozaki's local linearisation of overdamped Langevin: the linear SDE with the Hessian at x is solved exactly."""
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def phi(a):
    """(1 - exp(-a)) / a, also at 0."""
    tiny = jnp.abs(a) < 1e-6
    safe = jnp.where(tiny, 1.0, a)
    return jnp.where(tiny, 1 - a / 2, -jnp.expm1(-safe) / safe)


@jax.jit
def linear_step(x, grad, hessian, h, xi):
    curvature, basis = jnp.linalg.eigh((hessian + hessian.T) / 2)
    drift = h * phi(h * curvature) * (basis.T @ grad)
    spread = jnp.sqrt(2 * h * phi(2 * h * curvature))
    return x + basis @ (spread * (basis.T @ xi) - drift)


def step(key, position, step_size, estimator):
    batch, noise = jax.random.split(key)
    x, unravel = ravel_pytree(position)

    def slope(q):
        return ravel_pytree(estimator.estimate(batch, (), unravel(q))[0].gradient)[0]

    xi = jax.random.normal(noise, x.shape, x.dtype)
    return unravel(linear_step(x, slope(x), jax.jacfwd(slope)(x), step_size, xi).astype(x.dtype))


ozaki = simple_sampler(step)
