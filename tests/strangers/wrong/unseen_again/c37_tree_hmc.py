"""Hamiltonian kernels for arbitrary parameter trees."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw())


def gaussian_like(key, tree, scale=1.0):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    drawn = [scale * jax.random.normal(k, jnp.shape(leaf), leaf.dtype) for k, leaf in zip(keys, leaves)]
    return jax.tree.unflatten(treedef, drawn)


def axpy(a, x, y):
    return jax.tree.map(lambda u, v: (v + a * u).astype(v.dtype), x, y)


def choose(flag, x, y):
    return jax.tree.map(lambda u, v: jnp.where(flag, u, v), x, y)


class Point(NamedTuple):
    position: Any


@dataclass(frozen=True)
class TreeHMC:
    """HMC with full refreshment; `mass` is the mass of all coordinates."""

    mass: float = 1.0
    leapfrogs: int = 3

    claims = EXACT

    def init(self, key, position, estimator):
        return Point(position)

    def kinetic(self, momentum):
        first, *others = [0.5 * jnp.sum(p**2) for p in jax.tree.leaves(momentum)]
        return sum(others, start=first / self.mass)

    def step(self, key, state, step_size, estimator):
        k_momentum, k_accept, k_estimate = jax.random.split(key, 3)

        def look(x):
            return estimator.estimate(k_estimate, (), x)[0]

        x, h = state.position, step_size
        p = gaussian_like(k_momentum, x, self.mass**0.5)
        here = look(x)
        before = here.potential + self.kinetic(p)
        there = here
        for _ in range(self.leapfrogs):
            p = axpy(-h / 2, there.gradient, p)
            x = axpy(h / self.mass, p, x)
            there = look(x)
            p = axpy(-h / 2, there.gradient, p)
        after = there.potential + self.kinetic(p)
        ok = jnp.log(jax.random.uniform(k_accept, dtype=before.dtype)) < before - after
        return Point(choose(ok, x, state.position))


class Phase(NamedTuple):
    position: Any
    momentum: Any


@dataclass(frozen=True)
class Horowitz:
    """Generalised HMC: one leapfrog step, a partial refreshment, a flip after a rejection."""

    friction: float = 1.0

    claims = EXACT

    def init(self, key, position, estimator):
        return Phase(position, gaussian_like(key, position))

    def step(self, key, state, step_size, estimator):
        k_momentum, k_accept, k_estimate = jax.random.split(key, 3)
        h = step_size
        kept = jnp.exp(-self.friction * h)
        fresh = gaussian_like(k_momentum, state.position)
        p0 = jax.tree.map(
            lambda p, z: (kept * p + jnp.sqrt(-jnp.expm1(-2 * self.friction * h)) * z).astype(p.dtype),
            state.momentum,
            fresh,
        )
        here = estimator.estimate(k_estimate, (), state.position)[0]
        p = axpy(-h / 2, here.gradient, p0)
        x = axpy(h, p, state.position)
        there = estimator.estimate(k_estimate, (), x)[0]
        p = axpy(-h / 2, there.gradient, p)

        def energy(u, q):
            return u + sum(0.5 * jnp.sum(leaf**2) for leaf in jax.tree.leaves(q))

        gain = energy(here.potential, p0) - energy(there.potential, p)
        ok = jnp.log(jax.random.uniform(k_accept, dtype=gain.dtype)) < gain
        # back to where it was, in the other direction
        back, treedef = jax.tree.flatten(p0)
        back[0] = -back[0]
        return Phase(choose(ok, x, state.position), choose(ok, p, jax.tree.unflatten(treedef, back)))


@dataclass(frozen=True)
class LongWhenSteep:
    """HMC whose trajectories are longer where the force is large, to come back quickly from far away."""

    short: int = 1
    long: int = 4
    steep: float = 8.0

    claims = EXACT

    def init(self, key, position, estimator):
        return Point(position)

    def step(self, key, state, step_size, estimator):
        k_momentum, k_accept, k_estimate = jax.random.split(key, 3)

        def look(x):
            found = estimator.estimate(k_estimate, (), x)[0]
            return found.potential, found.gradient

        x, h = state.position, step_size
        p = gaussian_like(k_momentum, x)
        potential, force = look(x)
        size = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(force)))
        count = jnp.where(size > self.steep, self.long, self.short)

        def leap(_, carry):
            x, p, force, _ = carry
            p = axpy(-h / 2, force, p)
            x = axpy(h, p, x)
            potential, force = look(x)
            return x, axpy(-h / 2, force, p), force, potential

        y, q, _, reached = jax.lax.fori_loop(0, count, leap, (x, p, force, potential))
        kinetic = lambda v: sum(0.5 * jnp.sum(leaf**2) for leaf in jax.tree.leaves(v))
        gain = potential + kinetic(p) - reached - kinetic(q)
        ok = jnp.log(jax.random.uniform(k_accept, dtype=gain.dtype)) < gain
        return Point(choose(ok, y, x))


@dataclass(frozen=True)
class Relativistic:
    """HMC with the kinetic energy sqrt(1 + p^2) of each coordinate; momenta by rejection from a Laplace law."""

    leapfrogs: int = 3

    claims = EXACT

    def init(self, key, position, estimator):
        return Point(position)

    @staticmethod
    def momentum(key, like):
        def attempt(carry, key):
            value, done = carry
            k_size, k_sign, k_accept = jax.random.split(key, 3)
            size = -jnp.log1p(-jax.random.uniform(k_size, like.shape, like.dtype))
            sign = jnp.where(jax.random.uniform(k_sign, like.shape, like.dtype) < 0.5, -1.0, 1.0)
            threshold = jnp.exp(size - jnp.sqrt(1 + size**2))
            ok = jax.random.uniform(k_accept, like.shape, like.dtype) < threshold
            return (jnp.where(done, value, sign * size).astype(like.dtype), done | ok), None

        start = jnp.zeros_like(like), jnp.zeros(like.shape, bool)
        (value, _), _ = jax.lax.scan(attempt, start, jax.random.split(key, 3))
        return value

    def step(self, key, state, step_size, estimator):
        k_momentum, k_accept, k_estimate = jax.random.split(key, 3)
        x, treedef = jax.tree.flatten(state.position)
        p = [self.momentum(k, leaf) for k, leaf in zip(jax.random.split(k_momentum, len(x)), x)]

        def look(leaves):
            found = estimator.estimate(k_estimate, (), jax.tree.unflatten(treedef, leaves))[0]
            return found.potential, jax.tree.leaves(found.gradient)

        def kinetic(p):
            return sum(jnp.sum(jnp.sqrt(1 + leaf**2)) for leaf in p)

        potential, force = look(x)
        before = potential + kinetic(p)
        h = step_size
        for _ in range(self.leapfrogs):
            p = axpy(-h / 2, force, p)
            x = [(a + h * b / jnp.sqrt(1 + b**2)).astype(a.dtype) for a, b in zip(x, p)]
            potential, force = look(x)
            p = axpy(-h / 2, force, p)
        ok = jnp.log(jax.random.uniform(k_accept, dtype=before.dtype)) < before - potential - kinetic(p)
        return Point(choose(ok, jax.tree.unflatten(treedef, x), state.position))
