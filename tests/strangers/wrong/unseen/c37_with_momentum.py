"""Samplers with a momentum or a thermostat, and Langevin dynamics of fields."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure, [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    )


class Phase(NamedTuple):
    position: Any
    momentum: Any


class Bath(NamedTuple):
    position: Any
    momentum: Any
    friction: jax.Array


@dataclass(frozen=True)
class TreeNoseHoover:
    """Stochastic gradient Nose-Hoover thermostat for trees of parameters, one friction for all of them.

    d x = r dt, d r = -grad U dt - xi r dt + sqrt(2 A) dW, d xi = (mean of r^2 - 1) dt
    """

    diffusion: float = 1.0

    def init(self, key, position, estimator):
        friction = jnp.asarray(self.diffusion, jnp.result_type(*jax.tree.leaves(position)))
        return Bath(position, normal_like(key, position), friction)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        noise = normal_like(noise_key, state.position)

        def kick(r, g, n):
            h = jnp.asarray(step_size, r.dtype)
            return r - h * g - h * state.friction.astype(r.dtype) * r + jnp.sqrt(2 * self.diffusion * h) * n

        momentum = jax.tree.map(kick, state.momentum, gradient, noise)
        position = jax.tree.map(lambda x, r: x + jnp.asarray(step_size, r.dtype) * r, state.position, momentum)
        kinetic = jnp.mean(jnp.stack([jnp.mean(r**2) for r in jax.tree.leaves(momentum)]))
        friction = state.friction + jnp.asarray(step_size, kinetic.dtype) * (kinetic - 1)
        return Bath(position, momentum, friction.astype(state.friction.dtype))


def white_field(key, size, dtype):
    """White noise (size,) of unit variance, made in Fourier space, where it is shaped later."""
    real_key, imaginary_key = jax.random.split(key)
    bins = size // 2 + 1
    real = jax.random.normal(real_key, (bins,), dtype)
    imaginary = jax.random.normal(imaginary_key, (bins,), dtype)
    modes = jnp.sqrt(size / 2) * (real + 1j * imaginary)
    # the mean and the highest frequency are real
    return modes.at[0].set(jnp.sqrt(size) * real[0]).at[-1].set(jnp.sqrt(size) * real[-1])


@dataclass(frozen=True)
class SpectralLangevin:
    """Langevin dynamics of a field, preconditioned in Fourier space by P(k) = 1 / (1 + (smoothing k)^2)."""

    smoothing: float = 1.0

    def step(self, key, position, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        gradient = ravel_pytree(estimator.estimate(gradient_key, (), position)[0].gradient)[0]
        frequencies = 2 * jnp.pi * jnp.arange(x.size // 2 + 1, dtype=x.dtype) / x.size
        power = 1 / (1 + (self.smoothing * frequencies) ** 2)
        drift = jnp.fft.irfft(power * jnp.fft.rfft(gradient), x.size)
        noise = jnp.fft.irfft(jnp.sqrt(power) * white_field(noise_key, x.size, x.dtype), x.size)
        return unravel(x - h * drift + jnp.sqrt(2 * h) * noise)


@dataclass(frozen=True)
class NesterovSGHMC:
    """SGHMC with the gradient at the point ahead, if `nesterov`, and the friction solved exactly, if `exponential`."""

    friction: float = 1.0
    nesterov: bool = False
    exponential: bool = False

    def init(self, key, position, estimator):
        return Phase(position, normal_like(key, position))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        h, momentum = jnp.asarray(step_size), state.momentum
        scale = lambda a, tree: jax.tree.map(lambda r: a.astype(r.dtype) * r, tree)
        if self.exponential:
            # the whole decay first; what is left for the kick is the momentum itself
            momentum = scale(jnp.exp(-self.friction * h), momentum)
            kept, spread = jnp.ones_like(h), jnp.sqrt(1 - jnp.exp(-2 * self.friction * h))
        else:
            kept, spread = 1 - self.friction * h, jnp.sqrt(2 * self.friction * h)
        ahead = state.position
        if self.nesterov:
            momentum = scale(kept, momentum)
            ahead = jax.tree.map(lambda x, r: x + h.astype(x.dtype) * r, ahead, momentum)
        gradient = estimator.estimate(gradient_key, (), ahead)[0].gradient
        noise = scale(spread, normal_like(noise_key, momentum))
        momentum = jax.tree.map(lambda r, g, n: r - h.astype(r.dtype) * g + n, scale(kept, momentum), gradient, noise)
        return Phase(jax.tree.map(lambda x, r: x + h.astype(x.dtype) * r, state.position, momentum), momentum)


INNER_STEPS = 5


def inner_loop_init(key, position, estimator):
    return Phase(position, normal_like(key, position))


def inner_loop_step(key, state, step_size, estimator):
    """A few Langevin steps of the momentum and the position in one compiled loop, with friction one."""
    keys = jax.random.split(key, INNER_STEPS)
    h = jnp.asarray(step_size)
    kept = jnp.exp(-h)

    def substep(i, phase):
        # the first key is for the gradients, the others are for the noise
        gradient = estimator.estimate(jax.random.fold_in(keys[0], i), (), phase.position)[0].gradient
        noise = normal_like(jax.lax.dynamic_index_in_dim(keys, i + 1, keepdims=False), phase.momentum)
        momentum = jax.tree.map(
            lambda r, g, n: (
                kept.astype(r.dtype) * (r - h.astype(r.dtype) * g) + jnp.sqrt(1 - kept**2).astype(r.dtype) * n
            ),
            phase.momentum,
            gradient,
            noise,
        )
        return Phase(jax.tree.map(lambda x, r: x + h.astype(x.dtype) * r, phase.position, momentum), momentum)

    return jax.lax.fori_loop(0, INNER_STEPS, substep, state)


inner_loop_langevin = simple_sampler(inner_loop_step, init=inner_loop_init)
