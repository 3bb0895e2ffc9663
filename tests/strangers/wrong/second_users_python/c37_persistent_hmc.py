import dataclasses

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


@dataclasses.dataclass
class Particle:
    position: np.ndarray
    momentum: np.ndarray


def begin(rng, position, estimator):
    return Particle(np.array(position, dtype=float), rng.standard_normal(np.shape(position)))


def leapfrog(x, v, gradient, eps):
    v = v - eps / 2 * gradient(x)
    x = x + eps * v
    return x, v - eps / 2 * gradient(x)


def persistent(persistence=0.9):
    """HMC that keeps a part of its momentum from step to step, to suppress the random walk."""

    def step(rng, particle, eps, estimator):
        estimate = lambda q: estimator.estimate(rng, (), q)[0]
        energy = lambda x, v: float(estimate(x).potential) + 0.5 * float(np.sum(v * v))

        x = particle.position
        fresh = rng.standard_normal(x.shape)
        v = persistence * particle.momentum + np.sqrt(1 - persistence**2) * fresh
        y, w = leapfrog(x, v, lambda q: estimate(q).gradient, eps)
        if rng.random() < np.exp(min(0.0, energy(x, v) - energy(y, w))):
            return Particle(y, w)
        return Particle(x, v)

    return simple_sampler(step, init=begin, backend="host", claims=Claims(Source("", "own"), ExactLaw()))


phmc = persistent()
