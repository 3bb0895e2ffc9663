"""Samplers that remember something: caches, averages, buffers, counts."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def both(estimator, key, x):
    found = estimator.estimate(key, (), x)[0]
    return found.potential, ravel_pytree(found.gradient)[0]


def only_slope(estimator, key, x):
    return ravel_pytree(estimator.estimate(key, (), x)[0].gradient)[0]


# ------------------------------------------------------------------------------------- MALA with one evaluation a step


class Cached(NamedTuple):
    position: Any
    energy: jax.Array
    slope: jax.Array


def _cached_init(key, position, estimator):
    return Cached(position, *both(estimator, key, position))


def _cached_step(key, state, h, estimator):
    batch, move, test = jax.random.split(key, 3)
    q, back = ravel_pytree(state.position)
    ahead = q - h * state.slope
    y = ahead + jnp.sqrt(2 * h) * jax.random.normal(move, q.shape, q.dtype)
    energy, slope = both(estimator, batch, back(y))
    backward = jnp.sum((q - y + h * slope) ** 2)
    forward = jnp.sum((y - ahead) ** 2)
    log_ratio = state.energy - energy + (forward - backward) / (4 * h)
    taken = jnp.log(jax.random.uniform(test, dtype=q.dtype)) < log_ratio
    return Cached(back(jnp.where(taken, y, q)), jnp.where(taken, energy, state.energy), slope)


cached_mala = simple_sampler(_cached_step, init=_cached_init, claims=Claims(Source("", "own"), ExactLaw()))


# ------------------------------------------------------------------------------------- a walk that tunes its own scale


class SelfTuningWalk:
    """Random-walk Metropolis. The logarithm of its scale follows the acceptance, towards `target_acceptance`."""

    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, target_acceptance: float = 0.44, gain: float = 2.0):
        self.target_acceptance = target_acceptance
        self.gain = gain

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        return {"position": position, "log_scale": jnp.zeros((), flat.dtype)}

    def step(self, key, state, h, estimator):
        batch, move, test = jax.random.split(key, 3)
        q, back = ravel_pytree(state["position"])
        U = lambda z: estimator.estimate(batch, (), back(z))[0].potential
        scale = jnp.sqrt(2 * h) * jnp.exp(state["log_scale"])
        y = q + scale * jax.random.normal(move, q.shape, q.dtype)
        acceptance = jnp.minimum(1.0, jnp.exp(U(q) - U(y)))
        taken = jax.random.uniform(test, dtype=q.dtype) < acceptance
        log_scale = state["log_scale"] + self.gain * (acceptance - self.target_acceptance)
        return {"position": back(jnp.where(taken, y, q)), "log_scale": jnp.clip(log_scale, -2.0, 2.0)}


# -------------------------------------------------------------------------------------------------- RMSprop Langevin


def rms_langevin(decay=0.9, floor=1.0):
    """Li et al. 2016 with the correction Gamma left out, which is small for a slow average."""

    def init(key, position, estimator):
        return position, only_slope(estimator, key, position) ** 2

    def step(key, state, h, estimator):
        x, square = state
        k1, k2 = jax.random.split(key)
        q, back = ravel_pytree(x)
        g = only_slope(estimator, k1, x)
        square = decay * square + (1 - decay) * g * g
        metric = 1 / (floor + jnp.sqrt(square))
        n = jax.random.normal(k2, q.shape, q.dtype)
        return back(q - h * metric * g + jnp.sqrt(2 * h * metric) * n), square

    return simple_sampler(step, init=init, position=lambda state: state[0])


# --------------------------------------------------------------------------------------- an elastic average of the past


class Elastic(NamedTuple):
    position: Any
    average: Any


def _elastic_init(key, position, estimator):
    return Elastic(position, position)


def _elastic_step(key, state, h, estimator):
    """SGLD, tied by a weak spring to its own running average: less wandering, same posterior mean."""
    k1, k2 = jax.random.split(key)
    q, back = ravel_pytree(state.position)
    m, _ = ravel_pytree(state.average)
    drift = -only_slope(estimator, k1, state.position) + 0.3 * (m - q)
    new = q + h * drift + jnp.sqrt(2 * h) * jax.random.normal(k2, q.shape, q.dtype)
    return Elastic(back(new), back(m + h / 5 * (new - m)))


elastic_average = simple_sampler(_elastic_step, init=_elastic_init)


# -------------------------------------------------------------------------------------------------- noise made ahead


BLOCK = 16


def _buffered_init(key, position, estimator):
    flat, _ = ravel_pytree(position)
    return {
        "position": position,
        "noise": jax.random.normal(key, (BLOCK, flat.size), flat.dtype),
        "used": jnp.zeros((), jnp.int32),
    }


def _buffered_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    q, back = ravel_pytree(state["position"])
    empty = state["used"] > BLOCK
    used = jnp.where(empty, 0, state["used"])
    fresh = jax.random.normal(k2, state["noise"].shape, q.dtype)
    noise = jnp.where(empty, fresh, state["noise"])
    n = jax.lax.dynamic_index_in_dim(noise, used, keepdims=False)
    new = q - h * only_slope(estimator, k1, state["position"]) + jnp.sqrt(2 * h) * n
    return {"position": back(new), "noise": noise, "used": used + 1}


buffered_noise = simple_sampler(_buffered_step, init=_buffered_init)


# ------------------------------------------------------------------------------------------- a quiet start


def _quiet_init(key, position, estimator):
    return {"position": position, "count": jnp.zeros((), jnp.uint8)}


def _quiet_step(key, state, h, estimator):
    """SGLD whose noise is faded in over the first 50 steps; one byte is enough for such a count."""
    k1, k2 = jax.random.split(key)
    q, back = ravel_pytree(state["position"])
    loudness = jnp.minimum(1.0, (state["count"].astype(q.dtype) + 1) / 50)
    n = jax.random.normal(k2, q.shape, q.dtype)
    new = q - h * only_slope(estimator, k1, state["position"]) + jnp.sqrt(2 * h * loudness) * n
    return {"position": back(new), "count": state["count"] + jnp.uint8(1)}


quiet_start = simple_sampler(_quiet_step, init=_quiet_init)
