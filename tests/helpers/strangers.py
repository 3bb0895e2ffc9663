"""Samplers as strangers write them, a step and perhaps an `init` with nothing declared, and how they are decided."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.targets.registry import target


class Kept(NamedTuple):
    """Position and what else a stranger keeps."""

    position: Any
    kept: Any


def gradient(estimator, x, key=None):
    """+grad U; `key` is that of the step, None where no noise of the gradient is looked at."""
    own = jax.random.key(0) if key is None else jax.random.fold_in(key, 99)
    return estimator.estimate(own, (), x)[0].gradient


def potential(estimator, x):
    """U."""
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


def normal(key, x):
    """Standard normals like `x`."""
    return jax.random.normal(key, jnp.shape(x), jnp.result_type(x))


@dataclass
class Langevin:
    """x' = x - h g + sqrt(2 h) e, from `(key, x, kept, g) -> (e, kept)`; `first(x)` is kept at the start."""

    noise: Any
    first: Any = None

    def init(self, key, position, estimator):
        """Position and what is kept."""
        return Kept(position, jnp.zeros((), jnp.int32) if self.first is None else self.first(position))

    def step(self, key, state, step_size, estimator):
        """One step."""
        x = state.position
        g = gradient(estimator, x, key)
        e, kept = self.noise(key, x, state.kept, g)
        return Kept(x - step_size * g + jnp.sqrt(2 * step_size) * e, kept)


@dataclass
class Euler:
    """x' = end(x - h drift(g, h) + sqrt(2 h) noise(e)): SGLD, unless one of the three does something."""

    drift: Any = field(default=lambda g, h: g)
    noise: Any = field(default=lambda e: e)
    end: Any = field(default=lambda x: x)

    def step(self, key, x, step_size, estimator):
        """One step."""
        g = self.drift(gradient(estimator, x, key), step_size)
        return self.end(x - step_size * g + jnp.sqrt(2 * step_size) * self.noise(normal(key, x)))


class Underdamped:
    """Symplectic Euler with an Ornstein-Uhlenbeck momentum of a mass, in a dictionary whose momentum sorts first."""

    def __init__(self, mass=1.0, friction=1.0, change=lambda p: p):
        self.mass, self.friction, self.change = mass, friction, change

    def init(self, key, position, estimator):
        """A momentum at rest."""
        return {"momentum": jnp.zeros_like(position), "position": position}

    def step(self, key, state, step_size, estimator):
        """One step."""
        x, p = state["position"], state["momentum"]
        p = self.change(p - step_size * gradient(estimator, x, key))
        decay = jnp.exp(-self.friction * step_size)
        p = decay * p + jnp.sqrt(self.mass * (1 - decay**2)) * normal(key, x)
        return {"momentum": p, "position": x + step_size * p / self.mass}


@dataclass
class MALA:
    """MALA without a cache, whose proposal is accepted if `guard(y)` holds too."""

    guard: Any = field(default=lambda y: True)

    def step(self, key, x, step_size, estimator):
        """One step."""
        a, b = jax.random.split(key)
        h, g = step_size, gradient(estimator, x)
        y = x - h * g + jnp.sqrt(2 * h) * normal(a, x)
        forth, back = jnp.sum((y - x + h * g) ** 2), jnp.sum((x - y + h * gradient(estimator, y)) ** 2)
        ratio = potential(estimator, x) - potential(estimator, y) + (forth - back) / (4 * h)
        accept = (jnp.log(jax.random.uniform(b)) < ratio) & self.guard(y)
        return jnp.where(accept, y, x)


def subject(candidate, *targets, step_size=0.05) -> Subject:
    """A stranger's object as a subject, what it does not say found out."""
    return Subject(Row("a stranger", builder("a stranger", candidate), targets=targets, step_size=step_size))


def decide(statement, candidate, name="double-well", step_size=0.05):
    """The finding of a statement on a stranger's object."""
    return statement(Case(subject(candidate, name, step_size=step_size), target(name)))
