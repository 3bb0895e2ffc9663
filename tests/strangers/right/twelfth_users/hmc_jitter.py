"""Hamiltonian Monte Carlo in NumPy with jittered trajectories.

Each transition draws its own leapfrog step (uniform, +-jitter around the nominal one) and its own number of steps (uniform on
1 .. max_leapfrog), which removes the resonances of a fixed trajectory length. Energy and gradient of the current point are kept in the state,
so that a trajectory of n steps costs n evaluations.
"""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass
class Point:
    """A position and what is known about it."""

    position: np.ndarray
    energy: float
    slope: np.ndarray


class JitteredHMC:
    """HMC for exp(-U / temperature); `step_size` is the nominal leapfrog step."""

    backend = "host"

    def __init__(self, max_leapfrog: int = 6, jitter: float = 0.2, temperature: float = 1.0):
        if max_leapfrog < 1:
            raise ValueError("at least one leapfrog step is needed")
        if not 0 <= jitter < 1:
            raise ValueError("jitter is a fraction of the step")
        if temperature <= 0:
            raise ValueError("the temperature has to be positive")
        self.max_leapfrog = max_leapfrog
        self.jitter = jitter
        self.temperature = temperature

    @property
    def claims(self) -> Claims:
        return Claims(Source("", "Neal (2011), sections 3.2 and 4.2"), ExactLaw(temperature=self.temperature))

    def _evaluate(self, rng, x, estimator) -> Point:
        estimate = estimator.estimate(rng, (), x)[0]
        return Point(x, float(estimate.potential) / self.temperature, np.asarray(estimate.gradient) / self.temperature)

    def init(self, rng, position, estimator) -> Point:
        return self._evaluate(rng, np.array(position), estimator)

    def _trajectory(self, rng, start: Point, p, eps: float, length: int, estimator):
        point = start
        p = p - 0.5 * eps * point.slope
        for i in range(length):
            point = self._evaluate(rng, point.position + eps * p, estimator)
            p = p - (eps if i + 1 < length else 0.5 * eps) * point.slope
        return point, p

    def step(self, rng, state: Point, step_size, estimator) -> Point:
        p = rng.standard_normal(state.position.shape)
        eps = step_size * rng.uniform(1 - self.jitter, 1 + self.jitter)
        length = int(rng.integers(1, self.max_leapfrog + 1))
        end, q = self._trajectory(rng, state, p, eps, length, estimator)
        climb = end.energy - state.energy + 0.5 * (np.sum(q * q) - np.sum(p * p))
        # an exponential variable exceeds the climb with probability min(1, exp(-climb))
        if rng.exponential() > climb:
            return end
        return state
