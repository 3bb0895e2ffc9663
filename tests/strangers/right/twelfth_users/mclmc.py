"""Microcanonical Langevin Monte Carlo (MCLMC) without a Metropolis test.

The velocity u has length one and turns downhill,

    dx = u dt,   du = -(1 - u u^T) grad U(x) / (d - 1) dt + partial refreshment,

which keeps exp(-U) dx times the uniform law of u (Robnik, De Luca, Silverstein, Seljak 2023). A step is O A B A O: half a
refreshment, half a drift, the exact turn for a frozen gradient, and the same backwards. It needs two coordinates or more.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


@partial(jax.tree_util.register_dataclass, data_fields=["position", "direction"], meta_fields=[])
@dataclass(frozen=True)
class IsokineticState:
    position: Any
    direction: jax.Array


def unit(vector):
    return vector / jnp.linalg.norm(vector)


def turn(u, gradient, time):
    """Exact solution of du/dt = -(1 - u u^T) gradient / (d - 1), in a form that does not overflow."""
    norm = jnp.linalg.norm(gradient)
    downhill = -gradient / jnp.where(norm > 0, norm, 1)
    zeta = jnp.exp(-time * norm / (u.size - 1))
    along = jnp.dot(u, downhill)
    return unit(2 * zeta * u + downhill * (1 - zeta) * (1 + zeta + along * (1 - zeta)))


def refresh(key, u, time, length):
    """Rotation-invariant noise on the sphere; directions are forgotten over the given length."""
    scale = jnp.sqrt(jnp.expm1(2 * time / length) / u.size)
    return unit(u + scale * jax.random.normal(key, u.shape, u.dtype))


@dataclass(frozen=True)
class MCLMC:
    """decoherence: length over which u is forgotten, in units of sqrt(d)."""

    decoherence: float = 1.0

    claims = Claims(Source("", "Robnik et al. 2023, section 3"), StationaryLaw(order=2))

    def init(self, key, position, estimator):
        x, _ = ravel_pytree(position)
        if x.size < 2:
            raise ValueError("isokinetic dynamics need at least two coordinates")
        return IsokineticState(position, unit(jax.random.normal(key, x.shape, x.dtype)))

    def step(self, key, state, step_size, estimator):
        first_key, gradient_key, last_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)
        length = self.decoherence * x.size**0.5
        u = refresh(first_key, state.direction, h / 2, length)
        x = x + h / 2 * u
        gradient, _ = ravel_pytree(estimator.estimate(gradient_key, (), unravel(x))[0].gradient)
        u = turn(u, gradient, h)
        x = x + h / 2 * u
        return IsokineticState(unravel(x), refresh(last_key, u, h / 2, length))
