"""Stochastic-gradient Nose-Hoover thermostat for trees of parameters.

    dx = p dt
    dp = -grad U(x) dt - xi p dt + sqrt(2 A) dW
    dxi = (kinetic - 1) dt          kinetic: mean square of the momenta

The thermostat takes up gradient noise of unknown, isotropic covariance. One scalar xi serves all parameters, as in Ding et al.,
Bayesian sampling using stochastic gradient thermostats, NeurIPS 2014, algorithm 2. Parameters may be a vector or any
tree of arrays, as of a flax or an equinox module.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class ThermostatState(NamedTuple):
    position: Any
    momentum: Any
    xi: jax.Array


def _normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten(
        [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
    )


def _mean_square(tree):
    """Mean square of the entries of a tree."""
    squares = jax.tree.map(lambda p: jnp.mean(p**2), tree)
    return jnp.mean(jnp.stack(jax.tree.leaves(squares)))


@dataclass(frozen=True)
class TreeThermostat:
    """SGNHT with injected noise of variance 2 A h a step, `diffusion` = A."""

    diffusion: float = 1.0

    def __post_init__(self):
        if self.diffusion <= 0:
            raise ValueError("the thermostat is ergodic with noise only: diffusion > 0")

    def init(self, key, position, estimator):
        del estimator
        dtype = jnp.result_type(*jax.tree.leaves(position))
        return ThermostatState(position, _normal_like(key, position), jnp.asarray(self.diffusion, dtype))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        noise = _normal_like(noise_key, state.position)
        spread = (2 * self.diffusion * step_size) ** 0.5

        def kick(p, g, n):
            return p - step_size * (g + state.xi * p) + (spread * n).astype(p.dtype)

        momentum = jax.tree.map(kick, state.momentum, gradient, noise)
        position = jax.tree.map(lambda x, p: x + step_size * p, state.position, momentum)
        xi = state.xi + step_size * (_mean_square(momentum) - 1)
        return ThermostatState(position, momentum, xi.astype(state.xi.dtype))
