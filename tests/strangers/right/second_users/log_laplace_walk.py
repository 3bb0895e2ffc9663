"""Random walk Metropolis for rate constants: x -> x exp(Laplace), with the Jacobian of the logarithm."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass
class Rates:
    position: np.ndarray
    potential: float
    accepted: bool = False


class LogLaplaceWalk:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("positive",))

    def init(self, rng, position, estimator):
        x = np.array(position)
        return Rates(x, float(estimator.estimate(rng, (), x)[0].potential))

    def step(self, rng, state, step_size, estimator):
        x = state.position
        jump = rng.laplace(scale=np.sqrt(step_size), size=x.shape)
        y = x * np.exp(jump)
        u = float(estimator.estimate(rng, (), y)[0].potential)
        # q(x | y) / q(y | x) = prod y / x = exp(sum of the jumps)
        log_alpha = state.potential - u + jump.sum()
        if rng.exponential() > -log_alpha:
            return Rates(y, u, True)
        return Rates(x, state.potential, False)
