"""Parallel tempering: MALA at each of a ladder of inverse temperatures, now and then a sweep of exchanges from hot to cold.

Replica k has the law exp(-beta_k U), beta_0 = 1, and takes MALA steps of size h / beta_k. The sweep goes through all neighbours, so that a
state can come down from the hottest replica to the coldest one in a single step. Arrays of any shape, one leading axis for replicas.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from sgmcmc_verification.samplers import Claims, ExactLaw, Sampler, Source, simple_sampler

SOURCE = Source("geyer1991", "section 2.3; Swendsen and Wang 1986")


class Replicas(NamedTuple):
    points: jax.Array
    energies: jax.Array
    slopes: jax.Array


def ladder(replicas, hottest):
    """Inverse temperatures from 1 to 1 / hottest, geometric."""
    return jnp.asarray([hottest ** (-k / (replicas - 1)) for k in range(replicas)])


def squared(x):
    return jnp.sum(x**2)


def parallel_tempering(replicas: int = 4, hottest: float = 8.0, sweeps: float = 0.1) -> Sampler:
    """`sweeps` is the probability that a step ends with a sweep of exchanges."""
    if replicas < 2 or hottest <= 1 or not 0 < sweeps <= 1:
        raise ValueError("at least two replicas, the hottest of a temperature above 1, and a probability of sweeps")

    def evaluate(key, point, estimator):
        estimate = estimator.estimate(key, (), point)[0]
        return estimate.potential, estimate.gradient

    def init(key, position, estimator):
        points = jnp.stack([position] * replicas)
        energies, slopes = jax.vmap(lambda q: evaluate(key, q, estimator))(points)
        return Replicas(points, energies, slopes)

    def mala(key, beta, h, point, energy, slope, estimator):
        noise_key, accept_key, batch_key = jax.random.split(key, 3)
        step = h / beta
        noise = jax.random.normal(noise_key, point.shape, point.dtype)
        proposal = point - step * beta * slope + jnp.sqrt(2 * step) * noise
        new_energy, new_slope = evaluate(batch_key, proposal, estimator)
        back = squared(point - proposal + step * beta * new_slope) / (4 * step)
        forth = squared(noise) / 2
        log_ratio = beta * (energy - new_energy) - back + forth
        accept = jnp.log(jax.random.uniform(accept_key, (), point.dtype)) < log_ratio
        choose = lambda new, old: jnp.where(accept, new, old)
        return choose(proposal, point), choose(new_energy, energy), choose(new_slope, slope)

    def exchange(key, betas, energies):
        """The order in which replicas stand after a sweep over neighbours, the hottest pair first."""
        log_u = jnp.log(jax.random.uniform(key, (replicas - 1,), energies.dtype))

        def pair(order, k):
            log_ratio = (betas[k] - betas[k + 1]) * (energies[k] - energies[k + 1])
            swapped = order.at[k].set(order[k + 1]).at[k + 1].set(order[k])
            return jnp.where(log_u[k] < log_ratio, swapped, order), None

        return lax.scan(pair, jnp.arange(replicas), jnp.arange(replicas - 2, -1, -1))[0]

    def step(key, state, step_size, estimator):
        move_key, exchange_key, coin_key = jax.random.split(key, 3)
        betas = ladder(replicas, hottest).astype(state.points.dtype)
        keys = jax.random.split(move_key, replicas)
        moved = jax.vmap(lambda k, b, *at: mala(k, b, step_size, *at, estimator))(keys, betas, *state)
        sweep = jax.random.bernoulli(coin_key, sweeps)
        order = jnp.where(sweep, exchange(exchange_key, betas, moved[1]), jnp.arange(replicas))
        return Replicas(*(part[order] for part in moved))

    claims = Claims(SOURCE, ExactLaw())
    return simple_sampler(step, init=init, position=lambda state: state.points[0], claims=claims)
