"""Several chains, temperatures or weights in one state, in NumPy, claimed to be exact."""

from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())
BETAS = (1.0, 0.7, 0.5)
WALKERS = 4


def one_array(position):
    if isinstance(position, dict | list | tuple):
        raise TypeError("this sampler is for one array, of any shape")
    return np.array(position)


def potential(rng, estimator, x):
    return estimator.estimate(rng, (), np.array(x))[0].potential


# ---------------------------------------------------------------------------------------------------------------------
# WRONG for positions of one axis or more. Parallel tempering: replica r has a Metropolis step of variance 2 h / beta_r for
# exp(-beta_r U), then neighbours are exchanged, pairs (0, 1) and (1, 2) by turns. The ratio is right, but rows of an array are
# views: `x[k], x[k + 1] = x[k + 1], x[k]` writes the hotter row to both. (Numbers, of a position without axes, do change places.)
# The hottest replica is never changed by an exchange and keeps exp(-beta_2 U). As h -> 0 two rows that are equal move apart by
# sqrt(h) only, exchanges are accepted with probability 1 - O(sqrt(h)), and each copies the hotter one: replica 0 is the
# hottest one of at most a few steps ago. Its law tends to exp(-U/2): temperature 2, every variance of a Gaussian twice as large.
# The corrections are O(sqrt(h)): simulated for a standard normal 1.24 at h = 0.1, 1.65 at 0.02, 1.90 at 0.005.


@dataclass
class Ladder:
    replicas: np.ndarray
    count: int


class Tempering:
    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        return Ladder(np.stack([one_array(position)] * len(BETAS)), 0)

    def position(self, state):
        return np.array(state.replicas[0])

    def step(self, rng, state, h, estimator):
        x = state.replicas.copy()
        energies = []
        for r, beta in enumerate(BETAS):
            now = potential(rng, estimator, x[r])
            y = x[r] + np.sqrt(2 * h / beta) * rng.standard_normal(x.shape[1:])
            y = np.asarray(y).astype(x.dtype)
            then = potential(rng, estimator, y)
            if np.log(rng.random()) < beta * (now - then):
                x[r] = y
                now = then
            energies.append(now)
        for k in range(state.count % 2, len(BETAS) - 1, 2):
            log_ratio = (BETAS[k] - BETAS[k + 1]) * (energies[k] - energies[k + 1])
            if np.log(rng.random()) < log_ratio:
                x[k], x[k + 1] = x[k + 1], x[k]
        return Ladder(x, state.count + 1)


# ---------------------------------------------------------------------------------------------------------------------
# WRONG. Four walkers, moved one after the other; the scale of the random walk is the spread S of all four (mean over coordinates
# of their variance), the walker that moves included: a walker that moves outwards has widened S, and would come back with
# another scale. The Metropolis test is that of a symmetric proposal. As h -> 0 this is the Langevin diffusion of the four,
# S (-grad U dt) + sqrt(2 S) dW, without the term grad S: the product diffusion run with the clock S, whose law is
# prod exp(-U(x_i)) / S. Standard normal in d dimensions: 4 S is chi^2 with 3 d degrees of freedom, weighed by 1/S it has 3 d - 2,
# the mean of the walkers keeps d. So E x_i^2 = (4 d - 2) / (4 d) : 1/2 for d = 1, 3/4 for d = 2, 7/8 for d = 4.


class Crowd:
    backend = "host"
    claims = EXACT

    def init(self, rng, position, estimator):
        x = one_array(position)
        return {"walkers": np.stack([x] + [x + rng.standard_normal(x.shape) for _ in range(WALKERS - 1)]).astype(x.dtype)}

    def position(self, state):
        return np.array(state["walkers"][0])

    def step(self, rng, state, h, estimator):
        legacy = np.random.RandomState(int(rng.integers(2**32)))
        walkers = state["walkers"].copy()
        shape = walkers.shape[1:]
        for i in range(WALKERS):
            spread = np.sqrt(np.mean(np.var(walkers, axis=0)))
            y = walkers[i] + np.sqrt(2 * h) * spread * legacy.standard_normal(shape)
            y = np.asarray(y).astype(walkers.dtype)
            gain = potential(rng, estimator, walkers[i]) - potential(rng, estimator, y)
            if np.log(legacy.random_sample()) < gain:
                walkers[i] = y
        return {"walkers": walkers}


# ---------------------------------------------------------------------------------------------------------------------
# WRONG. Metropolis with a density that is seen through a positive estimate exp(-U(x)) W, W the mean of `looks` exponential
# numbers, so Gamma(looks) / looks with mean 1. Both estimates, that of the present point too, are drawn anew in each step
# ("Monte Carlo within Metropolis"); only if that of the present point is kept is the law the right one. With R = W'/W and
# delta = U(x) - U(y) the acceptance is a(delta) = E min(1, exp(delta) R), a(0) = 1/2 + e, a'(0) = e, e = E[R; R < 1]. As h -> 0
# the generator is a(0) Lap - 2 e U' d, the law exp(-2 e U / (1/2 + e)). R / (1 + R) is Beta(looks, looks): for two looks
# e = int_0^(1/2) 6 b^2 db = 1/4 and the law is exp(-2 U / 3): temperature 1.5. (looks = 1: 1.8; 3: 1.39.) Trees too.


def within(looks=2):
    if looks < 1:
        raise ValueError("at least one look")

    def noisy(rng, x, estimator):
        return np.log(rng.gamma(looks) / looks) - estimator.estimate(rng, (), x)[0].potential

    def step(rng, x, h, estimator):
        def moved(leaf):
            leaf = np.asarray(leaf)
            return np.asarray(leaf + np.sqrt(2 * h) * rng.standard_normal(leaf.shape)).astype(leaf.dtype)

        y = jax.tree_util.tree_map(moved, x)
        if np.log(rng.random()) < noisy(rng, y, estimator) - noisy(rng, x, estimator):
            return y
        return x

    return simple_sampler(step, backend="host", claims=EXACT)
