"""Class 27: wrong samplers that claim something by which a check lets more pass."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import (
    AdaptiveLaw,
    CarriedState,
    Claims,
    Composite,
    CyclicalSchedule,
    Source,
    StationaryLaw,
)


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Carried(NamedTuple):
    position: Any
    carried: Any


def _claims(*more, law=None):
    return Claims(Source("", "own"), law or StationaryLaw(order=1), *more)


def _two_draws_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    z = _normal(k2, s.position)
    x = s.position - h * grad(estimator, k1, s.position) + jnp.sqrt(h) * (s.carried + z)
    return Carried(x, z)


# Leimkuhler-Matthews with draws scaled so that one step has variance 2 h: T = 2. It declares that it carries a draw.
carries_a_draw = simple_sampler(
    _two_draws_step,
    init=lambda key, x, e: Carried(x, _normal(key, x)),
    position=lambda s: s.position,
    claims=_claims(CarriedState("the draw of the last step")),
)


def _late_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    scale = jnp.where(s.carried > 2000, 0.5, 1.0)
    x = s.position - h * grad(estimator, k1, s.position) + scale * jnp.sqrt(2 * h) * _normal(k2, s.position)
    return Carried(x, s.carried + 1)


# Half of the noise from step 2000 on; the counter is declared as carried.
carries_a_counter = simple_sampler(
    _late_step,
    init=lambda key, x, e: Carried(x, jnp.zeros((), int)),
    position=lambda s: s.position,
    claims=_claims(CarriedState("the number of the step")),
)

def _half_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(h) * _normal(k2, x)


# Half of the variance, with the claim of an adaptive law.
adaptive_half_noise = simple_sampler(_half_step, claims=_claims(law=AdaptiveLaw()))


def _rms_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, s.position)
    v = 0.9 * s.carried + 0.1 * g**2
    scale = 1 / (0.1 + jnp.sqrt(v))
    return Carried(s.position - h * scale * g + jnp.sqrt(2 * h) * scale * _normal(k2, s.position), v)


# RMSprop with noise times the whole preconditioner, claimed to be adaptive.
adaptive_rmsprop = simple_sampler(
    _rms_step,
    init=lambda key, x, e: Carried(x, jnp.ones_like(x)),
    position=lambda s: s.position,
    claims=_claims(law=AdaptiveLaw()),
)


def _stages_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    noise = jnp.where(h > 0.05, 0.0, 1.0) * jnp.sqrt(h) * _normal(k2, x)
    return x - h * grad(estimator, k1, x) + noise


# A cyclical schedule whose sampling stage has half of the variance.
cyclical_half_noise = simple_sampler(_stages_step, claims=_claims(CyclicalSchedule(explore_above=0.05)))


def _inner_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = _normal(k2, x)
    for i in range(4):
        x = x - h / 4 * grad(estimator, jax.random.fold_in(k1, i), x) + jnp.sqrt(2 * h / 4) * z
    return x


# Four inner steps that share one draw (T = 4), claimed to be composite.
composite_shared_draw = simple_sampler(_inner_step, claims=_claims(Composite()))
