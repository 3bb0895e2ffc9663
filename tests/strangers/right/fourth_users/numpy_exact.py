"""Metropolis kernels in NumPy, for arrays."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def vector(position):
    if not hasattr(position, "shape"):
        raise TypeError("these samplers move one array")
    return np.array(position)


class OneCoordinate:
    """One coordinate, drawn at random, moves by a Laplace variable; a dict as state, with statistics."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        return {"position": vector(position), "tried": 0, "accepted": 0}

    def step(self, rng, state, h, estimator):
        x = state["position"]
        y = x.copy()
        y.flat[rng.integers(x.size)] += rng.laplace(0.0, np.sqrt(h))
        before = estimator.estimate(rng, (), x)[0].potential
        after = estimator.estimate(rng, (), y)[0].potential
        accept = rng.exponential() > after - before
        return {
            "position": y if accept else x,
            "tried": state["tried"] + 1,
            "accepted": state["accepted"] + int(accept),
        }


class Walker:
    __slots__ = ("position", "energy")

    def __init__(self, position, energy):
        self.position = position
        self.energy = energy


class ShuffledSweep:
    """All coordinates in a random order, each by Barker's rule with a uniform move; the energy is kept."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        x = vector(position)
        return Walker(x, float(estimator.estimate(rng, (), x)[0].potential))

    def step(self, rng, state, h, estimator):
        width = np.sqrt(6 * h)
        for i in rng.permutation(state.position.size):
            y = state.position.copy()
            y.flat[i] += rng.uniform(-width, width)
            energy = float(estimator.estimate(rng, (), y)[0].potential)
            # logistic variable: P(logistic < -d) = 1 / (1 + exp(d))
            if rng.logistic() < state.energy - energy:
                state.position = y
                state.energy = energy
        return state


class SignedWalk:
    """A random direction, a gamma length, a sign and one of three scales; a list as state."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())
    scales = (0.3, 1.0, 3.0)

    def init(self, rng, position, estimator):
        return [vector(position), 0]

    def position(self, state):
        return state[0]

    def step(self, rng, state, h, estimator):
        x, moves = state
        direction = rng.standard_normal(x.shape)
        direction /= np.sqrt(np.sum(direction**2))
        length = rng.gamma(1.5) * rng.choice(self.scales) * np.sqrt(h)
        sign = 1.0 if rng.random() < 0.5 else -1.0
        y = x + sign * length * direction
        rise = estimator.estimate(rng, (), y)[0].potential - estimator.estimate(rng, (), x)[0].potential
        if np.log(rng.random()) < -rise:
            return [y, moves + 1]
        return [x, moves]
