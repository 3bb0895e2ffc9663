"""Samplers of several replicas."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def gaussian(key, tree):
    """Standard normal leaves like those of a tree."""
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)])


class Ladder(NamedTuple):
    """The cold and the hot position, and their energies."""

    position: Any
    hot: Any
    energies: jax.Array


class ParallelTempering:
    """Random-walk Metropolis at temperatures 1 and 4 with exchanges; energies are kept, one evaluation a move."""

    claims = Claims(Source("", "own"), ExactLaw())
    temperature_of_hot = 4.0

    def init(self, key, position, estimator):
        energy = estimator.estimate(key, (), position)[0].potential
        return Ladder(position, position, jnp.stack([energy, energy]))

    def move(self, key, x, energy, temperature, step_size, estimator):
        noise_key, accept_key, data_key = jax.random.split(key, 3)
        scale = jnp.sqrt(2 * step_size * temperature)
        y = jax.tree.map(lambda a, n: a + scale.astype(a.dtype) * n, x, gaussian(noise_key, x))
        proposed = estimator.estimate(data_key, (), y)[0].potential
        accept = jnp.log(jax.random.uniform(accept_key, (), energy.dtype)) < (energy - proposed) / temperature
        return jax.tree.map(lambda new, old: jnp.where(accept, new, old), (y, proposed), (x, energy))

    def step(self, key, state, step_size, estimator):
        cold_key, hot_key, swap_key = jax.random.split(key, 3)
        hot_t = self.temperature_of_hot
        cold, cold_energy = self.move(cold_key, state.position, state.energies[0], 1.0, step_size, estimator)
        hot, hot_energy = self.move(hot_key, state.hot, state.energies[1], hot_t, step_size, estimator)
        log_ratio = (1 - 1 / hot_t) * (cold_energy - hot_energy)
        swap = jnp.log(jax.random.uniform(swap_key, (), cold_energy.dtype)) < log_ratio
        cold, hot = (
            jax.tree.map(lambda a, b: jnp.where(swap, b, a), cold, hot),
            jax.tree.map(lambda a, b: jnp.where(swap, a, b), cold, hot),
        )
        return Ladder(cold, hot, jnp.stack([cold_energy, hot_energy]))


class Workers(NamedTuple):
    """The consensus and the workers' draws, stacked along a first axis."""

    position: Any
    draws: Any


@dataclass(frozen=True)
class ConsensusLangevin:
    """Consensus Monte Carlo: workers sample shards of the posterior, each of U / workers; draws are averaged."""

    workers: int = 4

    def init(self, key, position, estimator):
        return Workers(position, jax.tree.map(lambda x: jnp.stack([x] * self.workers), position))

    def step(self, key, state, step_size, estimator):
        keys = jax.random.split(key, self.workers + 1)
        one = lambda k, x: estimator.estimate(k, (), x)[0].gradient
        gradients = jax.vmap(one)(keys[1:], state.draws)

        def langevin(x, g, n):
            h = jnp.asarray(step_size, x.dtype)
            return x - h * g / self.workers + jnp.sqrt(2 * h) * n

        draws = jax.tree.map(langevin, state.draws, gradients, gaussian(keys[0], state.draws))
        return Workers(jax.tree.map(lambda x: jnp.mean(x, axis=0), draws), draws)
