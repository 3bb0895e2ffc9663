"""Plain NumPy samplers. The state is the position (any tree of arrays); what else a sampler knows sits in `self`."""

import jax
import numpy as np

from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own work"), ExactLaw())


def flat(tree):
    """One vector of all numbers, and the way back."""
    leaves, treedef = jax.tree.flatten(tree)
    leaves = [np.asarray(leaf) for leaf in leaves]
    sizes = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def back(vector):
        parts = np.split(vector, sizes)
        return jax.tree.unflatten(
            treedef, [p.reshape(leaf.shape).astype(leaf.dtype) for p, leaf in zip(parts, leaves, strict=True)]
        )

    return np.concatenate([leaf.ravel() for leaf in leaves]), back


class MemoisedLangevin:
    """SGLD whose gradients are kept in a dictionary, since they are dear.

    WRONG: the key is the position rounded to a grid of 0.25, so all points of a cell get the gradient of the point at which
    the chain first came in, which as h -> 0 is its edge on the near side: the pull is too weak by about half a cell, 0.125.
    N(0, 1): density about exp(-x^2 / 2 + 0.125 |x|), variance about +10%; more for sharper laws (sd 0.1: a cell is 2.5 sd). In
    many dimensions cells are hardly revisited, and the error goes. Right: key on the bytes of the position itself (or no memory at all).
    """

    backend = "host"

    def __init__(self, grid=0.25):
        self.grid = grid
        self._memo = {}

    def init(self, rng, position, estimator):
        self._memo = {}
        return position

    def _gradient(self, rng, x, position, estimator):
        where = np.rint(x / self.grid).astype(np.int64).tobytes()
        if where not in self._memo:
            self._memo[where] = flat(estimator.estimate(rng, (), position)[0].gradient)[0]
        return self._memo[where]

    def step(self, rng, position, step_size, estimator):
        x, back = flat(position)
        g = self._gradient(rng, x, position, estimator)
        return back(x - step_size * g + np.sqrt(2 * step_size) * rng.standard_normal(x.size))


