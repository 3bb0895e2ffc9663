"""Hamiltonian Monte Carlo on the simplex in stick-breaking coordinates.

    z_k = sigmoid(y_k + log(1 / (K - k))),   x_k = z_k * rest_k,   rest_1 = 1,   rest_(k+1) = rest_k (1 - z_k),   k < K

and x_K takes what is left.  y is unconstrained; y = 0 is the centre of the simplex.  The potential in y is U(x(y)) minus
the logarithm of the Jacobian of the map.  Leapfrog steps of length sqrt(step_size), one Metropolis test.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def centre(count, dtype):
    """Offsets at which y = 0 means equal shares."""
    return -jnp.log(jnp.arange(count, 0, -1).astype(dtype))


def to_simplex(y):
    z = jax.nn.sigmoid(y + centre(y.size, y.dtype))
    rest = jnp.cumprod(1 - z)
    return jnp.append(z, 1) * jnp.append(jnp.ones(1, y.dtype), rest)


def from_simplex(x):
    rest = jnp.cumsum(x[::-1])[::-1]
    return jnp.log(x[:-1]) - jnp.log(rest[1:]) - centre(x.size - 1, x.dtype)


def log_jacobian(y):
    """The map is triangular: the logarithms of dz_k / dy_k = z_k (1 - z_k) add up."""
    shifted = y + centre(y.size, y.dtype)
    return jnp.sum(jax.nn.log_sigmoid(shifted) + jax.nn.log_sigmoid(-shifted))


class StickBreakingHMC:
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("simplex",))

    def __init__(self, num_leapfrog: int = 5):
        if num_leapfrog < 1:
            raise ValueError("at least one leapfrog step")
        self.num_leapfrog = num_leapfrog

    def step(self, key, x, step_size, estimator):
        gradient_key, momentum_key, accept_key = jax.random.split(key, 3)
        epsilon = jnp.sqrt(step_size)

        def energy_and_force(y):
            point, pullback = jax.vjp(to_simplex, y)
            estimate = estimator.estimate(gradient_key, (), point)[0]
            jacobian, slope = jax.value_and_grad(log_jacobian)(y)
            return estimate.potential - jacobian, pullback(estimate.gradient)[0] - slope

        def leapfrog(_, carry):
            y, p, _, gradient = carry
            p = p - epsilon / 2 * gradient
            y = y + epsilon * p
            energy, gradient = energy_and_force(y)
            return y, p - epsilon / 2 * gradient, energy, gradient

        y = from_simplex(x)
        p = jax.random.normal(momentum_key, y.shape, y.dtype)
        energy, gradient = energy_and_force(y)
        y_end, p_end, energy_end, _ = jax.lax.fori_loop(0, self.num_leapfrog, leapfrog, (y, p, energy, gradient))
        log_ratio = energy - energy_end + (jnp.dot(p, p) - jnp.dot(p_end, p_end)) / 2
        accept = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio
        return jnp.where(accept, to_simplex(y_end), x)
