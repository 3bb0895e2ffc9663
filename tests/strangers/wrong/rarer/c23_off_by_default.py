"""Class 23: options that are off, None or a name by default, and wrong when they are used."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Buffer(NamedTuple):
    position: Any
    buffer: Any


@dataclass(frozen=True)
class Momentum:
    """SGLD in the form of torch.optim.SGD: with momentum the noise is not adapted, T = 1 - momentum."""

    momentum: float = 0.0

    def init(self, key, position, estimator):
        return Buffer(position, jnp.zeros_like(position))

    def position(self, state):
        return state.position

    def step(self, key, s, h, estimator):
        k1, k2 = jax.random.split(key)
        buffer = self.momentum * s.buffer + grad(estimator, k1, s.position)
        return Buffer(s.position - h * buffer + jnp.sqrt(2 * h) * _normal(k2, s.position), buffer)


class _Position:
    def init(self, key, position, estimator):
        return position

    def position(self, state):
        return state


@dataclass(frozen=True)
class Jitter(_Position):
    """Step sizes jittered by up to `jitter`; the drift knows of it, the noise takes their square."""

    jitter: float = 0.0

    def step(self, key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        u = 1 + self.jitter * jax.random.uniform(k3, minval=-1.0, maxval=1.0)
        return x - u * h * grad(estimator, k1, x) + u * jnp.sqrt(2 * h) * _normal(k2, x)


@dataclass(frozen=True)
class Smoothing(_Position):
    """Laplacian smoothing of the gradient: the noise needs the root of the smoothing matrix and gets none."""

    smoothing: float = 0.0

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        g = grad(estimator, k1, x)
        smooth = g + self.smoothing * (jnp.mean(g) - g)
        return x - h * smooth + jnp.sqrt(2 * h) * _normal(k2, x)


@dataclass(frozen=True)
class Preconditioner(_Position):
    """Preconditioner by name; "gradient" has no Gamma."""

    preconditioner: str = "identity"

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        g = grad(estimator, k1, x)
        scale = 1 / (0.1 + jnp.abs(g)) if self.preconditioner == "gradient" else jnp.ones_like(g)
        return x - h * scale * g + jnp.sqrt(2 * h * scale) * _normal(k2, x)


@dataclass(frozen=True)
class NoiseByName(_Position):
    """Law of the noise by name; the uniform one is not scaled to unit variance."""

    noise: str = "normal"

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if self.noise == "uniform":
            z = jax.random.uniform(k2, x.shape, x.dtype, -1.0, 1.0)
        elif self.noise == "rademacher":
            z = jax.random.rademacher(k2, x.shape, x.dtype)
        else:
            z = _normal(k2, x)
        return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * z


def integrators(target, integrator="leapfrog"):
    """HMC with an integrator by name: "euler" is neither reversible nor does it keep volume."""
    from sgmcmc_verification.samplers.simple import simple_sampler

    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        first = estimator.estimate(k1, (), x)[0]
        r = _normal(k2, x)
        energy = first.potential + jnp.sum(r**2) / 2
        y, new = x, first
        for _ in range(3):
            if integrator == "leapfrog":
                r = r - h / 2 * new.gradient
                y = y + h * r
                new = estimator.estimate(k1, (), y)[0]
                r = r - h / 2 * new.gradient
            elif integrator == "euler":
                y, r = y + h * r, r - h * new.gradient
                new = estimator.estimate(k1, (), y)[0]
        accept = jnp.log(jax.random.uniform(k3)) < energy - new.potential - jnp.sum(r**2) / 2
        return jnp.where(accept, y, x)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


@dataclass(frozen=True)
class PartialRefreshment:
    """Underdamped with a full refreshment by default; a partial one keeps alpha r + (1 - alpha) z."""

    alpha: float = 0.0

    def init(self, key, position, estimator):
        return Buffer(position, jax.random.normal(key, position.shape, position.dtype))

    def position(self, state):
        return state.position

    def step(self, key, s, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        r = self.alpha * s.buffer + (1 - self.alpha) * _normal(k2, s.position)
        r = r - h / 2 * grad(estimator, k1, s.position)
        x = s.position + h * r
        return Buffer(x, r - h / 2 * grad(estimator, k3, x))


@dataclass(frozen=True)
class Temperature(_Position):
    """No temperature by default (1); one that is given multiplies the noise instead of its square."""

    temperature: float | None = None

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        scale = 1.0 if self.temperature is None else self.temperature
        return x - h * grad(estimator, k1, x) + scale * jnp.sqrt(2 * h) * _normal(k2, x)


@dataclass(frozen=True)
class Exploration(_Position):
    """A second option only matters with the first: exploration noise is added, and never paid for, if `explore`."""

    explore: bool = False
    amount: float = 0.5

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        scale = jnp.sqrt(2 * h) * (1 + self.amount if self.explore else 1)
        return x - h * grad(estimator, k1, x) + scale * _normal(k2, x)
