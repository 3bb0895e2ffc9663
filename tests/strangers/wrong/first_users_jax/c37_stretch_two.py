"""Two walkers that stretch about each other (Goodman and Weare), and walk a little."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

A = 2.0


def stretch(key, x, other, energy):
    k_z, k_coin = jax.random.split(key)
    z = ((A - 1) * jax.random.uniform(k_z, dtype=x.dtype) + 1) ** 2 / A
    y = other + z * (x - other)
    log_ratio = x.size * jnp.log(z) + energy(x) - energy(y)
    return jnp.where(jnp.log(jax.random.uniform(k_coin, dtype=x.dtype)) < log_ratio, y, x)


def walk(key, x, h, energy):
    k_move, k_coin = jax.random.split(key)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k_move, x.shape, x.dtype)
    return jnp.where(jnp.log(jax.random.uniform(k_coin, dtype=x.dtype)) < energy(x) - energy(y), y, x)


def init(key, position, estimator):
    return {"position": position, "partner": position + jax.random.normal(key, position.shape, position.dtype)}


def step(key, state, h, estimator):
    k_energy, *keys = jax.random.split(key, 5)
    energy = lambda q: estimator.estimate(k_energy, (), q)[0].potential
    x, y = state["position"], state["partner"]
    x = stretch(keys[0], x, y, energy)
    y = stretch(keys[1], y, x, energy)
    return {"position": walk(keys[2], x, h, energy), "partner": walk(keys[3], y, h, energy)}


sampler = simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()))
