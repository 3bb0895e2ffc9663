from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass(frozen=True)
class Mala:
    claims = Claims(Source("roberts1996exponential", "section 1.4"), ExactLaw())

    def init(self, key, position, estimator):
        return position

    def step(self, key, state, step_size, estimator):
        ek, nk, uk = jax.random.split(key, 3)

        def log_q(to, start, grad):
            return -jnp.sum((to - start + step_size * grad) ** 2) / (4 * step_size)

        here = estimator.estimate(ek, (), state)[0]
        noise = jax.random.normal(nk, state.shape, state.dtype)
        new = state - step_size * here.gradient + jnp.sqrt(2 * step_size) * noise
        there = estimator.estimate(ek, (), new)[0]
        log_a = here.potential - there.potential
        log_a = log_a + log_q(state, new, there.gradient) - log_q(new, state, here.gradient)
        ok = jax.random.uniform(uk, (), state.dtype) < jnp.exp(jnp.minimum(log_a, 0.0))
        return jnp.where(ok, new, state)
