"""Metropolis-adjusted Langevin and random walks, in JAX."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

OWN = Source("", "own")


class Kept(NamedTuple):
    position: dict
    energy: jax.Array
    slope: dict


class CachedMALA:
    """MALA that evaluates energy and gradient once a step, at the proposal."""

    claims = Claims(OWN, ExactLaw())

    def init(self, key, position, estimator):
        found = estimator.estimate(key, (), position)[0]
        return Kept(position, found.potential, found.gradient)

    def step(self, key, state, step_size, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, back = ravel_pytree(state.position)
        g, _ = ravel_pytree(state.slope)
        y = x - step_size * g + jnp.sqrt(2 * step_size) * jax.random.normal(k1, x.shape, x.dtype)
        y = y.astype(x.dtype)
        new = estimator.estimate(k2, (), back(y))[0]
        gy, _ = ravel_pytree(new.gradient)

        def log_q(to, origin, slope):
            return -jnp.sum((to - origin + step_size * slope) ** 2) / (4 * step_size)

        ratio = state.energy - new.potential + log_q(x, y, gy) - log_q(y, x, g)
        accept = jnp.log(jax.random.uniform(k3, dtype=x.dtype)) < ratio
        position, energy = jax.tree.map(
            partial(jnp.where, accept), (back(y), new.potential), (state.position, state.energy)
        )
        return Kept(position, energy, new.gradient)


# ---------------------------------------------------------------- random walk, wider far out


def _scale(tree, h):
    """Steps grow with the distance from the origin."""
    v, _ = ravel_pytree(tree)
    return jnp.sqrt(h * (1 + jnp.mean(v**2)))


def _log_density_of_move(to, origin, h):
    s = _scale(origin, h)
    moves = jax.tree.leaves(jax.tree.map(lambda a, b: ((a - b) / s) ** 2, to, origin))
    return -0.5 * sum(m.sum() for m in moves) - moves[0].size * jnp.log(s)


def _wide_step(key, x, h, estimator):
    k_move, k_u, k_e = jax.random.split(key, 3)
    v, back = ravel_pytree(x)
    y = back((v + _scale(x, h) * jax.random.normal(k_move, v.shape, v.dtype)).astype(v.dtype))
    u = lambda at: estimator.estimate(k_e, (), at)[0].potential
    log_ratio = u(x) - u(y) + _log_density_of_move(x, y, h) - _log_density_of_move(y, x, h)
    accept = jnp.log(jax.random.uniform(k_u, dtype=v.dtype)) < log_ratio
    return jax.tree.map(lambda a, b: jnp.where(accept, a, b), y, x)


wide_walk = simple_sampler(_wide_step, claims=Claims(OWN, ExactLaw()))


# ---------------------------------------------------------------- MALA of logarithms


def _log_mala(key, x, h, estimator):
    """For positive numbers. The density of y = log x has the Jacobian prod x."""
    k_move, k_u, k_e = jax.random.split(key, 3)

    def at(y):
        x = jnp.exp(y)
        found = estimator.estimate(k_e, (), x)[0]
        return found.potential - jax.scipy.special.logsumexp(y), x * found.gradient - 1

    def log_q(to, origin, slope):
        return -jnp.sum((to - origin + h * slope) ** 2) / (4 * h)

    y = jnp.log(x)
    u, g = at(y)
    z = y - h * g + jnp.sqrt(2 * h) * jax.random.normal(k_move, y.shape, y.dtype)
    u_new, g_new = at(z)
    ratio = u - u_new + log_q(y, z, g_new) - log_q(z, y, g)
    return jnp.where(jnp.log(jax.random.uniform(k_u, dtype=x.dtype)) < ratio, jnp.exp(z), x)


positive_mala = simple_sampler(_log_mala, claims=Claims(OWN, ExactLaw(), spaces=("positive",)))


# ---------------------------------------------------------------- a step size that finds itself


class Tuned(NamedTuple):
    position: jax.Array
    log_scale: jax.Array


class SelfTuningWalk:
    """Random walk whose scale follows the acceptance rate: halved after a rejection, doubled after an acceptance."""

    claims = Claims(OWN, ExactLaw())

    def init(self, key, position, estimator):
        v, _ = ravel_pytree(position)
        return Tuned(position, jnp.zeros((), v.dtype))

    def step(self, key, state, step_size, estimator):
        k_move, k_u, k_e = jax.random.split(key, 3)
        v, back = ravel_pytree(state.position)
        scale = jnp.sqrt(step_size) * jnp.exp(state.log_scale)
        w = (v + scale * jax.random.normal(k_move, v.shape, v.dtype)).astype(v.dtype)
        u = lambda at: estimator.estimate(k_e, (), back(at))[0].potential
        accept = jnp.log(jax.random.uniform(k_u, dtype=v.dtype)) < u(v) - u(w)
        log_scale = state.log_scale + jnp.where(accept, 0.7, -0.7)
        return Tuned(back(jnp.where(accept, w, v)), jnp.clip(log_scale, -4.0, 4.0).astype(v.dtype))
