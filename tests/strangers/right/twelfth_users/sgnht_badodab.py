"""Stochastic-gradient Nose-Hoover thermostat by the BADODAB splitting.

    dx = p dt,   dp = -grad U dt - xi p dt + sqrt(2 A T) dW,   d xi = (|p|^2 / d - T) / Q dt

(Ding et al. 2014; Leimkuhler and Shang 2016). The joint law is exp(-(U + |p|^2 / 2) / T) times a normal law of xi with mean A and
variance T / (d Q). The gradient at the end of a step is kept for the kick at the beginning of the next.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


def axpy(a, x, y):
    return jax.tree.map(lambda s, t: a * s + t, x, y)


def mean_square(tree):
    leaves = jax.tree.leaves(tree)
    return sum(jnp.sum(a * a) for a in leaves) / sum(a.size for a in leaves)


def decay_integral(rate, time):
    """The integral of exp(-2 rate s) for s from 0 to time, at any sign of the rate."""
    y = 2 * rate * time
    small = jnp.abs(y) < 1e-6
    safe = jnp.where(small, 1.0, y)
    return time * jnp.where(small, 1 - y / 2, -jnp.expm1(-safe) / safe)


@dataclass
class SGNHT:
    noise: float = 1.0
    temperature: float = 1.0
    thermal_mass: float = 1.0

    @property
    def claims(self):
        source = Source("", "Leimkuhler and Shang 2016, BADODAB")
        return Claims(source, StationaryLaw(order=2, temperature=self.temperature))

    def init(self, key, position, estimator):
        momentum_key, gradient_key = jax.random.split(key)
        momentum = jax.tree.map(lambda a: self.temperature**0.5 * a, normal_like(momentum_key, position))
        gradient = estimator.estimate(gradient_key, (), position)[0].gradient
        xi = jnp.asarray(self.noise, jax.tree.leaves(position)[0].dtype)
        return {"position": position, "momentum": momentum, "gradient": gradient, "xi": xi}

    def _thermostat(self, p, xi, time):
        return (xi + time * (mean_square(p) - self.temperature) / self.thermal_mass).astype(xi.dtype)

    def _friction(self, key, p, xi, time):
        kept = jnp.exp(-xi * time)
        spread = jnp.sqrt(2 * self.noise * self.temperature * decay_integral(xi, time))
        return jax.tree.map(lambda a, z: kept * a + spread * z, p, normal_like(key, p))

    def step(self, key, state, step_size, estimator):
        noise_key, gradient_key = jax.random.split(key)
        x, p, xi = state["position"], state["momentum"], state["xi"]
        h = jnp.asarray(step_size, xi.dtype)
        p = axpy(-h / 2, state["gradient"], p)  # B
        x = axpy(h / 2, p, x)  # A
        xi = self._thermostat(p, xi, h / 2)  # D
        p = self._friction(noise_key, p, xi, h)  # O
        xi = self._thermostat(p, xi, h / 2)  # D
        x = axpy(h / 2, p, x)  # A
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        p = axpy(-h / 2, gradient, p)  # B
        return {"position": x, "momentum": p, "gradient": gradient, "xi": xi}
