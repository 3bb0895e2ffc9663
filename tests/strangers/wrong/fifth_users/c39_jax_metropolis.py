"""Metropolis kernels in JAX: generalised HMC, dynamic HMC, MALA, several proposals, tempering, ensembles."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def _energy_and_grad(estimator, key):
    def evaluate(x):
        estimate = estimator.estimate(key, (), x)[0]
        return estimate.potential, estimate.gradient

    return evaluate


# --- generalised HMC ----------------------------------------------------------------------------------------------


class GHMCState(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    potential: jax.Array
    gradient: jax.Array


class GHMCInfo(NamedTuple):
    acceptance_probability: jax.Array
    is_accepted: jax.Array


@dataclass(frozen=True)
class GHMC:
    """Horowitz (1991): partial refreshment of the momentum, a leapfrog trajectory and a Metropolis test."""

    friction: float = 0.3
    num_integration_steps: int = 1
    claims = EXACT

    def init(self, key, position, estimator):
        k_p, k_e = jax.random.split(key)
        potential, gradient = _energy_and_grad(estimator, k_e)(position)
        return GHMCState(position, jax.random.normal(k_p, position.shape, position.dtype), potential, gradient)

    def step(self, key, state, step_size, estimator):
        k_p, k_e, k_u = jax.random.split(key, 3)
        evaluate = _energy_and_grad(estimator, k_e)
        alpha = jnp.exp(-self.friction * step_size).astype(state.momentum.dtype)
        noise = jax.random.normal(k_p, state.momentum.shape, state.momentum.dtype)
        state = state._replace(momentum=alpha * state.momentum + jnp.sqrt(1 - alpha**2) * noise)

        x, p, u, g = state
        for _ in range(self.num_integration_steps):
            p = p - 0.5 * step_size * g
            x = x + step_size * p
            u, g = evaluate(x)
            p = p - 0.5 * step_size * g
        proposal = GHMCState(x, p, u, g)

        hamiltonian = lambda s: s.potential + 0.5 * jnp.sum(s.momentum**2)
        log_ratio = hamiltonian(state) - hamiltonian(proposal)
        accepted = jnp.log(jax.random.uniform(k_u, dtype=x.dtype)) < log_ratio
        new = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, state)
        return new, GHMCInfo(jnp.exp(jnp.minimum(0.0, log_ratio)), accepted)


# --- HMC that stops at a U-turn -----------------------------------------------------------------------------------


def _dynamic_hmc(key, x0, step_size, estimator, max_steps=50):
    k_p, k_e, k_u = jax.random.split(key, 3)
    evaluate = _energy_and_grad(estimator, k_e)
    p0 = jax.random.normal(k_p, x0.shape, x0.dtype)
    u0, g0 = evaluate(x0)

    def going(carry):
        x, p, _, _, n = carry
        return (n < max_steps) & ((n == 0) | (jnp.sum((x - x0) * p) > 0))

    def leapfrog(carry):
        x, p, _, g, n = carry
        p = p - 0.5 * step_size * g
        x = x + step_size * p
        u, g = evaluate(x)
        return x, p - 0.5 * step_size * g, u, g, n + 1

    x, p, u, _, _ = jax.lax.while_loop(going, leapfrog, (x0, p0, u0, g0, 0))
    log_ratio = u0 + 0.5 * jnp.sum(p0**2) - u - 0.5 * jnp.sum(p**2)
    return jnp.where(jnp.log(jax.random.uniform(k_u, dtype=x0.dtype)) < log_ratio, x, x0)


dynamic_hmc = simple_sampler(_dynamic_hmc, claims=EXACT)


# --- MALA with a diagonal preconditioner --------------------------------------------------------------------------


def _preconditioned_mala(key, x, step_size, estimator):
    k_n, k_e, k_u = jax.random.split(key, 3)
    evaluate = _energy_and_grad(estimator, k_e)
    scales = jnp.linspace(1.0, 1.5, x.size, dtype=x.dtype).reshape(x.shape)

    def log_q(a, grad_a, b):
        return -jnp.sum((b - a + step_size * scales * grad_a) ** 2) / (4 * step_size)

    u_x, g_x = evaluate(x)
    y = x - step_size * scales * g_x + jnp.sqrt(2 * step_size * scales) * jax.random.normal(k_n, x.shape, x.dtype)
    u_y, g_y = evaluate(y)
    log_alpha = u_x - u_y + log_q(y, g_y, x) - log_q(x, g_x, y)
    return jnp.where(jnp.log(jax.random.uniform(k_u, dtype=x.dtype)) < log_alpha, y, x)


preconditioned_mala = simple_sampler(_preconditioned_mala, claims=EXACT)


# --- several proposals --------------------------------------------------------------------------------------------

NUM_TRIES = 4


def _multiple_try(key, x, step_size, estimator):
    """Propose several points, choose one by its density, accept or reject it."""
    k_n, k_c, k_e, k_u = jax.random.split(key, 4)
    logp = lambda y: -estimator.estimate(k_e, (), y)[0].potential
    tries = x + jnp.sqrt(2 * step_size) * jax.random.normal(k_n, (NUM_TRIES, *x.shape), x.dtype)
    log_weights = jax.vmap(logp)(tries)
    chosen = jax.random.categorical(k_c, log_weights)
    log_alpha = log_weights[chosen] - logp(x)
    return jnp.where(jnp.log(jax.random.uniform(k_u, dtype=x.dtype)) < log_alpha, tries[chosen], x)


multiple_try = simple_sampler(_multiple_try, claims=EXACT)


# --- parallel tempering -------------------------------------------------------------------------------------------

BETAS = (1.0, 0.2)


class ParallelTempering:
    """Random walks at two temperatures which exchange their positions."""

    claims = EXACT

    def init(self, key, position, estimator):
        energy = estimator.estimate(key, (), position)[0].potential
        return {"replicas": jnp.stack([position, position]), "energies": jnp.stack([energy, energy])}

    def position(self, state):
        return state["replicas"][0]

    def step(self, key, state, step_size, estimator):
        k_n, k_e, k_u, k_s = jax.random.split(key, 4)
        x, energies = state["replicas"], state["energies"]
        betas = jnp.asarray(BETAS, x.dtype)
        column = betas.reshape((-1,) + (1,) * (x.ndim - 1))
        y = x + jnp.sqrt(2 * step_size / column) * jax.random.normal(k_n, x.shape, x.dtype)
        proposed = jax.vmap(lambda q: estimator.estimate(k_e, (), q)[0].potential)(y)
        accept = jnp.log(jax.random.uniform(k_u, (2,), x.dtype)) < betas * (energies - proposed)
        x = jnp.where(accept.reshape(column.shape), y, x)
        energies = jnp.where(accept, proposed, energies)

        log_swap = (betas[0] - betas[1]) * (energies[0] - energies[1])
        swap = jnp.log(jax.random.uniform(k_s, dtype=x.dtype)) < log_swap
        x = jnp.where(swap, x[::-1], x)
        return {"replicas": x, "energies": energies}


# --- affine-invariant ensemble ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StretchMove:
    """Goodman & Weare (2010), each half of the ensemble moved by the other."""

    a: float = 2.0
    claims = EXACT

    def __post_init__(self):
        if not self.a > 1:
            raise ValueError("a must be larger than 1")

    def init(self, key, position, estimator):
        spread = 0.5 * jax.random.normal(key, (6, *position.shape), position.dtype)
        return {"walkers": position + spread}

    def position(self, state):
        return state["walkers"][0]

    def _half(self, key, movers, others, estimator):
        k_z, k_j, k_e, k_u = jax.random.split(key, 4)
        n, size = movers.shape[0], movers[0].size
        logp = jax.vmap(lambda q: -estimator.estimate(k_e, (), q)[0].potential)
        z = jax.random.uniform(k_z, (n,), movers.dtype, 1.0 / self.a, self.a)
        partner = others[jax.random.randint(k_j, (n,), 0, others.shape[0])]
        column = (n,) + (1,) * (movers.ndim - 1)
        y = partner + z.reshape(column) * (movers - partner)
        log_alpha = (size - 1) * jnp.log(z) + logp(y) - logp(movers)
        accept = jnp.log(jax.random.uniform(k_u, (n,), movers.dtype)) < log_alpha
        return jnp.where(accept.reshape(column), y, movers)

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        first, second = state["walkers"][:3], state["walkers"][3:]
        first = self._half(k1, first, second, estimator)
        second = self._half(k2, second, first, estimator)
        return {"walkers": jnp.concatenate([first, second])}
