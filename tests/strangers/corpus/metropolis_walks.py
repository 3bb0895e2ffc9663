"""Random walks that accept by another rule than Metropolis', or forget a density, a Jacobian, or what they rejected.

Right walks leave exp(-U) invariant at every step size, and claim it.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "Metropolis-Hastings"), ExactLaw())
EXACT_POSITIVE = Claims(Source("", "Metropolis-Hastings"), ExactLaw(), spaces=("positive",))


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _potential(estimator, key, x):
    return estimator.estimate(key, (), x)[0].potential


def _walk(accepts):
    """A walk that accepts by `accepts(key, U before, U after)`."""

    def step(key, x, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        y = x + jnp.sqrt(2 * h) * _normal(k1, x)
        accept = accepts(k4, _potential(estimator, k2, x), _potential(estimator, k3, y))
        return jnp.where(accept, y, x)

    return simple_sampler(step, needs=("potential",), claims=EXACT)


def _log_uniform(key, u):
    return jnp.log(jax.random.uniform(key, dtype=jnp.result_type(u)))


# The new log density is subtracted from itself: every proposal is accepted.
walnuts_27_before = _walk(lambda key, u, v: _log_uniform(key, u) < v - v)
walnuts_27_after = _walk(lambda key, u, v: _log_uniform(key, u) < u - v)


def _exponential(sign):
    return _walk(lambda key, u, v: u - v > sign * jax.random.exponential(key, dtype=jnp.result_type(u)))


# The threshold is an exponential instead of minus one: a fall of the density is never accepted.
fab_jax_14_before = _exponential(1.0)
fab_jax_14_after = _exponential(-1.0)


def _ratio_of_logarithms(key, u, v):
    threshold = jax.random.uniform(key, dtype=jnp.result_type(u), minval=0.3)
    return jnp.abs(u) / jnp.abs(v) > threshold


# The ratio of the logarithms of two densities, against a uniform on (0.3, 1).
spotpy_156_before = _walk(_ratio_of_logarithms)
spotpy_156_after = _walk(lambda key, u, v: jax.random.uniform(key, dtype=jnp.result_type(u)) < jnp.exp(u - v))


def _autoregressive(sign):
    """Proposals c x + sqrt(1 - c^2) 2 z, which leave N(0, 4) invariant; `sign` of the log ratio of their densities."""

    def step(key, x, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        c = jnp.exp(-h)
        y = c * x + 2 * jnp.sqrt(1 - c**2) * _normal(k1, x)
        back_and_forth = (jnp.sum(y**2) - jnp.sum(x**2)) / 8  # log q(y -> x) - log q(x -> y)
        log_ratio = _potential(estimator, k2, x) - _potential(estimator, k3, y) + sign * back_and_forth
        return jnp.where(_log_uniform(k4, log_ratio) < log_ratio, y, x)

    return simple_sampler(step, needs=("potential",), claims=EXACT)


# The densities of the proposal enter upside down; nobody sees it with symmetric ones.
edward_788_before = _autoregressive(-1.0)
edward_788_after = _autoregressive(1.0)


def _logarithmic(jacobian):
    """A walk of log x on positive numbers, whose proposals have the ratio of densities prod y / x."""

    def step(key, x, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        z = jnp.sqrt(2 * h) * _normal(k1, x)
        y = x * jnp.exp(z)
        log_ratio = _potential(estimator, k2, x) - _potential(estimator, k3, y) + jacobian * jnp.sum(z)
        return jnp.where(_log_uniform(k4, log_ratio) < log_ratio, y, x)

    return simple_sampler(step, needs=("potential",), claims=EXACT_POSITIVE)


# The walk is symmetric in log x, and taken for symmetric in x.
dealii_gallery_64_before = _logarithmic(0.0)
dealii_gallery_64_after = _logarithmic(1.0)


def _bounded(accepts):
    """A walk of positive numbers, whose log density beyond is no number."""

    def energy(key, estimator, x):
        return jnp.where(jnp.all(x > 0), _potential(estimator, key, jnp.abs(x)), jnp.nan)

    def step(key, x, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        y = x + jnp.sqrt(2 * h) * _normal(k1, x)
        log_ratio = energy(k2, estimator, x) - energy(k3, estimator, y)
        return jnp.where(accepts(_log_uniform(k4, log_ratio), log_ratio), y, x)

    return simple_sampler(step, needs=("potential",), claims=EXACT_POSITIVE)


# What is not worse than the threshold is accepted, and no comparison with a number that is none is true.
cuqipy_494_before = _bounded(lambda threshold, log_ratio: ~(threshold > log_ratio))
cuqipy_494_after = _bounded(lambda threshold, log_ratio: threshold < log_ratio)


class Kept(NamedTuple):
    """Position and the potential that the next decision starts from."""

    position: Any
    potential: Any


def _keeping(kept):
    """A walk that keeps `kept(accepted, U before, U after)`."""

    def init(key, x, estimator):
        return Kept(x, _potential(estimator, key, x))

    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, u = state
        y = x + jnp.sqrt(2 * h) * _normal(k1, x)
        v = _potential(estimator, k2, y)
        accept = _log_uniform(k3, u) < u - v
        return Kept(jnp.where(accept, y, x), kept(accept, u, v))

    return simple_sampler(
        step,
        init=init,
        position=lambda state: state.position,
        needs=("potential",),
        claims=EXACT,
    )


# The posterior of a rejected proposal is handed on as that of the state.
dynare_1623_before = _keeping(lambda accept, u, v: v)
dynare_1623_after = _keeping(lambda accept, u, v: jnp.where(accept, v, u))
