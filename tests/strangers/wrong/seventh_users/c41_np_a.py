"""Gradient-free and locally tuned kernels in NumPy: sweeps of slices, delayed rejection, HMC that draws its own step size."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def ravel(tree):
    """All leaves as one vector of their own, and the way back."""
    leaves, structure = jax.tree.flatten(tree)
    shapes = [np.shape(leaf) for leaf in leaves]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def unravel(vector):
        parts = np.split(vector, ends[:-1])
        return jax.tree.unflatten(structure, [part.reshape(shape) for part, shape in zip(parts, shapes)])

    return np.concatenate([np.reshape(leaf, -1) for leaf in leaves]), unravel


# --- Slices along coordinates (Neal 2003, sections 4.1 and 4.2) -------------------------------------------------------
#
# A step makes `moves` univariate updates of neighbouring coordinates, from a start drawn at random. Each draws a level
# l = U(x) + Exp(1), i.e. y uniform under exp(-U), steps out (with Neal's random division of at most `reach` widths), and
# shrinks. Every update leaves exp(-U) invariant, so does their composition, and so does the mixture over starts. U(x) is
# carried from step to step.
#
# WRONG: within a step all levels are l = U(x at the start of the step) + Exp(1), though x has moved since the first of them:
# the energy is only renewed at the end. A point with U(x) < U(x_0) is lifted to levels that are too high by the difference,
# one with U(x) > U(x_0) often has a level below itself and is moved into a slice that it is not in, or stays. The mean
# level of those that move is above E U + 1, which is what balances the fall E (l - U(x')) = 2/3 (l - U_rest) of an update of one
# quadratic coordinate: the law is too wide. Simulated (own loops): variances of N(0, I) 1.39 in d = 1, 1.40 in d = 2, 1.40 in d = 3, at moves = 6.


@dataclass
class Sliced:
    position: Any
    energy: Any


@dataclass(frozen=True)
class SliceSweep:
    width: float = 2.0
    moves: int = 6
    reach: int = 8

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        return Sliced(position, estimator.estimate(rng, (), position)[0].potential)

    def step(self, rng, state, step_size, estimator):
        x, unravel = ravel(state.position)
        energy, last = state.energy, state.energy

        def along(i, value):
            moved = x.copy()
            moved[i] = value
            return estimator.estimate(rng, (), unravel(moved))[0].potential

        start = rng.integers(x.size)
        for k in range(self.moves):
            i = (start + k) % x.size
            level = energy + rng.exponential()
            low = x[i] - self.width * rng.random()
            high = low + self.width
            to_the_left = rng.integers(self.reach)
            to_the_right = self.reach - 1 - to_the_left
            while to_the_left > 0 and along(i, low) < level:
                low -= self.width
                to_the_left -= 1
            while to_the_right > 0 and along(i, high) < level:
                high += self.width
                to_the_right -= 1
            for _ in range(80):
                value = low + (high - low) * rng.random()
                there = along(i, value)
                if there < level:
                    x[i] = value
                    last = there
                    break
                if value < x[i]:
                    low = value
                else:
                    high = value
        return Sliced(unravel(x), last)


# --- Delayed rejection with a second stage that is a function of the first (Green and Mira 2001) ------------------------
#
# First y = x + xi, xi ~ N(0, 2h), by Metropolis' rule. If it is refused, y2 = x + c xi without a new draw (c = -1: try the
# other side). (x, xi) -> (x + c xi, -xi) is an involution with |det| = 1: from y2 the first attempt that leads back to x is
# y2 - xi, the ghost. The density of xi cancels, being even.
#
# WRONG: the ratio has alpha_1(y2, y), as for a second stage with a draw of its own, in place of alpha_1(y2, y2 - xi). Small h,
# c = -1: the first stage is a random walk, E dx = -h U', variance 2h. It refuses with probability r = (U' xi)+ to leading order;
# then pi(y2)/pi(x) = 1 + .., 1 - alpha_1(y2, y) = 2r, ratio 2 > 1: always accepted (never, with the ghost, where
# 1 - alpha_1 = 0). That adds E[-xi (U'.xi)+] = -h U'. So dX = -2 grad U dt + sqrt(2) dW, with the law exp(-2U): half of the
# variance, in any dimension.


def _refusal(rise):
    """1 - min(1, exp(-rise))."""
    return -np.expm1(-np.maximum(rise, 0.0))


def delayed(bounce=-1.0):
    def step(rng, x, h, estimator):
        energy = lambda q: estimator.estimate(rng, (), q)[0].potential
        xi = jax.tree.map(lambda leaf: np.sqrt(2 * h) * rng.standard_normal(np.shape(leaf)), x)
        first = jax.tree.map(lambda leaf, d: leaf + d, x, xi)
        at_x, at_first = energy(x), energy(first)
        if rng.random() < np.exp(-np.maximum(at_first - at_x, 0.0)):
            return first
        second = jax.tree.map(lambda leaf, d: leaf + bounce * d, x, xi)
        at_second = energy(second)
        refused_there, refused_here = _refusal(at_first - at_second), _refusal(at_first - at_x)
        if refused_there == 0:
            return x
        log_ratio = at_x - at_second + np.log(refused_there) - np.log(refused_here)
        return second if np.log(rng.random()) < log_ratio else x

    return simple_sampler(step, backend="host", claims=Claims(Source("", "own"), ExactLaw()))


# --- HMC with a step size that is drawn around a local scale (GIST: Bou-Rabee, Carpenter and Marsden 2024) --------------
#
# log e | x ~ N(log(sqrt(2h) / L) - log(1 + |g(x)|^2) / 2, s^2), then L leapfrog steps of size e. The joint law is
# exp(-U(x) - |p|^2 / 2) p(log e | x); the flow at a fixed e is reversible and keeps volume, so that
#     log alpha = -Delta H + log p(log e | y) - log p(log e | x).
#
# WRONG: the centre is kept after its first use, so that p(log e | y) is taken around the centre of x and the two terms cancel.
# As h -> 0 all is accepted, and x moves as dX = -a grad U dt + sqrt(2a) dW, a = E[(L e)^2 | x] / 2h ~ 1 / (1 + |g|^2), without
# grad a: the law is exp(-U) / a ~ exp(-U) (1 + |grad U|^2). N(0, 1): E x^2 = (1 + 3) / (1 + 1) = 2; N(0, I_2): 5/3 each.


class LocalScale:
    """Log of the local scale of a step size, within one transition."""

    def __init__(self, step_size, leapfrogs, spread):
        self.base = 0.5 * np.log(2 * step_size) - np.log(leapfrogs)
        self.spread = spread
        self._center = None

    def center(self, gradient):
        if self._center is None:
            self._center = self.base - 0.5 * np.log1p(np.sum(gradient * gradient))
        return self._center

    def log_density(self, log_size, gradient):
        return -0.5 * ((log_size - self.center(gradient)) / self.spread) ** 2


class LocalHMC:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, leapfrogs=3, spread=0.3):
        if leapfrogs < 1 or spread <= 0:
            raise ValueError("leapfrogs >= 1, spread > 0")
        self.leapfrogs = leapfrogs
        self.spread = spread

    def step(self, rng, position, step_size, estimator):
        q, unravel = ravel(position)

        def evaluate(vector):
            estimate = estimator.estimate(rng, (), unravel(vector))[0]
            return estimate.potential, ravel(estimate.gradient)[0]

        scale = LocalScale(step_size, self.leapfrogs, self.spread)
        potential, gradient = evaluate(q)
        log_size = scale.center(gradient) + self.spread * rng.standard_normal()
        p = rng.standard_normal(q.size)
        before = -potential - 0.5 * np.sum(p * p) + scale.log_density(log_size, gradient)
        e = np.exp(log_size)
        for _ in range(self.leapfrogs):
            p = p - 0.5 * e * gradient
            q = q + e * p
            potential, gradient = evaluate(q)
            p = p - 0.5 * e * gradient
        after = -potential - 0.5 * np.sum(p * p) + scale.log_density(log_size, gradient)
        return unravel(q) if np.log(rng.random()) < after - before else position
