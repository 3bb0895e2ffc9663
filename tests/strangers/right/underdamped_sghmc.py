"""Stochastic gradient Hamiltonian Monte Carlo in the forms in which people write it: semi-implicit and explicit
Euler, the update of Chen et al. with v = h r, masses, friction matrices, dict and tuple states, with and
without `unpack` and `pack`. All discretise dx = r dt, dr = -grad U dt - C r dt + sqrt(2 C) dW at weak order 1,
whose law is exp(-U - |r|^2 / 2)."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.underdamped import langevin_dynamics
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Diffusion, IndependentNoise, ShearingForce, Source, StationaryLaw


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


FRICTION = 1.0


def _dict_step(key, state, step_size, estimator):
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), state["x"])[0].gradient
    noise = jnp.sqrt(2 * FRICTION * step_size) * _normal(k2, state["m"])
    m = state["m"] - step_size * g - step_size * FRICTION * state["m"] + noise
    return {"m": m, "x": state["x"] + step_size * m}


# Semi-implicit SGHMC with the state {"m": momentum, "x": position}, all functions given.
dict_state = simple_sampler(
    _dict_step,
    init=lambda key, position, estimator: {"m": _normal(key, position), "x": position},
    position=lambda s: s["x"],
    unpack=lambda s: s,
    pack=lambda key, z, estimator: z,
)


def _velocity_step(key, state, step_size, estimator):
    theta, v = state
    k1, k2 = jax.random.split(key)
    eta, alpha = step_size**2, FRICTION * step_size
    g = estimator.estimate(k1, (), theta)[0].gradient
    v = v - eta * g - alpha * v + jnp.sqrt(2 * alpha * eta) * _normal(k2, v)
    return theta + v, v


# Chen, Fox and Guestrin's equation (15): v = h r, learning rate h^2, momentum decay C h. Only `init` and
# `position` given.
chen_velocity = simple_sampler(
    _velocity_step,
    init=lambda key, position, estimator: (position, jnp.zeros_like(position)),
    position=lambda s: s[0],
)


def _tuple_step(key, state, step_size, estimator):
    x, r = state
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), x)[0].gradient
    r = r - step_size * (g + 2.0 * r) + jnp.sqrt(4.0 * step_size) * _normal(k2, r)
    return x + step_size * r, r


# Semi-implicit with friction 2, state (position, momentum), `unpack` and `pack` given.
tuple_state = simple_sampler(
    _tuple_step,
    init=lambda key, position, estimator: (position, _normal(key, position)),
    position=lambda s: s[0],
    unpack=lambda s: s,
    pack=lambda key, z, estimator: (z[0], z[1]),
)

# The same with the momentum left out of `unpack`: only `init` and `position`, the momentum starts at zero.
tuple_bare = simple_sampler(
    _tuple_step,
    init=lambda key, position, estimator: (position, jnp.zeros_like(position)),
    position=lambda s: s[0],
)


class Phase(NamedTuple):
    """Position and momentum."""

    position: jax.Array
    momentum: jax.Array


def _explicit_step(key, state, step_size, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    g = estimator.estimate(k1, (), x)[0].gradient
    noise = jnp.sqrt(2 * 3.0 * step_size) * _normal(k2, r)
    return Phase(x + step_size * r, r - step_size * g - step_size * 3.0 * r + noise)


# Explicit Euler (both from the old values), friction 3: stable for h U'' < 3, law O(h).
explicit = simple_sampler(
    _explicit_step,
    init=lambda key, position, estimator: Phase(position, _normal(key, position)),
    unpack=lambda s: s,
    pack=lambda key, z, estimator: Phase(z.position, z.momentum),
)


def _sign_step(key, state, step_size, estimator):
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), state.position)[0].gradient
    signs = jax.random.rademacher(k2, state.momentum.shape, state.momentum.dtype)
    r = (1 - 1.5 * step_size) * state.momentum - step_size * g + jnp.sqrt(3.0 * step_size) * signs
    return Phase(state.position + step_size * r, r)


# Semi-implicit with fair signs for noise (weak Euler), friction 1.5.
signs = simple_sampler(
    _sign_step,
    init=lambda key, position, estimator: Phase(position, _normal(key, position)),
    unpack=lambda s: s,
    pack=lambda key, z, estimator: Phase(*z),
)


@dataclass(frozen=True)
class MassSGHMC:
    """dx = r / m dt, dr = -grad U dt - C r / m dt + sqrt(2 C T) dW, exact friction; law exp(-(U + r^2 / (2 m)) / T)."""

    mass: float = 2.0
    friction: float = 1.5
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient"})

    @property
    def claims(self):
        return Claims(Source("chen2014stochastic", "section 3"), StationaryLaw(order=1, temperature=self.temperature))

    def init(self, key, position, estimator):
        root = (self.mass * self.temperature) ** 0.5
        return Phase(position, root * _normal(key, position))

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        x, r = state.position, state.momentum
        decay = jnp.exp(-self.friction / self.mass * step_size)
        r = decay * r - step_size * estimator.estimate(k1, (), x)[0].gradient
        r = r + jnp.sqrt(self.mass * self.temperature * (1 - decay**2)) * _normal(k2, r)
        return Phase(x + step_size / self.mass * r, r)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state

    def pack(self, key, z, estimator):
        return Phase(*z)


# The same at temperature 1/2, unit mass.
cold = MassSGHMC(mass=1.0, temperature=0.5)


def _matrix_friction_step(key, state, step_size, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    d = x.size
    C = jnp.eye(d, dtype=x.dtype) + 0.5 * jnp.ones((d, d), x.dtype)
    g = estimator.estimate(k1, (), x)[0].gradient
    noise = jnp.sqrt(2 * step_size) * jnp.linalg.cholesky(C) @ _normal(k2, r)
    r = r - step_size * (g + C @ r) + noise
    return x + step_size * r, r


# A friction matrix C = L L^T, noise sqrt(2) L dW.
matrix_friction = simple_sampler(
    _matrix_friction_step,
    init=lambda key, position, estimator: (position, _normal(key, position)),
    position=lambda s: s[0],
    unpack=lambda s: {"x": s[0], "r": s[1]},
    pack=lambda key, z, estimator: (z["x"], z["r"]),
)


class Full(NamedTuple):
    """Position, momentum, estimator state and a step counter."""

    position: Any
    momentum: Any
    estate: Any
    count: jax.Array


@dataclass(frozen=True)
class ClaimedSGHMC:
    """Semi-implicit SGHMC on pytrees with its equation claimed: weak order 1, law O(h)."""

    friction: float = 1.0
    claims: Claims = field(init=False)

    def __post_init__(self):
        claims = Claims(
            Source("chen2014stochastic", "equation (13)"),
            StationaryLaw(order=1),
            Diffusion(lambda target: langevin_dynamics(target, self.friction), weak_order=1),
            IndependentNoise(),
            ShearingForce(),
            conditions=("exact gradient",),
        )
        object.__setattr__(self, "claims", claims)

    def init(self, key, position, estimator):
        return Full(position, jax.tree.map(jnp.zeros_like, position), estimator.init(key, position), jnp.zeros((), int))

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        estimate, estate = estimator.estimate(k1, state.estate, state.position)
        leaves, structure = jax.tree.flatten(state.momentum)
        keys = structure.unflatten(list(jax.random.split(k2, len(leaves))))
        scale = jnp.sqrt(2 * self.friction * step_size)
        kick = lambda r, g, k: r - step_size * (g + self.friction * r) + scale * _normal(k, r)
        momentum = jax.tree.map(kick, state.momentum, estimate.gradient, keys)
        position = jax.tree.map(lambda x, r: x + step_size * r, state.position, momentum)
        return Full(position, momentum, estate, state.count + 1)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return Phase(state.position, state.momentum)

    def pack(self, key, z, estimator):
        return Full(z.position, z.momentum, estimator.init(key, z.position), jnp.zeros((), int))
