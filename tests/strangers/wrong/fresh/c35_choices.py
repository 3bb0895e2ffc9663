"""Class 35: options of kinds, values and combinations that are rarely tried. All defaults are right."""

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class _Position:
    def init(self, key, position, estimator):
        return position

    def position(self, state):
        return state


class Moving(NamedTuple):
    position: Any
    momentum: Any


class _Phase:
    def init(self, key, position, estimator):
        return Moving(position, jnp.zeros_like(position))

    def position(self, state):
        return state.position


@dataclass(frozen=True)
class Trajectory(_Position):
    """HMC; trajectories of more than eight steps are a loop, which is symplectic Euler and not reversible."""

    steps: int = 3

    @property
    def claims(self):
        return Claims(Source("", "own"), ExactLaw())

    def step(self, key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        first = estimator.estimate(k1, (), x)[0]
        r = _normal(k2, x)
        y, p = x, r
        if self.steps > 8:

            def leap(_, s):
                y, p = s
                p = p - h * grad(estimator, k1, y)
                return y + h * p, p

            y, p = jax.lax.fori_loop(0, self.steps, leap, (y, p))
        else:
            for _ in range(self.steps):
                p = p - h / 2 * grad(estimator, k1, y)
                y = y + h * p
                p = p - h / 2 * grad(estimator, k1, y)
        new = estimator.estimate(k1, (), y)[0]
        fall = first.potential - new.potential + (jnp.sum(r**2) - jnp.sum(p**2)) / 2
        return jnp.where(jnp.log(jax.random.uniform(k3)) < fall, y, x)


@dataclass(frozen=True)
class Friction(_Phase):
    """Underdamped; from a friction of 3 on the overdamped limit is taken, with noise that lacks 1 / friction."""

    friction: float = 1.0

    def step(self, key, s, h, estimator):
        k1, k2 = jax.random.split(key)
        g, z = grad(estimator, k1, s.position), _normal(k2, s.position)
        if self.friction >= 3:
            return Moving(s.position - h / self.friction * g + jnp.sqrt(2 * h) * z, s.momentum)
        p = s.momentum - h * g - h * self.friction * s.momentum + jnp.sqrt(2 * self.friction * h) * z
        return Moving(s.position + h * p, p)


@dataclass(frozen=True)
class ColdPosterior(_Position):
    """SGLD at a temperature, of which the noise knows no less than 0.1."""

    temperature: float = 1.0

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=1, temperature=self.temperature))

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        noise = jnp.sqrt(2 * h * max(self.temperature, 0.1))
        return x - h * grad(estimator, k1, x) + noise * _normal(k2, x)


def _ou(h, p, z):
    c = jnp.exp(-h)
    return c * p + jnp.sqrt(1 - c**2) * z


def _obabo(key, x, p, h, g):
    k1, k2 = jax.random.split(key)
    p = _ou(h / 2, p, _normal(k1, x)) - h / 2 * g(x)
    x = x + h * p
    return x, _ou(h / 2, p - h / 2 * g(x), _normal(k2, x))


def _aboba(key, x, p, h, g):
    x = x + h / 2 * p
    p = _ou(h, p - h / 2 * g(x), _normal(key, x)) - h * g(x)  # h / 2 is due
    return x + h / 2 * p, p


SCHEMES = {"obabo": _obabo, "aboba": _aboba}


@dataclass(frozen=True)
class Scheme(_Phase):
    """A splitting by name, from a table of the module; "aboba" has one half kick and one whole."""

    scheme: str = "obabo"

    def step(self, key, s, h, estimator):
        k1, k2 = jax.random.split(key)
        return Moving(*SCHEMES[self.scheme](k2, s.position, s.momentum, h, lambda y: grad(estimator, k1, y)))


class Noise(enum.Enum):
    """Laws of the noise."""

    NORMAL = "normal"
    UNIFORM = "uniform"


@dataclass(frozen=True)
class NoiseLaw(_Position):
    """SGLD whose noise is a member of an enumeration; the uniform one has the variance 1/3."""

    noise: Noise = Noise.NORMAL

    def step(self, key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if self.noise is Noise.UNIFORM:
            z = jax.random.uniform(k2, x.shape, x.dtype, -1.0, 1.0)
        else:
            z = _normal(k2, x)
        return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * z


@dataclass(frozen=True)
class Betas(_Phase):
    """SGLD in the form of Adam's options, a tuple of the decay and of the dampening; T = 1 - decay if there is one."""

    betas: tuple[float, float] = (0.0, 0.0)

    def step(self, key, s, h, estimator):
        k1, k2 = jax.random.split(key)
        decay, dampening = self.betas
        p = decay * s.momentum + (1 - dampening) * grad(estimator, k1, s.position)
        return Moving(s.position - h * p + jnp.sqrt(2 * h) * _normal(k2, s.position), p)


@dataclass(frozen=True)
class Mass(_Phase):
    """SGHMC without a mass by default (1); with one the noise is not adapted: T = 1 / mass."""

    mass: float | None = None

    def step(self, key, s, h, estimator):
        k1, k2 = jax.random.split(key)
        mass = 1.0 if self.mass is None else self.mass
        p = s.momentum - h * grad(estimator, k1, s.position) - h * s.momentum
        p = p + jnp.sqrt(2 * h) * _normal(k2, s.position)
        return Moving(s.position + h * p / mass, p)


@dataclass(frozen=True)
class Thinning(_Position):
    """SGLD that returns every n-th state; for more than four inner steps a loop, with one key for all of them."""

    thin: int = 1

    def step(self, key, x, h, estimator):
        def inner(x, key):
            k1, k2 = jax.random.split(key)
            return x - h / self.thin * grad(estimator, k1, x) + jnp.sqrt(2 * h / self.thin) * _normal(k2, x)

        if self.thin > 4:
            return jax.lax.fori_loop(0, self.thin, lambda _, x: inner(x, key), x)
        for k in jax.random.split(key, self.thin):
            x = inner(x, k)
        return x


@dataclass(frozen=True)
class Flags(_Position):
    """Two flags: `averaged` takes two gradients, `scaled` divides by their number; the first alone is wrong."""

    averaged: bool = False
    scaled: bool = False

    def step(self, key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        g = grad(estimator, k1, x)
        if self.averaged:
            g = g + grad(estimator, k3, x)
        if self.scaled:
            g = g / (2 if self.averaged else 1)
        return x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)
