"""Generalised HMC (Horowitz) with Neal's (2020) non-reversible update of the uniform of the Metropolis test.

State (x, p, u), law exp(-U(x)) N(p; 0, I) Unif(u; -1, 1).  One step, each part of which keeps that law:
  1. p <- a p + sqrt(1 - a^2) n
  2. (x*, p*) = flip o leapfrog(x, p);  accepted if |u| < r = exp(H - H*);  then u <- u / r   (|u| exp(-H) is conserved,
     so the map (x, p, u) -> (x*, p*, u / r) has Jacobian 1 / r = pi / pi*, and is an involution of the set |u| < r)
  3. p <- -p
  4. u <- u + delta + eta n', wrapped into (-1, 1).                       Exact at every step size.   Object: NonReversibleGHMC
"""
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@jax.tree_util.register_dataclass
@dataclass
class Chain:
    position: object
    momentum: jax.Array
    u: jax.Array


class NonReversibleGHMC:
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, keep=0.9, leapfrogs=3):
        if not -1 < keep < 1 or leapfrogs < 1:
            raise ValueError("keep in (-1, 1), leapfrogs >= 1")
        self.keep = keep
        self.leapfrogs = leapfrogs

    def init(self, key, position, estimator):
        kp, ku = jax.random.split(key)
        flat, _ = ravel_pytree(position)
        return Chain(
            position,
            jax.random.normal(kp, flat.shape, flat.dtype),
            jax.random.uniform(ku, (), flat.dtype, -1.0, 1.0),
        )

    def step(self, key, state, step_size, estimator):
        k_est, k_mom, k_u = jax.random.split(key, 3)
        x0, unravel = ravel_pytree(state.position)

        def value_and_grad(q):
            estimate = estimator.estimate(k_est, (), unravel(q))[0]
            return estimate.potential, ravel_pytree(estimate.gradient)[0]

        a = self.keep
        p0 = a * state.momentum + (1 - a * a) ** 0.5 * jax.random.normal(k_mom, x0.shape, x0.dtype)
        eps = jnp.sqrt(2 * step_size).astype(x0.dtype)
        u0_pot, g0 = value_and_grad(x0)

        def leapfrog(carry, _):
            x, p, g, _pot = carry
            p = p - eps / 2 * g
            x = x + eps * p
            pot, g = value_and_grad(x)
            p = p - eps / 2 * g
            return (x, p, g, pot), None

        (x1, p1, _, u1_pot), _ = jax.lax.scan(leapfrog, (x0, p0, g0, u0_pot), None, length=self.leapfrogs)
        log_r = (u0_pot + jnp.sum(p0**2) / 2) - (u1_pot + jnp.sum(p1**2) / 2)
        accept = jnp.log(jnp.abs(state.u)) < log_r
        x = jnp.where(accept, x1, x0)
        p = jnp.where(accept, p1, -p0)  # flip of the proposal and the closing flip cancel; a rejection is turned round
        u = jnp.where(accept, state.u * jnp.exp(-log_r), state.u)
        u = u + 0.3 + 0.1 * jax.random.normal(k_u, (), x0.dtype)
        u = (u + 1) % 2 - 1
        return Chain(unravel(x), p, u.astype(x0.dtype))
