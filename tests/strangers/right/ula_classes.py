"""Overdamped samplers as classes and dataclasses with options and with claims, as someone writes them who has read
samplers/types.py: SGLD at a temperature, weak Euler, exponential Euler, preconditioned, Riemannian and
irreversible Langevin, Leimkuhler-Matthews. Every one is a weak order 1 scheme that keeps exp(-U / T) in the
limit h -> 0."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.simple import PositionMixin, PositionState, simple_sampler
from sgmcmc_verification.samplers.types import (
    CarriedState,
    Claims,
    Diffusion,
    IndependentNoise,
    Source,
    StationaryLaw,
    StationaryMoments,
)


class PlainLangevin:
    """SGLD as a bare class with nothing but `step`; give the class itself or an instance."""

    def step(self, key, x, step_size, estimator):
        k1, k2 = jax.random.split(key)
        g = estimator.estimate(k1, (), x)[0].gradient
        return x - step_size * g + jnp.sqrt(2 * step_size) * jax.random.normal(k2, x.shape, x.dtype)


@dataclass(frozen=True)
class TemperedSGLD(PositionMixin):
    """x - h grad U + N(0, 2 h T): law exp(-U / T) + O(h); on U = k x^2 / 2 it is N(0, T / (k (1 - h k / 2)))."""

    temperature: float = 1.0
    rademacher: bool = False
    clip: float | None = None

    backend = "jax"
    needs = frozenset({"gradient"})

    @property
    def claims(self):
        T = self.temperature
        return Claims(
            Source("welling2011bayesian", "equation (4)"),
            StationaryLaw(order=1, temperature=T),
            Diffusion(lambda target: overdamped_dynamics(target, T), weak_order=1),
            StationaryMoments(lambda h, k: {"position": T / (k * (1 - h * k / 2))}),
            IndependentNoise(),
            conditions=("exact gradient",),
        )

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        estimate, estate = estimator.estimate(k1, state.estate, state.position)
        draw = jax.random.rademacher if self.rademacher else jax.random.normal
        scale = jnp.sqrt(2 * step_size * self.temperature)

        def move(x, g, k):
            g = g if self.clip is None else jnp.clip(g, -self.clip, self.clip)
            return x - step_size * g + scale * draw(k, x.shape, x.dtype)

        leaves, structure = jax.tree.flatten(state.position)
        keys = structure.unflatten(list(jax.random.split(k2, len(leaves))))
        return PositionState(jax.tree.map(move, state.position, estimate.gradient, keys), estate)


# Weak Euler with fair signs, by a flag of the dataclass: the first three moments are those of the normal noise.
signs = TemperedSGLD(rademacher=True)
# A hot chain with a clip of 1e9 that never binds: the law is exp(-U / 2).
hot = TemperedSGLD(temperature=2.0, clip=1e9)


@dataclass(frozen=True)
class ExponentialEuler:
    """x - (1 - e^-ah)/a grad U + N(0, (1 - e^-2ah)/a): exact for grad U = a x, O(h) otherwise."""

    rate: float = 1.0

    @property
    def claims(self):
        a = self.rate

        def variance(h, k):
            m = -jnp.expm1(-a * h) / a
            return {"position": float(-jnp.expm1(-2 * a * h) / a / (2 * m * k - m * m * k * k))}

        return Claims(
            Source("", "exponential Euler, Lord and others"),
            StationaryLaw(order=1),
            Diffusion(overdamped_dynamics, weak_order=1),
            StationaryMoments(variance),
            IndependentNoise(),
        )

    def step(self, key, x, step_size, estimator):
        k1, k2 = jax.random.split(key)
        a = self.rate
        g = estimator.estimate(k1, (), x)[0].gradient
        noise = jax.random.normal(k2, x.shape, x.dtype)
        return x + jnp.expm1(-a * step_size) / a * g + jnp.sqrt(-jnp.expm1(-2 * a * step_size) / a) * noise


def _dynamics(D, Q=None):
    def build(target):
        n = target.size
        zero = lambda z: jnp.zeros((n, n), z.dtype)
        return Dynamics(target.flat_potential, D, Q or zero, coordinate_names(n), n)

    return build


def _constant(z):
    n = z.size
    return jnp.eye(n, dtype=z.dtype) + 0.3 * (jnp.eye(n, k=1, dtype=z.dtype) + jnp.eye(n, k=-1, dtype=z.dtype))


def _preconditioned(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    A = _constant(x)
    noise = jnp.linalg.cholesky(A) @ jax.random.normal(k2, x.shape, x.dtype)
    return x - h * A @ estimator.estimate(k1, (), x)[0].gradient + jnp.sqrt(2 * h) * noise


# SGLD with a constant tridiagonal preconditioner (positive definite: eigenvalues above 0.4), claimed as D = A.
preconditioned = simple_sampler(
    _preconditioned,
    claims=Claims(
        Source("", "preconditioned Langevin"),
        StationaryLaw(order=1),
        Diffusion(_dynamics(_constant), weak_order=1),
        IndependentNoise(),
    ),
)


def _softened(z):
    return jnp.diag(0.5 + 1 / (1 + z * z))


def _riemannian(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    D = 0.5 + 1 / (1 + x * x)
    gamma = -2 * x / (1 + x * x) ** 2
    drift = gamma - D * estimator.estimate(k1, (), x)[0].gradient
    return x + h * drift + jnp.sqrt(2 * h * D) * jax.random.normal(k2, x.shape, x.dtype)


# Riemannian SGLD with a diagonal D(x) and its Gamma, claimed.
riemannian = simple_sampler(
    _riemannian,
    claims=Claims(
        Source("ma2015complete", "section 3.1"),
        StationaryLaw(order=1),
        Diffusion(_dynamics(_softened), weak_order=1),
    ),
)


def _rotation(z):
    n = z.size
    upper = jnp.triu(jnp.ones((n, n), z.dtype), 1)
    return jnp.cos(z[0]) * (upper - upper.T)


def _irreversible(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), x)[0].gradient
    gamma = jnp.einsum("ijj->i", jax.jacfwd(_rotation)(x))
    return x + h * (gamma - g - _rotation(x) @ g) + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)


# Irreversible Langevin with Q(x) = cos(x_0) J and Gamma = div Q, claimed.
irreversible = simple_sampler(
    _irreversible,
    claims=Claims(
        Source("ma2015complete", "theorem 1"),
        StationaryLaw(order=1),
        Diffusion(_dynamics(lambda z: jnp.eye(z.size, dtype=z.dtype), _rotation), weak_order=1),
        IndependentNoise(),
    ),
)


class LMState(NamedTuple):
    """Hidden position X = x - sqrt(h T / 2) R with the draw R and the last step size; x is what is reported."""

    hidden: jax.Array
    noise: jax.Array
    step_size: jax.Array


@dataclass(frozen=True)
class LeimkuhlerMatthews:
    """x' = x - h grad U(x) + sqrt(h T / 2) (R + R'), written as a Markov chain in X = x - sqrt(h T / 2) R."""

    temperature: float = 1.0

    @property
    def claims(self):
        T = self.temperature
        return Claims(
            Source("leimkuhler2013rational", "limit of BAOAB"),
            StationaryLaw(order=2, temperature=T),
            Diffusion(lambda target: overdamped_dynamics(target, T), weak_order=1),
            CarriedState("the draw of the next step"),
            StationaryMoments(lambda h, k: {"position": T / k}),
        )

    def _shift(self, hidden, noise, h):
        return hidden + jnp.sqrt(h * self.temperature / 2) * noise

    def init(self, key, position, estimator):
        noise = jax.random.normal(key, position.shape, position.dtype)
        return LMState(position, noise, jnp.zeros((), position.dtype))

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        x = self._shift(state.hidden, state.noise, step_size)
        g = estimator.estimate(k1, (), x)[0].gradient
        hidden = state.hidden - step_size * g + jnp.sqrt(2 * step_size * self.temperature) * state.noise
        fresh = jax.random.normal(k2, x.shape, x.dtype)
        return LMState(hidden, fresh, jnp.asarray(step_size, x.dtype))

    def position(self, state):
        return self._shift(state.hidden, state.noise, state.step_size)

    def unpack(self, state):
        return state.hidden

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


def _tamed(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), x)[0].gradient
    noise = jax.random.uniform(k2, x.shape, x.dtype, -(3**0.5), 3**0.5)
    return x - h * g / (1 + h * jnp.linalg.norm(g)) + jnp.sqrt(2 * h) * noise


# Tamed Euler with uniform noise of variance 2 h: weak order 1.
tamed_uniform = simple_sampler(
    _tamed,
    claims=Claims(
        Source("", "tamed unadjusted Langevin algorithm, Brosse and others 2019"),
        StationaryLaw(order=1),
        Diffusion(overdamped_dynamics, weak_order=1),
        IndependentNoise(),
    ),
)
