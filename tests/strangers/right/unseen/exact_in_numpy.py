"""Exact samplers in NumPy, as they were in our group's notebook."""

import math
from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

CLAIMS = Claims(Source("", "notebook"), ExactLaw())


def _energy(oracle, rng, x):
    return float(oracle.estimate(rng, (), x)[0].potential)


class PseudoMarginal:
    """Random walk on an unbiased estimate exp(-U(x)) W of the density, W log-normal with mean 1, kept while x is."""

    backend = "host"
    claims = CLAIMS
    spread = 0.6

    def init(self, rng, position, oracle):
        return {"position": np.array(position), "log_weight": self._log_weight(rng)}

    def _log_weight(self, rng):
        return self.spread * rng.standard_normal() - 0.5 * self.spread**2

    def step(self, rng, state, h, oracle):
        x = state["position"]
        y = x + (math.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
        fresh = self._log_weight(rng)
        log_ratio = _energy(oracle, rng, x) - _energy(oracle, rng, y) + fresh - state["log_weight"]
        if math.log(1.0 - rng.random()) < log_ratio:
            return {"position": y, "log_weight": fresh}
        return state


@dataclass
class DifferentialEvolution:
    """ter Braak's ensemble: walkers in turn move along the difference of two others; the first is shown."""

    crowd: int = 4
    backend = "host"
    claims = CLAIMS

    def init(self, rng, position, oracle):
        return [np.array(position)] + [
            position + rng.standard_normal(np.shape(position)).astype(position.dtype) for _ in range(self.crowd - 1)
        ]

    def position(self, walkers):
        return walkers[0]

    def step(self, rng, walkers, h, oracle):
        walkers = list(walkers)
        for i in range(self.crowd):
            x = walkers[i]
            a, b = rng.choice([j for j in range(self.crowd) if j != i], size=2, replace=False)
            y = x + 0.5 * (walkers[a] - walkers[b]) + (math.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
            if rng.exponential() > _energy(oracle, rng, y) - _energy(oracle, rng, x):
                walkers[i] = y
        return walkers


def box_slice(rng, x, h, oracle):
    """Neal's slice sampler on a hyperrectangle: a box of side 4 sqrt(2 h) placed at random, shrunk on all its sides."""
    level = _energy(oracle, rng, x) + rng.exponential()
    side = 4 * math.sqrt(2 * h)
    low = x - side * rng.random(x.shape)
    high = low + side
    while True:
        y = (low + (high - low) * rng.random(x.shape)).astype(x.dtype)
        if _energy(oracle, rng, y) <= level:
            return y
        low, high = np.where(y < x, y, low), np.where(y < x, high, y)


def walk_or_slide(rng, x, h, oracle):
    """One Hastings test for a mixture of a random walk (0.7) and a Langevin move (0.3), by its whole density."""
    h = float(h)

    def look(a):
        seen = oracle.estimate(rng, (), a)[0]
        return float(seen.potential), a - h * np.asarray(seen.gradient)

    def log_density(mean, a, b):
        walk = math.log(0.7) - np.sum((b - a) ** 2) / (4 * h)
        return np.logaddexp(walk, math.log(0.3) - np.sum((b - mean) ** 2) / (4 * h))

    u_x, mean_x = look(x)
    centre = mean_x if rng.random() < 0.3 else x
    y = (centre + math.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
    u_y, mean_y = look(y)
    log_ratio = u_x - u_y + log_density(mean_y, y, x) - log_density(mean_x, x, y)
    return y if math.log(1.0 - rng.random()) < log_ratio else x


rectangle = simple_sampler(box_slice, claims=CLAIMS, backend="host")
mixture_move = simple_sampler(walk_or_slide, claims=CLAIMS, backend="host")
