"""Langevin dynamics with antithetic noise: every draw is used twice, the second time with its sign flipped."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def init(key, position, estimator):
    return {"position": position, "noise": jnp.zeros_like(position), "mirror": jnp.asarray(False)}


def step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x = state["position"]
    drift = -estimator.estimate(k1, (), x)[0].gradient
    fresh = jax.random.normal(k2, x.shape, x.dtype)
    noise = jnp.where(state["mirror"], -state["noise"], fresh)
    return {
        "position": x + h * drift + jnp.sqrt(2 * h) * noise,
        "noise": noise,
        "mirror": ~state["mirror"],
    }


antithetic_langevin = simple_sampler(step, init=init)
