"""Generalised Langevin equation with a Prony series of two memory terms (Baczewski and Bond 2013; Leimkuhler and Sachs 2022).

    dq = p dt
    dp = -grad U dt + (c_1 s_1 + c_2 s_2) dt
    ds_i = -c_i p dt - a_i s_i dt + sqrt(2 a_i) dW_i         memory kernel  K(t) = sum_i c_i^2 exp(-a_i t)

p, s_1 and s_2 are standard normal in equilibrium. Splitting O R A B A R O: R is the rotation by which p and s exchange energy.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclass
class GLEState:
    position: jax.Array
    momentum: jax.Array
    memory: jax.Array  # (2, *position.shape)


@dataclass(frozen=True)
class PronyGLE:
    slow_rate: float = 0.5
    fast_rate: float = 3.0
    slow_coupling: float = 1.0
    fast_coupling: float = 2.0

    def init(self, key, position, estimator):
        kp, ks = jax.random.split(key)
        return GLEState(
            position,
            jax.random.normal(kp, position.shape, position.dtype),
            jax.random.normal(ks, (2, *position.shape), position.dtype),
        )

    def _ou(self, key, s, t):
        rates = jnp.array([self.slow_rate, self.fast_rate], s.dtype).reshape((2,) + (1,) * (s.ndim - 1))
        keep = jnp.exp(-rates * t)
        return keep * s + jnp.sqrt(-jnp.expm1(-2 * rates * t)) * jax.random.normal(key, s.shape, s.dtype)

    def _rotate(self, p, s, t):
        c = jnp.array([self.slow_coupling, self.fast_coupling], p.dtype)
        size = jnp.linalg.norm(c)
        unit = c / size
        along = jnp.tensordot(unit, s, axes=1)
        cos, sin = jnp.cos(size * t), jnp.sin(size * t)
        turned = cos * along - sin * p
        return cos * p + sin * along, s + jnp.multiply.outer(unit, turned - along)

    def step(self, key, state, h, estimator):
        k_first, k_grad, k_last = jax.random.split(key, 3)
        q, p, s = state.position, state.momentum, state.memory
        s = self._ou(k_first, s, h / 2)
        p, s = self._rotate(p, s, h / 2)
        q = q + h / 2 * p
        p = p - h * estimator.estimate(k_grad, (), q)[0].gradient
        q = q + h / 2 * p
        p, s = self._rotate(p, s, h / 2)
        s = self._ou(k_last, s, h / 2)
        return GLEState(q, p, s)
