"""Stochastic-gradient Nose-Hoover thermostat (Ding et al. 2014) on trees of arrays.

One thermostat for the whole model holds the kinetic temperature, the mean square of the momentum, at T, and so takes up gradient noise
that is the same for all parameters. The step is Ding's: momentum, position, thermostat.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


@partial(jax.tree_util.register_dataclass, data_fields=["position", "momentum", "thermostat"], meta_fields=[])
@dataclass
class ThermostatState:
    position: Any
    momentum: Any
    thermostat: jax.Array


def random_like(key, tree):
    """Standard normal numbers of the shapes and types of a tree, a key for each leaf."""
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(treedef, [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)])


def tree_mean(tree):
    """The mean of the entries of a tree."""
    means = jnp.stack([jnp.mean(leaf) for leaf in jax.tree.leaves(tree)])
    return jnp.mean(means)


def kinetic_temperature(momentum):
    return tree_mean(jax.tree.map(jnp.square, momentum))


@dataclass(frozen=True)
class NoseHooverTrees:
    """`friction` is A of Ding et al., `inertia` the mass of the thermostat for each parameter."""

    friction: float = 1.0
    inertia: float = 1.0
    temperature: float = 1.0

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=1, temperature=self.temperature))

    def init(self, key, position, estimator):
        scale = self.temperature**0.5
        momentum = jax.tree.map(lambda p: scale * p, random_like(key, position))
        dtype = jax.tree.leaves(position)[0].dtype
        return ThermostatState(position, momentum, jnp.asarray(self.friction, dtype))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        noise = random_like(noise_key, state.momentum)
        drag = step_size * state.thermostat
        spread = (2 * self.friction * self.temperature * step_size) ** 0.5

        momentum = jax.tree.map(
            lambda p, g, n: (p - step_size * g - drag * p + spread * n).astype(p.dtype), state.momentum, gradient, noise
        )
        position = jax.tree.map(lambda x, p: (x + step_size * p).astype(x.dtype), state.position, momentum)
        excess = kinetic_temperature(momentum) - self.temperature
        thermostat = state.thermostat + step_size * excess / self.inertia
        return ThermostatState(position, momentum, thermostat.astype(state.thermostat.dtype))
