"""Metropolis, slice and Hamiltonian kernels in NumPy, all exact at every step size. Positions: arrays of any shape, or trees of them."""

from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def ravel(tree):
    """One vector (always a copy) of all numbers of a tree, and the way back (copies too)."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    leaves = [np.asarray(leaf) for leaf in leaves]
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def rebuild(flat):
        parts = np.split(flat, ends)
        return jax.tree_util.tree_unflatten(
            structure, [part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
        )

    return np.concatenate([leaf.reshape(-1) for leaf in leaves]), rebuild


# ---------------------------------------------------------------------------------------------------------------------
# Random walk that flips a coin: either everything moves at once, or a sweep over single sites in a random order, each
# with its own Metropolis test. Each of the two kernels keeps exp(-U) (symmetric proposals, a rejection restores the old
# numbers), a coin that ignores the state mixes them, so the mixture keeps it at every h.


def block_walk(rng, position, h, estimator):
    flat, rebuild = ravel(position)

    def energy():
        return estimator.estimate(rng, (), rebuild(flat))[0].potential

    now = energy()
    blocks = [slice(None)] if rng.random() < 0.5 else rng.permutation(flat.size)
    for block in blocks:
        kept = np.array(flat[block])
        flat[block] = kept + np.sqrt(2 * h) * rng.standard_normal(kept.shape)
        then = energy()
        if np.log(rng.random()) < now - then:
            now = then
        else:
            flat[block] = kept
    return rebuild(flat)


walk = simple_sampler(block_walk, backend="host", claims=EXACT)


# ---------------------------------------------------------------------------------------------------------------------
# Slice sampler, one coordinate after the other, with ONE level for the whole sweep. That is exact: (x, y) uniform below
# the graph of the density has the marginal exp(-U); the level is Gibbs for y given x, and each coordinate is then updated
# at this y by Neal's stepping out (limit `most`, split at random between both sides) and shrinkage, which leaves the
# uniform law on the slice invariant. x never leaves its slice, so shrinkage ends. The energy of the point where a step
# ended is kept on the object, and used only for the same estimator and the same bytes.


class SweptSlice:
    backend = "host"
    claims = EXACT

    def __init__(self, width=1.5, most=8):
        if width <= 0 or most < 1:
            raise ValueError("width and most have to be positive")
        self.width, self.most = width, most
        self._owner = self._bytes = self._energy = None

    def step(self, rng, position, h, estimator):
        flat, rebuild = ravel(position)

        def log_density():
            return -estimator.estimate(rng, (), rebuild(flat))[0].potential

        if self._owner is estimator and self._bytes == flat.tobytes():
            here = self._energy
        else:
            here = log_density()
        level = here - rng.exponential()
        for i in rng.permutation(flat.size):
            start = flat[i]

            def inside(value, i=i):
                flat[i] = value
                return log_density() >= level

            left = start - self.width * rng.random()
            right = left + self.width
            to_left = int(rng.integers(self.most))
            to_right = self.most - 1 - to_left
            while to_left > 0 and inside(left):
                left, to_left = left - self.width, to_left - 1
            while to_right > 0 and inside(right):
                right, to_right = right + self.width, to_right - 1
            while True:
                value = left + (right - left) * rng.random()
                if inside(value):
                    break
                if value < start:
                    left = value
                else:
                    right = value
        self._owner, self._bytes, self._energy = estimator, flat.tobytes(), log_density()
        return rebuild(flat)


# ---------------------------------------------------------------------------------------------------------------------
# One leapfrog step whose size is chosen anew in every state: the first of first, first/2, ... whose energy error is below
# the tolerance (the last one if none is). k(x, p) is a function of the phase point. The map (x, p) -> leapfrog with
# k(x, p), then p -> -p, is its own inverse where k at the end is k at the start, and moves are tested for exactly that; it
# keeps volume there (for each k leapfrog does, and k is piecewise constant). So min(1, exp(-dH)) on this set, and no move
# off it, is in detailed balance with exp(-U - p^2/2), and p is drawn anew in each step. h is not used.


class AutoStep:
    backend = "host"
    claims = EXACT

    def __init__(self, first=4.0, tolerance=0.5, halvings=8):
        if first <= 0 or tolerance <= 0 or halvings < 1:
            raise ValueError("options have to be positive")
        self.first, self.tolerance, self.halvings = first, tolerance, halvings

    def step(self, rng, position, h, estimator):
        x, rebuild = ravel(position)

        def hamiltonian(q, p):
            return estimator.estimate(rng, (), rebuild(q))[0].potential + 0.5 * np.sum(p * p)

        def slope(q):
            return ravel(estimator.estimate(rng, (), rebuild(q))[0].gradient)[0]

        def leap(k, q, p):
            eps = self.first * 0.5**k
            p = p - 0.5 * eps * slope(q)
            q = q + eps * p
            return q, p - 0.5 * eps * slope(q)

        def choose(q, p):
            energy = hamiltonian(q, p)
            for k in range(self.halvings):
                if abs(hamiltonian(*leap(k, q, p)) - energy) < self.tolerance:
                    break
            return k, energy

        with np.errstate(over="ignore", invalid="ignore"):
            p = rng.standard_normal(x.shape)
            k, energy = choose(x, p)
            y, q = leap(k, x, p)
            back, energy_there = choose(y, -q)
            if back == k and np.log(rng.random()) < energy - energy_there:
                return rebuild(y)
        return rebuild(x)


# ---------------------------------------------------------------------------------------------------------------------
# Hamiltonian Monte Carlo with momenta of Laplace's law, K(p) = sum |p_i|, velocity sign(p). Kicks depend on x alone and
# drifts on p alone, so a trajectory keeps volume, and it is reversed by p -> -p, since K is even. Step sizes, one for each
# coordinate (diag(eps) multiplies kick and drift alike), are drawn before and independently of the state, which keeps the
# positions off a lattice. Momenta are drawn from exp(-K): scale 1. Exact at every h by min(1, exp(-dH)).


@dataclass(frozen=True)
class LaplaceMomenta:
    leaps: int = 3

    backend = "host"
    claims = EXACT

    def step(self, rng, position, h, estimator):
        x, rebuild = ravel(position)

        def look(q):
            found = estimator.estimate(rng, (), rebuild(q))[0]
            return found.potential, ravel(found.gradient)[0]

        p = rng.laplace(scale=1.0, size=x.shape)
        eps = h * rng.uniform(0.5, 1.5, size=x.shape)
        energy, slope = look(x)
        total = energy + np.sum(np.abs(p))
        y = x.copy()
        for _ in range(self.leaps):
            p = p - 0.5 * eps * slope
            y = y + eps * np.sign(p)
            energy, slope = look(y)
            p = p - 0.5 * eps * slope
        if np.log(rng.random()) < total - energy - np.sum(np.abs(p)):
            x = y
        return rebuild(x)
