"""Class 17: what Python keeps outside of the state: attributes under jit, closures, globals, caches, callbacks."""

import functools
import itertools
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _noise(key, x, h):
    return jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


@dataclass
class FirstCallWithoutNoise:
    """The first call of `step` takes no noise. Traced, the first call is every call."""

    calls: int = field(default=0, repr=False)

    def init(self, key, position, estimator):
        return position

    def position(self, state):
        return state

    def step(self, key, x, step_size, estimator):
        self.calls += 1
        k1, k2 = jax.random.split(key)
        moved = x - step_size * grad(estimator, k1, x)
        return moved if self.calls == 1 else moved + _noise(k2, x, step_size)


# A Python counter under jit: compiled once, at calls == 1, there is never any noise.
attribute_counter = FirstCallWithoutNoise()

_TABLE = np.random.RandomState(0).standard_normal(256)


def _table_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = jnp.asarray(_TABLE, x.dtype)[jax.random.randint(k2, x.shape, 0, 256)]
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * z


# Normals from a table of 256 that was drawn once at import, for speed: its mean is not 0 and its variance not 1.
table_of_normals = simple_sampler(_table_step)


@functools.lru_cache(maxsize=None)
def _directions(shape):
    return np.random.default_rng(1).standard_normal(shape)


def _cached_direction_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = _directions(x.shape) * jax.random.rademacher(k2, (), x.dtype)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * z


# A cache by shape holds one vector of normals; a step draws its sign only. Rank one, fixed sizes.
cached_by_shape = simple_sampler(_cached_direction_step)


def _callback_step(key, x, h, estimator):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    draw = lambda: np.random.default_rng(0).standard_normal(x.shape).astype(x.dtype)
    z = jax.pure_callback(draw, shape, vmap_method="sequential")
    return x - h * grad(estimator, key, x) + jnp.sqrt(2 * h) * z


# Noise from NumPy by pure_callback, with a generator that is made anew in each call: a constant.
pure_callback_noise = simple_sampler(_callback_step)

_CALLS = itertools.count()


def _tick():
    return np.asarray(0.0 if next(_CALLS) > 1000 else 1.0)


def _io_callback_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    scale = io_callback(_tick, jax.ShapeDtypeStruct((), jnp.result_type(float)), ordered=False)
    return x - h * grad(estimator, k1, x) + scale.astype(x.dtype) * _noise(k2, x, h)


# A counter behind io_callback turns the noise off after 1000 calls in the whole process.
io_callback_counter = simple_sampler(_io_callback_step)


@dataclass
class CompiledGradient:
    """Compiles the gradient at the first step and keeps it: a second target gets the gradient of the first."""

    gradient: Any = field(default=None, repr=False)

    def init(self, key, position, estimator):
        return position

    def position(self, state):
        return state

    def step(self, key, x, step_size, estimator):
        k1, k2 = jax.random.split(key)
        if self.gradient is None:
            self.gradient = jax.jit(lambda k, y: grad(estimator, k, y))
        return x - step_size * self.gradient(k1, x) + _noise(k2, x, step_size)


# The first estimator that the object meets is the one that it uses for ever.
compiled_gradient = CompiledGradient()

# NumPy samplers ------------------------------------------------------------------------------------------------------


def host_grad(estimator, rng, x):
    return np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient, x.dtype)


def _start(rng, x, estimator):
    return np.array(x, copy=True)


_calls = 0


def _global_counter_step(rng, x, h, estimator):
    global _calls
    _calls += 1
    scale = np.sqrt(2 * h) if _calls < 1000 else np.sqrt(h)
    return x - h * host_grad(estimator, rng, x) + scale * rng.standard_normal(x.shape)


# A module global counts the calls: from the 1000th on half of the variance.
module_global = simple_sampler(_global_counter_step, init=_start, backend="host")


def _history_step(rng, x, h, estimator, history=[]):  # noqa: B006
    history.append(np.array(x))
    recent = np.array([y for y in history[-200:] if y.shape == x.shape])
    spread = recent.var(axis=0) if len(recent) >= 20 else 1.0
    precondition = np.maximum(spread, 1e-3)  # "adaptive metric"
    noise = np.sqrt(2 * h) * precondition * rng.standard_normal(x.shape)
    return x - h * precondition * host_grad(estimator, rng, x) + noise


# A mutable default argument holds the history of all chains; the metric learnt from it multiplies the noise.
history_in_default = simple_sampler(_history_step, init=_start, backend="host")


class LookupGradient:
    """SGLD that looks its gradients up in a table with cells of 0.2."""

    backend = "host"

    def __init__(self):
        self.table = {}

    def init(self, rng, position, estimator):
        return np.array(position, copy=True)

    def step(self, rng, x, step_size, estimator):
        corner = 0.2 * np.floor(x / 0.2)  # the lower corner of the cell, not its middle
        place = (id(estimator), *np.round(np.ravel(corner), 1).tolist())
        if place not in self.table:
            self.table[place] = host_grad(estimator, rng, corner)
        return x - step_size * self.table[place] + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)


# Gradients are cached for cells of 0.2 and taken at their lower corner: the law is shifted by 0.1 on a Gaussian.
lookup_gradient = LookupGradient()


class FirstStepSize:
    """SGLD that computes the scale of its noise at the first step and keeps it."""

    backend = "host"
    scale = None

    def init(self, rng, position, estimator):
        return np.array(position, copy=True)

    def step(self, rng, x, step_size, estimator):
        if self.scale is None:
            self.scale = np.sqrt(2 * step_size)
        return x - step_size * host_grad(estimator, rng, x) + self.scale * rng.standard_normal(x.shape)


# Changed step sizes reach the gradient and not the noise: T = h_first / h.
first_step_size = FirstStepSize()


def make_closure():
    """SGLD with a list in a closure : 50 normals drawn ahead, used again and again."""
    pool: list[float] = []
    place = itertools.count()

    def step(rng, x, h, estimator):
        if not pool:
            pool.extend(rng.standard_normal(50))
        noise = np.array([pool[next(place) % len(pool)] for _ in range(x.size)]).reshape(x.shape)
        return x - h * host_grad(estimator, rng, x) + np.sqrt(2 * h) * noise

    return simple_sampler(step, init=_start, backend="host")


# Fifty normals drawn at the first step are used again and again.
pool_in_closure = make_closure()
