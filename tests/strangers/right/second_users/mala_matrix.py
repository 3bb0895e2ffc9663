"""MALA with a fixed covariance, AR(1) along the coordinates (our parameters are a discretised curve)."""

from functools import lru_cache

import numpy as np
from scipy.linalg import cholesky, solve_triangular, toeplitz

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


@lru_cache(maxsize=16)
def factor(d):
    C = toeplitz(0.5 ** np.arange(d))
    return C, cholesky(C, lower=True)


def log_q(to, frm, grad, h, C, L):
    r = solve_triangular(L, to - frm + h * (C @ grad), lower=True)
    return -(r @ r) / (4 * h)


def mala_step(rng, position, h, estimator):
    shape = position.shape
    x = position.reshape(-1)
    C, L = factor(x.size)

    def target(v):
        e = estimator.estimate(rng, (), v.reshape(shape))[0]
        return -e.potential, np.asarray(e.gradient).reshape(-1)

    lp_x, g_x = target(x)
    y = x - h * (C @ g_x) + np.sqrt(2 * h) * (L @ rng.standard_normal(x.size))
    lp_y, g_y = target(y)

    log_a = lp_y - lp_x + log_q(x, y, g_y, h, C, L) - log_q(y, x, g_x, h, C, L)
    if np.log(rng.uniform()) < log_a:
        return y.reshape(shape)
    return position


mala = simple_sampler(mala_step, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
