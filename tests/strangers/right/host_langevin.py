"""Unadjusted samplers outside JAX: NumPy arrays, a `numpy.random.Generator` for the key. SGLD with many laws of
noise (mean zero, variance one, no third moment: weak order 1), coordinate updates, constant metrics, SGHMC,
BAOAB, OBABO, a thermostat and random refreshment. The laws are exp(-U) times that of the auxiliaries, up to
O(h)."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import (
    Claims,
    Diffusion,
    IndependentNoise,
    Source,
    StationaryLaw,
    StationaryMoments,
)


def gradient(rng, estimator, x):
    """grad U at x, as NumPy."""
    return np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient)


def host_langevin(draw, claims=None):
    """SGLD with `draw(rng, shape)` for noise."""

    def step(rng, x, step_size, estimator):
        x = np.asarray(x)
        g = gradient(rng, estimator, x)
        noise = draw(rng, x.shape)
        return (x - step_size * g + np.sqrt(2 * step_size) * noise).astype(x.dtype)

    return simple_sampler(step, backend="host", claims=claims)


# SGLD with rng.normal.
normal = host_langevin(lambda rng, shape: rng.normal(0.0, 1.0, shape))

# SGLD with rng.standard_normal and its equation claimed.
claimed = host_langevin(
    lambda rng, shape: rng.standard_normal(shape),
    Claims(
        Source("welling2011bayesian", "equation (4)"),
        StationaryLaw(order=1),
        Diffusion(overdamped_dynamics, weak_order=1),
        StationaryMoments(lambda h, k: {"position": 1 / (k * (1 - h * k / 2))}),
        IndependentNoise(),
    ),
)

# Fair signs by rng.choice.
choice_signs = host_langevin(lambda rng, shape: rng.choice([-1.0, 1.0], size=shape))

# Fair signs by rng.integers.
integer_signs = host_langevin(lambda rng, shape: 2.0 * rng.integers(0, 2, size=shape) - 1.0)

# Fair signs by a coin `u < 1/2`.
coin_signs = host_langevin(lambda rng, shape: np.where(rng.random(shape) < 0.5, 1.0, -1.0))

# Three points with probabilities 1/6, 2/3, 1/6 by rng.choice.
three_point = host_langevin(lambda rng, shape: 3**0.5 * rng.choice([-1.0, 0.0, 1.0], shape, p=[1 / 6, 2 / 3, 1 / 6]))

# rng.laplace with scale 1 / sqrt 2 has variance 1.
laplace = host_langevin(lambda rng, shape: rng.laplace(0.0, 0.5**0.5, shape))

# rng.uniform on (-sqrt 3, sqrt 3) has variance 1.
uniform = host_langevin(lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape))

# A sign times sqrt(2 Gamma(1/2)): exactly normal.
signed_gamma = host_langevin(
    lambda rng, shape: np.sqrt(2 * rng.gamma(0.5, 1.0, shape)) * np.where(rng.random(shape) > 0.5, 1.0, -1.0)
)


def _box_muller(rng, shape):
    return np.sqrt(2 * rng.exponential(size=shape)) * np.sin(2 * np.pi * rng.random(shape))


# Box and Muller with an exponential for the squared radius: exactly normal.
box_muller = host_langevin(_box_muller)


def _multivariate(rng, x, step_size, estimator):
    x = np.asarray(x)
    d = x.size
    A = np.eye(d) + 0.5 * np.ones((d, d)) / d
    drift = x - step_size * A @ gradient(rng, estimator, x)
    return rng.multivariate_normal(drift, 2 * step_size * A).astype(x.dtype)


# A constant preconditioner by rng.multivariate_normal.
preconditioned = simple_sampler(_multivariate, backend="host")


def _shuffled_sweep(rng, x, step_size, estimator):
    x = np.array(x)
    for i in rng.permutation(x.size):
        g = gradient(rng, estimator, x)
        x[i] += -step_size * g[i] + np.sqrt(2 * step_size) * rng.standard_normal()
    return x


# Coordinates one after the other in the order of rng.permutation, a new gradient each.
shuffled_sweep = simple_sampler(_shuffled_sweep, backend="host")


def _random_coordinate(rng, x, step_size, estimator):
    x = np.array(x)
    g, i, t = gradient(rng, estimator, x), rng.integers(x.size), step_size * x.size
    x[i] += -t * g[i] + np.sqrt(2 * t) * rng.normal()
    return x


# One coordinate by rng.integers, d times the step.
random_coordinate = simple_sampler(_random_coordinate, backend="host")


@dataclass(eq=False)
class Chain:
    """A mutable chain."""

    x: np.ndarray
    v: np.ndarray
    estate: Any = ()
    num_steps: int = 0


@dataclass(frozen=True)
class HostSGHMC:
    """Semi-implicit SGHMC with a mutable state, friction C and temperature T: law exp(-(U + v^2 / 2) / T) + O(h)."""

    friction: float = 1.0
    temperature: float = 1.0

    backend = "host"
    needs = frozenset({"gradient"})

    @property
    def claims(self):
        law = StationaryLaw(order=1, temperature=self.temperature)
        return Claims(Source("chen2014stochastic", "equation (13)"), law)

    def init(self, key, position, estimator):
        x = np.array(position)
        v = (self.temperature**0.5 * key.standard_normal(x.shape)).astype(x.dtype)
        return Chain(x, v, estimator.init(estimator_key(key, estimator), position))

    def step(self, key, state, step_size, estimator):
        estimate, state.estate = estimator.estimate(estimator_key(key, estimator), state.estate, state.x)
        g, h, C = np.asarray(estimate.gradient), float(step_size), self.friction
        noise = key.standard_normal(state.x.shape)
        v = state.v - h * g - h * C * state.v + np.sqrt(2 * C * self.temperature * h) * noise
        state.v = v.astype(state.x.dtype)
        state.x = (state.x + h * state.v).astype(state.x.dtype)
        state.num_steps += 1
        return state

    def position(self, state):
        return state.x

    def unpack(self, state):
        return {"x": state.x, "v": state.v}

    def pack(self, key, z, estimator):
        return Chain(np.array(z["x"]), np.array(z["v"]), estimator.init(estimator_key(key, estimator), z["x"]))


def _baoab(rng, state, step_size, estimator):
    x, v = state
    h, dtype = float(step_size), x.dtype
    v = v - h / 2 * gradient(rng, estimator, x)
    x = x + h / 2 * v
    a = np.exp(-h)
    v = a * v + np.sqrt(1 - a * a) * rng.normal(size=v.shape)
    x = (x + h / 2 * v).astype(dtype)
    return x, (v - h / 2 * gradient(rng, estimator, x)).astype(dtype)


def _thermal(rng, position, estimator):
    x = np.array(position)
    return x, rng.normal(size=x.shape).astype(x.dtype)


# BAOAB with the state (x, v), everything given.
baoab = simple_sampler(
    _baoab,
    init=_thermal,
    position=lambda s: s[0],
    unpack=lambda s: s,
    pack=lambda rng, z, estimator: (np.array(z[0]), np.array(z[1])),
    backend="host",
)

# BAOAB with `init` and `position` alone.
baoab_bare = simple_sampler(_baoab, init=_thermal, position=lambda s: s[0], backend="host")


def _obabo(rng, state, step_size, estimator):
    h, x, v = float(step_size), state["position"], state["velocity"]
    a = np.exp(-h / 2)
    first, second = rng.standard_normal((2, *x.shape))
    v = a * v + np.sqrt(1 - a * a) * first
    v = v - h / 2 * gradient(rng, estimator, x)
    new = (x + h * v).astype(x.dtype)
    v = v - h / 2 * gradient(rng, estimator, new)
    v = a * v + np.sqrt(1 - a * a) * second
    return {"position": new, "velocity": v.astype(x.dtype)}


# OBABO with both noises drawn at once, the state a dict.
obabo = simple_sampler(
    _obabo,
    init=lambda rng, position, estimator: dict(zip(("position", "velocity"), _thermal(rng, position, estimator))),
    position=lambda s: s["position"],
    unpack=lambda s: dict(s),
    pack=lambda rng, z, estimator: {name: np.array(value) for name, value in z.items()},
    backend="host",
)


def _refreshed(rng, state, step_size, estimator):
    x, v = state
    h, dtype = float(step_size), x.dtype
    v = v - h / 2 * gradient(rng, estimator, x)
    x = (x + h * v).astype(dtype)
    v = v - h / 2 * gradient(rng, estimator, x)
    if rng.random() < 1 - np.exp(-h):
        v = rng.standard_normal(x.shape)
    return x, v.astype(dtype)


# Leapfrog with a fresh velocity at rate 1, a Python `if` on rng.random.
random_refresh = simple_sampler(
    _refreshed,
    init=_thermal,
    position=lambda s: s[0],
    unpack=lambda s: s,
    pack=lambda rng, z, estimator: (np.array(z[0]), np.array(z[1])),
    backend="host",
)


class NoseHoover:
    """SGNHT (Ding et al.) as a plain class: dx = p dt, dp = -grad U - xi p + sqrt(2) dW, dxi = |p|^2 / d - 1; O(h)."""

    backend = "host"

    def init(self, rng, position, estimator):
        x, p = _thermal(rng, position, estimator)
        return SimpleNamespace(x=x, p=p, xi=1.0)

    def step(self, rng, s, step_size, estimator):
        h = float(step_size)
        noise = np.sqrt(2 * h) * rng.normal(size=s.x.shape)
        p = s.p - h * gradient(rng, estimator, s.x) - h * s.xi * s.p + noise
        p = p.astype(s.x.dtype)
        return SimpleNamespace(x=s.x + s.x.dtype.type(h) * p, p=p, xi=s.xi + h * (float(np.mean(p * p)) - 1))

    def position(self, s):
        return s.x

    def unpack(self, s):
        return {"x": s.x, "p": s.p, "xi": np.asarray(s.xi)}

    def pack(self, rng, z, estimator):
        return SimpleNamespace(x=np.array(z["x"]), p=np.array(z["p"]), xi=float(z["xi"]))
