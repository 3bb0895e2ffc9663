"""Slice samplers beyond the first one of a textbook: doubling with its test, hyperrectangles, an ellipse under a scale
that is drawn with the position, a level that is kept from step to step. All leave exp(-U) invariant at every size."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

SLICE = Claims(Source("neal2003slice", "section 4"), ExactLaw())
NEEDS = ("potential",)


class Doubling:
    """Neal's figures 4 and 6: an interval that is doubled up to six times, and the test that the way back is as likely.

    Coordinates in a random order; width 2 sqrt(h).
    """

    backend = "host"
    needs = NEEDS
    doublings = 6

    def step(self, key, state, step_size, estimator):
        x, width = np.array(state), 2 * float(np.sqrt(step_size))
        for i in key.permutation(x.size):
            x.flat[i] = self._coordinate(key, x, i, width, estimator)
        return x

    def _coordinate(self, key, x, i, width, estimator):
        def energy(t):
            y = x.copy()
            y.flat[i] = t
            return float(estimator.estimate(key, (), y)[0].potential)

        now = float(x.flat[i])
        level = energy(now) + key.exponential()
        left = now - width * key.random()
        right = left + width
        for _ in range(self.doublings):
            if energy(left) >= level and energy(right) >= level:
                break
            if key.random() < 0.5:
                left -= right - left
            else:
                right += right - left
        low, high = left, right
        while True:
            t = low + key.random() * (high - low)
            if energy(t) < level and self._as_likely(energy, level, now, t, left, right, width):
                return t
            if t < now:
                low = t
            else:
                high = t

    def _as_likely(self, energy, level, old, new, left, right, width):
        differs = False
        while right - left > 1.1 * width:
            middle = (left + right) / 2
            differs = differs or (old < middle) != (new < middle)
            if new < middle:
                right = middle
            else:
                left = middle
            if differs and energy(left) >= level and energy(right) >= level:
                return False
        return True


doubling_slice = Doubling()


def _hyperrectangle(key, x, h, estimator):
    # Neal's figure 8: a box placed at random about x, each side pulled in to a point that was outside of the slice.
    energy = lambda y: estimator.estimate(key, (), y)[0].potential
    a, b, c = jax.random.split(jax.random.fold_in(key, 1), 3)
    level = energy(x) + jax.random.exponential(a, dtype=x.dtype)
    width = 3 * jnp.sqrt(h).astype(x.dtype)
    low = x - width * jax.random.uniform(b, x.shape, x.dtype)
    draw = lambda key, low, high: low + (high - low) * jax.random.uniform(key, x.shape, x.dtype)

    def outside(carry):
        return energy(carry[3]) >= level

    def shrink(carry):
        key, low, high, y = carry
        key, use = jax.random.split(key)
        low, high = jnp.where(y < x, y, low), jnp.where(y < x, high, y)
        return key, low, high, draw(use, low, high)

    c, use = jax.random.split(c)
    return jax.lax.while_loop(outside, shrink, (c, low, low + width, draw(use, low, low + width)))[3]


hyperrectangle = simple_sampler(_hyperrectangle, needs=NEEDS, claims=SLICE)


def _student_ellipse(key, x, h, estimator):
    # Nishihara, Murray and Adams: exp(-U) = T(x) L(x), T a Student law with 5 degrees of freedom, x | s ~ N(0, s I).
    # s is drawn given x, then x moves on an ellipse given s; the step size does not enter.
    del h
    a, b, c, d = jax.random.split(key, 4)
    df, n = 5.0, x.size
    s = (df + jnp.sum(x**2)) / 2 / jax.random.gamma(a, (df + n) / 2, dtype=x.dtype)
    log_t = lambda y: -(df + n) / 2 * jnp.log1p(jnp.sum(y**2) / df)
    cost = lambda y: estimator.estimate(a, (), y)[0].potential + log_t(y)
    other = jnp.sqrt(s) * jax.random.normal(b, x.shape, x.dtype)
    level = cost(x) + jax.random.exponential(c, dtype=x.dtype)
    point = lambda angle: x * jnp.cos(angle) + other * jnp.sin(angle)

    def shrink(carry):
        key, low, high, angle = carry
        low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
        key, use = jax.random.split(key)
        return key, low, high, jax.random.uniform(use, (), x.dtype, low, high)

    d, use = jax.random.split(d)
    first = jax.random.uniform(use, (), x.dtype, 0.0, 2 * jnp.pi)
    start = (d, first - 2 * jnp.pi, first, first)
    return point(jax.lax.while_loop(lambda carry: cost(point(carry[3])) >= level, shrink, start)[3])


student_ellipse = simple_sampler(_student_ellipse, needs=NEEDS)


class Level(NamedTuple):
    level: Any
    x: Any


class KeptLevel:
    """The level above U is drawn at the end of a step and used in the next: a Gibbs sampler of (x, level).

    (x, level) has the density 1{U(x) < level} exp(-level), whose marginal is exp(-U(x)).
    """

    needs = NEEDS

    def _above(self, key, x, estimator):
        a, b = jax.random.split(key)
        return estimator.estimate(a, (), x)[0].potential + jax.random.exponential(b, dtype=x.dtype)

    def init(self, key, position, estimator):
        return Level(self._above(key, position, estimator), position)

    def step(self, key, state, h, estimator):
        a, b, c = jax.random.split(key, 3)
        level, x = state
        line = jax.random.normal(a, x.shape, x.dtype)
        energy = lambda t: estimator.estimate(a, (), x + t * line)[0].potential
        span = 4 * jnp.sqrt(h).astype(x.dtype)

        def shrink(carry):
            key, low, high, t = carry
            low, high = jnp.where(t < 0, t, low), jnp.where(t < 0, high, t)
            key, use = jax.random.split(key)
            return key, low, high, jax.random.uniform(use, (), x.dtype, low, high)

        b, place, use = jax.random.split(b, 3)
        low = -span * jax.random.uniform(place, dtype=x.dtype)
        start = (b, low, low + span, jax.random.uniform(use, (), x.dtype, low, low + span))
        x = x + jax.lax.while_loop(lambda carry: energy(carry[3]) >= level, shrink, start)[3] * line
        return Level(self._above(c, x, estimator), x)

    def position(self, state):
        return state.x


kept_level = KeptLevel()
