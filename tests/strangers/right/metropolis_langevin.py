"""Metropolis-adjusted Langevin and relatives, all with exp(-U) invariant at every step size: MALA with and without
caches, with a constant or a position-dependent metric, on the preconditioned Crank-Nicolson proposal, and
Livingstone and Zanella's Barker proposal. The log densities of the proposal in both directions are written out;
NaN and infinite energies reject."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Diffusion, ExactLaw, Reversal, Source, StationaryMoments

NEEDS = ("gradient", "potential")


def _estimate(estimator, key, x):
    estimate = estimator.estimate(key, (), x)[0]
    return estimate.potential, estimate.gradient


def _mala(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    U, g = _estimate(estimator, k1, x)
    y = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
    V, f = _estimate(estimator, k3, y)
    forward = -jnp.sum((y - x + h * g) ** 2) / (4 * h)
    backward = -jnp.sum((x - y + h * f) ** 2) / (4 * h)
    return jnp.where(jnp.log(jax.random.uniform(k4, dtype=x.dtype)) < U - V + backward - forward, y, x)


# MALA without a cache, `log u < log ratio`.
mala = simple_sampler(_mala, needs=NEEDS)


class Cached(NamedTuple):
    """Position with its potential and gradient, and the state of the estimator."""

    position: jax.Array
    potential: jax.Array
    gradient: jax.Array
    estate: Any


@dataclass(frozen=True)
class CachedMALA:
    """MALA that keeps potential and gradient of the current point (the old ones on a rejection), at a temperature."""

    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    @property
    def claims(self):
        T = self.temperature
        return Claims(
            Source("roberts1996exponential", "section 1.4"),
            ExactLaw(temperature=T),
            Diffusion(lambda target: overdamped_dynamics(target, T)),
            StationaryMoments(lambda h, k: {"position": T / k}),
            Reversal(lambda z: z),
        )

    def init(self, key, position, estimator):
        k1, k2 = jax.random.split(key)
        estimate, estate = estimator.estimate(k2, estimator.init(k1, position), position)
        return Cached(position, estimate.potential, estimate.gradient, estate)

    def step(self, key, state, step_size, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        h, T = step_size, self.temperature
        x, U, g, _ = state
        y = x - h * g + jnp.sqrt(2 * h * T) * jax.random.normal(k1, x.shape, x.dtype)
        estimate, estate = estimator.estimate(k2, state.estate, y)
        V, f = estimate.potential, estimate.gradient
        # |x - y + h f|^2 - |y - x + h g|^2, expanded and divided by h
        squares = 2 * jnp.vdot(x - y, f + g) + h * (jnp.vdot(f, f) - jnp.vdot(g, g))
        log_ratio = (U - V - squares / 4) / T
        yes = -jax.random.exponential(k3, dtype=x.dtype) < jnp.where(jnp.isfinite(log_ratio), log_ratio, -jnp.inf)
        x, U, g = jax.tree.map(lambda new, old: jnp.where(yes, new, old), (y, V, f), (x, U, g))
        return Cached(x, U, g, estate)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state.position

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


# The dataclass at temperature 1/2.
cold_mala = CachedMALA(temperature=0.5)


def _preconditioned(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    d = x.size
    A = jnp.eye(d, dtype=x.dtype) - jnp.ones((d, d), x.dtype) / (2 * d)
    L = jnp.linalg.cholesky(A)
    U, g = _estimate(estimator, k1, x)
    y = x - h * A @ g + jnp.sqrt(2 * h) * L @ jax.random.normal(k2, x.shape, x.dtype)
    V, f = _estimate(estimator, k3, y)

    def log_q(start, gradient, end):
        white = jax.scipy.linalg.solve_triangular(L, end - start + h * A @ gradient, lower=True)
        return -jnp.sum(white**2) / (4 * h)

    ratio = jnp.exp(U - V + log_q(y, f, x) - log_q(x, g, y))
    return jnp.where(jax.random.uniform(k4, dtype=x.dtype) < ratio, y, x)


# MALA with a constant preconditioner.
preconditioned_mala = simple_sampler(_preconditioned, needs=NEEDS)


def _scale(x):
    return 0.5 + 1 / (1 + x * x)


def _position_dependent(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    U, g = _estimate(estimator, k1, x)
    y = x - h * _scale(x) * g + jnp.sqrt(2 * h * _scale(x)) * jax.random.normal(k2, x.shape, x.dtype)
    V, f = _estimate(estimator, k3, y)

    def log_q(start, gradient, end):
        D = _scale(start)
        return -jnp.sum((end - start + h * D * gradient) ** 2 / (4 * h * D) + 0.5 * jnp.log(D))

    accept = jnp.minimum(1.0, jnp.exp(U - V + log_q(y, f, x) - log_q(x, g, y)))
    return jnp.where(jax.random.bernoulli(k4, accept), y, x)


# A Langevin proposal whose variance depends on the position; its normalisation is in the ratio.
position_dependent_mala = simple_sampler(
    _position_dependent, needs=NEEDS, claims=Claims(Source("", "simplified manifold MALA"), ExactLaw())
)


def _pcn(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    a = jnp.exp(-h)
    y = a * x + jnp.sqrt(1 - a * a) * jax.random.normal(k1, x.shape, x.dtype)
    phi = lambda key, z: estimator.estimate(key, (), z)[0].potential - 0.5 * jnp.sum(z * z)
    return jnp.where(jax.random.uniform(k4, dtype=x.dtype) < jnp.exp(phi(k2, x) - phi(k3, y)), y, x)


# Preconditioned Crank-Nicolson: the proposal is reversible for N(0, I), so only U - |x|^2 / 2 is in the ratio.
pcn = simple_sampler(_pcn, needs=("potential",), claims=Claims(Source("", "pCN"), ExactLaw(), Reversal(lambda z: z)))


def _barker(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    U, g = _estimate(estimator, k1, x)
    z = jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
    keep = jax.random.uniform(k3, x.shape, x.dtype) < jax.nn.sigmoid(-z * g)
    y = x + jnp.where(keep, z, -z)
    V, f = _estimate(estimator, k4, y)
    log_ratio = U - V + jnp.sum(jax.nn.softplus((y - x) * g) - jax.nn.softplus((x - y) * f))
    return jnp.where(jnp.log(jax.random.uniform(k5, dtype=x.dtype)) < log_ratio, y, x)


# Livingstone and Zanella's Barker proposal: the sign of each increment leans down the gradient.
barker_proposal = simple_sampler(_barker, needs=NEEDS, claims=Claims(Source("", "Barker proposal"), ExactLaw()))


def _unadjusted_barker(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    g = estimator.estimate(k1, (), x)[0].gradient
    z = jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
    keep = jax.random.bernoulli(k3, jax.nn.sigmoid(-z * g))
    return x + jnp.where(keep, z, -z)


# The same without the test (stochastic gradient Barker dynamics): drift -h grad U, noise 2 h, weak order 1.
unadjusted_barker = simple_sampler(_unadjusted_barker)


def _mixture(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    far = jax.random.bernoulli(k1, 0.2)
    z = jax.random.normal(k2, x.shape, x.dtype)
    y = jnp.where(far, 2.0 * z, x + jnp.sqrt(2 * h) * z)
    U, V = _estimate(estimator, k3, x)[0], _estimate(estimator, k4, y)[0]
    log_ratio = U - V + jnp.where(far, jnp.sum(y * y - x * x) / 8, 0.0)
    return jnp.where(jax.random.uniform(k5, dtype=x.dtype) < jnp.exp(jnp.minimum(log_ratio, 0.0)), y, x)


# With probability 1/5 an independent proposal N(0, 4 I), else a random walk: a mixture of two exact kernels.
independent_or_walk = simple_sampler(_mixture, needs=("potential",))
