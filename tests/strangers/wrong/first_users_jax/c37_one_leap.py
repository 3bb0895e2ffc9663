"""HMC with a number of leapfrog steps; one leap is MALA, which needs one gradient a step."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass(frozen=True)
class LeapHMC:
    leaps: int = 4

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        return position

    def step(self, key, x, h, estimator):
        k_estimate, k_momentum, k_coin = jax.random.split(key, 3)
        look = lambda q: estimator.estimate(k_estimate, (), q)[0]
        p = jax.random.normal(k_momentum, x.shape, x.dtype)
        start = look(x).potential + 0.5 * jnp.sum(p**2)
        y, g = x, look(x).gradient
        for _ in range(self.leaps):
            p = p - 0.5 * h * g
            y = y + h * p
            if self.leaps > 1:
                g = look(y).gradient
            p = p - 0.5 * h * g
        end = look(y).potential + 0.5 * jnp.sum(p**2)
        return jnp.where(jnp.log(jax.random.uniform(k_coin, dtype=x.dtype)) < start - end, y, x)
