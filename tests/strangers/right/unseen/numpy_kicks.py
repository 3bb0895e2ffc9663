"""NumPy Langevin walkers with kicks that are not normal."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def grad(rng, oracle, x):
    return np.asarray(oracle.estimate(estimator_key(rng, oracle), (), x)[0].gradient, dtype=x.dtype)


@dataclass
class SignedGamma:
    """Langevin step with a centred gamma kick, whose sign is tossed so that no skewness is left."""

    shape: float = 4.0
    backend = "host"

    def step(self, rng, x, h, oracle):
        excess = (rng.standard_gamma(self.shape, x.shape) - self.shape) / np.sqrt(self.shape)
        sign = np.where(rng.random(x.shape) < 0.5, -1.0, 1.0)
        return x - float(h) * grad(rng, oracle, x) + (np.sqrt(2 * float(h)) * sign * excess).astype(x.dtype)


def _beta_step(rng, state, h, oracle):
    """Langevin step with centred Beta(2, 2) kicks, and a count of steps that nothing reads."""
    x, eps = state["position"], float(h)
    kick = np.sqrt(20.0) * (rng.beta(2.0, 2.0, size=x.shape) - 0.5)  # Var Beta(2, 2) = 1/20
    new = x - eps * grad(rng, oracle, x) + (np.sqrt(2 * eps) * kick).astype(x.dtype)
    return {"position": new, "steps": state["steps"] + 1}


beta_kicks = simple_sampler(
    _beta_step, init=lambda rng, x, oracle: {"position": np.array(x), "steps": 0}, backend="host"
)


def latin_step(rng, x, h, oracle):
    """Langevin step whose kicks share out the strata of a half-normal by a permutation; signs are tossed one by one.

    Each kick is N(0, 1) by itself and the signs make any two uncorrelated, which is what weak order 1 needs.
    """
    n, eps = x.size, float(h)
    place = (rng.permutation(n) + 1.0 - rng.random(n)) / n  # in (0, 1], each stratum once
    kick = np.where(rng.random(n) < 0.5, 1.0, -1.0) * ndtri(0.5 * place)
    return x - eps * grad(rng, oracle, x) + (np.sqrt(2 * eps) * kick.reshape(x.shape)).astype(x.dtype)


latin_kicks = simple_sampler(latin_step, backend="host")
