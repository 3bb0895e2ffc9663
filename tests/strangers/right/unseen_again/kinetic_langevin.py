"""Kinetic (underdamped) Langevin integrators for noisy gradients, JAX.

unit mass, unit temperature:  dx = v dt,  dv = -grad U dt - gamma v dt + sqrt(2 gamma) dW
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def force(estimator, key, x):
    return jax.tree.map(jnp.negative, estimator.estimate(key, (), x)[0].gradient)


# UBU of Sanz-Serna and Zygalakis


class KineticState(NamedTuple):
    position: Any
    velocity: Any


@jax.jit
def _u_minus_tanh(u):
    """u - tanh(u) without cancellation"""
    series = u**3 / 3 - 2 * u**5 / 15 + 17 * u**7 / 315 - 62 * u**9 / 2835
    return jnp.where(u < 0.05, series, u - jnp.tanh(u))


@dataclass(frozen=True)
class UBU:
    gamma: float = 2.0

    def init(self, key, position, estimator):
        flat, unravel = ravel_pytree(position)
        return KineticState(position, unravel(jax.random.normal(key, flat.shape, flat.dtype)))

    def _U(self, key, x, v, t):
        """the Ornstein-Uhlenbeck part with free flight, solved exactly over a time t"""
        z = jax.random.normal(key, (2, x.size), x.dtype)
        eta = jnp.exp(-self.gamma * t)
        one_minus_eta = -jnp.expm1(-self.gamma * t)
        sd_v = jnp.sqrt(-jnp.expm1(-2 * self.gamma * t))
        cov = one_minus_eta**2 / self.gamma
        rest = (2 / self.gamma) ** 2 * _u_minus_tanh(self.gamma * t / 2)  # var(x | v)
        x_new = x + one_minus_eta / self.gamma * v + cov / sd_v * z[0] + jnp.sqrt(rest) * z[1]
        v_new = eta * v + sd_v * z[0]
        return x_new, v_new

    def step(self, key, state, step_size, estimator):
        k1, kb, k2 = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        v, _ = ravel_pytree(state.velocity)
        h = jnp.asarray(step_size, x.dtype)
        x, v = self._U(k1, x, v, h / 2)
        v = v + h * ravel_pytree(force(estimator, kb, unravel(x)))[0]
        x, v = self._U(k2, x, v, h / 2)
        return KineticState(unravel(x), unravel(v))


# ---------------------------------------------------------------- OBABO, minibatch kept by its key


class OBABOState(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    batch_key: jax.Array  # minibatch of the closing kick: used again by the opening kick of the next step


class Info(NamedTuple):
    force_norm: jax.Array
    kinetic: jax.Array


@dataclass(frozen=True)
class OBABO:
    friction: float = 1.0

    def init(self, key, position, estimator):
        k1, k2 = jax.random.split(key)
        return OBABOState(position, jax.random.normal(k1, position.shape, position.dtype), k2)

    def kernel(self, key, state, step_size, estimator):
        k_first, k_last, k_batch = jax.random.split(key, 3)
        x, p = state.position, state.momentum
        h = jnp.asarray(step_size, x.dtype)
        c = jnp.exp(-self.friction * h / 2)
        s = jnp.sqrt(-jnp.expm1(-self.friction * h))
        p = c * p + s * jax.random.normal(k_first, p.shape, p.dtype)  # O
        p = p + h / 2 * force(estimator, state.batch_key, x)  # B
        x = x + h * p  # A
        f = force(estimator, k_batch, x)
        p = p + h / 2 * f  # B
        p = c * p + s * jax.random.normal(k_last, p.shape, p.dtype)  # O
        return OBABOState(x, p, k_batch), Info(jnp.linalg.norm(f), 0.5 * jnp.sum(p * p))

    def step(self, key, state, step_size, estimator):
        state, _info = self.kernel(key, state, step_size, estimator)
        return state


# ---------------------------------------------------------------- adaptive Langevin, BADODAB

A = 1.0  # amplitude of the injected noise; the thermostat fluctuates around it


def nht_init(key, position, estimator):
    k1, k2 = jax.random.split(key)
    return {
        "q": position,
        "p": jax.random.normal(k1, position.shape, position.dtype),
        "xi": A + jax.random.normal(k2, (), position.dtype) / position.size**0.5,
    }


def nht_step(key, state, step_size, estimator):
    q, p, xi = state["q"], state["p"], state["xi"]
    n = q.size
    h = jnp.asarray(step_size, q.dtype)
    k1, k2, k3 = jax.random.split(key, 3)

    p = p + h / 2 * force(estimator, k1, q)
    q = q + h / 2 * p
    xi = xi + h / 2 * (jnp.sum(p * p) / n - 1)
    # dp = -xi p dt + sqrt(2 A) dW over h, exactly; xi may be negative or zero
    s = 2 * xi * h
    small = jnp.abs(s) < 1e-4
    safe = jnp.where(small, jnp.ones_like(s), s)
    phi = jnp.where(small, 1 - s / 2 + s * s / 6, -jnp.expm1(-safe) / safe)
    p = jnp.exp(-xi * h) * p + jnp.sqrt(2 * A * h * phi) * jax.random.normal(k2, p.shape, p.dtype)
    xi = xi + h / 2 * (jnp.sum(p * p) / n - 1)
    q = q + h / 2 * p
    p = p + h / 2 * force(estimator, k3, q)
    return {"q": q, "p": p, "xi": xi}


adaptive_langevin = simple_sampler(nht_step, init=nht_init, position=lambda state: state["q"])


# ---------------------------------------------------------------- position-dependent mass


@dataclass(frozen=True)
class RiemannSGHMC:
    """Mass m(theta_i) = 1 + alpha / (1 + theta_i^2), in terms of r = p / sqrt(m), which is N(0, 1):

    d theta = b r dt,   d r = (-b grad U + b') dt - C r dt + sqrt(2 C) dW,   b = m^(-1/2)
    """

    alpha: float = 1.0
    C: float = 1.0

    def b(self, theta):
        return jax.lax.rsqrt(1 + self.alpha / (1 + theta * theta))

    def init(self, key, position, estimator):
        return {"theta": position, "r": jax.random.normal(key, position.shape, position.dtype)}

    def position(self, state):
        return state["theta"]

    def step(self, key, state, step_size, estimator):
        k_batch, k_noise = jax.random.split(key)
        theta, r = state["theta"], state["r"]
        h = jnp.asarray(step_size, theta.dtype)
        b = self.b(theta)
        db = jax.grad(lambda t: jnp.sum(self.b(t)))(theta)
        r = r + h * (b * force(estimator, k_batch, theta) + db)
        r = jnp.exp(-self.C * h) * r + jnp.sqrt(-jnp.expm1(-2 * self.C * h)) * jax.random.normal(
            k_noise, r.shape, r.dtype
        )
        return {"theta": theta + h * b * r, "r": r}
