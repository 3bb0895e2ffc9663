"""Four strangers in NumPy whose law is exact."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

EXACT = Claims(Source("", "own"), ExactLaw())


def _energy(estimator, rng):
    return lambda q: estimator.estimate(rng, (), q)[0].potential


# pCN: y = r x + sqrt(1 - r^2) xi is reversible for N(0, I), so exp(-U) has the ratio exp(U(x) - |x|^2/2 - U(y) + |y|^2/2).
def _pcn(rng, x, h, estimator):
    u = _energy(estimator, rng)
    r = np.exp(-h)
    y = r * x + np.sqrt(1 - r * r) * rng.standard_normal(x.shape)
    log_ratio = u(x) - u(y) + (np.sum(y * y) - np.sum(x * x)) / 2
    if np.log(rng.random()) < log_ratio:
        return y
    return x


pcn = simple_sampler(_pcn, backend="host", claims=EXACT)


# Delayed rejection (Tierney and Mira 1999), both stages about x. Second stage: pi(z) q1(z, y) (1 - a(z, y)) over
# pi(x) q1(x, y) (1 - a(x, y)), a(x, y) = min(1, pi(y)/pi(x)); q2 depends on |z - x| only and cancels.
class DelayedRejection:
    backend = "host"
    claims = EXACT

    def __init__(self, shrink=0.4):
        if shrink <= 0:
            raise ValueError("shrink")
        self.shrink = shrink

    def step(self, rng, x, h, estimator):
        u = _energy(estimator, rng)
        s = np.sqrt(4 * h)
        y = x + s * rng.standard_normal(x.shape)
        u_x, u_y = u(x), u(y)
        first = np.exp(np.minimum(0.0, u_x - u_y))
        if rng.random() < first:
            return y
        z = x + self.shrink * s * rng.standard_normal(x.shape)
        u_z = u(z)
        back = np.exp(np.minimum(0.0, u_z - u_y))
        log_q = (np.sum((y - x) ** 2) - np.sum((y - z) ** 2)) / (2 * s * s)
        if rng.random() * (1 - first) < np.exp(u_x - u_z + log_q) * (1 - back):
            return z
        return x


# Slice sampling of one coordinate, drawn uniformly: an interval of fixed width placed uniformly about x_i, no stepping out, shrinkage
# (Neal 2003): the interval is as likely from every point in it, and shrinkage is reversible: exact. No step size.
WIDTH = 3.0


def _slice(rng, x, h, estimator):
    u = _energy(estimator, rng)
    level = u(x) + rng.exponential()
    i = rng.integers(x.size)
    left = x.flat[i] - WIDTH * rng.random()
    right = left + WIDTH
    while True:
        y = x.copy()
        y.flat[i] = rng.uniform(left, right)
        if u(y) <= level:
            return y
        if y.flat[i] < x.flat[i]:
            left = y.flat[i]
        else:
            right = y.flat[i]


slice_one_coordinate = simple_sampler(_slice, backend="host", claims=EXACT)


# Positive numbers: a symmetric walk of log x, under which the density is exp(-U) prod x: ratio exp(U(x) - U(y) + sum log(y/x)).
def _log_walk(rng, x, h, estimator):
    u = _energy(estimator, rng)
    move = np.sqrt(2 * h) * rng.standard_normal(x.shape)
    y = x * np.exp(move)
    return y if np.log(rng.random()) < u(x) - u(y) + np.sum(move) else x


log_walk = simple_sampler(
    _log_walk, backend="host", claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",))
)
