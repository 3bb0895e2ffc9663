"""Delayed rejection (Tierney and Mira 1999): a gradient step first (MALA), a short random walk after its rejection.

    a1(x, y) = min(1, pi(y) q1(y, x) / (pi(x) q1(x, y)))
    y1 ~ q1(x, .) = N(x - h g(x), 2h),  accepted with a1(x, y1);  else  y2 = x + s sqrt(2h) z,  accepted with
    min(1,  pi(y2) q1(y2, y1) (1 - a1(y2, y1))  /  (pi(x) q1(x, y1) (1 - a1(x, y1))))

Right: the ratio for the path x -> (y1 refused) -> y2 against y2 -> (y1 refused) -> x; q2 is symmetric and does not depend on
y1, so it cancels.  Exact at every step size.      Object: delayed_rejection (an instance)
"""
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

SHRINK = 0.4


def _log1mexp(a):
    """log(1 - exp(a)) for a <= 0, -inf at 0."""
    if a >= 0:
        return -np.inf
    return np.log(-np.expm1(a))


def _delayed_rejection(rng, x, h, estimator):
    def look(at):
        found = estimator.estimate(rng, (), at)[0]
        return float(found.potential), np.asarray(found.gradient)

    def log_q1(a, grad_a, b):
        return -np.sum((b - a + h * grad_a) ** 2) / (4 * h)

    def log_a1(a, ua, ga, b, ub, gb):
        return min(0.0, ua - ub + log_q1(b, gb, a) - log_q1(a, ga, b))

    ux, gx = look(x)
    y1 = x - h * gx + np.sqrt(2 * h) * rng.standard_normal(x.shape)
    u1, g1 = look(y1)
    first = log_a1(x, ux, gx, y1, u1, g1)
    if np.log(rng.random()) < first:
        return y1

    y2 = x + SHRINK * np.sqrt(2 * h) * rng.standard_normal(x.shape)
    u2, g2 = look(y2)
    numerator = -u2 + log_q1(y2, g2, y1) + _log1mexp(log_a1(y2, u2, g2, y1, u1, g1))
    denominator = -ux + log_q1(x, gx, y1) + _log1mexp(first)
    if np.log(rng.random()) < numerator - denominator:
        return y2
    return x


delayed_rejection = simple_sampler(_delayed_rejection, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
