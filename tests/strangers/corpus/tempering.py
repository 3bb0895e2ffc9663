"""Two replicas, at the inverse temperatures 1 and 1/2, that exchange their positions; shown is the cold one.

The law of the pair is exp(-U(cold)) exp(-U(hot) / 2), times that of the velocities.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

COLD, HOT = 1.0, 0.5


class Pair(NamedTuple):
    """Positions of the replicas."""

    cold: Any
    hot: Any


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _log_uniform(key, x):
    return jnp.log(jax.random.uniform(key, dtype=x.dtype))


def _mala(key, x, h, estimator, log_ratio):
    """A Langevin proposal for exp(-U) that is accepted by `log_ratio(fall of U, correction of the proposal)`."""
    k1, k2, k3, k4 = jax.random.split(key, 4)
    start = estimator.estimate(k1, (), x)[0]
    y = x - h * start.gradient + jnp.sqrt(2 * h) * _normal(k2, x)
    end = estimator.estimate(k3, (), y)[0]
    forth, back = y - x + h * start.gradient, x - y + h * end.gradient
    correction = (jnp.sum(forth**2) - jnp.sum(back**2)) / (4 * h)
    return jnp.where(_log_uniform(k4, x) < log_ratio(start.potential - end.potential, correction), y, x)


def _swaps(key, cold, hot, estimator):
    """True if two positions are to be exchanged."""
    k1, k2, k3 = jax.random.split(key, 3)
    rise = estimator.estimate(k1, (), cold)[0].potential - estimator.estimate(k2, (), hot)[0].potential
    return _log_uniform(k3, cold) < (COLD - HOT) * rise


def _exchange(log_ratio):
    """Replicas that move by MALA with `log_ratio(beta, fall of U, correction)`."""

    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        cold = _mala(k1, state.cold, h, estimator, lambda fall, q: log_ratio(COLD, fall, q))
        hot = _mala(k2, state.hot, h, estimator, lambda fall, q: log_ratio(HOT, fall, q))
        swap = _swaps(k3, cold, hot, estimator)
        return Pair(jnp.where(swap, hot, cold), jnp.where(swap, cold, hot))

    return simple_sampler(
        step,
        init=lambda key, x, estimator: Pair(x, x),
        position=lambda state: state.cold,
        needs=("gradient", "potential"),
        claims=Claims(Source("", "parallel tempering"), ExactLaw()),
    )


# The correction of the proposal is tempered along with the density.
netket_2250_before = _exchange(lambda beta, fall, q: beta * (fall + q))
netket_2250_after = _exchange(lambda beta, fall, q: beta * fall + q)


class Moving(NamedTuple):
    """Positions and velocities of the replicas."""

    cold: Any
    hot: Any
    cold_velocity: Any
    hot_velocity: Any


def _baoab(key, x, v, beta, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    c = jnp.exp(-h)
    v = v - h / 2 * estimator.estimate(k1, (), x)[0].gradient
    x = x + h / 2 * v
    v = c * v + jnp.sqrt((1 - c**2) / beta) * _normal(k2, x)
    x = x + h / 2 * v
    return x, v - h / 2 * estimator.estimate(k3, (), x)[0].gradient


def _rescaled(factor):
    """Replicas that move by BAOAB; the velocity of what becomes cold is multiplied by `factor`, the other divided."""

    def init(key, x, estimator):
        k1, k2 = jax.random.split(key)
        return Moving(x, x, _normal(k1, x), HOT**-0.5 * _normal(k2, x))

    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        cold, v = _baoab(k1, state.cold, state.cold_velocity, COLD, h, estimator)
        hot, w = _baoab(k2, state.hot, state.hot_velocity, HOT, h, estimator)
        swap = _swaps(k3, cold, hot, estimator)
        choose = lambda new, old: jnp.where(swap, new, old)
        return Moving(choose(hot, cold), choose(cold, hot), choose(factor * w, v), choose(v / factor, w))

    return simple_sampler(step, init=init, position=lambda state: state.cold, needs=("gradient", "potential"))


# Velocities are rescaled by the inverse of the factor: the cold replica is heated, the hot one cooled.
mlcg_70_before = _rescaled((COLD / HOT) ** 0.5)
mlcg_70_after = _rescaled((HOT / COLD) ** 0.5)
