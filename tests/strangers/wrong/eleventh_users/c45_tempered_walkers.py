"""Parallel tempering with random-walk Metropolis replicas.

Replica k has the law exp(-U / T_k), T_k = ratio^k; replica 0 is the one of interest.  A step moves all replicas at once and
then offers an exchange to each pair of neighbours, from the hottest to the coldest, so that a point can travel down the whole
ladder in one step.  Potentials are kept with the replicas, so that a step costs one evaluation each.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Replicas(NamedTuple):
    points: Any  # leading axis: replicas
    potential: jax.Array


def _select(mask, new, old):
    return jax.tree.map(lambda a, b: jnp.where(mask.reshape((-1,) + (1,) * (a.ndim - 1)), a, b), new, old)


def _perturb(key, points, scale):
    leaves, structure = jax.tree.flatten(points)
    keys = jax.random.split(key, len(leaves))
    moved = [
        a + scale.reshape((-1,) + (1,) * (a.ndim - 1)) * jax.random.normal(k, a.shape, a.dtype)
        for k, a in zip(keys, leaves)
    ]
    return structure.unflatten(moved)


class ParallelTempering:
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, replicas: int = 4, ratio: float = 2.0):
        if replicas < 2 or ratio <= 1:
            raise ValueError("at least two replicas, of growing temperatures")
        self.replicas, self.ratio = replicas, ratio

    def temperatures(self, dtype):
        return jnp.asarray(self.ratio, dtype) ** jnp.arange(self.replicas)

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state.points)

    def init(self, key, position, estimator):
        points = jax.tree.map(lambda a: jnp.broadcast_to(a, (self.replicas, *jnp.shape(a))), position)
        potential = estimator.estimate(key, (), position)[0].potential
        return Replicas(points, jnp.broadcast_to(potential, (self.replicas,)))

    def _move(self, key, state, step_size, potential):
        move_key, accept_key = jax.random.split(key)
        temperature = self.temperatures(state.potential.dtype)
        proposal = _perturb(move_key, state.points, jnp.sqrt(2 * step_size * temperature))
        energy = potential(proposal)
        uniform = jax.random.uniform(accept_key, (self.replicas,), energy.dtype)
        accept = jnp.log(uniform) < (state.potential - energy) / temperature
        return Replicas(_select(accept, proposal, state.points), jnp.where(accept, energy, state.potential))

    def _swap(self, key, state):
        beta = 1 / self.temperatures(state.potential.dtype)
        log_ratio = (beta[:-1] - beta[1:]) * (state.potential[:-1] - state.potential[1:])
        accept = jnp.log(jax.random.uniform(key, log_ratio.shape, log_ratio.dtype)) < log_ratio
        order = jnp.arange(self.replicas)
        for low in reversed(range(self.replicas - 1)):
            exchanged = order.at[low].set(order[low + 1]).at[low + 1].set(order[low])
            order = jnp.where(accept[low], exchanged, order)
        return jax.tree.map(lambda a: a[order], state)

    def step(self, key, state, step_size, estimator):
        energy_key, move_key, swap_key = jax.random.split(key, 3)
        potential = jax.vmap(lambda x: estimator.estimate(energy_key, (), x)[0].potential)
        return self._swap(swap_key, self._move(move_key, state, step_size, potential))
