"""pSGLD (Li et al. 2016) with the preconditioner learnt in a warm-up and then kept, so that no Gamma term is needed."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

RHO = 0.95
N_WARMUP = 30
PROBE_SCALE = 0.2


class PSGLDState(NamedTuple):
    position: Any
    precond: Any


def _normal_like(key, tree):
    flat, unravel = ravel_pytree(tree)
    return unravel(jax.random.normal(key, flat.shape, flat.dtype))


@dataclass(frozen=True)
class FrozenPSGLD:
    damping: float = 0.5

    def init(self, key, position, estimator):
        """RMSprop's running squares, around the start."""

        def accumulate(v, k):
            k_probe, k_grad = jax.random.split(k)
            probe = jax.tree.map(lambda p, n: p + PROBE_SCALE * n, position, _normal_like(k_probe, position))
            g = estimator.estimate(k_grad, (), probe)[0].gradient
            return jax.tree.map(lambda a, b: RHO * a + (1 - RHO) * b**2, v, g), None

        zeros = jax.tree.map(jnp.zeros_like, position)
        v, _ = jax.lax.scan(accumulate, zeros, jax.random.split(key, N_WARMUP))
        return PSGLDState(position, jax.tree.map(lambda a: 1 / (self.damping + jnp.sqrt(a)), v))

    def step(self, key, state, step_size, estimator):
        k_grad, k_noise = jax.random.split(key)
        g = estimator.estimate(k_grad, (), state.position)[0].gradient
        n = _normal_like(k_noise, state.position)
        position = jax.tree.map(
            lambda p, G, g, n: p - step_size * G * g + jnp.sqrt(2 * step_size * G) * n,
            state.position, state.precond, g, n,
        )
        return state._replace(position=position)
