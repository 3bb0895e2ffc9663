"""Four walkers with the variance of all of them, coordinate by coordinate, as preconditioner."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def init(key, position, estimator):
    return {"x": position, "others": position + jax.random.normal(key, (3, *position.shape), position.dtype)}


def step(key, state, h, estimator):
    k_gradient, k_noise = jax.random.split(key)
    walkers = jnp.concatenate([state["x"][None], state["others"]])
    gradient = jax.vmap(lambda k, w: estimator.estimate(k, (), w)[0].gradient)(jax.random.split(k_gradient, 4), walkers)
    spread = jnp.var(walkers, axis=0)
    noise = jax.random.normal(k_noise, walkers.shape, walkers.dtype)
    walkers = walkers - h * spread * gradient + jnp.sqrt(2 * h * spread) * noise
    return {"x": walkers[0], "others": walkers[1:]}


sampler = simple_sampler(step, init=init, position=lambda state: state["x"])