class NoiseTable:
    """Normals drawn once; a step takes a slice of them at a random place (as evolution strategies do).

    A table of 4096: for this seed the mean of its numbers is -0.0104, the product of neighbours -0.018 on average.
    """

    def __init__(self, size=4096, seed=1234):
        self.numbers = np.random.default_rng(seed).standard_normal(size)

    def take(self, rng, n):
        """n numbers of the table, in a row; more than it has are taken piece by piece."""
        out = []
        while n > 0:
            k = min(n, self.numbers.size // 2)
            at = rng.integers(self.numbers.size - k + 1)
            out.append(self.numbers[at : at + k])
            n -= k
        return np.concatenate(out)


class TableLangevin:
    """SGLD with the noise of a shared `NoiseTable`: no calls of a normal generator within the loop.

    WRONG: the noise has the mean m = -0.0104 of the table, hence a drift m sqrt(2 / h) that grows as h -> 0. N(0, 1): the
    mean is off by -0.15 sd at h = 0.01 and by -0.46 sd at h = 0.001. Right: rng.standard_normal(n), or a table whose mean
    is subtracted (and that is shuffled, for the correlations).
    """

    backend = "host"

    def __init__(self):
        self.table = NoiseTable()

    def step(self, rng, position, step_size, estimator):
        g, _ = flat(estimator.estimate(rng, (), position)[0].gradient)
        x, back = flat(position)
        return back(x - step_size * g + np.sqrt(2 * step_size) * self.table.take(rng, x.size))


class CachedMala:
    """MALA with one evaluation of U and grad U a step: those of the present point are kept from the step before.

    WRONG: after a rejection the cache holds U and grad U of the rejected point under the name of the present one, for the
    cache is written before the test. Right: `self._known = (y, uy, gy) if accepted else (x, u, g)`. Claimed exact; N(0, 1):
    variance 1.03 at h = 0.5, 2.06 at h = 1 (8% and 23% of proposals rejected). As h -> 0 rejections, and the error, vanish.
    """

    backend = "host"
    needs = ("potential", "gradient")
    claims = EXACT

    def __init__(self):
        self._known = None

    def init(self, rng, position, estimator):
        self._known = None
        return position

    @staticmethod
    def _look(rng, position, estimator):
        e = estimator.estimate(rng, (), position)[0]
        return float(e.potential), flat(e.gradient)[0]

    def step(self, rng, position, step_size, estimator):
        x, back = flat(position)
        if self._known is None or not np.array_equal(self._known[0], x):
            self._known = (x, *self._look(rng, position, estimator))
        _, u, g = self._known
        y = flat(back(x - step_size * g + np.sqrt(2 * step_size) * rng.standard_normal(x.size)))[0]
        uy, gy = self._look(rng, back(y), estimator)
        forth = np.sum((y - x + step_size * g) ** 2)
        home = np.sum((x - y + step_size * gy) ** 2)
        if np.log(rng.random()) < u - uy + (forth - home) / (4 * step_size):
            x = y
        self._known = (x, uy, gy)
        return back(x)


class InPlaceHmc:
    """HMC with leapfrog steps done in place, to save memory; one step of length sqrt(2 h) is time h of Langevin.

    WRONG: `q = start.view()` shares the memory of `start`, so `q += ..` moves `start` too, and a rejection returns the
    proposal: nothing is ever rejected. Right: `q = start.copy()`. Claimed exact; N(0, 1): the law of the leapfrog,
    variance 1 / (1 - h / 2): +33% at h = 0.5, +5% at h = 0.1.
    """

    backend = "host"
    needs = ("potential", "gradient")
    claims = EXACT

    def step(self, rng, position, step_size, estimator):
        start, back = flat(position)
        eps = np.sqrt(2 * step_size)
        q = start.view()
        p = rng.standard_normal(q.size).astype(q.dtype)
        here = estimator.estimate(rng, (), position)[0]
        energy = float(here.potential) + 0.5 * np.dot(p, p)
        p -= 0.5 * eps * flat(here.gradient)[0]
        q += eps * p
        there = estimator.estimate(rng, (), back(q.copy()))[0]
        p -= 0.5 * eps * flat(there.gradient)[0]
        change = float(there.potential) + 0.5 * np.dot(p, p) - energy
        return back(q.copy()) if np.log(rng.random()) < -change else back(start.copy())


class RmsLangevin:
    """SGLD preconditioned by G = 1 / (1 + sqrt v), v a running mean of squared gradients (decay 0.9), kept in `self`.

    WRONG: v follows the present g^2, so as h -> 0 the step has G(x) = 1 / (1 + |g|), whose divergence is missing; the first
    step after `init` does not show it (v starts at 1, in `self`, not in the state). The law is exp(-U) / G; N(0, 1):
    E x^2 (1 + |x|) / E (1 + |x|) = 1.44, variance +44%. Right: add h dG/dx, or freeze v after burn-in.
    """

    backend = "host"
    decay = 0.9

    def __init__(self):
        self.v = None

    def init(self, rng, position, estimator):
        self.v = None
        return position

    def step(self, rng, position, step_size, estimator):
        g, _ = flat(estimator.estimate(rng, (), position)[0].gradient)
        x, back = flat(position)
        if self.v is None or self.v.shape != g.shape:
            self.v = np.ones_like(g)
        self.v = self.decay * self.v + (1 - self.decay) * g**2
        G = 1 / (1 + np.sqrt(self.v))
        return back(x - step_size * G * g + np.sqrt(2 * step_size * G) * rng.standard_normal(x.size))


memoised = MemoisedLangevin()
noise_table = TableLangevin()
cached_mala = CachedMala()
in_place_hmc = InPlaceHmc()
rms = RmsLangevin()
