"""t-preconditioned Crank-Nicolson (Grumitt, Dai and Seljak 2022; after Kamatani 2018), as in pocoMC, with a fixed reference.

The proposal is reversible with respect to a Student t density of nu degrees of freedom, centre 0 and scale 1: given x the
mixing variable s is inverse gamma, and y is Crank-Nicolson for N(0, s).
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass(frozen=True)
class TPCN:
    nu: float = 5.0

    claims = Claims(Source("", "Grumitt, Dai, Seljak, NeurIPS 2022, Algorithm 1"), ExactLaw())

    def log_reference(self, x):
        return -0.5 * (x.size + self.nu) * jnp.log1p(jnp.sum(x**2) / self.nu)

    def step(self, key, x, step_size, estimator):
        k_batch, k_mix, k_move, k_test = jax.random.split(key, 4)
        gamma = jax.random.gamma(k_mix, 0.5 * (x.size + self.nu), dtype=x.dtype)
        s = 0.5 * (self.nu + jnp.sum(x**2)) / gamma
        rho = jnp.exp(-step_size)
        y = rho * x + jnp.sqrt((1 - rho**2) * s) * jax.random.normal(k_move, x.shape, x.dtype)
        y = y.astype(x.dtype)

        def log_weight(q):
            return -estimator.estimate(k_batch, (), q)[0].potential - self.log_reference(q)

        log_alpha = log_weight(y) - log_weight(x)
        return jax.lax.select(jnp.log(jax.random.uniform(k_test)) < log_alpha, y, x)
