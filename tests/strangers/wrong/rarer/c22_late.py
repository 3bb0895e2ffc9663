"""Class 22: clocks that strike late, counters of hosts, events that are rare."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Counted(NamedTuple):
    position: Any
    count: Any


def _counted(scale, dtype=int):
    """SGLD with noise multiplied by `scale(count)`."""

    def step(key, s, h, estimator):
        k1, k2 = jax.random.split(key)
        noise = jnp.sqrt(2 * h) * scale(s.count) * _normal(k2, s.position)
        x = s.position - h * grad(estimator, k1, s.position) + noise
        return Counted(x, s.count + jnp.ones((), s.count.dtype))

    return simple_sampler(
        step, init=lambda key, x, e: Counted(x, jnp.zeros((), dtype)), position=lambda s: s.position
    )


# Cool-down: no noise in the steps 40,000 to 50,000 of every 50,000.
cool_down = _counted(lambda n: jnp.where(n % 50_000 >= 40_000, 0.0, 1.0))

# After 3 million steps ("long enough") the noise is off.
three_million = _counted(lambda n: jnp.where(n >= 3_000_000, 0.0, 1.0))

# A counter of 16 bits that wraps: no noise while it is negative, half of all steps.
int16_wraps = _counted(lambda n: jnp.where(n < 0, 0.0, 1.0), jnp.int16)

# Every 25,000th step is a "kick" with ten times the noise... for a hundred steps.
kicks = _counted(lambda n: jnp.where(n % 25_000 >= 24_900, 10.0, 1.0))


class Ball(NamedTuple):
    position: Any
    momentum: Any
    count: Any


def _restart_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    r = s.momentum * (1 - h) - h * grad(estimator, k1, s.position) + jnp.sqrt(2 * h) * _normal(k2, s.position)
    x = s.position + h * r
    again = s.count % 20_000 == 19_999
    return Ball(jnp.where(again, 0 * x, x), r, s.count + 1)


# SGHMC with a warm restart: every 20,000 steps the position is put back to the origin.
warm_restart = simple_sampler(
    _restart_step, init=lambda key, x, e: Ball(x, 0 * x, jnp.zeros((), int)), position=lambda s: s.position
)


def _teleport_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    return jnp.where(jax.random.bernoulli(k3, 1e-4), 0 * y, y)


# One step in 10,000 goes to the origin, whatever the step size.
teleport = simple_sampler(_teleport_step)


def _kick_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    big = jnp.where(jax.random.uniform(k3) < 1e-3, 10.0, 1.0)
    return x - h * grad(estimator, k1, x) + big * jnp.sqrt(2 * h) * _normal(k2, x)


# One draw in 1000 is ten times as large: the variance is 1.099.
rare_kick = simple_sampler(_kick_step)


def _flat_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    flat = jnp.max(jnp.abs(g)) < 1e-3
    return x - h * g + jnp.where(flat, 3.0, 1.0) * jnp.sqrt(2 * h) * _normal(k2, x)


# Perturbed descent: where all of the gradient is below 1e-3 the noise is three times as large (to leave saddles).
flat_places = simple_sampler(_flat_step)


class Best(NamedTuple):
    position: Any
    best: Any
    energy: Any


def _best_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    now = estimator.estimate(k1, (), s.position)[0]
    better = now.potential < s.energy
    best, energy = jnp.where(better, s.position, s.best), jnp.where(better, now.potential, s.energy)
    lost = now.potential > energy + 30
    x = s.position - h * now.gradient + jnp.sqrt(2 * h) * _normal(k2, s.position)
    return Best(jnp.where(lost, best, x), best, energy)


# Goes back to the best point so far when the energy is 30 above its least: in 60 dimensions it always is.
back_to_best = simple_sampler(
    _best_step, init=lambda key, x, e: Best(x, x, jnp.full((), jnp.inf, x.dtype)), position=lambda s: s.position
)


class Patience(NamedTuple):
    position: Any
    least: Any
    bad: Any


def _patience_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    now = estimator.estimate(k1, (), s.position)[0]
    bad = jnp.where(now.potential < s.least, 0, s.bad + 1)
    scale = jnp.where(bad > 30_000, 0.1, 1.0)
    x = s.position - h * now.gradient + scale * jnp.sqrt(2 * h) * _normal(k2, s.position)
    return Patience(x, jnp.minimum(now.potential, s.least), bad)


# ReduceLROnPlateau on the noise: a tenth of it after 30,000 steps without a new least energy.
patience = simple_sampler(
    _patience_step,
    init=lambda key, x, e: Patience(x, jnp.full((), jnp.inf, x.dtype), jnp.zeros((), int)),
    position=lambda s: s.position,
)

# NumPy samplers ------------------------------------------------------------------------------------------------------


def host_grad(estimator, rng, x):
    return np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient, x.dtype)


def _host_counter_step(rng, s, h, estimator):
    x, n = s
    scale = 1.0 if n < 5000 else 0.5
    return x - h * host_grad(estimator, rng, x) + scale * np.sqrt(2 * h) * rng.standard_normal(x.shape), n + 1


# A counter in the state of a NumPy sampler: half of the noise after a burn-in of 5000 steps.
host_burn_in = simple_sampler(
    _host_counter_step, init=lambda rng, x, e: (np.array(x), 0), position=lambda s: s[0], backend="host"
)


def _host_array_counter_step(rng, s, h, estimator):
    x = s["x"] - h * host_grad(estimator, rng, s["x"])
    if s["t"] % 10_000 != 9_999:
        x = x + np.sqrt(2 * h) * rng.standard_normal(x.shape)
    else:
        x = np.zeros_like(x)
    return {"x": x, "t": s["t"] + 1}


# A counter (a NumPy integer in a dict): every 10,000 steps the chain starts again at the origin.
host_restarts = simple_sampler(
    _host_array_counter_step,
    init=lambda rng, x, e: {"x": np.array(x), "t": np.int64(0)},
    position=lambda s: s["x"],
    backend="host",
)


@dataclass
class HostCalls:
    """Counts its calls; after 3000 of them the noise is halved."""

    calls: int = 0
    backend = "host"

    def init(self, rng, position, estimator):
        return np.array(position)

    def position(self, state):
        return state

    def step(self, rng, x, step_size, estimator):
        self.calls += 1
        scale = 1.0 if self.calls < 3000 else 0.5
        noise = scale * np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
        return x - step_size * host_grad(estimator, rng, x) + noise


# Counts its calls in an attribute; after 3000 of them the noise is halved.
host_calls = HostCalls()
