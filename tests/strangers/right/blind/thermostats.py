"""Samplers with other momenta and thermostats: a noisy Nose-Hoover chain, relativistic momenta, Andersen's collisions."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import tree_util as tu
from jax.flatten_util import ravel_pytree


def normals(key, tree):
    flat, unravel = ravel_pytree(tree)
    return unravel(jax.random.normal(key, flat.shape, flat.dtype))


def time(step_size, tree):
    return jnp.asarray(step_size, jnp.result_type(*tu.tree_leaves(tree)))


# ---------------------------------------------------------------- 1. Nose-Hoover chain, one for every coordinate, with noise


class Chain(NamedTuple):
    position: Any
    p: jax.Array
    xi: jax.Array
    eta: jax.Array


@dataclass(frozen=True)
class NoisyNoseHooverChain:
    """A chain of two thermostats for every coordinate, noise in the momentum (rate a) and in the last thermostat (rate c):
    dp = -grad U - (a + xi) p + sqrt(2a) dW, q1 dxi = (p^2 - 1) - q1 eta xi, q2 deta = (q1 xi^2 - 1) - q2 c eta + sqrt(2 q2 c) dW'.

    exp(-U - p^2/2 - q1 xi^2/2 - q2 eta^2/2) is kept: div b = -xi - eta, b . grad log pi = xi p^2 - xi (p^2 - 1) + q1 xi^2 eta
    - eta (q1 xi^2 - 1) = xi + eta; the two Ornstein-Uhlenbeck parts keep it by themselves. A palindrome of exact flows: O(h^2).
    """

    a: float = 1.0
    c: float = 1.0
    q1: float = 1.0
    q2: float = 1.0

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        p, xi, eta = jax.random.normal(key, (3, *flat.shape), flat.dtype)
        return Chain(position, p, xi / self.q1**0.5, eta / self.q2**0.5)

    def position(self, state):
        return state.position

    def step(self, key, state, step_size, estimator):
        k_before, k_after, k_p, k_eta = jax.random.split(key, 4)
        x, unravel = ravel_pytree(state.position)
        _, p, xi, eta = state
        h = jnp.asarray(step_size, x.dtype)
        t = h / 2

        def slope(k, x):
            return ravel_pytree(estimator.estimate(k, (), unravel(x))[0].gradient)[0]

        eta = eta + t * (self.q1 * xi**2 - 1) / self.q2
        xi = xi * jnp.exp(-t * eta)
        xi = xi + t * (p**2 - 1) / self.q1
        p = p * jnp.exp(-t * xi)
        p = p - t * slope(k_before, x)
        x = x + t * p

        p = jnp.exp(-self.a * h) * p + jnp.sqrt(-jnp.expm1(-2 * self.a * h)) * jax.random.normal(k_p, p.shape, p.dtype)
        jolt = jnp.sqrt(-jnp.expm1(-2 * self.c * h) / self.q2) * jax.random.normal(k_eta, p.shape, p.dtype)
        eta = jnp.exp(-self.c * h) * eta + jolt

        x = x + t * p
        p = p - t * slope(k_after, x)
        p = p * jnp.exp(-t * xi)
        xi = xi + t * (p**2 - 1) / self.q1
        xi = xi * jnp.exp(-t * eta)
        eta = eta + t * (self.q1 * xi**2 - 1) / self.q2
        return Chain(unravel(x), p, xi, eta)


nose_hoover_chain = NoisyNoseHooverChain()


# ---------------------------------------------------------------- 2. relativistic momenta


class Relativistic:
    """Relativistic Langevin dynamics (Lu et al. 2017), one particle per coordinate: K(p) = c^2 sqrt(1 + p^2 / c^2), v = K'(p).

    dx = v(p) dt, dp = -grad U dt - friction v(p) dt + sqrt(2 friction) dW keeps exp(-U - K): friction acts on v = K', not on p. A step is
    p' by Euler, x' = x + h v(p'). Law of x within O(h). The momentum is not Gaussian; it starts as if it were, and forgets that.
    """

    def __init__(self, *, friction=1.0, light=2.0):
        self.friction = friction
        self.light = light

    def velocity(self, p):
        return p / jnp.sqrt(1 + (p / self.light) ** 2)

    def init(self, key, position, estimator):
        k_p, k_e = jax.random.split(key)
        return position, normals(k_p, position), estimator.init(k_e, position)

    def position(self, state):
        return state[0]

    def step(self, key, state, step_size, estimator):
        x, p, estate = state
        k_e, k_n = jax.random.split(key)
        h = time(step_size, x)
        found, estate = estimator.estimate(k_e, estate, x)
        size = jnp.sqrt(2 * self.friction * h)
        push = lambda p, g, n: p - h * g - h * self.friction * self.velocity(p) + size * n
        p = tu.tree_map(push, p, found.gradient, normals(k_n, x))
        x = tu.tree_map(lambda x, p: x + h * self.velocity(p), x, p)
        return x, p, estate


relativistic = Relativistic(friction=1.0, light=2.0)


# ---------------------------------------------------------------- 3. Andersen's thermostat


class Particles(NamedTuple):
    position: Any
    velocity: Any


@dataclass(frozen=True)
class Andersen:
    """Velocity Verlet, then every velocity collides with the bath with probability 1 - exp(-rate h): it is drawn anew from N(0, 1).

    Collisions keep exp(-U - v^2/2) exactly, for each coordinate by itself; Verlet keeps it up to O(h^3) a step (volume 1, energy
    error O(h^3)). The limit is randomised HMC, a jump process and no diffusion, which keeps the law; bias O(h^2).
    """

    rate: float = 1.0

    def init(self, key, position, estimator):
        return Particles(position, normals(key, position))

    def step(self, key, state, step_size, estimator):
        k_one, k_two, k_hit, k_new = jax.random.split(key, 4)
        h = time(step_size, state.position)

        def push(k, x, v):
            return tu.tree_map(lambda v, g: v - h / 2 * g, v, estimator.estimate(k, (), x)[0].gradient)

        v = push(k_one, *state)
        x = tu.tree_map(lambda x, v: x + h * v, state.position, v)
        v, back = ravel_pytree(push(k_two, x, v))
        hit = jax.random.bernoulli(k_hit, -jnp.expm1(-self.rate * h), v.shape)
        v = jnp.where(hit, jax.random.normal(k_new, v.shape, v.dtype), v)
        return Particles(x, back(v))

    def position(self, state):
        return state.position


andersen = Andersen()
