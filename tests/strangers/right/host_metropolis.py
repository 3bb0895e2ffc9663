"""Exact samplers outside JAX: random walks, MALA, HMC, slice sampling, coordinate updates and a No-U-Turn sampler
in NumPy. Coins by rng.random, rng.exponential, rng.binomial; the ratio of target and proposal densities is
tested, so that exp(-U) is invariant at every step size."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Composite, ExactLaw, Reversal, Source

NEEDS = ("gradient", "potential")
EXACT = Claims(Source("metropolis1953equation", "the algorithm"), ExactLaw(), Reversal(lambda z: z))


def evaluate(rng, estimator, x):
    """(U, grad U) at x."""
    estimate = estimator.estimate(estimator_key(rng, estimator), (), x)[0]
    return float(estimate.potential), np.asarray(estimate.gradient)


def _walk(rng, x, step_size, estimator):
    x = np.asarray(x)
    y = (x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)).astype(x.dtype)
    U, V = evaluate(rng, estimator, x)[0], evaluate(rng, estimator, y)[0]
    return y if rng.random() < np.exp(min(0.0, U - V)) else x


# Random walk Metropolis, `rng.random() < ratio`.
walk = simple_sampler(_walk, needs=NEEDS, backend="host")

# The same with claims.
walk_claimed = simple_sampler(_walk, needs=NEEDS, backend="host", claims=EXACT)


def _uniform_walk(rng, x, step_size, estimator):
    x = np.asarray(x)
    y = (x + rng.uniform(-1, 1, x.shape) * np.sqrt(6 * step_size)).astype(x.dtype)
    log_ratio = evaluate(rng, estimator, x)[0] - evaluate(rng, estimator, y)[0]
    return y if -rng.exponential() < log_ratio else x


# Uniform proposal, `-rng.exponential() < log ratio`.
uniform_walk = simple_sampler(_uniform_walk, needs=("potential",), backend="host")


def _laplace_walk(rng, x, step_size, estimator):
    x = np.asarray(x)
    y = (x + rng.laplace(size=x.shape) * np.sqrt(step_size)).astype(x.dtype)
    log_ratio = evaluate(rng, estimator, x)[0] - evaluate(rng, estimator, y)[0]
    return y if np.log(rng.random()) < log_ratio else x


# Laplace proposal, `log u < log ratio`.
laplace_walk = simple_sampler(_laplace_walk, needs=("potential",), backend="host", claims=EXACT)


def _sweep(rng, x, step_size, estimator):
    x = np.array(x)
    U = evaluate(rng, estimator, x)[0]
    for i in rng.permutation(x.size):
        y = x.copy()
        y[i] += np.sqrt(2 * step_size) * rng.normal()
        V = evaluate(rng, estimator, y)[0]
        if rng.random() > 1 - np.exp(min(0.0, U - V)):
            x, U = y, V
    return x


# Metropolis within Gibbs in a random order, `u > 1 - ratio`.
sweep = simple_sampler(_sweep, needs=("potential",), backend="host")


def _barker(rng, x, step_size, estimator):
    x = np.asarray(x)
    y = rng.multivariate_normal(x, 2 * step_size * np.eye(x.size)).astype(x.dtype)
    difference = evaluate(rng, estimator, y)[0] - evaluate(rng, estimator, x)[0]
    return y if rng.binomial(1, 1 / (1 + np.exp(np.clip(difference, -500, 500)))) else x


# Barker's rule by rng.binomial, the proposal by rng.multivariate_normal.
barker = simple_sampler(_barker, needs=("potential",), backend="host")


def _two_scales(rng, x, step_size, estimator):
    x = np.asarray(x)
    scale = rng.choice([0.5, 2.0])
    y = (x + scale * np.sqrt(2 * step_size) * rng.normal(size=x.shape)).astype(x.dtype)
    accept = min(1.0, np.exp(min(0.0, evaluate(rng, estimator, x)[0] - evaluate(rng, estimator, y)[0])))
    return np.where(rng.random() < accept, y, x)


# A scale by rng.choice, independent of the position.
two_scales = simple_sampler(_two_scales, needs=("potential",), backend="host")


@dataclass(eq=False)
class Point:
    """Position with its potential and gradient, and the state of the estimator."""

    position: np.ndarray
    potential: float
    gradient: np.ndarray
    estate: Any


@dataclass(frozen=True)
class HostMALA:
    """MALA with cached potential and gradient; both densities of the proposal are in the ratio."""

    backend = "host"
    needs = frozenset({"gradient", "potential"})
    claims = Claims(Source("roberts1996exponential", "section 1.4"), ExactLaw())

    def _at(self, key, x, estate, estimator):
        estimate, estate = estimator.estimate(estimator_key(key, estimator), estate, x)
        return Point(x, float(estimate.potential), np.asarray(estimate.gradient), estate)

    def init(self, key, position, estimator):
        estate = estimator.init(estimator_key(key, estimator), position)
        return self._at(key, np.array(position), estate, estimator)

    def step(self, key, state, step_size, estimator):
        h, x = float(step_size), state.position
        noise = key.standard_normal(x.shape)
        y = (x - h * state.gradient + np.sqrt(2 * h) * noise).astype(x.dtype)
        new = self._at(key, y, state.estate, estimator)
        forward = -np.sum((y - x + h * state.gradient) ** 2) / (4 * h)
        backward = -np.sum((x - y + h * new.gradient) ** 2) / (4 * h)
        log_ratio = state.potential - new.potential + backward - forward
        if np.isfinite(log_ratio) and np.log(key.random()) < log_ratio:
            return new
        return Point(x, state.potential, state.gradient, new.estate)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state.position

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


def _hmc(rng, x, step_size, estimator, length=5):
    x, h = np.asarray(x), float(step_size)
    r = rng.standard_normal(x.shape)
    U, g = evaluate(rng, estimator, x)
    y, s, V = x, r, U
    for _ in range(length):
        s = s - h / 2 * g
        y = (y + h * s).astype(x.dtype)
        V, g = evaluate(rng, estimator, y)
        s = s - h / 2 * g
    log_ratio = U - V + 0.5 * (np.sum(r * r) - np.sum(s * s))
    return y if -rng.exponential() < log_ratio else x


# HMC with five leapfrog steps.
hmc = simple_sampler(
    _hmc, needs=NEEDS, backend="host", claims=Claims(Source("neal2011mcmc", "figure 2"), ExactLaw(), Composite())
)

# HMC with one to four leapfrog steps, drawn by rng.integers before the trajectory.
jittered_hmc = simple_sampler(
    lambda rng, x, h, estimator: _hmc(rng, x, h, estimator, int(rng.integers(1, 5))), needs=NEEDS, backend="host"
)


def _slice(rng, x, step_size, estimator, budget=8):
    x = np.array(x)
    width = 4 * np.sqrt(2 * step_size)
    for i in range(x.size):

        def log_density(t, i=i):
            y = x.copy()
            y[i] = t
            return -evaluate(rng, estimator, y)[0]

        level = log_density(x[i]) + np.log(1 - rng.random())
        low = x[i] - width * rng.random()
        high = low + width
        left = int(rng.integers(budget))
        right = budget - 1 - left
        while left > 0 and log_density(low) > level:
            low, left = low - width, left - 1
        while right > 0 and log_density(high) > level:
            high, right = high + width, right - 1
        while True:
            t = rng.uniform(low, high)
            if log_density(t) > level:
                break
            low, high = (t, high) if t < x[i] else (low, t)
        x[i] = t
    return x


# Neal's slice sampler, coordinate by coordinate, with a limit on stepping out.
slice_sampler = simple_sampler(_slice, needs=("potential",), backend="host")


def _ghmc(rng, state, step_size, estimator):
    x, v = state
    h, a = float(step_size), np.exp(-float(step_size))
    v = a * v + np.sqrt(1 - a * a) * rng.normal(size=x.shape)
    U, g = evaluate(rng, estimator, x)
    w = v - h / 2 * g
    y = (x + h * w).astype(x.dtype)
    V, g = evaluate(rng, estimator, y)
    w = w - h / 2 * g
    accept = rng.random() < np.exp(min(0.0, U - V + 0.5 * (np.sum(v * v) - np.sum(w * w))))
    x, v = (y, w) if accept else (x, -v)
    return x, v.astype(x.dtype)


def _thermal(rng, position, estimator):
    x = np.array(position)
    return x, rng.normal(size=x.shape).astype(x.dtype)


# Generalised HMC: partial refresh, one leapfrog step, a flip on rejection.
ghmc = simple_sampler(
    _ghmc,
    init=_thermal,
    position=lambda s: s[0],
    unpack=lambda s: s,
    pack=lambda rng, z, estimator: (np.array(z[0]), np.array(z[1])),
    needs=NEEDS,
    backend="host",
)


class NUTS:
    """The efficient No-U-Turn sampler of Hoffman and Gelman (Algorithm 3), depth at most 4; `step_size` of leapfrog."""

    backend = "host"
    needs = frozenset({"gradient", "potential"})
    claims = Claims(Source("hoffman2014nuts", "Algorithm 3"), ExactLaw(), Composite())
    max_depth = 4

    def step(self, rng, x, step_size, estimator):
        x = np.asarray(x)
        start = (x, rng.standard_normal(x.shape), *evaluate(rng, estimator, x))
        log_u = self._log_joint(start) - rng.exponential()
        minus = plus = start
        chosen, count = x, 1
        for depth in range(self.max_depth):
            direction = 1 if rng.random() < 0.5 else -1
            edge = plus if direction == 1 else minus
            low, high, candidate, found, going = self._tree(rng, edge, log_u, direction, depth, step_size, estimator)
            minus, plus = (minus, high) if direction == 1 else (low, plus)
            if going and rng.random() < found / count:
                chosen = candidate
            count += found
            if not (going and self._no_u_turn(minus, plus)):
                break
        return chosen

    def _log_joint(self, point):
        return -point[2] - 0.5 * float(np.sum(point[1] ** 2))

    def _no_u_turn(self, minus, plus):
        span = plus[0] - minus[0]
        return float(np.sum(span * minus[1])) >= 0 and float(np.sum(span * plus[1])) >= 0

    def _leapfrog(self, rng, point, h, estimator):
        x, r, _, g = point
        r = r - h / 2 * g
        x = (x + h * r).astype(x.dtype)
        U, g = evaluate(rng, estimator, x)
        return x, r - h / 2 * g, U, g

    def _tree(self, rng, edge, log_u, direction, depth, step_size, estimator):
        """(leftmost, rightmost, candidate, number of points in the slice, no u-turn within) of a subtree."""
        if depth == 0:
            new = self._leapfrog(rng, edge, direction * float(step_size), estimator)
            inside = log_u <= self._log_joint(new)
            return new, new, new[0], int(inside), log_u < self._log_joint(new) + 1000
        arguments = log_u, direction, depth - 1, step_size, estimator
        low, high, candidate, found, going = self._tree(rng, edge, *arguments)
        if going:
            second = self._tree(rng, high if direction == 1 else low, *arguments)
            low, high = (low, second[1]) if direction == 1 else (second[0], high)
            if rng.random() * max(found + second[3], 1) < second[3]:
                candidate = second[2]
            found += second[3]
            going = second[4] and self._no_u_turn(low, high)
        return low, high, candidate, found, going
