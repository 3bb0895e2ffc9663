"""Generalised HMC whose leapfrog step is tuned by a pilot chain in `init`, and is then kept.

The pilot is plain HMC from a normal start, with dual averaging (Hoffman and Gelman, 2014, section 3.2) of the logarithm of the step; its
average is frozen in the state. Of the momentum, length and direction are renewed apart: the direction u is that of a r u +
sqrt(1 - a^2) n with a fresh length r, which keeps the uniform law on the sphere, and the length is drawn anew by a coin. A rejected
trajectory turns the momentum round.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Tuned(NamedTuple):
    position: Any
    momentum: jax.Array
    log_step: jax.Array


def leapfrog(slope, x, p, eps, steps):
    def one(carry, _):
        q, r, g = carry
        r = r - eps / 2 * g
        q = q + eps * r
        g = slope(q)
        return (q, r - eps / 2 * g, g), None

    (x, p, _), _ = jax.lax.scan(one, (x, p, slope(x)), None, length=steps, unroll=2)
    return x, p


def log_ratio(energy, before, after):
    (x, p), (y, r) = before, after
    change = energy(x) + jnp.sum(p**2) / 2 - energy(y) - jnp.sum(r**2) / 2
    return jnp.where(jnp.isnan(change), -jnp.inf, change)


def dual_averaging(log_step, target, gamma=0.05, t0=10.0, kappa=0.75):
    mu = jnp.log(10.0) + log_step

    def update(carry, acceptance, t):
        average, error, _ = carry
        error = (1 - 1 / (t + t0)) * error + (target - acceptance) / (t + t0)
        current = mu - jnp.sqrt(t) / gamma * error
        weight = t**-kappa
        return weight * current + (1 - weight) * average, error, current

    return (jnp.zeros_like(log_step), jnp.zeros_like(log_step), log_step), update


class DualAveragedGHMC:
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, leapfrogs=3, acceptance=0.8, pilot=60, persistence=0.6, renewal=0.3):
        if leapfrogs < 1 or pilot < 1:
            raise ValueError("leapfrogs and pilot count steps")
        if not (0 < acceptance < 1 and 0 <= persistence < 1 and 0 < renewal <= 1):
            raise ValueError("acceptance, persistence and renewal are fractions")
        self.leapfrogs, self.acceptance, self.pilot = leapfrogs, acceptance, pilot
        self.persistence, self.renewal = persistence, renewal

    def functions(self, key, unravel, estimator):
        at = lambda q: estimator.estimate(key, (), unravel(q))[0]
        return lambda q: at(q).potential, lambda q: ravel_pytree(at(q).gradient)[0]

    def init(self, key, position, estimator):
        start_key, pilot_key, energy_key, momentum_key = jax.random.split(key, 4)
        x, unravel = ravel_pytree(position)
        energy, slope = self.functions(energy_key, unravel, estimator)
        averages, update = dual_averaging(jnp.log(jnp.asarray(0.1, x.dtype)), self.acceptance)

        def pilot_step(carry, inputs):
            q, state = carry
            t, k = inputs
            refresh, accept = jax.random.split(k)
            p = jax.random.normal(refresh, q.shape, q.dtype)
            y, r = leapfrog(slope, q, p, jnp.exp(state[2]), self.leapfrogs)
            ratio = log_ratio(energy, (q, p), (y, r))
            q = jnp.where(jnp.log(jax.random.uniform(accept, dtype=q.dtype)) < ratio, y, q)
            return (q, update(state, jnp.exp(jnp.minimum(ratio, 0)), t)), None

        times = jnp.arange(1, self.pilot + 1).astype(x.dtype), jax.random.split(pilot_key, self.pilot)
        start = jax.random.normal(start_key, x.shape, x.dtype)
        (_, (log_step, _, _)), _ = jax.lax.scan(pilot_step, (start, averages), times)
        return Tuned(position, jax.random.normal(momentum_key, x.shape, x.dtype), log_step)

    def refresh(self, key, p):
        length_key, turn_key, coin_key, renewal_key = jax.random.split(key, 4)
        norm, a = jnp.linalg.norm, self.persistence
        scaled = p / norm(p) * norm(jax.random.normal(length_key, p.shape, p.dtype))
        turned = a * scaled + (1 - a**2) ** 0.5 * jax.random.normal(turn_key, p.shape, p.dtype)
        fresh = norm(jax.random.normal(renewal_key, p.shape, p.dtype))
        length = jnp.where(jax.random.bernoulli(coin_key, self.renewal), fresh, norm(p))
        return length * turned / norm(turned)

    def step(self, key, state, step_size, estimator):
        refresh_key, accept_key, energy_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        energy, slope = self.functions(energy_key, unravel, estimator)
        p = self.refresh(refresh_key, state.momentum)
        y, r = leapfrog(slope, x, p, jnp.exp(state.log_step), self.leapfrogs)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio(energy, (x, p), (y, r))
        return Tuned(unravel(jnp.where(accepted, y, x)), jnp.where(accepted, r, -p), state.log_step)
