"""Hamiltonian Monte Carlo with Metropolis tests, exact at every step size: fixed, random and multinomial
trajectories, masses, jittered step sizes, generalised HMC with flips, Metropolis-adjusted Langevin
trajectories. Leapfrog keeps volume and runs back after a change of sign of the momentum; `step_size` is that of
leapfrog."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import (
    Claims,
    Composite,
    ExactLaw,
    HamiltonianProposal,
    Reversal,
    Source,
    StationaryMoments,
)

NEEDS = ("gradient", "potential")


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _gradient(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _energy(estimator, key, x, r):
    return estimator.estimate(key, (), x)[0].potential + 0.5 * jnp.sum(r * r)


def _leapfrog(key, x, r, h, estimator):
    k1, k2 = jax.random.split(key)
    r = r - 0.5 * h * _gradient(estimator, k1, x)
    x = x + h * r
    return x, r - 0.5 * h * _gradient(estimator, k2, x)


def _hmc(key, x, h, estimator, num_steps=5):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    r = _normal(k1, x)
    move = lambda i, xr: _leapfrog(jax.random.fold_in(k2, i), *xr, h, estimator)
    y, s = jax.lax.fori_loop(0, num_steps, move, (x, r))
    log_ratio = _energy(estimator, k3, x, r) - _energy(estimator, k4, y, s)
    return jnp.where(jnp.log(jax.random.uniform(k5, dtype=x.dtype)) < log_ratio, y, x)


# HMC with five leapfrog steps by fori_loop, claims of the proposal included.
hmc = simple_sampler(
    _hmc,
    needs=NEEDS,
    claims=Claims(
        Source("neal2011mcmc", "figure 2"),
        ExactLaw(),
        Composite(),
        HamiltonianProposal(5, overdamped_dynamics),
        StationaryMoments(lambda h, k: {"position": 1 / k}),
    ),
)

# The same without a word.
hmc_unclaimed = simple_sampler(_hmc, needs=NEEDS)


class HMCState(NamedTuple):
    """Position, potential, gradient, acceptance rate of the last step, number of divergences."""

    position: jax.Array
    potential: jax.Array
    gradient: jax.Array
    acceptance_rate: jax.Array
    divergences: jax.Array


@dataclass(frozen=True)
class MassHMC:
    """HMC with a diagonal mass that grows with the coordinate, caches and diagnostics, at a temperature."""

    num_steps: int = 3
    mass_ratio: float = 2.0
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient", "potential"})

    @property
    def claims(self):
        T = self.temperature
        return Claims(Source("neal2011mcmc", "section 5.4.1"), ExactLaw(temperature=T), Composite())

    def mass(self, x):
        """Masses from 1 to `mass_ratio`; 1 in one dimension."""
        return jnp.linspace(1.0, self.mass_ratio, x.size, dtype=x.dtype).reshape(x.shape)

    def init(self, key, position, estimator):
        estimate = estimator.estimate(key, (), position)[0]
        one = jnp.ones_like(estimate.potential)
        return HMCState(position, estimate.potential, estimate.gradient, one, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        m, h = self.mass(state.position), step_size
        r = jnp.sqrt(m * self.temperature) * _normal(k1, state.position)

        def leapfrog(carry, key):
            x, r, _, g = carry
            r = r - h / 2 * g
            x = x + h * r / m
            new = estimator.estimate(key, (), x)[0]
            return (x, r - h / 2 * new.gradient, new.potential, new.gradient), None

        start = (state.position, r, state.potential, state.gradient)
        (x, s, U, g), _ = jax.lax.scan(leapfrog, start, jax.random.split(k2, self.num_steps))
        change = (U + 0.5 * jnp.sum(s * s / m) - state.potential - 0.5 * jnp.sum(r * r / m)) / self.temperature
        change = jnp.where(jnp.isfinite(change), change, jnp.inf)
        rate = jnp.exp(-jnp.maximum(change, 0.0))
        yes = jax.random.uniform(k3, dtype=rate.dtype) < rate
        old = (state.position, state.potential, state.gradient)
        x, U, g = jax.tree.map(lambda a, b: jnp.where(yes, a, b), (x, U, g), old)
        return HMCState(x, U, g, rate, state.divergences + (change > 1000))

    def position(self, state):
        return state.position


# One leapfrog step with mass 1, temperature 2 (that is MALA at h^2 / 2).
one_step = MassHMC(num_steps=1, mass_ratio=1.0, temperature=2.0)


def _jittered_length(key, x, h, estimator):
    k0, k1, k2, k3, k4, k5 = jax.random.split(key, 6)
    num_steps = jax.random.randint(k0, (), 1, 6)
    r = _normal(k1, x)
    move = lambda i, xr: _leapfrog(jax.random.fold_in(k2, i), *xr, h, estimator)
    y, s = jax.lax.fori_loop(0, num_steps, move, (x, r))
    ratio = jnp.exp(_energy(estimator, k3, x, r) - _energy(estimator, k4, y, s))
    return jnp.where(jax.random.uniform(k5, dtype=x.dtype) < ratio, y, x)


# One to five leapfrog steps, drawn by randint before the trajectory: a mixture of exact kernels.
jittered_length = simple_sampler(_jittered_length, needs=NEEDS, claims=Claims(Source("", ""), ExactLaw(), Composite()))


def _jittered_size(key, x, h, estimator):
    k0, k1, k2, k3, k4, k5 = jax.random.split(key, 6)
    h = h * jax.random.uniform(k0, (), x.dtype, 0.8, 1.2)
    r = _normal(k1, x)
    body = lambda xr, k: (_leapfrog(k, *xr, h, estimator), None)
    (y, s), _ = jax.lax.scan(body, (x, r), jax.random.split(k2, 4))
    log_ratio = _energy(estimator, k3, x, r) - _energy(estimator, k4, y, s)
    return jnp.where(-jax.random.exponential(k5, dtype=x.dtype) < log_ratio, y, x)


# Four leapfrog steps with a step size drawn uniformly within 20 %.
jittered_size = simple_sampler(_jittered_size, needs=NEEDS)


def _multinomial(key, x, h, estimator, length=4):
    k1, k2, k3, k4, k5, k6 = jax.random.split(key, 6)
    r = _normal(k1, x)
    back = jax.random.randint(k2, (), 0, length + 1)

    def trajectory(key, signed):
        def move(xr, k):
            a, b = jax.random.split(k)
            xr = _leapfrog(a, *xr, signed, estimator)
            return xr, (xr[0], _energy(estimator, b, *xr))

        return jax.lax.scan(move, (x, r), jax.random.split(key, length))[1]

    (ahead, ahead_energies), (behind, behind_energies) = trajectory(k3, h), trajectory(k4, -h)
    points = jnp.concatenate([behind, x[None], ahead])
    energies = jnp.concatenate([behind_energies, _energy(estimator, k5, x, r)[None], ahead_energies])
    count = jnp.arange(1, length + 1)
    used = jnp.concatenate([count <= back, jnp.array([True]), count <= length - back])
    logits = jnp.where(used & jnp.isfinite(energies), -energies, -jnp.inf)
    return points[jax.random.categorical(k6, logits)]


# Multinomial HMC: a trajectory of five points with the start at a random place in it, one of them by its Boltzmann
# weight; points that diverged have none.
multinomial = simple_sampler(_multinomial, needs=NEEDS, claims=Claims(Source("", ""), ExactLaw(), Composite()))


class Phase(NamedTuple):
    """Position and momentum."""

    position: jax.Array
    momentum: jax.Array


def _thermal(key, position, estimator):
    return Phase(position, _normal(key, position))


def _refresh(key, r, t):
    a = jnp.exp(-t)
    return a * r + jnp.sqrt(1 - a * a) * _normal(key, r)


def _ghmc(key, state, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    x, r = state.position, _refresh(k1, state.momentum, h)
    y, s = _leapfrog(k2, x, r, h, estimator)
    log_ratio = _energy(estimator, k3, x, r) - _energy(estimator, k4, y, s)
    yes = jax.random.uniform(k5, dtype=x.dtype) < jnp.exp(log_ratio)
    return Phase(jnp.where(yes, y, x), jnp.where(yes, s, -r))


# Generalised HMC (Horowitz): partial refresh, one leapfrog step, the momentum flipped on a rejection.
ghmc = simple_sampler(_ghmc, init=_thermal, unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z), needs=NEEDS)


def _palindromic(key, state, h, estimator):
    k1, k2, k3, k4, k5, k6 = jax.random.split(key, 6)
    x, r = state.position, _refresh(k1, state.momentum, h / 2)
    body = lambda xr, k: (_leapfrog(k, *xr, h, estimator), None)
    (y, s), _ = jax.lax.scan(body, (x, r), jax.random.split(k2, 2))
    log_ratio = _energy(estimator, k3, x, r) - _energy(estimator, k4, y, s)
    yes = jnp.log(jax.random.uniform(k5, dtype=x.dtype)) < log_ratio
    x, r = jnp.where(yes, y, x), jnp.where(yes, s, -r)
    return Phase(x, _refresh(k6, r, h / 2))


# GHMC with half of the refresh before and half after, two leapfrog steps: balance up to the flip of r.
ghmc_palindromic = simple_sampler(
    _palindromic,
    init=_thermal,
    unpack=lambda s: s,
    pack=lambda key, z, estimator: Phase(*z),
    needs=NEEDS,
    claims=Claims(
        Source("horowitz1991generalized", "the algorithm"),
        ExactLaw(),
        Reversal(lambda z: Phase(z.position, -z.momentum)),
    ),
)


def _malt(key, x, h, estimator, num_steps=3):
    k0, k1, k2 = jax.random.split(key, 3)

    def obabo(carry, key):
        x, r, error = carry
        a, b, c, d, e = jax.random.split(key, 5)
        r = _refresh(a, r, h / 2)
        y, s = _leapfrog(b, x, r, h, estimator)
        error = error + _energy(estimator, c, y, s) - _energy(estimator, d, x, r)
        return (y, _refresh(e, s, h / 2), error), None

    start = (x, _normal(k0, x), jnp.zeros((), x.dtype))
    (y, _, error), _ = jax.lax.scan(obabo, start, jax.random.split(k1, num_steps))
    return jnp.where(jax.random.uniform(k2, dtype=x.dtype) < jnp.exp(-error), y, x)


# Metropolis-adjusted Langevin trajectories (Riou-Durand and Vogrinc): OBABO path, tested with its total energy error.
malt = simple_sampler(_malt, needs=NEEDS, claims=Claims(Source("", "MALT"), ExactLaw(), Composite()))
