"""Kinetic (underdamped) Langevin samplers in JAX: a BlackJAX-like BAOAB, SGHMC, SGNHT, and stratified uHMC."""

from dataclasses import dataclass
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

ArrayLikeTree = Any
PRNGKey = jax.Array


# --------------------------------------------------------------------------------------------------------------------
# BAOAB, written like a kernel of BlackJAX


class BAOABState(NamedTuple):
    position: ArrayLikeTree
    momentum: ArrayLikeTree
    potential_grad: ArrayLikeTree


class BAOABInfo(NamedTuple):
    kinetic_energy: jax.Array
    noise: ArrayLikeTree


def generate_gaussian_noise(rng_key: PRNGKey, position: ArrayLikeTree) -> ArrayLikeTree:
    p, unravel_fn = ravel_pytree(position)
    return unravel_fn(jax.random.normal(rng_key, shape=p.shape, dtype=p.dtype))


def build_kernel() -> Callable:
    def one_step(rng_key: PRNGKey, state: BAOABState, estimator, step_size, friction):
        key_noise, key_grad = jax.random.split(rng_key)
        position, momentum, grad = state
        noise = generate_gaussian_noise(key_noise, position)
        decay = jnp.exp(-friction * step_size)
        sigma = jnp.sqrt(-jnp.expm1(-2.0 * friction * step_size))

        momentum = jax.tree.map(lambda p, g: p - 0.5 * step_size * g, momentum, grad)
        position = jax.tree.map(lambda x, p: x + 0.5 * step_size * p, position, momentum)
        momentum = jax.tree.map(lambda p, n: decay * p + sigma * n, momentum, noise)
        position = jax.tree.map(lambda x, p: x + 0.5 * step_size * p, position, momentum)
        grad = estimator.estimate(key_grad, (), position)[0].gradient
        momentum = jax.tree.map(lambda p, g: p - 0.5 * step_size * g, momentum, grad)

        kinetic = 0.5 * sum(jnp.vdot(p, p) for p in jax.tree.leaves(momentum))
        return BAOABState(position, momentum, grad), BAOABInfo(kinetic, noise)

    return one_step


def baoab(friction: float = 1.0):
    """As top level API."""
    if not friction > 0:
        raise ValueError(f"friction must be positive, got {friction}")
    kernel = build_kernel()

    def init_fn(rng_key, position, estimator):
        key_momentum, key_grad = jax.random.split(rng_key)
        grad = estimator.estimate(key_grad, (), position)[0].gradient
        return BAOABState(position, generate_gaussian_noise(key_momentum, position), grad)

    def step_fn(rng_key, state, step_size, estimator):
        return kernel(rng_key, state, estimator, step_size, friction)

    return simple_sampler(
        step_fn,
        init=init_fn,
        claims=Claims(
            Source("", "Leimkuhler and Matthews (2013), BAOAB"), StationaryLaw(order=2), conditions=("exact gradient",)
        ),
    )


# --------------------------------------------------------------------------------------------------------------------
# SGHMC with mass and temperature, dictionaries all the way down


@dataclass(frozen=True)
class SGHMC:
    friction: float = 1.0
    mass: float = 1.0
    temperature: float = 1.0

    def __post_init__(self):
        for name in ("friction", "mass", "temperature"):
            assert getattr(self, name) > 0, f"{name} has to be positive, got {getattr(self, name)}"

    def _noise(self, key, like):
        leaves, treedef = jax.tree.flatten(like)
        keys = jax.random.split(key, len(leaves))
        return treedef.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves, strict=True)])

    def init(self, key, position, estimator):
        std = (self.mass * self.temperature) ** 0.5
        return {"position": position, "momentum": jax.tree.map(lambda n: std * n, self._noise(key, position))}

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        g = estimator.estimate(k1, (), state["position"])[0].gradient
        sd = jnp.sqrt(2 * self.friction * self.mass * self.temperature * step_size)
        momentum = jax.tree.map(
            lambda p, gr, n: p - step_size * gr - step_size * self.friction * p + sd * n,
            state["momentum"],
            g,
            self._noise(k2, g),
        )
        position = jax.tree.map(lambda x, p: x + step_size * p / self.mass, state["position"], momentum)
        return {"position": position, "momentum": momentum}


# --------------------------------------------------------------------------------------------------------------------
# SGNHT (Ding et al. 2014, algorithm 2); state is a plain list [theta, p, xi]

A = 1.0  # diffusion


def sgnht_init(key, theta, estimator):
    return [theta, jax.random.normal(key, theta.shape, theta.dtype), jnp.asarray(A, theta.dtype)]


def sgnht_step(key, state, h, estimator):
    theta, p, xi = state
    key_g, key_n = jax.random.split(key)
    g = estimator.estimate(key_g, (), theta)[0].gradient
    p = p - xi * h * p - h * g + jnp.sqrt(2 * A * h) * jax.random.normal(key_n, p.shape, p.dtype)
    theta = theta + h * p
    xi = xi + h * (jnp.mean(jnp.square(p)) - 1.0)
    return [theta, p, xi]


sgnht = simple_sampler(sgnht_step, init=sgnht_init, position=lambda s: s[0])


# --------------------------------------------------------------------------------------------------------------------
# Stratified Monte Carlo time integration (Bou-Rabee & Marsden 2022) between two half steps of an OU process

CONFIG = {"friction": 1.5}


class Particle(NamedTuple):
    position: jax.Array
    velocity: jax.Array


def _ornstein_uhlenbeck(key, v, t):
    rate = CONFIG["friction"] * t
    return jnp.exp(-rate) * v + jnp.sqrt(-jnp.expm1(-2 * rate)) * jax.random.normal(key, v.shape, v.dtype)


def stratified_step(key, state, h, estimator):
    keys = dict(zip(("u", "o1", "o2", "data"), jax.random.split(key, 4)))
    q, v = state
    v = _ornstein_uhlenbeck(keys["o1"], v, h / 2)
    u = jax.random.uniform(keys["u"], (), q.dtype)
    force = -estimator.estimate(keys["data"], (), q + u * h * v)[0].gradient
    q, v = q + h * v + 0.5 * h**2 * force, v + h * force
    return Particle(q, _ornstein_uhlenbeck(keys["o2"], v, h / 2))


stratified_langevin = simple_sampler(
    stratified_step,
    init=lambda key, q, estimator: Particle(q, jax.random.normal(key, q.shape, q.dtype)),
    claims=Claims(Source("", "own"), StationaryLaw(order=2), conditions=("exact gradient",)),
)
