"""Langevin integrators as written in molecular dynamics (unit masses, kT = 1): dq = p dt, dp = -grad U dt + friction + noise."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def gaussian_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, jnp.shape(x), jnp.result_type(x)) for k, x in zip(keys, leaves)])


def dtype_of(tree):
    return jnp.result_type(*jax.tree.leaves(tree))


# ---------------------------------------------------------------- 1. GJF with the half-step velocity


@dataclasses.dataclass(frozen=True)
class HalfStepVerlet:
    """Stochastic Verlet of Gronbech-Jensen and Farago with the half-step velocity u (2GJ); the last noise is part of the state.

    GJF: r' = r + b h (v + h f / 2 + B' / 2), v' = a v + h (a f + f') / 2 + b B', b = 1 / (1 + g h / 2), a = 2 b - 1,
    B ~ N(0, 2 g h). With w = v + h f / 2 + B' / 2 and b - a / 2 = 1 / 2: w' = a w + h f + (B + B') / 2, r' = r + b h w',
    u = sqrt(b) w. So it is GJF, whose positions have the law of the target up to O(h^2) (none at all on a Gaussian).
    """

    friction: float = 1.0

    def init(self, key, position, estimator):
        k_u, k_n, k_e = jax.random.split(key, 3)
        return {
            "position": position,
            "u": gaussian_like(k_u, position),
            "noise": gaussian_like(k_n, position),
            "estate": estimator.init(k_e, position),
        }

    def step(self, key, state, step_size, estimator):
        k_e, k_n = jax.random.split(key)
        found, estate = estimator.estimate(k_e, state["estate"], state["position"])
        h = jnp.asarray(step_size, dtype_of(state["position"]))
        b = 1 / (1 + self.friction * h / 2)
        a = (1 - self.friction * h / 2) * b
        root = jnp.sqrt(b)
        size = jnp.sqrt(2 * self.friction * h)
        fresh = gaussian_like(k_n, state["position"])
        u = jax.tree.map(
            lambda u, g, old, new: a * u - root * h * g + root * size * (old + new) / 2,
            state["u"],
            found.gradient,
            state["noise"],
            fresh,
        )
        r = jax.tree.map(lambda r, u: r + root * h * u, state["position"], u)
        return {"position": r, "u": u, "noise": fresh, "estate": estate}

    def position(self, state):
        return state["position"]


half_step_verlet = HalfStepVerlet()


# ---------------------------------------------------------------- 2. a splitting with an inner loop


class PhaseSpace(NamedTuple):
    q: Any
    p: Any


def subcycled_splitting(friction=1.0, substeps=3):
    """B(h/2) [A(dt/2) O(dt) A(dt/2)]^n B(h/2), dt = h / n: the free motion with friction is subcycled, the force is not.

    B: p -= t grad U; A: q += t p; O: exact Ornstein-Uhlenbeck. Generators add up to that of underdamped Langevin and the
    composition is a palindrome: local weak error O(h^3), law of q within O(h^2).
    """

    def init(key, position, estimator):
        return PhaseSpace(position, gaussian_like(key, position))

    def step(key, state, step_size, estimator):
        k_first, k_inner, k_last = jax.random.split(key, 3)
        h = jnp.asarray(step_size, dtype_of(state.q))
        dt = h / substeps
        kept, spread = jnp.exp(-friction * dt), jnp.sqrt(-jnp.expm1(-2 * friction * dt))

        def kick(k, q, p):
            force = estimator.estimate(k, (), q)[0].gradient
            return jax.tree.map(lambda p, g: p - h / 2 * g, p, force)

        def drift(q, p):
            return jax.tree.map(lambda q, p: q + dt / 2 * p, q, p)

        def cycle(carry, k):
            q, p = carry
            q = drift(q, p)
            p = jax.tree.map(lambda p, n: kept * p + spread * n, p, gaussian_like(k, p))
            return (drift(q, p), p), None

        p = kick(k_first, state.q, state.p)
        (q, p), _ = jax.lax.scan(cycle, (state.q, p), jax.random.split(k_inner, substeps))
        return PhaseSpace(q, kick(k_last, q, p))

    return simple_sampler(step, init=init, position=lambda state: state.q)


subcycled = subcycled_splitting()


# ---------------------------------------------------------------- 3. friction matrix, positive definite + skew


class MatrixFriction:
    """Underdamped Langevin with dp = -grad U dt - (D + Q) p dt + sqrt(2 D) dW, D positive definite, Q skew, constant.

    Complete recipe with the block D + Q of the momentum: exp(-U - |p|^2 / 2) is kept whatever Q is, as p . Q p = 0 and tr Q = 0.
    B A R O R A B with R the Cayley map of Q (orthogonal, e^{-tQ} + O(t^3)), O exact in the eigenbasis of D. Palindrome: O(h^2).
    """

    claims = Claims(Source("", "own"), StationaryLaw(order=2), conditions=("exact gradient",))

    def __init__(self, strength=0.5, twist=0.7):
        self.strength, self.twist = strength, twist

    def _matrices(self, d, dtype):
        v = np.cos(np.arange(d))
        damping = self.strength * np.diag(1.0 + np.arange(d) % 3) + 0.3 * np.outer(v, v) / (v @ v)
        rates, axes = np.linalg.eigh(damping)
        skew = self.twist * (np.eye(d, k=1) - np.eye(d, k=-1))
        return jnp.asarray(rates, dtype), jnp.asarray(axes, dtype), jnp.asarray(skew, dtype)

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        return {"x": position, "p": jax.random.normal(key, flat.shape, flat.dtype)}

    def position(self, state):
        return state["x"]

    def step(self, key, state, step_size, estimator):
        before, between, after = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state["x"])
        p = state["p"]
        h = jnp.asarray(step_size, x.dtype)
        rates, axes, skew = self._matrices(x.size, x.dtype)
        one = jnp.eye(x.size, dtype=x.dtype)

        def slope(k, at):
            return ravel_pytree(estimator.estimate(k, (), unravel(at))[0].gradient)[0]

        def turn(p):  # time h / 2 of dp = -Q p dt
            return jnp.linalg.solve(one + h / 4 * skew, p - h / 4 * (skew @ p))

        p = p - h / 2 * slope(before, x)
        x = x + h / 2 * p
        p = turn(p)
        noise = jax.random.normal(between, p.shape, p.dtype)
        p = axes @ (jnp.exp(-h * rates) * (axes.T @ p) + jnp.sqrt(-jnp.expm1(-2 * h * rates)) * noise)
        p = turn(p)
        x = x + h / 2 * p
        p = p - h / 2 * slope(after, x)
        return {"x": unravel(x), "p": p}


matrix_friction = MatrixFriction()
