"""Several chains, temperatures or weights in one state, in NumPy. Exact at every step size."""

from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

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
# Parallel tempering. Replica r has the law exp(-beta_r U); each makes a Metropolis step of variance 2 h / beta_r, then
# neighbours are exchanged, pairs (0, 1) and (1, 2) by turns (a count says whose turn it is). An exchange is accepted with
# min(1, exp((b_k - b_l)(U_k - U_l))), which balances the product of the laws, and a turn that only a count decides leaves
# every single kernel what it is. A list of indices on the right makes a copy, so both rows change places. Position: replica 0.


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
                x[[k, k + 1]] = x[[k + 1, k]]
        return Ladder(x, state.count + 1)


# ---------------------------------------------------------------------------------------------------------------------
# Four walkers, moved one after the other; the scale of a walker's random walk is the spread of the OTHER three (root of the
# mean over coordinates of their variance). Given the others it is a constant, so the Metropolis test of a symmetric proposal
# keeps exp(-U(x_i)) for walker i, hence the product of the four laws, at every h. All draws come from a legacy generator
# that is seeded by the step's. Position: walker 0.


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
            spread = np.sqrt(np.mean(np.var(np.delete(walkers, i, axis=0), axis=0)))
            y = walkers[i] + np.sqrt(2 * h) * spread * legacy.standard_normal(shape)
            y = np.asarray(y).astype(walkers.dtype)
            gain = potential(rng, estimator, walkers[i]) - potential(rng, estimator, y)
            if np.log(legacy.random_sample()) < gain:
                walkers[i] = y
        return {"walkers": walkers}


# ---------------------------------------------------------------------------------------------------------------------
# Pseudo-marginal Metropolis: the density is seen through a positive estimate exp(-U(x)) W, W the mean of `looks` exponential
# numbers, so Gamma(looks) / looks with mean 1. The estimate of the present point is KEPT (its logarithm is in the state) until
# a proposal with its own W' is accepted. This is Metropolis-Hastings on (x, W) with the law exp(-U(x)) W p(W), proposals
# q(x, y) p(W'): the ratio is exp(U(x) - U(y)) W'/W. Its marginal in x is exp(-U) E W = exp(-U), at every h. Trees too.


class PseudoMarginal:
    backend = "host"
    claims = EXACT

    def __init__(self, looks=2):
        if looks < 1:
            raise ValueError("at least one look")
        self.looks = looks

    def _log_weight(self, rng, looks):
        return np.log(rng.gamma(looks) / self.looks)

    def init(self, rng, position, estimator):
        # under the invariant law W has the density W p(W), that of Gamma(looks + 1) / looks
        return {"position": position, "log_weight": np.asarray(self._log_weight(rng, self.looks + 1))}

    def step(self, rng, state, h, estimator):
        x = state["position"]

        def moved(leaf):
            leaf = np.asarray(leaf)
            return np.asarray(leaf + np.sqrt(2 * h) * rng.standard_normal(leaf.shape)).astype(leaf.dtype)

        y = jax.tree_util.tree_map(moved, x)
        before = estimator.estimate(rng, (), x)[0].potential
        after = estimator.estimate(rng, (), y)[0].potential
        proposed = self._log_weight(rng, self.looks)
        if np.log(rng.random()) < before - after + proposed - state["log_weight"]:
            return {"position": y, "log_weight": np.asarray(proposed)}
        return {"position": x, "log_weight": state["log_weight"]}
