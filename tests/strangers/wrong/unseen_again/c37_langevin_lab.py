"""Langevin samplers for networks, as used in our lab."""

import dataclasses
import math
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

FIRST_ORDER = Claims(Source("", "own"), StationaryLaw(order=1))


# ------------------------------------------------------------------ plain SGLD on a tree


def stream(key, path):
    """A stream of its own for each block of parameters, which stays when others are added."""
    return jax.random.fold_in(key, zlib.crc32(jax.tree_util.keystr(path)[:24].encode()) >> 1)


def _sgld(key, params, lr, estimator):
    data_key, noise_key = jax.random.split(key)
    grads = estimator.estimate(data_key, (), params)[0].gradient

    def move(path, w, g):
        noise = jax.random.normal(stream(noise_key, path), w.shape, w.dtype)
        return w - lr * g + (2 * lr) ** 0.5 * noise

    return jax.tree_util.tree_map_with_path(move, params, grads)


tree_sgld = simple_sampler(_sgld)


# ------------------------------------------------------------------ preconditioned after a burn-in


class Burnt(NamedTuple):
    position: Any
    squares: Any
    count: jax.Array


@dataclasses.dataclass(frozen=True)
class BurnInSGLD:
    """Plain SGLD while gradients are averaged; then a constant diagonal preconditioner, from their mean square."""

    burn_in: int = 1000

    claims = FIRST_ORDER

    def init(self, key, position, estimator):
        return Burnt(position, jax.tree.map(jnp.zeros_like, position), jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        data_key, noise_key = jax.random.split(key)
        grads = estimator.estimate(data_key, (), state.position)[0].gradient
        learning = state.count < self.burn_in
        squares = jax.tree.map(
            lambda v, g: jnp.where(learning, v + (g**2 - v) / (1 + state.count).astype(v.dtype), v),
            state.squares,
            grads,
        )
        leaves, treedef = jax.tree.flatten(state.position)
        keys = jax.tree.unflatten(treedef, list(jax.random.split(noise_key, len(leaves))))

        def move(x, g, v, k):
            scale = jnp.where(learning, 1.0, 1 / jnp.sqrt(1e-8 + v))
            noise = jnp.sqrt(2 * step_size) * jax.random.normal(k, x.shape, x.dtype)
            return (x - scale * (step_size * g - noise)).astype(x.dtype)

        return Burnt(
            jax.tree.map(move, state.position, grads, squares, keys), squares, jnp.minimum(state.count + 1, 2**30)
        )


# ------------------------------------------------------------------ cheap noise in single precision


def noise_like(key, x):
    """Unit noise. In single precision three values, which have the moments of a normal up to the fifth."""
    if x.dtype == jnp.float64:
        return jax.random.normal(key, x.shape, x.dtype)
    die = jax.random.randint(key, x.shape, 0, 7)
    return jnp.where(die == 0, -math.sqrt(3), jnp.where(die == 6, math.sqrt(3), 0.0)).astype(x.dtype)


class Swift(NamedTuple):
    position: Any
    momentum: Any


class SwiftSGHMC:
    claims = FIRST_ORDER
    friction = 2.0

    def init(self, key, position, estimator):
        return Swift(position, jax.tree.map(jnp.zeros_like, position))

    def step(self, key, state, step_size, estimator):
        data_key, *keys = jax.random.split(key, 1 + len(jax.tree.leaves(state.position)))
        grads = estimator.estimate(data_key, (), state.position)[0].gradient
        keys = jax.tree.unflatten(jax.tree.structure(state.position), keys)

        def kick(p, g, k):
            noise = noise_like(k, p)
            drift = step_size * (g + self.friction * p)
            return (p - drift + jnp.sqrt(2 * self.friction * step_size) * noise).astype(p.dtype)

        p = jax.tree.map(kick, state.momentum, grads, keys)
        return Swift(jax.tree.map(lambda x, v: (x + step_size * v).astype(x.dtype), state.position, p), p)


# ------------------------------------------------------------------ gradients clipped at their usual size


class Clipped(NamedTuple):
    position: Any
    usual: jax.Array


@dataclasses.dataclass(frozen=True)
class AutoClipSGLD:
    """SGLD; gradients longer than twice their usual length (an average over a time `memory`) are shortened."""

    factor: float = 2.0
    memory: float = 1.0

    claims = FIRST_ORDER

    def init(self, key, position, estimator):
        grads = estimator.estimate(key, (), position)[0].gradient
        return Clipped(position, self.length(grads))

    @staticmethod
    def length(tree):
        return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(tree)))

    def step(self, key, state, step_size, estimator):
        data_key, noise_key = jax.random.split(key)
        grads = estimator.estimate(data_key, (), state.position)[0].gradient
        length = self.length(grads)
        shorten = jnp.minimum(1.0, self.factor * state.usual / jnp.maximum(length, 1e-12))
        leaves, treedef = jax.tree.flatten(state.position)
        keys = jax.tree.unflatten(treedef, list(jax.random.split(noise_key, len(leaves))))
        position = jax.tree.map(
            lambda x, g, k: (
                x - step_size * shorten * g + jnp.sqrt(2 * step_size) * jax.random.normal(k, x.shape, x.dtype)
            ).astype(x.dtype),
            state.position,
            grads,
            keys,
        )
        usual = state.usual + -jnp.expm1(-step_size / self.memory) * (length - state.usual)
        return Clipped(position, usual.astype(state.usual.dtype))


# ------------------------------------------------------------------ splittings of underdamped Langevin


class Under(NamedTuple):
    position: Any
    momentum: Any


@dataclasses.dataclass(frozen=True)
class Splitting:
    """Any splitting, by its letters: A moves, B kicks, O refreshes."""

    scheme: str = "BAOAB"
    friction: float = 1.0

    claims = FIRST_ORDER

    def init(self, key, position, estimator):
        leaves, treedef = jax.tree.flatten(position)
        keys = jax.random.split(key, len(leaves))
        return Under(
            position,
            jax.tree.unflatten(treedef, [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)]),
        )

    def step(self, key, state, step_size, estimator):
        x, treedef = jax.tree.flatten(state.position)
        p = jax.tree.leaves(state.momentum)
        data_key, *keys = jax.random.split(key, 1 + len(x))
        noise = [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, x)]
        for letter in self.scheme.upper():
            part = step_size / self.scheme.upper().count(letter)
            if letter == "A":
                x = [(a + part * b).astype(a.dtype) for a, b in zip(x, p)]
            elif letter == "B":
                found = estimator.estimate(data_key, (), jax.tree.unflatten(treedef, x))[0]
                p = [(b - part * g).astype(b.dtype) for b, g in zip(p, jax.tree.leaves(found.gradient))]
            else:
                kept, fresh = jnp.exp(-self.friction * part), jnp.sqrt(-jnp.expm1(-2 * self.friction * part))
                p = [(kept * b + fresh * z).astype(b.dtype) for b, z in zip(p, noise)]
        return Under(jax.tree.unflatten(treedef, x), jax.tree.unflatten(treedef, p))
