"""Four strangers in NumPy."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

SECOND = Claims(Source("", "own"), StationaryLaw(order=2), conditions=("exact gradient",))


# t with 10 degrees has the variance 10/8; times sqrt(8/10) it has mean 0, variance 1, third moment 0 and a finite fourth: the
# generator of x - h g + sqrt(2h) xi is Langevin's, law to O(h).
def _student(rng, x, h, estimator):
    g = estimator.estimate(rng, (), x)[0].gradient
    return x - h * g + np.sqrt(2 * h) * np.sqrt(0.8) * rng.standard_t(10, size=x.shape)


student_langevin = simple_sampler(_student, backend="host")


# OBABO with a mass m: O half steps towards N(0, m), B half kicks, A x += h p/m; palindromic, exact flows: law to O(h^2).
@dataclass
class Walker:
    position: np.ndarray
    momentum: np.ndarray


class MassiveOBABO:
    backend = "host"
    claims = SECOND

    def __init__(self, friction=1.0, mass=2.0):
        if friction <= 0 or mass <= 0:
            raise ValueError("positive numbers, please")
        self.friction, self.mass = friction, mass

    def init(self, rng, position, estimator):
        return Walker(np.array(position), self.mass**0.5 * rng.standard_normal(position.shape))

    def _o(self, rng, p, t):
        keep = np.exp(-self.friction * t)
        return keep * p + np.sqrt(self.mass * (1 - keep**2)) * rng.standard_normal(p.shape)

    def step(self, rng, state, h, estimator):
        x, p = state.position, state.momentum
        p = self._o(rng, p, h / 2)
        p = p - h / 2 * estimator.estimate(rng, (), x)[0].gradient
        x = x + h * p / self.mass
        p = p - h / 2 * estimator.estimate(rng, (), x)[0].gradient
        return Walker(x, self._o(rng, p, h / 2))


# ABOBA in place: A h/2, B h/2, O h, B h/2, A h/2 with one gradient at the middle; palindromic, exact flows: law to O(h^2).
def _aboba_init(rng, position, estimator):
    return {"position": np.array(position), "momentum": rng.standard_normal(position.shape)}


def _aboba(rng, state, h, estimator):
    x, p = state["position"], state["momentum"]
    x += h / 2 * p
    g = estimator.estimate(rng, (), x)[0].gradient
    p -= h / 2 * g
    keep = np.exp(-2.0 * h)
    p *= keep
    p += np.sqrt(1 - keep * keep) * rng.standard_normal(p.shape)
    p -= h / 2 * g
    x += h / 2 * p
    return state, {"force": -g}


aboba_in_place = simple_sampler(_aboba, init=_aboba_init, backend="host", claims=SECOND)


# Two chains of SGLD with noises xi and -xi that change places by a fair coin: each of them alone is SGLD, and a coin that does not look
# at them leaves the mixture of two equal marginals: the law of the first row is that of SGLD, O(h).
def _antithetic(rng, rows, h, estimator):
    xi = np.sqrt(2 * h) * rng.standard_normal(rows[0].shape)
    a = rows[0] - h * estimator.estimate(rng, (), rows[0])[0].gradient + xi
    b = rows[1] - h * estimator.estimate(rng, (), rows[1])[0].gradient - xi
    if rng.random() < 0.5:
        a, b = b, a
    return np.stack([a, b])


antithetic_pair = simple_sampler(
    _antithetic,
    init=lambda rng, x, estimator: np.stack([x, x]),
    position=lambda rows: rows[0],
    backend="host",
)
