"""Several walkers at once; the first one is shown."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw


@dataclass(frozen=True)
class Ladder:
    """Langevin chains at several temperatures; neighbours exchange places at a rate. The first has temperature 1."""

    temperatures: tuple = (1.0, 1.2, 6.0)
    rate: float = 2.0

    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def init(self, key, position, estimator):
        return [position for _ in self.temperatures]

    def position(self, state):
        return state[0]

    def step(self, key, state, step_size, estimator):
        k_move, k_swap, k_estimate = jax.random.split(key, 3)

        def langevin(key, x, temperature):
            k_data, k_noise = jax.random.split(key)
            flat, back = ravel_pytree(x)
            slope, _ = ravel_pytree(estimator.estimate(k_data, (), x)[0].gradient)
            noise = jax.random.normal(k_noise, flat.shape, flat.dtype)
            moved = flat - step_size * slope + jnp.sqrt(2 * temperature * step_size) * noise
            return back(moved.astype(flat.dtype))

        keys = jax.random.split(k_move, len(state))
        chains = [langevin(k, x, t) for k, x, t in zip(keys, state, self.temperatures)]
        energies = [estimator.estimate(k_estimate, (), x)[0].potential for x in chains]

        betas = [1 / t for t in self.temperatures]
        gaps = [low - high for low, high in pairwise(betas)]
        for i, k in enumerate(jax.random.split(k_swap, len(gaps))):
            k_try, k_accept = jax.random.split(k)
            gap = gaps[-1 - i]
            odds = gap * (energies[i] - energies[i + 1])
            swap = jax.random.uniform(k_try, dtype=odds.dtype) < self.rate * step_size
            swap &= jnp.log(jax.random.uniform(k_accept, dtype=odds.dtype)) < odds
            exchange = lambda a, b: jax.tree.map(lambda u, v, swap=swap: jnp.where(swap, v, u), a, b)
            for rows in (chains, energies):
                rows[i], rows[i + 1] = exchange(rows[i], rows[i + 1]), exchange(rows[i + 1], rows[i])
        return chains


class Walkers(NamedTuple):
    place: Any
    energy: jax.Array


class DifferentialEvolution:
    """Differential evolution MCMC (ter Braak) with 2 d + 6 walkers, one after the other."""

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        k_noise, k_estimate = jax.random.split(key)
        flat, back = ravel_pytree(position)
        spread = jax.random.normal(k_noise, (2 * flat.size + 6, flat.size), flat.dtype).at[0].set(0)
        place = jax.vmap(back)(flat + spread)
        return Walkers(place, jax.vmap(lambda x: estimator.estimate(k_estimate, (), x)[0].potential)(place))

    def position(self, state):
        return jax.tree.map(lambda x: x[0], state.place)

    def step(self, key, state, step_size, estimator):
        k_pair, k_noise, k_accept, k_estimate = jax.random.split(key, 4)
        _, back = ravel_pytree(self.position(state))
        x = jax.vmap(lambda tree: ravel_pytree(tree)[0])(state.place)
        count, dim = x.shape
        gamma = 2.38 / (2 * dim) ** 0.5
        # two walkers, not the same
        first, shift = (
            jax.random.randint(k, (count,), low, count) for k, low in zip(jax.random.split(k_pair), (0, 1))
        )
        second = (first + shift) % count
        noise = jnp.sqrt(2 * step_size) * jax.random.normal(k_noise, x.shape, x.dtype)
        level = jnp.log(jax.random.uniform(k_accept, (count,), x.dtype))

        def one(i, carry):
            x, energy = carry
            y = (x[i] + gamma * (x[first[i]] - x[second[i]]) + noise[i]).astype(x.dtype)
            new = estimator.estimate(k_estimate, (), back(y))[0].potential
            ok = level[i] < energy[i] - new
            return x.at[i].set(jnp.where(ok, y, x[i])), energy.at[i].set(jnp.where(ok, new, energy[i]))

        x, energy = jax.lax.fori_loop(0, count, one, (x, state.energy))
        return Walkers(jax.vmap(back)(x), energy)
