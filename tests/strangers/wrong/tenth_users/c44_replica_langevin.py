"""Replica-exchange Langevin dynamics on a ladder of temperatures.

All replicas take a Langevin step of their own temperature. Then the ladder is swept from the coldest pair to the hottest, and each pair of
neighbours exchanges its positions by Metropolis' rule, so that one sweep can carry a position over several rungs. The
replica at temperature 1 is the sample.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class Replicas(NamedTuple):
    position: Any  # of the coldest replica, as the user gave it
    hotter: jax.Array  # (replicas - 1, dimension), from colder to hotter


@dataclass(frozen=True)
class ReplicaLangevin:
    """`num_replicas` temperatures in geometric progression from 1 to `hottest`."""

    num_replicas: int = 3
    hottest: float = 6.0

    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def ladder(self, dtype):
        return self.hottest ** (jnp.arange(self.num_replicas, dtype=dtype) / (self.num_replicas - 1))

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        spread = jnp.sqrt(self.ladder(x.dtype)[1:, None])
        return Replicas(position, x + spread * jax.random.normal(key, (self.num_replicas - 1, x.size), x.dtype))

    def langevin(self, key, x, temperature, step_size, slope):
        noise = jax.random.normal(key, x.shape, x.dtype)
        return x - step_size * slope(x) + jnp.sqrt(2 * step_size * temperature) * noise

    def exchange(self, key, replicas, temperatures, energy):
        """Neighbours exchange positions with the probability of Metropolis, from the coldest pair to the hottest."""
        energies = jax.vmap(energy)(replicas)
        inverse = 1 / temperatures
        coins = jnp.log(jax.random.uniform(key, (self.num_replicas - 1,), replicas.dtype))
        for i in range(self.num_replicas - 1):
            log_ratio = (inverse[i] - inverse[i + 1]) * (energies[i] - energies[i + 1])
            pair = replicas[i : i + 2]
            pair = jnp.where(coins[i] < log_ratio, pair[::-1], pair)
            replicas = replicas.at[i : i + 2].set(pair)
        return replicas

    def step(self, key, state, step_size, estimator):
        batch_key, move_key, exchange_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)

        def energy(q):
            return estimator.estimate(batch_key, (), unravel(q))[0].potential

        def slope(q):
            return ravel_pytree(estimator.estimate(batch_key, (), unravel(q))[0].gradient)[0]

        replicas = jnp.concatenate([x[None], state.hotter])
        temperatures = self.ladder(x.dtype)
        keys = jax.random.split(move_key, self.num_replicas)
        move = jax.vmap(self.langevin, in_axes=(0, 0, 0, None, None))
        replicas = move(keys, replicas, temperatures, h, slope)
        replicas = self.exchange(exchange_key, replicas, temperatures, energy)
        return Replicas(unravel(replicas[0]), replicas[1:])
