"""Exact samplers that are neither a walk nor Hamiltonian: slice sampling with stepping out, elliptical slice
sampling, multiple-try Metropolis, delayed rejection, parallel tempering, a pseudo-marginal coin. exp(-U) is
invariant at every step size, which sets the scale of the moves."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

NEEDS = ("potential",)


def _energy(estimator, key, x):
    return estimator.estimate(key, (), x)[0].potential


def _slice_line(key, log_density, width, max_steps=8):
    """A point t of the slice through t = 0, by stepping out (at most `max_steps`) and shrinkage [Neal 2003]."""
    k1, k2, k3, k4 = jax.random.split(key, 4)
    level = log_density(0.0) - jax.random.exponential(k1)
    left = -width * jax.random.uniform(k2)
    steps_left = jax.random.randint(k3, (), 0, max_steps)
    inside = lambda t: log_density(t) > level

    def step_out(start, direction, budget):
        more = lambda carry: (carry[1] > 0) & inside(carry[0])
        return jax.lax.while_loop(more, lambda c: (c[0] + direction * width, c[1] - 1), (start, budget))[0]

    low = step_out(left, -1.0, steps_left)
    high = step_out(left + width, 1.0, max_steps - 1 - steps_left)

    def shrink(carry):
        key, low, high, t, _ = carry
        key, sub = jax.random.split(key)
        t = low + (high - low) * jax.random.uniform(sub)
        return key, jnp.where(t < 0, t, low), jnp.where(t < 0, high, t), t, inside(t)

    start = (k4, low, high, jnp.zeros_like(low), jnp.array(False))
    return jax.lax.while_loop(lambda carry: ~carry[4], shrink, start)[3]


def _slice_coordinates(key, x, h, estimator):
    width = 4 * jnp.sqrt(2 * h)

    def update(i, x):
        k1, k2 = jax.random.split(jax.random.fold_in(key, i))
        moved = lambda t: x.at[i].add(jnp.asarray(t, x.dtype))
        t = _slice_line(k1, lambda t: -_energy(estimator, k2, moved(t)), width)
        return moved(t)

    return jax.lax.fori_loop(0, x.size, update, x)


# Neal's slice sampler, one coordinate after the other.
slice_sampler = simple_sampler(_slice_coordinates, needs=NEEDS, claims=Claims(Source("", "Neal 2003"), ExactLaw()))


def _slice_direction(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    u = jax.random.normal(k1, x.shape, x.dtype)
    u = u / jnp.linalg.norm(u)
    t = _slice_line(k2, lambda t: -_energy(estimator, k3, x + t * u), 4 * jnp.sqrt(2 * h))
    return (x + t * u).astype(x.dtype)


# The same along one random direction.
slice_direction = simple_sampler(_slice_direction, needs=NEEDS)


def _elliptical(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    scale = 1.5
    nu = scale * jax.random.normal(k1, x.shape, x.dtype)
    log_likelihood = lambda z: 0.5 * jnp.sum(z * z) / scale**2 - _energy(estimator, k2, z)
    level = log_likelihood(x) - jax.random.exponential(k3, dtype=x.dtype)

    def shrink(carry):
        key, low, high, _, _ = carry
        key, sub = jax.random.split(key)
        angle = jax.random.uniform(sub, (), x.dtype, low, high)
        y = x * jnp.cos(angle) + nu * jnp.sin(angle)
        found = log_likelihood(y) > level
        return key, jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle), y, found

    k4, sub = jax.random.split(k4)
    width = jnp.minimum(2 * jnp.pi, 8 * jnp.sqrt(h)).astype(x.dtype)
    low = -width * jax.random.uniform(sub, (), x.dtype)
    start = (k4, low, low + width, x, jnp.array(False))
    return jax.lax.while_loop(lambda carry: ~carry[4], shrink, start)[3]


# Elliptical slice sampling with the pseudo-prior N(0, 1.5^2 I), on a bracket of angles of random place around 0.
elliptical_slice = simple_sampler(_elliptical, needs=NEEDS)


def _multiple_try(key, x, h, estimator, tries=3):
    k1, k2, k3, k4, k5, k6 = jax.random.split(key, 6)
    scale = 2 * jnp.sqrt(2 * h)
    energies = jax.vmap(lambda k, z: _energy(estimator, k, z))
    ys = x + scale * jax.random.normal(k1, (tries, *x.shape), x.dtype)
    forward = -energies(jax.random.split(k2, tries), ys)
    y = ys[jax.random.categorical(k3, forward)]
    others = y + scale * jax.random.normal(k4, (tries - 1, *x.shape), x.dtype)
    references = jnp.concatenate([others, x[None]])
    backward = -energies(jax.random.split(k5, tries), references)
    log_ratio = jax.nn.logsumexp(forward) - jax.nn.logsumexp(backward)
    return jnp.where(jnp.log(jax.random.uniform(k6, dtype=x.dtype)) < log_ratio, y, x)


# Multiple-try Metropolis (Liu, Liang and Wong) with weights pi(y), three tries by categorical, symmetric proposals.
multiple_try = simple_sampler(_multiple_try, needs=NEEDS, claims=Claims(Source("", "multiple try"), ExactLaw()))


def _log_reject(log_accept):
    """log(1 - min(1, exp(a))), -inf for a >= 0."""
    below = jnp.where(log_accept < 0, log_accept, -1.0)
    return jnp.where(log_accept < 0, jnp.log(-jnp.expm1(below)), -jnp.inf)


def _delayed_rejection(key, x, h, estimator):
    k1, k2, k3, k4, k5, k6, k7 = jax.random.split(key, 7)
    wide, narrow = 3 * jnp.sqrt(2 * h), 0.7 * jnp.sqrt(2 * h)
    U = _energy(estimator, k1, x)
    y = x + wide * jax.random.normal(k2, x.shape, x.dtype)
    V = _energy(estimator, k3, y)
    first = jax.random.uniform(k4, dtype=x.dtype) < jnp.exp(U - V)
    z = x + narrow * jax.random.normal(k5, x.shape, x.dtype)
    W = _energy(estimator, k6, z)
    log_q = lambda start: -jnp.sum((y - start) ** 2) / (2 * wide**2)
    log_ratio = (U - W) + log_q(z) - log_q(x) + _log_reject(W - V) - _log_reject(U - V)
    second = jnp.log(jax.random.uniform(k7, dtype=x.dtype)) < log_ratio
    return jnp.where(first, y, jnp.where(second, z, x))


# Delayed rejection (Tierney and Mira): after a rejected wide move a narrow one, with the ratio of the second stage.
delayed_rejection = simple_sampler(_delayed_rejection, needs=NEEDS)


class Replicas(NamedTuple):
    """The chain that is reported and a hot one with the law exp(-U / 4)."""

    cold: jax.Array
    hot: jax.Array


def _walk(key, x, scale, inverse_temperature, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = x + scale * jax.random.normal(k1, x.shape, x.dtype)
    log_ratio = inverse_temperature * (_energy(estimator, k2, x) - _energy(estimator, k3, y))
    return jnp.where(jnp.log(jax.random.uniform(k4, dtype=x.dtype)) < log_ratio, y, x)


def _tempering(key, state, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    cold = _walk(k1, state.cold, jnp.sqrt(2 * h), 1.0, estimator)
    hot = _walk(k2, state.hot, jnp.sqrt(8 * h), 0.25, estimator)
    log_ratio = 0.75 * (_energy(estimator, k3, cold) - _energy(estimator, k4, hot))
    swap = jnp.log(jax.random.uniform(k5, dtype=cold.dtype)) < log_ratio
    return Replicas(jnp.where(swap, hot, cold), jnp.where(swap, cold, hot))


# Parallel tempering with two replicas: Metropolis in each, and an exchange that is tested.
tempering = simple_sampler(
    _tempering,
    init=lambda key, position, estimator: Replicas(position, position),
    position=lambda s: s.cold,
    unpack=lambda s: s,
    pack=lambda key, z, estimator: Replicas(*z),
    needs=NEEDS,
)
