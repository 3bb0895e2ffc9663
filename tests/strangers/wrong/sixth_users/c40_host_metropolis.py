"""Metropolis, slice and Hamiltonian kernels in NumPy, claimed to be exact. Positions: arrays of any shape, or trees of them."""

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
# WRONG. Random walk that flips a coin: either everything moves at once, or a sweep over single sites. `flat[block]` is a copy
# for an integer (a number), and a VIEW for slice(None): the proposal is written through it, and `flat[block] = kept` after a
# rejection restores nothing. Half of the steps are a free walk with variance 2 h, without a test. As h -> 0 the generator is
#   1/2 (Lap - U' d) + 1/2 Lap = Lap - 1/2 U' d,
# whose law is exp(-U/2): temperature 2, variances twice what they should be, in any dimension (at larger h still more, as the
# tested half rejects: simulated 3.4 at h = 0.1, 2.2 at 0.005 for a standard normal).


def block_walk(rng, position, h, estimator):
    flat, rebuild = ravel(position)

    def energy():
        return estimator.estimate(rng, (), rebuild(flat))[0].potential

    now = energy()
    blocks = [slice(None)] if rng.random() < 0.5 else rng.permutation(flat.size)
    for block in blocks:
        kept = flat[block]
        flat[block] = kept + np.sqrt(2 * h) * rng.standard_normal(np.shape(kept))
        then = energy()
        if np.log(rng.random()) < now - then:
            now = then
        else:
            flat[block] = kept
    return rebuild(flat)


walk = simple_sampler(block_walk, backend="host", claims=EXACT)


# ---------------------------------------------------------------------------------------------------------------------
# WRONG in more than one dimension. Slice sampler, one coordinate after the other, with stepping out and shrinkage. The height
# below the density, a uniform (here its logarithm), is drawn once for the sweep and used again for every coordinate, from
# the density of where the coordinate before it has ended. After that move the ratio level/density is no longer the old
# uniform: u is correlated with the state, so that the next coordinate is not uniform on a fresh slice.
# Standard normal in d = 2, steps that fill the slice: s_i = x_i^2 -> (s_i + 2 e) W_i, W_i = V_i^2, V_i uniform on (-1, 1), e
# exponential and shared. Each coordinate alone is right (E s = (1 + 2)/3 = 1), but m = E s_1 s_2 = E (s_1 + 2e)(s_2 + 2e) / 9
# = (m + 4 + 8)/9, so m = 12/8 = 3/2 where 1 is due. For a correlation of 0.8 E x^4 is 3.4 for 3, in d = 5
# E |x|^4 is 28% too large (simulated). Right for d = 1. Finite widths change little of this.


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
        below = rng.exponential()
        for i in rng.permutation(flat.size):
            start = flat[i]
            level = here - below

            def inside(value, i=i, level=level):
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
            here = log_density()
        self._owner, self._bytes, self._energy = estimator, flat.tobytes(), here
        return rebuild(flat)


# ---------------------------------------------------------------------------------------------------------------------
# WRONG. One leapfrog step whose size is chosen anew in every state: the first of first, first/2, ... whose energy error is
# below the tolerance. The end of the move would often have chosen a larger step (or another one), and would then not lead
# back; nothing looks at that, and the acceptance is that of a fixed step. So detailed balance fails at every pair whose k
# differ, at any h (h is not used): a move x -> y with k, and no move y -> x at all. Simulated, 4000 chains: U = x^4/4 has
# E x^2 = 0.85 for 0.676 and E x^4 = 1.45 for 1; a standard normal E x^4 = 2.67 for 3; N(0, diag(1, 1/4)) E x_1^4 = 3.33.


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
            if np.log(rng.random()) < energy - hamiltonian(y, q):
                return rebuild(y)
        return rebuild(x)


# ---------------------------------------------------------------------------------------------------------------------
# WRONG. Hamiltonian Monte Carlo with momenta of Laplace's law, K(p) = sum |p_i|, velocity sign(p), in which momenta were given
# the variance 1 (scale b = 1/sqrt(2), as for normal ones) while K is that of scale 1. Refreshing does not keep exp(-K). As
# h -> 0, L steps of size e move x by +- L e; a sign turns on the way if |p| < L e |g|, with density 1/(2b) at 0:
#   E dx = -(1/2b) int_0^{L e g} 2 (L e - p/g) dp = -L^2 e^2 g / (2b),  E dx^2 = L^2 e^2,
# and rejections enter at O(e^3). So the law tends to exp(-U/b): temperature b = 0.707, variance 0.707 of a standard normal.


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

        p = rng.laplace(scale=np.sqrt(0.5), size=x.shape)
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
