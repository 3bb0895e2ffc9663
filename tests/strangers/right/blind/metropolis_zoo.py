"""Metropolis kernels and a slice sampler. All leave exp(-U) invariant at every step size, given exact potentials."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def exact():
    return Claims(Source("", "own"), ExactLaw(), conditions=("exact gradient",))


# ---------------------------------------------------------------- 1. generalised HMC


class GHMCState(NamedTuple):
    position: object
    momentum: jax.Array


class HorowitzHMC:
    """Generalised HMC (Horowitz): p is refreshed in part, L leapfrog steps of size h, and the momentum is flipped on REJECTION.

    Refresh keeps N(0, 1); the proposal R o leapfrog^L is an involution of volume 1, tested with exp(H - H'), after which R is
    applied in either case: accepted states go on, rejected ones turn round. Each of the three keeps exp(-U - |p|^2 / 2).
    """

    needs = ("gradient", "potential")
    claims = exact()

    def __init__(self, friction=1.0, leaps=2):
        self.friction = friction
        self.leaps = leaps

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        return GHMCState(position, jax.random.normal(key, flat.shape, flat.dtype))

    def position(self, state):
        return state.position

    def step(self, key, state, step_size, estimator):
        k_model, k_refresh, k_accept = jax.random.split(key, 3)
        q0, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, q0.dtype)

        def look(q):
            found = estimator.estimate(k_model, (), unravel(q))[0]
            return found.potential, ravel_pytree(found.gradient)[0]

        kept = jnp.exp(-self.friction * h)
        fresh = jax.random.normal(k_refresh, q0.shape, q0.dtype)
        p0 = kept * state.momentum + jnp.sqrt(-jnp.expm1(-2 * self.friction * h)) * fresh

        u0, g = look(q0)
        q, p, u = q0, p0, u0
        for _ in range(self.leaps):
            p = p - h / 2 * g
            q = q + h * p
            u, g = look(q)
            p = p - h / 2 * g
        log_ratio = (u0 + jnp.sum(p0**2) / 2) - (u + jnp.sum(p**2) / 2)
        accepted = jnp.log(jax.random.uniform(k_accept, (), q0.dtype)) < log_ratio
        return GHMCState(unravel(jnp.where(accepted, q, q0)), jnp.where(accepted, p, -p0))


generalised_hmc = HorowitzHMC()


# ---------------------------------------------------------------- 2. multiple-try Metropolis


def make_multiple_try(tries):
    """Multiple-try Metropolis (Liu, Liang, Wong 2000) with the symmetric proposal N(x, 2 h) and weights pi(y).

    y is chosen of y_1 .. y_k with probability ~ pi(y_j); reference points x*_1 .. x*_(k-1) ~ N(y, 2 h), x*_k = x; accepted with
    min(1, sum pi(y_j) / sum pi(x*_j)): detailed balance by Theorem 1 there (w(x, y) = pi(x) T(x, y) lambda, lambda = 1 / T).
    """

    def step(key, position, step_size, estimator):
        k_model, k_tries, k_choice, k_reference, k_accept = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)
        width = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype))

        def log_density(flat):
            return -estimator.estimate(k_model, (), unravel(flat))[0].potential

        many = jax.vmap(log_density)
        candidates = x + width * jax.random.normal(k_tries, (tries, x.size), x.dtype)
        forward = many(candidates)
        y = candidates[jax.random.categorical(k_choice, forward)]
        others = y + width * jax.random.normal(k_reference, (tries - 1, x.size), x.dtype)
        backward = many(jnp.concatenate([others, x[None]]))
        log_ratio = logsumexp(forward) - logsumexp(backward)
        accepted = jnp.log(jax.random.uniform(k_accept, (), x.dtype)) < log_ratio
        return unravel(jnp.where(accepted, y, x))

    return simple_sampler(step, needs=("potential",), claims=exact())


multiple_try = make_multiple_try(tries=4)


# ---------------------------------------------------------------- 3. delayed acceptance


class DelayedState(NamedTuple):
    position: object
    energy: jax.Array


def _surrogate(flat):
    return jnp.sum(jnp.sqrt(1 + flat**2))


def _delayed_init(key, position, estimator):
    return DelayedState(position, jnp.asarray(estimator.estimate(key, (), position)[0].potential))


def _delayed_step(key, state, step_size, estimator):
    k_model, k_walk, k_first, k_second = jax.random.split(key, 4)
    x, unravel = ravel_pytree(state.position)
    h = jnp.asarray(step_size, x.dtype)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k_walk, x.shape, x.dtype)
    gain = _surrogate(x) - _surrogate(y)

    def promote(old):
        energy = jnp.asarray(estimator.estimate(k_model, (), unravel(y))[0].potential, old.energy.dtype)
        accepted = jnp.log(jax.random.uniform(k_second, (), x.dtype)) < old.energy - energy - gain
        return DelayedState(unravel(jnp.where(accepted, y, x)), jnp.where(accepted, energy, old.energy))

    def stay(old):
        return DelayedState(unravel(x), old.energy)

    return lax.cond(jnp.log(jax.random.uniform(k_first, (), x.dtype)) < gain, promote, stay, state)


delayed_acceptance = simple_sampler(
    _delayed_step,
    init=_delayed_init,
    position=lambda state: state.position,
    unpack=lambda state: state.position,
    pack=_delayed_init,
    needs=("potential",),
    claims=exact(),
)
"""Delayed acceptance (Christen and Fox 2005): a walk N(x, 2 h) is tested with the surrogate S(x) = sum sqrt(1 + x^2), and U is
looked at only if it passes. a = min(1, e^(S(x) - S(y))) min(1, e^(U(x) - U(y) - S(x) + S(y))): pi(x) a(x, y) is symmetric, as
min(1, s) and min(1, r / s) have the ratios s and r / s to their reverses. U(x) is cached in the state."""


# ---------------------------------------------------------------- 4. HMC with a random length and a random step


def _random_hmc_step(key, position, step_size, estimator):
    """HMC with fresh momentum, L ~ uniform {1 .. 5} leapfrog steps of eps = sqrt(2 h) u, u ~ U(1/2, 3/2), Metropolis test.

    For each (L, eps) the kernel is reversible; both are drawn without looking at the state, and a mixture of reversible kernels
    with fixed weights is reversible.
    """
    k_model, k_momentum, k_length, k_jitter, k_accept = jax.random.split(key, 5)
    x, unravel = ravel_pytree(position)
    jitter = jax.random.uniform(k_jitter, (), x.dtype, 0.5, 1.5)
    eps = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype)) * jitter
    length = jax.random.randint(k_length, (), 1, 6)

    def potential(q):
        return estimator.estimate(k_model, (), unravel(q))[0].potential

    def gradient(q):
        return ravel_pytree(estimator.estimate(k_model, (), unravel(q))[0].gradient)[0].astype(x.dtype)

    def leapfrog(_, carry):
        q, p, g = carry
        p = p - eps / 2 * g
        q = q + eps * p
        g = gradient(q)
        return q, p - eps / 2 * g, g

    p0 = jax.random.normal(k_momentum, x.shape, x.dtype)
    y, p, _ = lax.fori_loop(0, length, leapfrog, (x, p0, gradient(x)))
    log_ratio = potential(x) + jnp.sum(p0**2) / 2 - potential(y) - jnp.sum(p**2) / 2
    accepted = jnp.log(jax.random.uniform(k_accept, (), x.dtype)) < log_ratio
    return unravel(jnp.where(accepted, y, x))


random_hmc = simple_sampler(_random_hmc_step, needs=("gradient", "potential"), claims=exact())


# ---------------------------------------------------------------- 5. slice sampling within Gibbs


def slice_within_gibbs(reach=6, shrinks=100):
    """Univariate slice sampling (Neal 2003: stepping out at most `reach` widths, shrinkage), all coordinates in a random order.

    Each update keeps the law given the other coordinates (Neal, section 4.3), for every width, here 2 sqrt(2 h); so does a sweep in
    an order that does not look at the state. The cap on shrinkage keeps balance: x -> y and y -> x reject the same points, as often.
    """

    def step(key, position, step_size, estimator):
        k_model, k_order, k_sweep = jax.random.split(key, 3)
        start, unravel = ravel_pytree(position)
        dtype = start.dtype
        width = 2 * jnp.sqrt(2 * jnp.asarray(step_size, dtype))
        order = jax.random.permutation(k_order, start.size)

        def update(i, x):
            k_level, k_place, k_share, k_shrink = jax.random.split(jax.random.fold_in(k_sweep, i), 4)
            coordinate = order[i]
            here = x[coordinate]

            def at(value):
                moved = unravel(x.at[coordinate].set(value))
                return jnp.asarray(-estimator.estimate(k_model, (), moved)[0].potential, dtype)

            level = at(here) - jax.random.exponential(k_level, (), dtype)
            left = here - width * jax.random.uniform(k_place, (), dtype)
            right = left + width
            down = jax.random.randint(k_share, (), 0, reach)
            up = reach - 1 - down
            inside = lambda c: (c[1] > 0) & (at(c[0]) > level)
            left, _ = lax.while_loop(inside, lambda c: (c[0] - width, c[1] - 1), (left, down))
            right, _ = lax.while_loop(inside, lambda c: (c[0] + width, c[1] - 1), (right, up))

            def searching(c):
                return ~c["found"] & (c["count"] < shrinks)

            def shrink(c):
                key, k_draw = jax.random.split(c["key"])
                value = c["left"] + (c["right"] - c["left"]) * jax.random.uniform(k_draw, (), dtype)
                found = at(value) >= level
                return {
                    "key": key,
                    "left": jnp.where(~found & (value < here), value, c["left"]),
                    "right": jnp.where(~found & (value >= here), value, c["right"]),
                    "value": value,
                    "found": found,
                    "count": c["count"] + 1,
                }

            first = {
                "key": k_shrink,
                "left": left,
                "right": right,
                "value": here,
                "found": jnp.zeros((), bool),
                "count": jnp.zeros((), jnp.int32),
            }
            last = lax.while_loop(searching, shrink, first)
            return x.at[coordinate].set(jnp.where(last["found"], last["value"], here))

        return unravel(lax.fori_loop(0, start.size, update, start))

    return simple_sampler(step, needs=("potential",), claims=exact())


slice_gibbs = slice_within_gibbs()
