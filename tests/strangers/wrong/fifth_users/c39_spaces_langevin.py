"""Samplers on other spaces: positive numbers, the sphere, the simplex."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler


def _log_walk(key, x, step_size, estimator):
    """Random walk on log x with a Metropolis test; the Jacobian of the exponential is in the ratio."""
    k_n, k_e, k_u = jax.random.split(key, 3)
    energy = lambda q: estimator.estimate(k_e, (), q)[0].potential
    increments = jnp.sqrt(2 * step_size) * jax.random.normal(k_n, x.shape, x.dtype)
    y = x * jnp.exp(increments)
    log_alpha = energy(x) - energy(y) + jnp.mean(increments)
    return jnp.where(jnp.log(jax.random.uniform(k_u, dtype=x.dtype)) < log_alpha, y, x)


log_walk = simple_sampler(_log_walk, claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",)))


def _square_root_diffusion(key, x, step_size, estimator):
    """dx = x d log pi(x) + sqrt(2 x) dW, mirrored at zero."""
    k_g, k_n = jax.random.split(key)
    g = estimator.estimate(k_g, (), x)[0].gradient
    drift = 0.5 - x * g
    return jnp.abs(x + step_size * drift + jnp.sqrt(2 * step_size * x) * jax.random.normal(k_n, x.shape, x.dtype))


square_root_diffusion = simple_sampler(
    _square_root_diffusion, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
)


class GeodesicLangevin:
    """A Langevin step along a great circle: a direction, and the angle to go."""

    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("sphere",))

    @staticmethod
    def _project(x, v):
        return v - jnp.sum(x * v) * x

    def step(self, key, x, step_size, estimator):
        k_g, k_n = jax.random.split(key)
        g = estimator.estimate(k_g, (), x)[0].gradient
        xi = jax.random.normal(k_n, x.shape, x.dtype)
        tangent = self._project(x, xi)
        tangent = tangent / jnp.linalg.norm(tangent) * jnp.linalg.norm(xi)
        v = jnp.sqrt(2 * step_size) * tangent - step_size * self._project(x, g)
        angle = jnp.linalg.norm(v)
        y = jnp.cos(angle) * x + jnp.sin(angle) * v / angle
        return y / jnp.linalg.norm(y)


@dataclass(frozen=True)
class LogRatioLangevin:
    """Langevin steps of the log ratios to the last probability."""

    speed: float = 1.0
    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("simplex",))

    def step(self, key, x, step_size, estimator):
        k_g, k_n = jax.random.split(key)
        h = self.speed * step_size
        g = estimator.estimate(k_g, (), x)[0].gradient
        free = x.size - 1
        force = x * (jnp.vdot(x, g) - g)
        log_jacobian_gradient = 1.0 - free * x
        drift = (force + log_jacobian_gradient)[:free]
        y = jnp.log(x[:free]) - jnp.log(x[free])
        y = y + h * drift + jnp.sqrt(2 * h) * jax.random.normal(k_n, (free,), x.dtype)
        return jax.nn.softmax(jnp.concatenate([y, jnp.zeros((1,), x.dtype)]))
