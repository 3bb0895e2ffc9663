"""Class 25: NumPy samplers with mistakes that a second, larger or later call shows."""

from typing import Any, NamedTuple

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw())


def estimate(estimator, rng, x):
    return estimator.estimate(estimator_key(rng, estimator), (), x)[0]


def grad(estimator, rng, x):
    return np.asarray(estimate(estimator, rng, x).gradient, x.dtype)


def energy(estimator, rng, x):
    return float(estimate(estimator, rng, x).potential)


def _start(rng, x, estimator):
    return np.array(x, copy=True)


def _host(step, **more):
    return simple_sampler(step, **{"init": _start, "backend": "host", **more})


def _langevin(noise):
    return _host(lambda rng, x, h, e: x - h * grad(e, rng, x) + np.sqrt(2 * h) * noise(rng, x))


def _first_64(rng, x):
    z = np.zeros_like(x)
    flat = z.reshape(-1)
    flat[:64] = rng.standard_normal(min(64, x.size))
    return z


# Noise for the first 64 coordinates.
first_64 = _langevin(_first_64)

# A buffer of 256 normals that np.resize repeats.
buffer_of_256 = _langevin(lambda rng, x: np.resize(rng.standard_normal(min(256, x.size)), x.shape))


def _blocks_of_1000(rng, x):
    z = np.zeros(x.size)
    for i in range(max(1, x.size // 1000)):
        part = z[1000 * i : 1000 * (i + 1)]
        part[:] = rng.standard_normal(part.size)
    return z.reshape(x.shape)


# Blocks of 1000: a last block that is not full gets no noise.
blocks_of_1000 = _langevin(_blocks_of_1000)

# Noise in half precision: rounded, and limited to what it holds.
half_precision = _langevin(lambda rng, x: np.floor(rng.standard_normal(x.shape) * 16) / 16)


def _clip_step(rng, x, h, estimator):
    g = grad(estimator, rng, x)
    norm = np.sqrt(np.sum(g**2))
    if norm > 200:
        g = g * (200 / norm)
    return x - h * g + np.sqrt(2 * h) * rng.standard_normal(x.shape)


# Clip of the norm of the gradient at 200.
clip_norm_200 = _host(_clip_step)


def _nan_step(rng, x, h, estimator):
    y = x - h * grad(estimator, rng, x) + np.sqrt(2 * h) * rng.standard_normal(x.shape)
    return y if np.max(np.abs(y)) < 100 else np.zeros_like(y)


# "Diverged": whatever is beyond 100 starts again at the origin.
restart_at_100 = _host(_nan_step)


def _mala_mean_step(rng, x, h, estimator):
    old = estimate(estimator, rng, x)
    z = rng.standard_normal(x.shape)
    y = x - h * np.asarray(old.gradient) + np.sqrt(2 * h) * z
    new = estimate(estimator, rng, y)
    forward = -np.mean((y - x + h * np.asarray(old.gradient)) ** 2) / (4 * h)
    backward = -np.mean((x - y + h * np.asarray(new.gradient)) ** 2) / (4 * h)
    a = float(old.potential) - float(new.potential) + backward - forward
    return y if np.log(rng.random()) < a else x


# MALA in NumPy with np.mean for np.sum in the densities of the proposal (d = 1 is right).
mala_mean = _host(_mala_mean_step, claims=EXACT)


class Ball(NamedTuple):
    position: Any
    momentum: Any


def _matrix_hmc_step(rng, x, h, estimator):
    r = rng.standard_normal(x.shape)
    start = energy(estimator, rng, x) + 0.5 * np.linalg.norm(r, 2) ** 2
    y = x
    for _ in range(2):
        r = r - h / 2 * grad(estimator, rng, y)
        y = y + h * r
        r = r - h / 2 * grad(estimator, rng, y)
    end = energy(estimator, rng, y) + 0.5 * np.linalg.norm(r, 2) ** 2
    return y if np.log(rng.random()) < start - end else x


# HMC in NumPy whose kinetic energy is np.linalg.norm(r, 2)^2 / 2: of a matrix that is the largest singular value.
hmc_spectral = _host(_matrix_hmc_step, claims=EXACT)


def _sghmc_in_place_step(rng, s, h, estimator):
    x, r = s
    r *= 1 - h
    r -= h * grad(estimator, rng, x)
    r += np.sqrt(h) * rng.standard_normal(x.shape)
    return Ball(x + h * r, r)


# SGHMC in place with half of the variance: T = 1/2.
sghmc_in_place = _host(
    _sghmc_in_place_step, init=lambda rng, x, e: Ball(np.array(x), np.zeros_like(x)), position=lambda s: s.position
)


def _one_coordinate_step(rng, x, h, estimator):
    i = rng.integers(0, max(x.size - 1, 1))
    y = x.copy()
    y.reshape(-1)[i] += np.sqrt(2 * h) * rng.standard_normal()
    return y if np.log(rng.random()) < energy(estimator, rng, x) - energy(estimator, rng, y) else x


# One coordinate a step, its number from integers(0, d - 1): the last one never moves (d = 1 is right).
last_never = _host(_one_coordinate_step, claims=EXACT)


def _until_step(rng, x, h, estimator):
    old = energy(estimator, rng, x)
    for _ in range(100):
        y = x + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        if np.log(rng.random()) < old - energy(estimator, rng, y):
            return y
    return x


# Metropolis in NumPy that tries again until a proposal is accepted.
until_accepted = _host(_until_step, claims=EXACT)
