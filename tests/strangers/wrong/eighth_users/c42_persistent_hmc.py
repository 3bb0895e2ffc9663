"""HMC with a persistent momentum: a part of it is renewed, one leapfrog step, a Metropolis test."""
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass(frozen=True)
class PersistentHMC:
    persistence: float = 0.8
    claims = Claims(Source("", "own"), ExactLaw())

    def __post_init__(self):
        if not 0 <= self.persistence < 1:
            raise ValueError("persistence is in [0, 1)")

    def init(self, key, position, estimator):
        return {"position": position, "momentum": jax.random.normal(key, position.shape, position.dtype)}

    def step(self, key, state, step_size, estimator):
        k_batch, k_fresh, k_accept = jax.random.split(key, 3)
        look = lambda q: estimator.estimate(k_batch, (), q)[0]
        q = state["position"]
        noise = jax.random.normal(k_fresh, q.shape, q.dtype)
        p = self.persistence * state["momentum"] + (1 - self.persistence**2) ** 0.5 * noise
        old = look(q)
        half = p - step_size / 2 * old.gradient
        q_new = q + step_size * half
        new = look(q_new)
        p_new = half - step_size / 2 * new.gradient
        gap = old.potential - new.potential + (jnp.sum(p**2) - jnp.sum(p_new**2)) / 2
        ok = jnp.log(jax.random.uniform(k_accept)) < gap
        return {"position": jnp.where(ok, q_new, q), "momentum": jnp.where(ok, p_new, p)}
