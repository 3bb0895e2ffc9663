"""Metropolis-adjusted gamma steps for positive parameters (rates, scales, concentrations).

A Gaussian step near zero proposes negative rates and wastes them. Here the proposal is itself a positive law,

    y_i ~ Gamma(shape a, mean m_i(x)),    a = 1 / (2 h),    m_i(x) = x_i exp(h b_i(x)),

whose relative variance is 2 h everywhere: large rates move far and small ones a little. The tendency b is the drift of Langevin
dynamics of log x, whose potential is U(x) - sum log x, so that b_i = 1 - x_i d_i U. It is bent by a tanh, since the forces of a rate
near zero or far out would otherwise send the mean away; the acceptance ratio has both proposal densities, hence the law is exact at
every step size whatever the drift is.

    sampler = GammaMetropolis(drift_limit=4.0)
    state = sampler.init(rng, np.ones(3), estimator)
    for _ in range(10_000):
        state = sampler.step(rng, state, 0.1, estimator)
"""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def log_gamma_kernel(y, mean, shape):
    """Log density of independent Gamma(shape, mean) variables at y, less what depends on the shape alone."""
    return np.sum((shape - 1) * np.log(y) - shape * y / mean - shape * np.log(mean))


@dataclass(frozen=True)
class GammaMetropolis:
    """Gamma proposals around a Langevin drift, with a Metropolis-Hastings test.

    Attributes:
        drift_limit: bound of the drift of log x per unit of time; at zero-like values this is a multiplicative random walk.
    """

    drift_limit: float = 4.0

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("positive",))

    def __post_init__(self):
        if not self.drift_limit > 0:
            raise ValueError("drift_limit has to be positive")

    def init(self, rng, position, estimator):
        """The state is the position."""
        x = np.array(position)
        if np.any(x <= 0):
            raise ValueError("a start has to be positive")
        return x

    def _mean(self, x, gradient, h):
        tendency = self.drift_limit * np.tanh((1 - x * gradient) / self.drift_limit)
        return x * np.exp(h * tendency)

    def step(self, rng, state, step_size, estimator):
        """One proposal and its test."""
        x, shape = state, 0.5 / step_size
        here = estimator.estimate(rng, (), x)[0]
        forth = self._mean(x, here.gradient, step_size)
        y = rng.gamma(shape, forth / shape).astype(x.dtype)
        log_u = np.log(rng.random())
        if not np.all(y > 0):  # a draw below the smallest float
            return x
        there = estimator.estimate(rng, (), y)[0]
        back = self._mean(y, there.gradient, step_size)
        log_ratio = (
            here.potential
            - there.potential
            + log_gamma_kernel(x, back, shape)
            - log_gamma_kernel(y, forth, shape)
        )
        return y if log_u < log_ratio else x
