"""Langevin samplers that remember: running moments, decreasing steps, centred noise, gradients that are kept."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure, [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    )


class Moments(NamedTuple):
    position: Any
    mean: Any
    variance: Any


@dataclass(frozen=True)
class MomentPreconditionedSGLD:
    """SGLD in units of the running variance of each coordinate, learnt on the way.

    The step uses the variance of the past only, so that its noise is independent of the preconditioner.
    """

    rate: float = 0.2

    def init(self, key, position, estimator):
        return Moments(position, position, jax.tree.map(jnp.ones_like, position))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        noise = normal_like(noise_key, state.position)

        def move(x, g, n, v):
            h = jnp.asarray(step_size, x.dtype)
            return x - h * v * g + jnp.sqrt(2 * h * v) * n

        def forget(old, new):
            kept = jnp.exp(-self.rate * jnp.asarray(step_size, old.dtype))
            return kept * old + (1 - kept) * new

        position = jax.tree.map(move, state.position, gradient, noise, state.variance)
        mean = jax.tree.map(forget, state.mean, position)
        squares = jax.tree.map(lambda x, m: (x - m) ** 2, position, mean)
        return Moments(position, mean, jax.tree.map(forget, state.variance, squares))


class Counted(NamedTuple):
    position: Any
    count: jax.Array


@dataclass(frozen=True)
class DecreasingSGLD:
    """SGLD with the polynomial schedule a (1 + t / horizon)^(-1/3) of Welling and Teh."""

    horizon: float = 1000.0

    def init(self, key, position, estimator):
        return Counted(position, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        noise = normal_like(noise_key, state.position)

        def move(x, g, n):
            h = jnp.asarray(step_size, x.dtype)
            decay = (1 + state.count.astype(x.dtype) / self.horizon) ** (-1 / 3)
            return x - h * decay * g + jnp.sqrt(2 * h) * n

        return Counted(jax.tree.map(move, state.position, gradient, noise), state.count + 1)


class Centred(NamedTuple):
    position: Any
    noise_mean: Any


@dataclass(frozen=True)
class CentredNoiseSGLD:
    """SGLD whose injected noise is centred by its running mean, to keep the average of a long run from drifting."""

    gain: float = 0.01

    def init(self, key, position, estimator):
        return Centred(position, jax.tree.map(jnp.zeros_like, position))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        centred = jax.tree.map(jnp.subtract, normal_like(noise_key, state.position), state.noise_mean)
        noise_mean = jax.tree.map(lambda m, c: m + self.gain * c, state.noise_mean, centred)

        def move(x, g, c):
            h = jnp.asarray(step_size, x.dtype)
            return x - h * g + jnp.sqrt(2 * h) * c

        return Centred(jax.tree.map(move, state.position, gradient, centred), noise_mean)


class Kept(NamedTuple):
    position: Any
    gradient: Any


@dataclass(frozen=True)
class LazyGradientSGLD:
    """SGLD for gradients that are dear: they are evaluated `evaluations` times per unit of time, on average."""

    evaluations: float = 20.0

    def init(self, key, position, estimator):
        return Kept(position, estimator.estimate(key, (), position)[0].gradient)

    def step(self, key, state, step_size, estimator):
        gradient_key, clock_key, noise_key = jax.random.split(key, 3)
        due = jax.random.uniform(clock_key) < 1 - jnp.exp(-self.evaluations * step_size)
        gradient = jax.lax.cond(
            due,
            lambda: estimator.estimate(gradient_key, (), state.position)[0].gradient,
            lambda: state.gradient,
        )

        def move(x, g, n):
            h = jnp.asarray(step_size, x.dtype)
            return x - h * g + jnp.sqrt(2 * h) * n

        noise = normal_like(noise_key, state.position)
        return Kept(jax.tree.map(move, state.position, gradient, noise), gradient)
