"""Stochastic-gradient samplers in the idiom of training code; gradients come from the estimator that is handed in."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


@dataclass(frozen=True)
class MomentumBuffer:
    """SGHMC with a buffer v, a learning rate lr = h^2 and a decay alpha = h friction: v is h times the momentum."""

    friction: float = 1.0

    def init(self, key, position, estimator):
        buffer = jax.tree.map(jnp.zeros_like, position)
        return {"params": position, "v": buffer, "estimator": estimator.init(key, position)}

    def position(self, state):
        return state["params"]

    def step(self, key, state, step_size, estimator):
        lr, alpha = step_size**2, step_size * self.friction
        k_batch, k_noise = jax.random.split(key)
        estimate, estate = estimator.estimate(k_batch, state["estimator"], state["params"])
        noise = normal_like(k_noise, state["v"])
        v = jax.tree.map(
            lambda v, g, n: (1 - alpha) * v - lr * g + (2 * alpha * lr) ** 0.5 * n, state["v"], estimate.gradient, noise
        )
        return {"params": jax.tree.map(jnp.add, state["params"], v), "v": v, "estimator": estate}


def _smoothed(key, state, h, estimator):
    """SGLD with the mean of the gradients at two antithetic points x + d and x - d, d ~ N(0, h)."""
    x, estate = state
    k_one, k_two, k_shift, k_noise = jax.random.split(key, 4)
    d = jax.tree.map(lambda n: h**0.5 * n, normal_like(k_shift, x))
    here, estate = estimator.estimate(k_one, estate, jax.tree.map(jnp.add, x, d))
    there, estate = estimator.estimate(k_two, estate, jax.tree.map(jnp.subtract, x, d))
    move = lambda a, g, f, n: a - 0.5 * h * (g + f) + (2 * h) ** 0.5 * n
    return jax.tree.map(move, x, here.gradient, there.gradient, normal_like(k_noise, x)), estate


antithetic_smoothing = simple_sampler(
    _smoothed, init=lambda key, x, est: (x, est.init(key, x)), position=lambda state: state[0]
)


def _with_average(key, state, step_size, estimator):
    """SGLD whose keys are folded by a count; an exponential average of the weights is recorded, never read."""
    k_batch, k_noise = jax.random.split(jax.random.fold_in(key, state["count"]))
    params = state["position"]
    estimate, estate = estimator.estimate(k_batch, state["estimator"], params)
    params = jax.tree.map(
        lambda p, g, n: p - step_size * g + (2 * step_size) ** 0.5 * n,
        params,
        estimate.gradient,
        normal_like(k_noise, params),
    )
    ema = jax.tree.map(lambda e, p: 0.99 * e + 0.01 * p, state["ema"], params)
    return {"position": params, "ema": ema, "count": state["count"] + 1, "estimator": estate}


recorded_average = simple_sampler(
    _with_average,
    init=lambda key, x, est: {"position": x, "ema": x, "count": jnp.int32(0), "estimator": est.init(key, x)},
)


class Layers(NamedTuple):
    """Weights and momenta, trees alike, one thermostat for each layer (leaf), and the estimator's state."""

    position: dict
    momentum: dict
    thermostats: list
    estate: tuple


@dataclass(frozen=True)
class ThermostatPerLayer:
    """SGNHT with a thermostat of its own for each leaf of the weights."""

    noise: float = 1.0

    def init(self, key, position, estimator):
        k_estimator, k_momentum = jax.random.split(key)
        thermostats = [jnp.full((), self.noise, a.dtype) for a in jax.tree.leaves(position)]
        momentum = normal_like(k_momentum, position)
        return Layers(position, momentum, thermostats, estimator.init(k_estimator, position))

    def step(self, key, state, h, estimator):
        k_batch, k_noise = jax.random.split(key)
        estimate, estate = estimator.estimate(k_batch, state.estate, state.position)
        xi = jax.tree.unflatten(jax.tree.structure(state.position), state.thermostats)
        kick = lambda p, g, t, n: p - h * g - h * t * p + (2 * self.noise * h) ** 0.5 * n
        p = jax.tree.map(kick, state.momentum, estimate.gradient, xi, normal_like(k_noise, state.momentum))
        x = jax.tree.map(lambda a, b: a + h * b, state.position, p)
        thermostats = [t + h * (jnp.mean(b**2) - 1) for t, b in zip(state.thermostats, jax.tree.leaves(p))]
        return Layers(x, p, thermostats, estate)
