"""Class 16: NumPy samplers (`backend="host"`): global generators, hidden attributes, shared arrays, wrong scales."""

import copy
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, rng, x):
    return np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient, x.dtype)


def energy(estimator, rng, x):
    return float(estimator.estimate(estimator_key(rng, estimator), (), x)[0].potential)


def _start(rng, x, estimator):
    return np.array(x, copy=True)


def _host(step, **more):
    return simple_sampler(step, **{"init": _start, "backend": "host", **more})


def _global_step(rng, x, h, estimator):
    return x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * np.random.normal(size=x.shape)  # noqa: NPY002


# Noise from the global NumPy generator: the key has no say, runs cannot be repeated, chains share a stream.
global_generator = _host(_global_step)


def _scalar_step(rng, x, h, estimator):
    return x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * rng.standard_normal()


# One normal for all coordinates (size= forgotten).
scalar_noise = _host(_scalar_step)


def _variance_step(rng, x, h, estimator):
    return x - h * grad(estimator, rng, x) + rng.normal(0.0, 2 * h, x.shape)


# rng.normal(0, 2 h): the second argument is a standard deviation. T = 2 h.
variance_as_scale = _host(_variance_step)


def _reseeded_step(rng, x, h, estimator):
    rng = np.random.default_rng(0)
    return x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * rng.standard_normal(x.shape)


# default_rng(0) in every step: the same noise each time.
reseeded = _host(_reseeded_step)


def _copied_step(rng, x, h, estimator):
    noise = copy.deepcopy(rng).standard_normal(x.shape)
    return x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * noise


# The noise comes from a copy of the generator, which itself is not advanced: the same noise in every step of a run.
copied_generator = _host(_copied_step)


def _half_drawn_step(rng, x, h, estimator):
    noise = np.resize(rng.standard_normal(max(1, x.size // 2)), x.shape)
    return x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * noise


# Draws x.size // 2 normals and repeats them.
half_drawn = _host(_half_drawn_step)


def _uniform_step(rng, x, h, estimator):
    return x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * (rng.random(x.shape) - 0.5)


# Uniform in [-0.5, 0.5]: variance 1/12.
centred_uniform = _host(_uniform_step)


@dataclass
class DecayingHost:
    """SGLD whose noise is halved after `burn_in` steps; the counter is an attribute of the sampler."""

    burn_in: int = 500
    count: int = field(default=0, repr=False)
    backend = "host"

    def init(self, rng, position, estimator):
        return np.array(position, copy=True)

    def step(self, rng, x, step_size, estimator):
        self.count += 1
        scale = np.sqrt(2 * step_size) * (1.0 if self.count <= self.burn_in else 0.5)
        return x - step_size * grad(estimator, rng, x) + scale * rng.standard_normal(x.shape)


# From the 500th step of this object on (whatever the chain) T = 1/4.
hidden_counter = DecayingHost()


def _clock_step(rng, state, h, estimator):
    x, t = state["position"], state["time"]
    scale = np.sqrt(2 * h) if t < 5.0 else 0.0
    x = x - h * grad(estimator, rng, x) + scale * rng.standard_normal(x.shape)
    return {"position": x, "time": t + float(h)}


# A float clock in the state: no noise after t = 5.
float_clock = _host(_clock_step, init=lambda rng, x, estimator: {"position": np.array(x), "time": np.zeros(())})


def _in_place_rwm_step(rng, x, h, estimator):
    old = x  # the same array, not a copy
    u = energy(estimator, rng, x)
    x += np.sqrt(2 * h) * rng.standard_normal(x.shape)
    new = energy(estimator, rng, x)
    if np.log(rng.random()) < u - new:
        return x
    return old


# Metropolis in place: what is "put back" on rejection is the proposal itself. Every move is accepted.
in_place_metropolis = _host(_in_place_rwm_step, needs=("potential",))


@dataclass
class MomentumInAttribute:
    """SGHMC that keeps its momentum in `self`: all chains of the object share one momentum, z does not hold it."""

    friction: float = 1.0
    backend = "host"
    momentum: Any = field(default=None, repr=False)

    def init(self, rng, position, estimator):
        return np.array(position, copy=True)

    def step(self, rng, x, step_size, estimator):
        if self.momentum is None or np.shape(self.momentum) != np.shape(x):
            self.momentum = np.zeros_like(x)
        h, C, r = step_size, self.friction, self.momentum
        r = r - h * grad(estimator, rng, x) - h * C * r + np.sqrt(2 * C * h) * rng.standard_normal(x.shape)
        self.momentum = r
        return x + h * r


# The momentum is an attribute: two chains that take turns exchange momenta.
hidden_momentum = MomentumInAttribute()


@dataclass
class KeepsFirstGenerator:
    """Takes the generator of its first call for good."""

    backend = "host"
    rng: Any = field(default=None, repr=False)

    def init(self, rng, position, estimator):
        return np.array(position, copy=True)

    def step(self, rng, x, step_size, estimator):
        if self.rng is None:
            self.rng = np.random.default_rng(int(rng.integers(2)))  # "reproducible": seed 0 or 1
        noise = self.rng.standard_normal(x.shape)
        return x - step_size * grad(estimator, rng, x) + np.sqrt(2 * step_size) * noise


# After the first step the generator that is passed is ignored; there are two possible runs.
first_generator = KeepsFirstGenerator()


def _std_random_step(rng, x, h, estimator):
    y = x + np.sqrt(2 * h) * rng.standard_normal(x.shape)
    accept = random.random() < np.exp(min(0.0, energy(estimator, rng, x) - energy(estimator, rng, y)))
    return y if accept else np.array(x)


# Metropolis that decides by the global generator of the standard library.
stdlib_random = _host(_std_random_step, needs=("potential",))


def _alternate_step(rng, state, h, estimator):
    state["t"] = state.get("t", 0) + 1
    scale = 0.0 if state["t"] % 5 == 0 else np.sqrt(2 * h)
    x = state["position"]
    state["position"] = x - h * grad(estimator, rng, x) + scale * rng.standard_normal(x.shape)
    return state


# A mutable dict with a Python counter: every fifth step has no noise. T = 0.8.
dict_counter = _host(_alternate_step, init=lambda rng, x, estimator: {"position": np.array(x), "t": 0})


def _sghmc_scale_step(rng, state, h, estimator):
    x, r = state["position"], state["momentum"]
    noise = rng.normal(0.0, np.sqrt(2 * h), x.shape) * h  # eta noise, as in the first version of the paper's code
    r = r - h * grad(estimator, rng, x) - h * r + noise
    return {"momentum": r, "position": x + h * r}


# SGHMC whose noise is multiplied by h once more. T = h^2.
host_sghmc_noise_h = _host(
    _sghmc_scale_step,
    init=lambda rng, x, estimator: {"position": np.array(x), "momentum": rng.standard_normal(np.shape(x))},
    unpack=lambda s: (s["position"], s["momentum"]),
    pack=lambda rng, z, estimator: {"position": np.array(z[0]), "momentum": np.array(z[1])},
)


def _poisson_step(rng, x, h, estimator):
    jumps = rng.poisson(4.0, x.shape) - rng.poisson(4.0, x.shape)
    return x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * jumps / 2.0


# Skellam noise with the standard deviation of one of its two halves: variance 2 instead of 1.
skellam_noise = _host(_poisson_step)
