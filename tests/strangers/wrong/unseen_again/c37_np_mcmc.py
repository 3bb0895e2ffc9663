"""Classical MCMC in NumPy."""

import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def open_up(rng, position, estimator):
    """The position as a vector, functions of vectors for the energy and the force, and the way back."""
    flat, back = ravel_pytree(position)
    x = np.array(flat)

    def energy(v):
        return float(estimator.estimate(rng, (), back(v.astype(x.dtype)))[0].potential)

    def both(v):
        found = estimator.estimate(rng, (), back(v.astype(x.dtype)))[0]
        return float(found.potential), np.asarray(ravel_pytree(found.gradient)[0])

    return x, energy, both, lambda v: back(v.astype(x.dtype))


# ------------------------------------------------------------ one coordinate at a time


def _sweep(rng, position, step_size, estimator):
    x, energy, _, back = open_up(rng, position, estimator)
    current = energy(x)
    for i in range(x.size):
        before = x[i]
        x[i] = before + np.sqrt(2 * step_size) * rng.normal()
        proposed = energy(x)
        if np.log(rng.uniform()) >= current - proposed:
            x[i] = before
        current = proposed
    return back(x)


sweep = simple_sampler(_sweep, claims=EXACT, backend="host")


# ------------------------------------------------------------ slice sampling


class Slice:
    """Slice sampling along a random direction; steps of sqrt(2 h) out on both sides, at most `steps` each."""

    backend = "host"
    claims = EXACT

    def __init__(self, steps=4):
        self.steps = steps

    def init(self, rng, position, estimator):
        return {"x": position}

    def position(self, state):
        return state["x"]

    def step(self, rng, state, step_size, estimator):
        x, energy, _, back = open_up(rng, state["x"], estimator)
        along = rng.normal(size=x.shape)
        along /= np.sqrt(np.sum(along**2))
        level = energy(x) - np.log(1 - rng.uniform())
        width = np.sqrt(2 * step_size)
        left = -width * rng.uniform()
        right = left + width
        for _ in range(self.steps):
            if energy(x + left * along) > level:
                break
            left -= width
        for _ in range(self.steps):
            if energy(x + right * along) > level:
                break
            right += width
        while True:
            t = left + (right - left) * rng.uniform()
            if energy(x + t * along) <= level:
                return {"x": back(x + t * along)}
            if t < 0:
                left = t
            else:
                right = t


# ------------------------------------------------------------ no U-turns


class Tree:
    __slots__ = ("count", "draw", "left", "ok", "right")

    def __init__(self, left, right, draw, count, ok):
        self.left, self.right, self.draw, self.count, self.ok = left, right, draw, count, ok


class NUTS:
    """Algorithm 2 of Hoffman and Gelman, with progressive choice, to depth 4."""

    backend = "host"
    claims = EXACT
    depth = 4

    def init(self, rng, position, estimator):
        return position

    def position(self, state):
        return state

    def step(self, rng, state, step_size, estimator):
        x, _, both, back = open_up(rng, state, estimator)
        p = rng.normal(size=x.shape)
        u, g = both(x)
        level = -np.log(1 - rng.uniform()) + u + 0.5 * p @ p
        whole = Tree((x, p, g), (x, p, g), x, 1, True)
        for depth in range(self.depth):
            forward = rng.uniform() < 0.5
            start = whole.right if forward else whole.left
            new = self.build(rng, start, 1 if forward else -1, depth, step_size, level, both)
            if forward:
                whole.right = new.right
            else:
                whole.left = new.left
            if new.ok and rng.uniform() * whole.count < new.count:
                whole.draw = new.draw
            whole.count += new.count
            if not new.ok or self.turned(whole.left, whole.right):
                break
        return back(whole.draw)

    def build(self, rng, start, sign, depth, h, level, both):
        if depth == 0:
            x, p, g = start
            p = p - sign * h / 2 * g
            x = x + sign * h * p
            u, g = both(x)
            p = p - sign * h / 2 * g
            energy = u + 0.5 * p @ p
            end = x, p, g
            return Tree(end, end, x, int(energy <= level), energy < level + 1000)
        one = self.build(rng, start, sign, depth - 1, h, level, both)
        if not one.ok:
            return one
        two = self.build(rng, one.right if sign > 0 else one.left, sign, depth - 1, h, level, both)
        left, right = (one.left, two.right) if sign > 0 else (two.left, one.right)
        count = one.count + two.count
        draw = two.draw if rng.uniform() * one.count < two.count else one.draw
        return Tree(left, right, draw, count, two.ok and not self.turned(left, right))

    @staticmethod
    def turned(left, right):
        span = right[0] - left[0]
        return span @ left[1] < 0 or span @ right[1] < 0


# ------------------------------------------------------------ bolder in the tails


def _bold(rng, position, step_size, estimator):
    """Random walk with a larger step beyond a radius of three."""
    x, energy, _, back = open_up(rng, position, estimator)
    scale = lambda v: np.sqrt(2 * step_size) * (1.0 if np.sqrt(np.mean(v**2)) < 3 else 2.0)
    y = x + scale(x) * rng.normal(size=x.shape)
    distance = np.sum((y - x) ** 2)
    forth, back_again = -distance / (2 * scale(x) ** 2), -distance / (2 * scale(y) ** 2)
    if np.log(rng.uniform()) < energy(x) - energy(y) + back_again - forth:
        return back(y)
    return position


bold = simple_sampler(_bold, claims=EXACT, backend="host")
