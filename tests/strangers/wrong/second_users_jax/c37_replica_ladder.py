"""Parallel tempering with Langevin replicas: each step moves all of them, then one random pair of neighbours may swap."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import simple_sampler

BETAS = 0.5 ** np.arange(4)  # 1, 1/2, 1/4, 1/8
GAP = BETAS[0] - BETAS[1]


def init(key, position, estimator):
    copies = jnp.broadcast_to(position, (len(BETAS),) + position.shape)
    spread = 0.1 * jax.random.normal(key, copies.shape, copies.dtype)
    return {"replicas": copies + spread}


def step(key, state, h, estimator):
    key_grad, key_noise, key_energy, key_pair, key_swap = jax.random.split(key, 5)
    x = state["replicas"]
    beta = jnp.asarray(BETAS, x.dtype).reshape((-1,) + (1,) * (x.ndim - 1))
    gradients = jax.vmap(lambda q: estimator.estimate(key_grad, (), q)[0].gradient)(x)
    x = x - h * beta * gradients + jnp.sqrt(2 * h) * jax.random.normal(key_noise, x.shape, x.dtype)

    energies = jax.vmap(lambda q: estimator.estimate(key_energy, (), q)[0].potential)(x)
    i = jax.random.randint(key_pair, (), 0, len(BETAS) - 1)
    log_alpha = GAP * (energies[i] - energies[i + 1])
    swapped = x.at[i].set(x[i + 1]).at[i + 1].set(x[i])
    accept = jnp.log(jax.random.uniform(key_swap, dtype=x.dtype)) < log_alpha
    return {"replicas": jnp.where(accept, swapped, x)}


tempering = simple_sampler(step, init=init, position=lambda state: state["replicas"][0])
