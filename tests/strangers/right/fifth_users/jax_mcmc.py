"""Exact (Metropolis-Hastings and slice) kernels in JAX.

HMC, MALA, Barker, parallel tempering, delayed rejection, elliptical slice sampling.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


# --------------------------------------------------------------------------------------------------------------------
# Hamiltonian Monte Carlo on pytrees, caching energy and gradient of the last accepted point


class HMCState(NamedTuple):
    position: object
    energy: jax.Array
    gradient: object
    num_accepted: jax.Array


def tree_dot(a, b):
    return sum(jnp.sum(x * y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)))


def tree_axpy(alpha, x, y):
    return jax.tree.map(lambda xi, yi: (yi + alpha * xi).astype(yi.dtype), x, y)


@dataclass(frozen=True)
class HMC:
    num_leapfrog: int = 4

    claims = EXACT

    def __post_init__(self):
        if self.num_leapfrog < 1:
            raise ValueError(f"num_leapfrog: {self.num_leapfrog} < 1")

    def init(self, key, position, estimator):
        estimate, _ = estimator.estimate(key, (), position)
        return HMCState(position, estimate.potential, estimate.gradient, jnp.int32(0))

    def step(self, key, state, eps, estimator):
        p_key, u_key, data_key = jax.random.split(key, 3)
        flat, unravel = ravel_pytree(state.position)
        p0 = unravel(jax.random.normal(p_key, flat.shape, flat.dtype))

        def leapfrog(_, carry):
            x, p, _, g = carry
            p = tree_axpy(-0.5 * eps, g, p)
            x = tree_axpy(eps, p, x)
            estimate = estimator.estimate(data_key, (), x)[0]
            return x, tree_axpy(-0.5 * eps, estimate.gradient, p), estimate.potential, estimate.gradient

        start = (state.position, p0, state.energy, state.gradient)
        x, p, energy, g = lax.fori_loop(0, self.num_leapfrog, leapfrog, start)
        log_ratio = (state.energy + 0.5 * tree_dot(p0, p0)) - (energy + 0.5 * tree_dot(p, p))
        log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
        accept = jnp.log(jax.random.uniform(u_key, (), log_ratio.dtype)) < log_ratio
        proposed = HMCState(x, energy, g, state.num_accepted + 1)
        return jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposed, state)


# --------------------------------------------------------------------------------------------------------------------
# MALA in the conventions of BlackJAX: (state, info), log density and its gradient in the state


class MALAState(NamedTuple):
    position: jax.Array
    logdensity: jax.Array
    logdensity_grad: jax.Array


class MALAInfo(NamedTuple):
    acceptance_rate: jax.Array
    is_accepted: jax.Array


def mala_init(rng_key, position, estimator):
    estimate, _ = estimator.estimate(rng_key, (), position)
    return MALAState(position, -estimate.potential, -estimate.gradient)


def transition_energy(state, new_state, step_size):
    """Minus the log of pi(state) q(new_state | state), up to a constant."""
    theta = new_state.position - state.position - step_size * state.logdensity_grad
    return -state.logdensity + 0.25 * (1.0 / step_size) * jnp.sum(theta * theta)


def mala_kernel(rng_key, state, step_size, estimator):
    key_integrator, key_rmh, key_data = jax.random.split(rng_key, 3)
    noise = jax.random.normal(key_integrator, state.position.shape, state.position.dtype)
    position = state.position + step_size * state.logdensity_grad + jnp.sqrt(2 * step_size) * noise
    new_state = mala_init(key_data, position, estimator)
    delta = transition_energy(state, new_state, step_size) - transition_energy(new_state, state, step_size)
    delta = jnp.where(jnp.isnan(delta), -jnp.inf, delta)
    p_accept = jnp.clip(jnp.exp(delta), max=1.0)
    do_accept = jax.random.bernoulli(key_rmh, p_accept)
    return lax.cond(do_accept, lambda: new_state, lambda: state), MALAInfo(p_accept, do_accept)


mala = simple_sampler(mala_kernel, init=mala_init, claims=EXACT)


# --------------------------------------------------------------------------------------------------------------------
# Barker proposal (Livingstone & Zanella 2022), on a raveled position


def barker_step(key, position, h, estimator):
    x, unravel = ravel_pytree(position)
    k_size, k_sign, k_mh, k_data = jax.random.split(key, 4)

    def energy_and_slope(q):
        estimate = estimator.estimate(k_data, (), unravel(q))[0]
        return estimate.potential, ravel_pytree(estimate.gradient)[0]

    ux, gx = energy_and_slope(x)
    z = jnp.sqrt(2 * h) * jax.random.normal(k_size, x.shape, x.dtype)
    keep_sign = jax.random.uniform(k_sign, x.shape, x.dtype) < jax.nn.sigmoid(-z * gx)
    y = x + jnp.where(keep_sign, z, -z)
    uy, gy = energy_and_slope(y)
    step = y - x
    log_alpha = ux - uy + jnp.sum(jax.nn.softplus(step * gx) - jax.nn.softplus(-step * gy))
    accept = jnp.log1p(-jax.random.uniform(k_mh, (), x.dtype)) < log_alpha
    return unravel(jnp.where(accept, y, x))


barker = simple_sampler(barker_step, claims=EXACT)


# --------------------------------------------------------------------------------------------------------------------
# Parallel tempering: random walks at three temperatures, one swap of neighbours per step

BETAS = (1.0, 0.5, 0.25)


def _energies(estimator, key, xs):
    return jax.vmap(lambda x: estimator.estimate(key, (), x)[0].potential)(xs)


def pt_init(key, position, estimator):
    replicas = jnp.stack([position] * len(BETAS))
    return {"replicas": replicas, "energies": _energies(estimator, key, replicas), "swaps": jnp.int32(0)}


def pt_step(key, state, h, estimator):
    k_move, k_accept, k_pair, k_swap, k_data = jax.random.split(key, 5)
    xs, es = state["replicas"], state["energies"]
    beta = jnp.asarray(BETAS, es.dtype)

    # within temperature
    scale = jnp.sqrt(2 * h / beta).reshape((-1,) + (1,) * (xs.ndim - 1)).astype(xs.dtype)
    ys = xs + scale * jax.random.normal(k_move, xs.shape, xs.dtype)
    fs = _energies(estimator, k_data, ys)
    ok = jnp.log(jax.random.uniform(k_accept, es.shape, es.dtype)) < beta * (es - fs)
    xs = jax.vmap(jnp.where)(ok, ys, xs)
    es = jnp.where(ok, fs, es)

    # between temperatures
    i = jax.random.randint(k_pair, (), 0, len(BETAS) - 1)
    log_r = (beta[i] - beta[i + 1]) * (es[i] - es[i + 1])
    swap = jnp.log(jax.random.uniform(k_swap, (), es.dtype)) < log_r
    identity = jnp.arange(len(BETAS))
    order = jnp.where(swap, identity.at[i].set(i + 1).at[i + 1].set(i), identity)
    return {"replicas": xs[order], "energies": es[order], "swaps": state["swaps"] + swap.astype(jnp.int32)}


parallel_tempering = simple_sampler(pt_step, init=pt_init, position=lambda s: s["replicas"][0], claims=EXACT)


# --------------------------------------------------------------------------------------------------------------------
# Delayed rejection (Tierney & Mira 1999): a bold random walk, then a timid one from the same place


def _log_one_minus_exp(a):
    """log(1 - exp(a)), a <= 0."""
    return jnp.log(-jnp.expm1(a))


def dr_step(key, x, h, estimator):
    k1, k2, ka1, ka2, kd = jax.random.split(key, 5)
    energy = functools.partial(lambda k, q: estimator.estimate(k, (), q)[0].potential, kd)
    bold = 2.0 * jnp.sqrt(2 * h)
    timid = bold / 4

    u0 = energy(x)
    y1 = x + bold * jax.random.normal(k1, x.shape, x.dtype)
    u1 = energy(y1)
    log_a1 = jnp.minimum(0.0, u0 - u1)
    first = jnp.log(jax.random.uniform(ka1, (), x.dtype)) < log_a1

    def second_stage():
        y2 = x + timid * jax.random.normal(k2, x.shape, x.dtype)
        u2 = energy(y2)
        log_a1_back = jnp.minimum(0.0, u2 - u1)
        log_q = (jnp.sum((y1 - x) ** 2) - jnp.sum((y1 - y2) ** 2)) / (2 * bold**2)
        log_a2 = u0 - u2 + log_q + _log_one_minus_exp(log_a1_back) - _log_one_minus_exp(log_a1)
        second = jnp.log(jax.random.uniform(ka2, (), x.dtype)) < log_a2  # False for NaN
        return jnp.where(second, y2, x)

    return lax.cond(first, lambda: y1, second_stage)


delayed_rejection = simple_sampler(dr_step, claims=EXACT)


# --------------------------------------------------------------------------------------------------------------------
# Elliptical slice sampling (Murray, Adams & MacKay 2010)


class EllipticalSlice:
    """Relative to a reference N(0, prior_std^2 I), by which exp(-U) is divided to get the "likelihood"."""

    claims = Claims(Source("murray2010elliptical", "figure 2"), ExactLaw())
    max_shrinks = 100

    def __init__(self, prior_std=1.0):
        if prior_std <= 0:
            raise ValueError("prior_std must be positive")
        self.prior_std = prior_std

    def step(self, key, x, step_size, estimator):
        del step_size  # nothing to tune
        key, k_nu, k_level, k_angle, k_data = jax.random.split(key, 5)

        def loglik(q):
            return -estimator.estimate(k_data, (), q)[0].potential + 0.5 * jnp.sum(jnp.square(q / self.prior_std))

        nu = self.prior_std * jax.random.normal(k_nu, x.shape, x.dtype)
        threshold = loglik(x) - jax.random.exponential(k_level, (), x.dtype)
        theta = jax.random.uniform(k_angle, (), x.dtype, 0.0, 2 * jnp.pi)
        point = lambda angle: x * jnp.cos(angle) + nu * jnp.sin(angle)

        def keep_going(carry):
            _, theta, _, _, i = carry
            return ~(loglik(point(theta)) > threshold) & (i < self.max_shrinks)

        def shrink(carry):
            k, theta, lo, hi, i = carry
            lo, hi = jnp.where(theta < 0, theta, lo), jnp.where(theta < 0, hi, theta)
            k, sub = jax.random.split(k)
            return k, lo + (hi - lo) * jax.random.uniform(sub, (), x.dtype), lo, hi, i + 1

        start = (key, theta, theta - 2 * jnp.pi, theta, 0)
        _, theta, _, _, i = lax.while_loop(keep_going, shrink, start)
        return jnp.where(i < self.max_shrinks, point(theta), x)
