"""Replica exchange with Barker proposals.

Replica k has the law exp(-U / T_k), T_k = spacing^k. In each step every replica makes a Metropolis-adjusted Barker move
(Livingstone and Zanella 2022) whose scale grows with the root of its temperature; then the pairs (0, 1), (2, 3), ... and after them
(1, 2), (3, 4), ... exchange their positions. The replica at temperature 1 is shown.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Replicas(NamedTuple):
    replicas: Any  # a tree like a position, with an axis of temperatures in front


def barker_move(key, x, beta, scale, energy_and_slope):
    """One adjusted Barker move for the density exp(-beta U); returns the point and its U."""
    noise_key, sign_key, accept_key = jax.random.split(key, 3)
    u_x, g_x = energy_and_slope(x)
    z = scale * jax.random.normal(noise_key, x.shape, x.dtype)
    forward = jax.random.uniform(sign_key, x.shape, x.dtype) < jax.nn.sigmoid(-beta * g_x * z)
    w = jnp.where(forward, z, -z)
    y = x + w
    u_y, g_y = energy_and_slope(y)
    log_proposals = jnp.sum(jax.nn.softplus(beta * w * g_x) - jax.nn.softplus(-beta * w * g_y))
    log_ratio = beta * (u_x - u_y) + log_proposals
    accepted = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
    return jnp.where(accepted, y, x), jnp.where(accepted, u_y, u_x)


def exchange(key, points, energies, betas, first):
    """Metropolis exchanges of the neighbours (first, first + 1), (first + 2, first + 3), ..."""
    number = len(betas)
    low = jnp.arange(first, number - 1, 2)
    if low.size == 0:
        return points, energies
    log_ratio = (betas[low] - betas[low + 1]) * (energies[low] - energies[low + 1])
    swapped = jnp.log(jax.random.uniform(key, low.shape, points.dtype)) < log_ratio
    source = jnp.arange(number)
    source = source.at[low].set(jnp.where(swapped, low + 1, low))
    source = source.at[low + 1].set(jnp.where(swapped, low, low + 1))
    return points[source], energies[source]


@dataclass(frozen=True)
class BarkerReplicaExchange:
    num_replicas: int = 3
    spacing: float = 2.5

    claims = Claims(Source("", "Livingstone and Zanella 2022, in replica exchange"), ExactLaw())

    def __post_init__(self):
        if self.num_replicas < 1 or self.spacing < 1:
            raise ValueError("one replica at least, and temperatures that do not fall")

    def init(self, key, position, estimator):
        return Replicas(jax.tree.map(lambda a: jnp.repeat(a[None], self.num_replicas, axis=0), position))

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state.replicas)

    def step(self, key, state, step_size, estimator):
        move_key, even_key, odd_key, estimate_key = jax.random.split(key, 4)
        points = jax.vmap(lambda r: ravel_pytree(r)[0])(state.replicas)
        unravel = ravel_pytree(self.position(state))[1]
        betas = self.spacing ** -jnp.arange(self.num_replicas, dtype=points.dtype)
        scales = jnp.sqrt(2 * jnp.asarray(step_size, points.dtype) / betas)

        def energy_and_slope(q):
            estimate = estimator.estimate(estimate_key, (), unravel(q))[0]
            return estimate.potential, ravel_pytree(estimate.gradient)[0]

        move = lambda k, x, beta, scale: barker_move(k, x, beta, scale, energy_and_slope)
        points, energies = jax.vmap(move)(jax.random.split(move_key, self.num_replicas), points, betas, scales)
        points, energies = exchange(even_key, points, energies, betas, 0)
        points, energies = exchange(odd_key, points, energies, betas, 1)
        return Replicas(jax.vmap(unravel)(points))
