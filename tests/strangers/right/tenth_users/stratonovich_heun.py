"""Langevin dynamics with a state-dependent, isotropic diffusivity, by Heun's method in the sense of Stratonovich.

For D(x) = s(x)^2 the Ito equation dX = (-s^2 grad U + grad s^2) dt + sqrt(2) s dW keeps exp(-U). In the sense of
Stratonovich its drift is -s^2 grad U + s grad s. A predictor and a corrector that share one Brownian increment converge
to the latter. s is larger far from the centre, where the chain has less to lose.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StratonovichHeun:
    """boost    how much larger s is far away than at the origin, where it is 1
    radius   root mean square of the coordinates at which half of it is reached
    """

    boost: float = 0.4
    radius: float = 1.0

    def speed(self, x):
        r = jnp.mean(x**2) / self.radius**2
        return 1 + self.boost * r / (1 + r)

    def drift_and_speed(self, x, gradient):
        s, slope = jax.value_and_grad(self.speed)(x)
        return -(s**2) * gradient + s * slope, s

    def step(self, key, position, step_size, estimator):
        first, second, noise_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)

        def gradient(key, q):
            return ravel_pytree(estimator.estimate(key, (), unravel(q))[0].gradient)[0]

        increment = jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)
        drift, s = self.drift_and_speed(x, gradient(first, x))
        guess = x + h * drift + s * increment
        drift_there, s_there = self.drift_and_speed(guess, gradient(second, guess))
        new = x + h * (drift + drift_there) / 2 + (s + s_there) / 2 * increment
        return unravel(new)
