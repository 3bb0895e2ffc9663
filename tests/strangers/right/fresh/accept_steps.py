"""Metropolis kernels that decide more than once in a step, or whose decision outlives it. All leave exp(-U), times the
law of what else is carried, invariant at every step size."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("metropolis1953equation", "the algorithm"), ExactLaw())


def both(estimator, key, x):
    """(U, grad U) at x."""
    estimate = estimator.estimate(key, (), x)[0]
    return estimate.potential, estimate.gradient


def normal(key, x):
    """Normal of the shape of x."""
    return jax.random.normal(key, x.shape, x.dtype)


def accepted(key, log_rate):
    """True with probability min(1, exp(log_rate))."""
    return jnp.log(jax.random.uniform(key, dtype=log_rate.dtype)) < log_rate


def _mode_jump(key, x, h, estimator):
    # A walk, then the reflection x -> -x, an involution that keeps volume; each has its own decision.
    a, b, c, d = jax.random.split(key, 4)
    u = lambda x: both(estimator, a, x)[0]
    y = x + jnp.sqrt(2 * h) * normal(b, x)
    x = jnp.where(accepted(c, u(x) - u(y)), y, x)
    return jnp.where(accepted(d, u(x) - u(-x)), -x, x)


mode_jump = simple_sampler(_mode_jump)


def _mala_sweep(key, x, h, estimator):
    # MALA of each coordinate given the others, in order; a product of kernels that keep exp(-U).
    flat, shape = x.ravel(), x.shape

    def evaluate(flat, i):
        potential, gradient = both(estimator, key, flat.reshape(shape))
        return potential, gradient.ravel()[i]

    def one(flat, i):
        a, b = jax.random.split(jax.random.fold_in(key, i))
        u, g = evaluate(flat, i)
        old = flat[i]
        new = old - h * g + jnp.sqrt(2 * h) * jax.random.normal(a, dtype=flat.dtype)
        moved = flat.at[i].set(new)
        v, back = evaluate(moved, i)
        log_rate = u - v + ((new - old + h * g) ** 2 - (old - new + h * back) ** 2) / (4 * h)
        return jnp.where(accepted(b, log_rate), moved, flat), None

    return jax.lax.scan(one, flat, jnp.arange(flat.size))[0].reshape(shape)


mala_sweep = simple_sampler(_mala_sweep, claims=EXACT)


def _walk_then_scale(key, x, h, estimator):
    # A walk, then x -> x exp(s z) with its Jacobian exp(d s z).
    a, b, c, d = jax.random.split(key, 4)
    u = lambda x: both(estimator, key, x)[0]
    y = x + jnp.sqrt(2 * h) * normal(a, x)
    x = jax.lax.select(accepted(b, u(x) - u(y)), y, x)
    s = jnp.sqrt(h) * jax.random.normal(c, dtype=x.dtype)
    y = x * jnp.exp(s)
    return jax.lax.select(accepted(d, u(x) - u(y) + x.size * s), y, x)


walk_then_scale = simple_sampler(_walk_then_scale, needs=("potential",), claims=EXACT)


class Phase(NamedTuple):
    q: Any
    p: Any


class ExtraChance:
    """Generalised HMC with extra chances (Campos and Sanz-Serna): one uniform, up to four lengths of the trajectory.

    The first length n with exp(H_0 - H_n) > u is taken; the momentum is reversed if there is none.
    """

    chances = 4

    def init(self, key, position, estimator):
        return Phase(position, normal(key, position))

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        q, p = state.q, jnp.sqrt(1 - 0.3) * state.p + jnp.sqrt(0.3) * normal(a, state.q)
        u, g = both(estimator, key, q)
        energy = u + jnp.sum(p**2) / 2
        log_u = jnp.log(jax.random.uniform(b, dtype=q.dtype))
        found, end = jnp.asarray(False), Phase(q, -p)
        y, r = q, p
        for _ in range(self.chances):
            r = r - h / 2 * g
            y = y + h * r
            u, g = both(estimator, key, y)
            r = r - h / 2 * g
            take = ~found & (log_u < energy - u - jnp.sum(r**2) / 2)
            end = Phase(jnp.where(take, y, end.q), jnp.where(take, r, end.p))
            found = found | take
        return end

    def position(self, state):
        return state.q


extra_chance = ExtraChance()


class Kept(NamedTuple):
    position: Any
    v: Any


class PersistentUniform:
    """Neal's non-reversible update: |v| is the uniform of the decision, v uniform on (-1, 1) and independent of x.

    v is moved on by 0.23 modulo 2; when x moves to y, v is divided by pi(y) / pi(x).
    """

    needs = ("potential",)
    claims = Claims(Source("", "Neal (2020), non-reversibly updating a uniform value"), ExactLaw())

    def init(self, key, position, estimator):
        return Kept(position, jax.random.uniform(key, (), position.dtype, -1.0, 1.0))

    def step(self, key, state, h, estimator):
        x, v = state
        v = v + 0.23
        v = jnp.where(v > 1, v - 2, v)
        y = x + jnp.sqrt(2 * h) * normal(key, x)
        ratio = jnp.exp(both(estimator, key, x)[0] - both(estimator, key, y)[0])
        ok = jnp.abs(v) < ratio
        return Kept(jnp.where(ok, y, x), jnp.where(ok, v / ratio, v))


persistent_uniform = PersistentUniform()
