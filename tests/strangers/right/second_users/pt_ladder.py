"""Parallel tempering: three replicas at beta = 1, 1/2, 1/4 do a random walk, then one neighbouring pair tries to swap."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

BETAS = (1.0, 0.5, 0.25)


class Replicas(NamedTuple):
    xs: jax.Array  # (3, ...)


def init(key, position, estimator):
    return Replicas(jnp.stack([position] * len(BETAS)))


def cold(state):
    return state.xs[0]


def step(key, state, step_size, estimator):
    k_batch, k_prop, k_acc, k_pair, k_swap = jax.random.split(key, 5)
    xs = state.xs
    betas = jnp.asarray(BETAS, xs.dtype)
    expand = lambda a: a.reshape(a.shape + (1,) * (xs.ndim - 1))
    energies = jax.vmap(lambda x: estimator.estimate(k_batch, (), x)[0].potential)

    # local moves, longer ones for the hot replicas
    scale = jnp.sqrt(2 * step_size / betas).astype(xs.dtype)
    ys = xs + expand(scale) * jax.random.normal(k_prop, xs.shape, xs.dtype)
    u_x, u_y = energies(xs), energies(ys)
    accept = jnp.log(jax.random.uniform(k_acc, betas.shape, xs.dtype)) < betas * (u_x - u_y)
    xs = jnp.where(expand(accept), ys, xs)
    u = jnp.where(accept, u_y, u_x)

    # one swap
    i = jax.random.randint(k_pair, (), 0, len(BETAS) - 1)
    j = i + 1
    log_ratio = (betas[i] - betas[j]) * (u[i] - u[j])
    swap = jnp.log(jax.random.uniform(k_swap, (), xs.dtype)) < log_ratio
    exchanged = xs.at[i].set(xs[j]).at[j].set(xs[i])
    return Replicas(jnp.where(swap, exchanged, xs))


tempering = simple_sampler(step, init=init, position=cold, claims=Claims(Source("", "own"), ExactLaw()))
