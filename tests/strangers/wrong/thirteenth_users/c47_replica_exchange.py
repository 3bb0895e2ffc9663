"""Replica exchange with MALA at each temperature.

K replicas have the laws exp(-beta_k U) at inverse temperatures 1 = beta_1 > .. > beta_K in geometric progression. A step is one
Metropolis-adjusted Langevin move of each replica, with the step size h / beta_k, followed by exchanges along the ladder: replicas
k and k + 1 change places with probability

    min(1, exp((beta_k - beta_(k+1)) (U(x_k) - U(x_(k+1))))).

The position is that of the replica at temperature 1. Energies are evaluated once for a round of exchanges.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Replicas:
    position: jax.Array
    hotter: jax.Array


@dataclasses.dataclass(frozen=True)
class ReplicaExchange:
    hottest: float = 10.0
    levels: int = 5

    claims = Claims(Source("", "Geyer (1991), Swendsen and Wang (1986)"), ExactLaw())

    def __post_init__(self):
        if self.levels < 2 or self.hottest <= 1:
            raise ValueError("two levels at least, the last of them above temperature 1")

    @property
    def betas(self):
        return jnp.asarray([self.hottest ** (-k / (self.levels - 1)) for k in range(self.levels)])

    def init(self, key, position, estimator):
        del estimator
        flat, unravel = ravel_pytree(position)
        spread = self.betas[1:, None].astype(flat.dtype) ** -0.5
        hotter = spread * jax.random.normal(key, (self.levels - 1, flat.size), flat.dtype)
        return Replicas(position, jax.vmap(unravel)(hotter))

    def step(self, key, state, step_size, estimator):
        batch_key, noise_key, accept_key, exchange_key = jax.random.split(key, 4)
        cold, unravel = ravel_pytree(state.position)
        hot = jax.vmap(lambda q: ravel_pytree(q)[0])(state.hotter)
        x = jnp.concatenate([cold[None], hot])
        betas = self.betas.astype(x.dtype)

        def evaluate(points):
            found = jax.vmap(lambda q: estimator.estimate(batch_key, (), unravel(q))[0])(points)
            return found.potential, jax.vmap(lambda g: ravel_pytree(g)[0])(found.gradient)

        x, energies = _langevin(noise_key, accept_key, x, betas, step_size, evaluate)
        x = x[_exchange(exchange_key, energies, betas)]
        return Replicas(unravel(x[0]), jax.vmap(unravel)(x[1:]))


def _langevin(noise_key, accept_key, x, betas, h, evaluate):
    """One MALA move of each replica; points and their energies."""
    step = (h / betas)[:, None].astype(x.dtype)
    energy, slope = evaluate(x)
    noise = jax.random.normal(noise_key, x.shape, x.dtype)
    y = x - step * betas[:, None] * slope + jnp.sqrt(2 * step) * noise
    new_energy, new_slope = evaluate(y)
    back = (x - y + step * betas[:, None] * new_slope) / jnp.sqrt(2 * step)
    log_ratio = betas * (energy - new_energy) + jnp.sum(noise**2 - back**2, axis=1) / 2
    accept = jnp.log(jax.random.uniform(accept_key, energy.shape, x.dtype)) < log_ratio
    return jnp.where(accept[:, None], y, x), jnp.where(accept, new_energy, energy)


def _exchange(key, energies, betas):
    """Which replica goes to which level."""
    log_ratio = (betas[:-1] - betas[1:]) * (energies[:-1] - energies[1:])
    accept = jnp.log(jax.random.uniform(key, log_ratio.shape, log_ratio.dtype)) < log_ratio
    order = jnp.arange(energies.size)
    for k in range(energies.size - 1):
        swapped = order.at[k].set(order[k + 1]).at[k + 1].set(order[k])
        order = jnp.where(accept[k], swapped, order)
    return order
