"""Delayed rejection (Tierney and Mira, 1999): after a bold move fails, a timid one is tried before giving up."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class DelayedRejection:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, shrink=0.5):
        self.shrink = shrink

    @staticmethod
    def alpha(u_from, u_to):
        return np.exp(min(0.0, u_from - u_to))

    def step(self, rng, x, h, estimator):
        U = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        scale = np.sqrt(2 * h)

        bold = x + scale * rng.standard_normal(x.shape)
        u0, u1 = U(x), U(bold)
        first = self.alpha(u0, u1)
        if rng.random() < first:
            return bold

        # proposals are symmetric at both stages; the failed first stage has to be accounted for
        timid = x + self.shrink * scale * rng.standard_normal(x.shape)
        u2 = U(timid)
        back = 1.0 - self.alpha(u2, u1)
        if rng.random() * (1.0 - first) < np.exp(u0 - u2) * back:
            return timid
        return x


delayed = DelayedRejection
