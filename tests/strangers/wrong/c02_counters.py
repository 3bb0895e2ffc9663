"""Class 2: counters, clocks and schedules inside the state. Right in the first steps, wrong later (or now and then)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


class Counted(NamedTuple):
    position: Any
    count: Any


def _init(key, x, estimator, start=0, dtype=jnp.int32):
    return Counted(x, jnp.asarray(start, dtype))


def _sgld(key, x, h, estimator, scale=1.0):
    k1, k2 = jax.random.split(key)
    noise = jax.random.normal(k2, x.shape, x.dtype)
    return x - h * grad(estimator, k1, x) + scale * jnp.sqrt(2 * h) * noise


def _halved_step(key, state, h, estimator):
    scale = jnp.where(state.count >= 60, 0.5, 1.0)
    return Counted(_sgld(key, state.position, h, estimator, scale), state.count + 1)


# Noise is halved from step 60 on (an integer counter): T = 1/4.
noise_halved_after_60 = simple_sampler(_halved_step, init=_init, position=lambda s: s.position,
                                       unpack=lambda s: s.position)


def _off_step(key, state, h, estimator):
    return Counted(_sgld(key, state.position, h, estimator, state.count < 500), state.count + 1)


# "Sampling phase" of 500 steps, plain gradient descent afterwards: everything ends in the mode.
noise_off_after_500 = simple_sampler(_off_step, init=_init, position=lambda s: s.position, unpack=lambda s: s.position)


def _frozen_step(key, state, h, estimator):
    x = jax.lax.cond(state.count < 1000, lambda x: _sgld(key, x, h, estimator), lambda x: x, state.position)
    return Counted(x, state.count + 1)


# Budget of 1000 steps, after which the chain stands still: not ergodic, no average converges.
frozen_after_1000 = simple_sampler(_frozen_step, init=_init, position=lambda s: s.position)


def _decay_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    rate = h * (1 + state["step"]) ** -0.33
    noise = jax.random.normal(k2, state["position"].shape, state["position"].dtype)
    x = state["position"] - rate * grad(estimator, k1, state["position"]) + jnp.sqrt(2 * h) * noise
    return {"position": x, "step": state["step"] + 1}


# Polynomial decay of the learning rate in the gradient only, noise from the undecayed one: T grows like t^0.33.
decay_of_gradient_only = simple_sampler(
    _decay_step, init=lambda key, x, estimator: {"position": x, "step": jnp.zeros((), jnp.int32)}
)


def _anneal_step(key, state, h, estimator):
    scale = jnp.maximum(0.999**state.count, 1e-3)
    return Counted(_sgld(key, state.position, h, estimator, scale), state.count + 1.0)


# Noise annealed by 0.999 a step, float counter: simulated annealing, not sampling.
noise_annealed = simple_sampler(_anneal_step, init=partial(_init, dtype=jnp.float32), position=lambda s: s.position)


def _kl_anneal_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    beta = jnp.minimum(1.0, (state.count % 1000) / 500.0)
    noise = jax.random.normal(k2, state.position.shape, state.position.dtype)
    x = state.position - h * beta * grad(estimator, k1, state.position) + jnp.sqrt(2 * h) * noise
    return Counted(x, state.count + 1)


# Cyclical annealing of the whole gradient (beta from 0 to 1 in every 1000 steps) that goes on for ever.
cyclical_beta = simple_sampler(_kl_anneal_step, init=_init, position=lambda s: s.position, unpack=lambda s: s.position)


def _cycle_step(key, state, h, estimator):
    sampling = (state.count % 64) >= 32
    return Counted(_sgld(key, state.position, h, estimator, sampling), (state.count + 1) % 64)


# cSGLD without a word about it: the first half of each cycle of 64 has no noise. T = 1/2 as h -> 0.
cycles_of_64 = simple_sampler(_cycle_step, init=_init, position=lambda s: s.position, unpack=lambda s: s.position)


def _uint8_step(key, state, h, estimator):
    first = state.count < 8  # "warm start without noise", and the counter is a uint8 that wraps at 256
    return Counted(_sgld(key, state.position, h, estimator, ~first), state.count + jnp.uint8(1))


# A uint8 counter wraps: 8 of 256 steps have no noise. T = 0.969.
uint8_wraps = simple_sampler(_uint8_step, init=partial(_init, dtype=jnp.uint8), position=lambda s: s.position)


def _clock_step(key, state, h, estimator):
    x = _sgld(key, state["position"], h, estimator, jnp.where(state["t"] < 5.0, 1.0, 0.7))
    return {"position": x, "t": state["t"] + h}


# A clock in a dict (time, not steps): from t = 5 on the noise is multiplied by 0.7, T = 0.49.
clock_in_dict = simple_sampler(
    _clock_step, init=lambda key, x, estimator: {"position": x, "t": jnp.zeros((), jnp.result_type(float))}
)


def _toggle_step(key, state, h, estimator):
    return Counted(_sgld(key, state.position, h, estimator, state.count), ~state.count)


# A bool that flips: noise in every second step only. T = 1/2.
every_second = simple_sampler(_toggle_step, init=partial(_init, start=True, dtype=bool), position=lambda s: s.position,
                              unpack=lambda s: s.position)


def _tenth_step(key, state, h, estimator):
    return Counted(_sgld(key, state.position, h, estimator, state.count % 10 != 9), state.count + 1)


# Every tenth step is a "descent step" without noise: T = 0.9.
tenth_without_noise = simple_sampler(_tenth_step, init=_init, position=lambda s: s.position)


class Phase(NamedTuple):
    position: Any
    momentum: Any
    count: Any


def _phase_init(key, x, estimator):
    return Phase(x, jax.random.normal(key, x.shape, x.dtype), jnp.zeros((), jnp.int32))


def _phase_pack(key, z, estimator):
    return Phase(z[0], z[1], jnp.zeros((), jnp.int32))


def _friction_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    friction = jnp.where(state.count > 5000, 2.0, 1.0)
    noise = jnp.sqrt(2 * 1.0 * h) * jax.random.normal(k2, state.momentum.shape, state.momentum.dtype)
    r = state.momentum - h * grad(estimator, k1, state.position) - h * friction * state.momentum + noise
    return Phase(state.position + h * r, r, state.count + 1)


# SGHMC: from step 5000 on the friction is doubled and its noise is not. T = 1/2.
sghmc_friction_after_5000 = simple_sampler(_friction_step, init=_phase_init, position=lambda s: s.position,
                                           unpack=lambda s: (s.position, s.momentum), pack=_phase_pack)


def _refresh_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r, n = state
    c = jnp.exp(-h)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = c * r + jnp.sqrt(1 - c**2) * jax.random.normal(k2, x.shape, x.dtype)
    x = x + h / 2 * r
    r = r - h / 2 * grad(estimator, k1, x)
    r = jnp.where(n % 50 == 49, 2 * jax.random.normal(k3, x.shape, x.dtype), r)
    return Phase(x, r, n + 1)


# BAOAB with a momentum drawn afresh every 50 steps with standard deviation 2: T towards 4 as h -> 0.
baoab_refresh_50 = simple_sampler(_refresh_step, init=_phase_init, position=lambda s: s.position,
                                  unpack=lambda s: (s.position, s.momentum), pack=_phase_pack)


@dataclass(frozen=True)
class PlateauSGLD:
    """SGLD with a step schedule that drops the noise variance by ten at `milestone` and leaves the drift alone."""

    milestone: int = 2000

    def init(self, key, position, estimator):
        return {"position": position, "epoch": jnp.zeros((), jnp.int32)}

    def step(self, key, state, step_size, estimator):
        decay = jnp.where(state["epoch"] >= self.milestone, 0.1, 1.0)
        x = _sgld(key, state["position"], step_size, estimator, jnp.sqrt(decay))
        return {"position": x, "epoch": state["epoch"] + 1}

    def position(self, state):
        return state["position"]


# MultiStepLR reached the noise and not the gradient: T = 0.1 from step 2000 on.
plateau = PlateauSGLD()


def _swag_step(key, state, h, estimator):
    x, mean, n = state
    new = _sgld(key, x, h, estimator)
    n = n + 1
    mean = mean + (new - mean) / n
    return jnp.where(n % 100 == 0, mean, new), mean, n


# SWA: every 100 steps the chain is put back to the mean of all iterates so far. The variance is far too small.
swa_restart = simple_sampler(
    _swag_step, init=lambda key, x, estimator: (x, x, jnp.ones((), jnp.result_type(float))), position=lambda s: s[0],
    unpack=lambda s: s[0],
)
