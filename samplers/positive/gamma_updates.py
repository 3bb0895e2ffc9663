"""Updates of independent Gamma laws, in logs: exact draws, CIR transitions, and Euler's method on the expanded mean."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

Prior = np.ndarray | float
"""Shapes to which counts are added; they broadcast against log theta (K, d)."""


class GammaUpdate(Protocol):
    """A step towards Gamma(prior + counts), whose normalised rows are Dirichlet(prior + counts).

    Attributes:
        exact: True where the step is an exact draw, independent of the current value.
    """

    exact: bool

    def __call__(
        self, generator: np.random.Generator, log_theta: np.ndarray, prior: Prior, counts: np.ndarray, step_size: float
    ) -> np.ndarray:
        """log theta' (K, d) from log theta (K, d), prior and counts that broadcast against it, and h."""
        ...


def log_gamma_draws(generator: np.random.Generator, shape: np.ndarray) -> np.ndarray:
    """log of Gamma(shape, 1), finite however small the shape: Gamma(s) = Gamma(s + 1) U^(1/s).

    Source: marsaglia2000gamma, section 6.
    """
    shape = np.asarray(shape, np.float64)
    return np.log(generator.standard_gamma(shape + 1)) - generator.standard_exponential(shape.shape) / shape


@dataclass(frozen=True, eq=False)
class ExactGamma:
    """theta' ~ Gamma(prior + counts, 1): a Gibbs step, the limit h -> inf of the CIR process."""

    exact = True

    def __call__(
        self, generator: np.random.Generator, log_theta: np.ndarray, prior: Prior, counts: np.ndarray, step_size: float
    ) -> np.ndarray:
        """log theta' (K, d)."""
        del step_size
        return log_gamma_draws(generator, prior + counts)


@dataclass(frozen=True, eq=False)
class CIRUpdate:
    """The exact transition of the CIR process with shape prior + counts over the time h.

    Source: baker2018large, equation (2.2) and Algorithm 1.

    Error: none for exact counts that do not depend on theta.
    """

    exact = False

    def __call__(
        self, generator: np.random.Generator, log_theta: np.ndarray, prior: Prior, counts: np.ndarray, step_size: float
    ) -> np.ndarray:
        """log theta' (K, d)."""
        from sgmcmc_verification.samplers.positive.cir_transition import (
            cir_transition,  # Numba takes half a second to load
        )

        return cir_transition(generator, log_theta, prior + counts, step_size)


@dataclass(frozen=True, eq=False)
class ExpandedMeanUpdate:
    """SGRLD of the expanded mean: Euler's method on Langevin dynamics with the metric diag(1/theta), mirrored at 0.

        theta' = |theta + h (prior - theta + n - omega n_.) + sqrt(2 h theta) eta|,   omega = theta / theta_.

    for theta ~ prod Gamma(prior, 1) and the likelihood prod_k omega_k^n_k, row by row.

    Source: patterson2013stochastic, the expanded mean with a mirrored Gamma prior; h is half of its step size.

    Error: weak order 1 where theta stays away from 0; h n_. must be small.
    """

    exact = False

    def __call__(
        self, generator: np.random.Generator, log_theta: np.ndarray, prior: Prior, counts: np.ndarray, step_size: float
    ) -> np.ndarray:
        """log theta' (K, d)."""
        theta = np.exp(log_theta)
        total = np.sum(counts, axis=-1, keepdims=True)
        # normalised in logs: the sum of a row may underflow for small priors
        omega = np.exp(log_theta - np.logaddexp.reduce(log_theta, axis=-1, keepdims=True))
        drift = prior - theta + counts - omega * total
        noise = generator.standard_normal(theta.shape)
        with np.errstate(divide="ignore"):
            return np.log(np.abs(theta + step_size * drift + np.sqrt(2 * step_size * theta) * noise))
