"""Class 13: options that are ignored or wrong when they are not default. At their default values all are right."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


@dataclass(frozen=True)
class _Langevin:
    """What the overdamped ones share."""

    backend = "jax"
    needs = frozenset({"gradient"})

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=1, temperature=getattr(self, "temperature", 1.0)))

    def init(self, key, position, estimator):
        return position

    def position(self, state):
        return state

    def unpack(self, state):
        return state

    def pack(self, key, z, estimator):
        return z


@dataclass(frozen=True)
class TemperatureIgnored(_Langevin):
    """The option temperature is claimed and never used."""

    temperature: float = 1.0

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)


@dataclass(frozen=True)
class TemperatureSquared(_Langevin):
    """The noise is multiplied by T instead of sqrt(T): the law has the temperature T^2."""

    temperature: float = 1.0

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return x - h * grad(estimator, k1, x) + self.temperature * jnp.sqrt(2 * h) * _normal(k2, x)


@dataclass(frozen=True)
class TemperatureTwice(_Langevin):
    """T divides the gradient and multiplies the noise: T^2 again, in another way."""

    temperature: float = 1.0

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        noise = jnp.sqrt(2 * h * self.temperature) * _normal(k2, x)
        return x - h * grad(estimator, k1, x) / self.temperature + noise


@dataclass(frozen=True)
class MatrixPreconditioner(_Langevin):
    """A constant preconditioner G = scale I + mixing (1 1^T - I); the noise is multiplied by G instead of its root."""

    scale: float = 1.0
    mixing: float = 0.0

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        d = x.size
        G = (self.scale - self.mixing) * np.eye(d) + self.mixing * np.ones((d, d))
        g, z = grad(estimator, k1, x).ravel(), _normal(k2, x).ravel()
        return x + (jnp.asarray(G, x.dtype) @ (-h * g + jnp.sqrt(2 * h) * z)).reshape(x.shape)


@dataclass(frozen=True)
class Substeps(_Langevin):
    """num_steps inner steps of h / num_steps, each with the noise of the whole step: T = num_steps."""

    num_steps: int = 1

    def step(self, key, x, h, estimator):
        for k in jax.random.split(key, self.num_steps):
            k1, k2 = jax.random.split(k)
            x = x - h / self.num_steps * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
        return x


@dataclass(frozen=True)
class GradientAverage(_Langevin):
    """num_samples gradients a step are summed and not averaged: T = 1 / num_samples."""

    num_samples: int = 1

    def step(self, key, x, h, estimator):
        *keys, noise_key = jax.random.split(key, self.num_samples + 1)
        g = sum(grad(estimator, k, x) for k in keys)
        return x - h * g + jnp.sqrt(2 * h) * _normal(noise_key, x)


class Phase(NamedTuple):
    position: Any
    momentum: Any


@dataclass(frozen=True)
class _Underdamped(_Langevin):
    """What those with a momentum share."""

    def init(self, key, position, estimator):
        return Phase(position, _normal(key, position))

    def position(self, state):
        return state.position

    def pack(self, key, z, estimator):
        return Phase(*z)


@dataclass(frozen=True)
class SGHMCMass(_Underdamped):
    """dx = p / m dt, dp = -grad U dt - C p dt + noise: with the friction C p the noise needs 2 C m. T = 1 / m."""

    mass: float = 1.0
    friction: float = 1.0

    def step(self, key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, p = state
        p = p - h * grad(estimator, k1, x) - h * self.friction * p + jnp.sqrt(2 * self.friction * h) * _normal(k2, x)
        return Phase(x + h * p / self.mass, p)


@dataclass(frozen=True)
class SGHMCFriction(_Underdamped):
    """The friction acts on the momentum, and the noise is that of friction 1: T = 1 / friction."""

    friction: float = 1.0

    def step(self, key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, r = state
        r = r - h * grad(estimator, k1, x) - h * self.friction * r + jnp.sqrt(2 * h) * _normal(k2, x)
        return Phase(x + h * r, r)


@dataclass(frozen=True)
class BAOABTemperature(_Underdamped):
    """The O step has sqrt(T) in front and T within: T^2."""

    friction: float = 1.0
    temperature: float = 1.0

    def step(self, key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, r = state
        c = jnp.exp(-self.friction * h)
        scale = self.temperature**0.5 * jnp.sqrt(self.temperature * (1 - c**2))
        r = r - h / 2 * grad(estimator, k1, x)
        x = x + h / 2 * r
        r = c * r + scale * _normal(k2, x)
        x = x + h / 2 * r
        return Phase(x, r - h / 2 * grad(estimator, k3, x))


class Cached(NamedTuple):
    position: Any
    potential: Any


@dataclass(frozen=True)
class _Metropolis(_Langevin):
    """What the Metropolis ones share."""

    needs = frozenset({"gradient", "potential"})

    @property
    def claims(self):
        return Claims(Source("", "own"), ExactLaw(temperature=getattr(self, "temperature", 1.0)))

    def init(self, key, position, estimator):
        return Cached(position, estimator.estimate(key, (), position)[0].potential)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state.position

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


@dataclass(frozen=True)
class MALATemperature(_Metropolis):
    """The temperature is in the proposal and not in the acceptance: the law is exp(-U) at every T."""

    temperature: float = 1.0

    def step(self, key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, u = state
        T = self.temperature
        g = grad(estimator, k1, x)
        y = x - h * g + jnp.sqrt(2 * h * T) * _normal(k2, x)
        new = estimator.estimate(k1, (), y)[0]
        forward = jnp.sum((y - x + h * g) ** 2) / (4 * h * T)
        backward = jnp.sum((x - y + h * new.gradient) ** 2) / (4 * h * T)
        accept = jnp.log(jax.random.uniform(k3)) < u - new.potential + forward - backward
        return Cached(jnp.where(accept, y, x), jnp.where(accept, new.potential, u))


@dataclass(frozen=True)
class HMCMass(_Metropolis):
    """The momentum has the variance 1 / m and the kinetic energy p^2 / (2 m)."""

    mass: float = 1.0
    num_steps: int = 3

    def step(self, key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, u = state
        p = _normal(k1, x) / jnp.sqrt(self.mass)
        start = u + jnp.sum(p**2) / (2 * self.mass)
        y, q = x, p
        for _ in range(self.num_steps):
            q = q - h / 2 * grad(estimator, k2, y)
            y = y + h * q / self.mass
            q = q - h / 2 * grad(estimator, k2, y)
        new = estimator.estimate(k2, (), y)[0].potential
        accept = jnp.log(jax.random.uniform(k3)) < start - new - jnp.sum(q**2) / (2 * self.mass)
        return Cached(jnp.where(accept, y, x), jnp.where(accept, new, u))


@dataclass(frozen=True)
class RWMTemperatureSquared(_Metropolis):
    """Acceptance min(1, exp(-dU / T^2))."""

    temperature: float = 1.0
    needs = frozenset({"potential"})

    def step(self, key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        y = state.position + jnp.sqrt(2 * h * self.temperature) * _normal(k1, state.position)
        new = estimator.estimate(k2, (), y)[0].potential
        accept = jnp.log(jax.random.uniform(k3)) < (state.potential - new) / self.temperature**2
        return Cached(jnp.where(accept, y, state.position), jnp.where(accept, new, state.potential))


@dataclass(frozen=True)
class RWMDrift(_Metropolis):
    """An option `drift` shifts the proposal and the acceptance does not know of it."""

    drift: float = 0.0
    needs = frozenset({"potential"})

    def step(self, key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        move = jnp.sqrt(2 * h) * (_normal(k1, state.position) + self.drift)
        y = state.position + move
        new = estimator.estimate(k2, (), y)[0].potential
        accept = jnp.log(jax.random.uniform(k3)) < state.potential - new
        return Cached(jnp.where(accept, y, state.position), jnp.where(accept, new, state.potential))


@dataclass(frozen=True)
class SGNHTDiffusion(_Underdamped):
    """SGNHT whose thermostat is driven to the diffusion A instead of the temperature: T = A."""

    diffusion: float = 1.0

    def init(self, key, position, estimator):
        xi = jnp.asarray(self.diffusion, position.dtype)
        return {"position": position, "r": _normal(key, position), "xi": xi}

    def position(self, state):
        return state["position"]

    def pack(self, key, z, estimator):
        return z

    def step(self, key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, r, xi = state["position"], state["r"], state["xi"]
        r = r - h * grad(estimator, k1, x) - h * xi * r + jnp.sqrt(2 * self.diffusion * h) * _normal(k2, x)
        return {"position": x + h * r, "r": r, "xi": xi + h * (jnp.mean(r**2) - self.diffusion)}
