"""Metropolised samplers in JAX (full-batch potential). Each leaves exp(-U) invariant for every step size."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def value_and_grad(estimator, key, x):
    out = estimator.estimate(key, (), x)[0]
    return out.potential, out.gradient


# ---- HMC, jittered step and a random number of leapfrogs ------------------------------------------


class HMCState(NamedTuple):
    position: jax.Array
    accepted: jax.Array


@dataclass(frozen=True)
class JitteredHMC:
    max_leapfrogs: int = 4
    jitter: float = 0.2

    claims = EXACT

    def init(self, key, position, estimator):
        return HMCState(position, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        k_eps, k_L, k_p, k_u, k_est = jax.random.split(key, 5)
        q0 = state.position
        eps = step_size * (1 + self.jitter * jax.random.uniform(k_eps, (), q0.dtype, -1.0, 1.0))
        eps = eps.astype(q0.dtype)
        L = jax.random.randint(k_L, (), 1, self.max_leapfrogs + 1)
        p0 = jax.random.normal(k_p, q0.shape, q0.dtype)
        u0, g0 = value_and_grad(estimator, k_est, q0)

        def leapfrog(carry):
            i, q, p, _, g = carry
            p = p - eps / 2 * g
            q = q + eps * p
            u, g = value_and_grad(estimator, k_est, q)
            p = p - eps / 2 * g
            return i + 1, q, p, u, g

        _, q, p, u, _ = jax.lax.while_loop(lambda c: c[0] < L, leapfrog, (jnp.zeros_like(L), q0, p0, u0, g0))
        log_ratio = u0 + 0.5 * jnp.sum(p0 * p0) - u - 0.5 * jnp.sum(p * p)
        accept = jnp.log(jax.random.uniform(k_u, (), q0.dtype)) < log_ratio
        return HMCState(jnp.where(accept, q, q0), state.accepted + accept.astype(jnp.int32))


# ---- Horowitz: partial refresh, one leapfrog, flip after a rejection -------------------------------


class GHMCState(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    potential: jax.Array
    gradient: jax.Array


@dataclass(frozen=True)
class GHMC:
    gamma: float = 1.0

    claims = EXACT

    def init(self, key, position, estimator):
        k1, k2 = jax.random.split(key)
        u, g = value_and_grad(estimator, k1, position)
        return GHMCState(position, jax.random.normal(k2, position.shape, position.dtype), u, g)

    def step(self, key, state, step_size, estimator):
        k_p, k_est, k_u = jax.random.split(key, 3)
        q, p, u, g = state
        eps = jnp.asarray(step_size, q.dtype)
        keep = jnp.exp(-self.gamma * eps)
        p = keep * p + jnp.sqrt(-jnp.expm1(-2 * self.gamma * eps)) * jax.random.normal(k_p, p.shape, p.dtype)

        p_half = p - eps / 2 * g
        q_new = q + eps * p_half
        u_new, g_new = value_and_grad(estimator, k_est, q_new)
        p_new = p_half - eps / 2 * g_new

        delta = u_new + 0.5 * jnp.sum(p_new**2) - u - 0.5 * jnp.sum(p**2)
        accept = jax.random.uniform(k_u, (), q.dtype) < jnp.exp(-delta)
        return jax.lax.cond(
            accept,
            lambda: GHMCState(q_new, p_new, u_new, g_new),
            lambda: GHMCState(q, -p, u, g),
        )


# ---- a coin decides: MALA, or a random walk with Student steps --------------------------------------


def mala_or_student(target, dof=3.0, scale=1.0):
    del target  # same kernel for every target

    def mala(key, x, h, estimator):
        k_xi, k_u, k_est = jax.random.split(key, 3)
        u_x, g_x = value_and_grad(estimator, k_est, x)
        y = x - h * g_x + jnp.sqrt(2 * h) * jax.random.normal(k_xi, x.shape, x.dtype)
        u_y, g_y = value_and_grad(estimator, k_est, y)
        forward = -jnp.sum((y - x + h * g_x) ** 2) / (4 * h)
        backward = -jnp.sum((x - y + h * g_y) ** 2) / (4 * h)
        accept = jnp.log(jax.random.uniform(k_u, (), x.dtype)) < u_x - u_y + backward - forward
        return jnp.where(accept, y, x)

    def student(key, x, h, estimator):
        k_t, k_u, k_est = jax.random.split(key, 3)
        y = x + scale * jnp.sqrt(h) * jax.random.t(k_t, dof, x.shape, x.dtype)
        gain = value_and_grad(estimator, k_est, x)[0] - value_and_grad(estimator, k_est, y)[0]
        return jnp.where(jnp.log(jax.random.uniform(k_u, (), x.dtype)) < gain, y, x)

    def step(key, x, step_size, estimator):
        k_coin, k_move = jax.random.split(key)
        h = jnp.asarray(step_size, x.dtype)
        return jax.lax.cond(
            jax.random.bernoulli(k_coin, 0.5),
            lambda: mala(k_move, x, h, estimator),
            lambda: student(k_move, x, h, estimator),
        )

    return simple_sampler(step, claims=EXACT)


# ---- replica exchange: the cold chain, and a ladder of wide Gaussians -------------------------------

LADDER = (1.5, 4.0)  # standard deviations of the two hot chains, which are N(0, s^2)


def pt_init(key, position, estimator):
    hot = jax.random.normal(key, (len(LADDER), *position.shape), position.dtype)
    hot = hot * jnp.asarray(LADDER, position.dtype).reshape((-1,) + (1,) * position.ndim)
    return {"replicas": jnp.concatenate([position[None], hot])}


def pt_step(key, state, step_size, estimator):
    x = state["replicas"]
    dtype, levels = x.dtype, jnp.arange(x.shape[0])
    h = jnp.asarray(step_size, dtype)
    k_est, k_move, k_u, k_pair, k_swap = jax.random.split(key, 5)
    sd = jnp.asarray((1.0, *LADDER), dtype)

    def energy(level, point):
        u = value_and_grad(estimator, k_est, point)[0]
        return jnp.where(level == 0, u, jnp.sum(point * point) / (2 * sd[level] ** 2))

    # a random walk in every replica, wider where it is hot
    def walk(level, point, k1, k2):
        proposal = point + sd[level] * jnp.sqrt(2 * h) * jax.random.normal(k1, point.shape, dtype)
        gain = energy(level, point) - energy(level, proposal)
        return jnp.where(jnp.log(jax.random.uniform(k2, (), dtype)) < gain, proposal, point)

    x = jax.vmap(walk)(levels, x, jax.random.split(k_move, len(x)), jax.random.split(k_u, len(x)))

    # then one swap of neighbours, (0, 1) or (1, 2)
    i = jax.random.randint(k_pair, (), 0, x.shape[0] - 1)
    j = i + 1
    gain = energy(i, x[i]) + energy(j, x[j]) - energy(i, x[j]) - energy(j, x[i])
    swap = jnp.log(jax.random.uniform(k_swap, (), dtype)) < gain
    swapped = x.at[i].set(x[j]).at[j].set(x[i])
    return {"replicas": jnp.where(swap, swapped, x)}


replica_exchange = simple_sampler(
    pt_step,
    init=pt_init,
    position=lambda state: state["replicas"][0],
    claims=EXACT,
)
