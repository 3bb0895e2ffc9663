"""Metropolis-adjusted Langevin steps whose correction is not that of their proposal.

In time h of the SDE: y = x - h grad U + N(0, 2 h). All claim to leave exp(-U) invariant at every step size.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "MALA"), ExactLaw())


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _cauchy(key, x):
    """Student's law with one degree of freedom."""
    return jnp.tan(jnp.pi * (jax.random.uniform(key, x.shape, x.dtype) - 0.5))


def _mala(correction, noise=_normal):
    """MALA that adds `correction(y - x, grad U(x), grad U(y), h)` to the fall of U."""

    def step(key, x, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        start = estimator.estimate(k1, (), x)[0]
        y = x - h * start.gradient + jnp.sqrt(2 * h) * noise(k2, x)
        end = estimator.estimate(k3, (), y)[0]
        log_ratio = start.potential - end.potential + correction(y - x, start.gradient, end.gradient, h)
        return jnp.where(jnp.log(jax.random.uniform(k4, dtype=x.dtype)) < log_ratio, y, x)

    return simple_sampler(step, needs=("gradient", "potential"), claims=EXACT)


def _proposals(drift, variance):
    """log q(y -> x) - log q(x -> y) of proposals x - drift(h) grad U + N(0, variance(h))."""

    def correction(move, g, f, h):
        forth, back = move + drift(h) * g, -move + drift(h) * f
        return (jnp.sum(forth**2) - jnp.sum(back**2)) / (2 * variance(h))

    return correction


RIGHT = _proposals(lambda h: h, lambda h: 2 * h)

# The gradient has the other sign in the densities of the proposal, and the right one in the proposal.
advancedmh_95_before = _mala(_proposals(lambda h: -h, lambda h: 2 * h))
advancedmh_95_after = _mala(RIGHT)

# The densities are those of another convention, with twice the drift and twice the variance.
bat_532_before = _mala(_proposals(lambda h: 2 * h, lambda h: 4 * h))
bat_532_after = _mala(RIGHT)

# The noise is Student's, with one degree of freedom, and the densities are Gaussian.
bat_532_student_before = _mala(RIGHT, _cauchy)
bat_532_student_after = _mala(RIGHT)


def _unadjusted(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return x - h * estimator.estimate(k1, (), x)[0].gradient + jnp.sqrt(2 * h) * _normal(k2, x)


# What is called MALA makes no test at all.
caustics_388_before = simple_sampler(_unadjusted, claims=EXACT)
caustics_388_after = _mala(RIGHT)
