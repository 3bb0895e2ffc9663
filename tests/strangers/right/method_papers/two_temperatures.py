"""Parallel tempering with two rungs: MALA within each, then one proposed swap. The cold rung is the sample."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class TwoRungTempering:
    claims = Claims(Source("", "Geyer 1991; Syed et al. 2022"), ExactLaw())

    def __init__(self, beta_hot: float = 0.3):
        self.beta_hot = beta_hot

    def init(self, key, position, estimator):
        jitter = jax.random.normal(key, position.shape, position.dtype)
        return {"rungs": jnp.stack([position, position + jitter])}

    def position(self, state):
        return state["rungs"][0]

    def step(self, key, state, h, estimator):
        k_est, k_move, k_swap = jax.random.split(key, 3)
        look = lambda q: estimator.estimate(k_est, (), q)[0]
        betas = jnp.array([1.0, self.beta_hot], state["rungs"].dtype)

        def mala(k, x, beta):
            k_prop, k_acc = jax.random.split(k)
            # hotter rungs take longer steps, of the same size relative to their law
            t = h / beta
            at_x = look(x)
            y = x - t * beta * at_x.gradient + jnp.sqrt(2 * t) * jax.random.normal(k_prop, x.shape, x.dtype)
            at_y = look(y)
            log_q = lambda to, of, g: -jnp.sum((to - of + t * beta * g) ** 2) / (4 * t)
            log_r = beta * (at_x.potential - at_y.potential)
            log_r += log_q(x, y, at_y.gradient) - log_q(y, x, at_x.gradient)
            ok = jnp.log(jax.random.uniform(k_acc, dtype=x.dtype)) < log_r
            return jnp.where(ok, y, x), jnp.where(ok, at_y.potential, at_x.potential)

        rungs, energy = jax.vmap(mala)(jax.random.split(k_move, 2), state["rungs"], betas)
        log_s = (betas[0] - betas[1]) * (energy[0] - energy[1])
        swap = jnp.log(jax.random.uniform(k_swap, dtype=rungs.dtype)) < log_s
        return {"rungs": jnp.where(swap, rungs[::-1], rungs)}
