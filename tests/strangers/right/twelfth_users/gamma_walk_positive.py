"""Metropolis within Gibbs for rates and scales: gamma proposals on positive numbers.

One sweep visits all coordinates in a random order. A coordinate x is offered y ~ Gamma(k, mean x) with k = 1 + 1 / step_size, so that
moves are relative: about sqrt(step_size) of the present value. The proposal is not symmetric; its ratio

    log q(y -> x) - log q(x -> y) = (2 k - 1) (log x - log y) - k (x / y - y / x)

enters the test.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def log_hastings(x, y, k):
    """log q(y -> x) - log q(x -> y) of Gamma(k, scale x / k)."""
    return (2 * k - 1) * (np.log(x) - np.log(y)) - k * (x / y - y / x)


class GammaWalk:
    """Component-wise random walk of positive numbers, by a random scan without repetition."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("positive",))

    def __init__(self, sweeps: int = 1):
        if sweeps < 1:
            raise ValueError("at least one sweep")
        self.sweeps = sweeps

    def step(self, rng, state, step_size, estimator):
        x = np.array(state, order="C")
        flat = x.reshape(-1)  # a view
        k = 1.0 + 1.0 / step_size

        def energy():
            return float(estimator.estimate(rng, (), x)[0].potential)

        current = energy()
        for _ in range(self.sweeps):
            for i in rng.permutation(flat.size):
                old = flat[i]
                new = rng.gamma(k, old / k)
                flat[i] = new
                proposed = energy()
                if np.log(rng.random()) < current - proposed + log_hastings(old, new, k):
                    current = proposed
                else:
                    flat[i] = old
        return x

    def init(self, rng, position, estimator):
        return np.array(position)
