"""SGLD with a diagonal preconditioner, made once from gradients around the start (as RMSprop would) and then frozen."""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

PROBES, DAMPING = 8, 1.0


class State(NamedTuple):
    position: Any
    scale: Any  # the preconditioner, fixed
    key: jax.Array  # the noise has a key of its own


def noise_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


class FrozenRMS:
    def init(self, key, position, estimator):
        probe_key, own_key = jax.random.split(key)

        def probe(k):
            near = jax.tree.map(jnp.add, position, noise_like(k, position))
            return estimator.estimate(k, (), near)[0].gradient

        slopes = jax.vmap(probe)(jax.random.split(probe_key, PROBES))
        scale = jax.tree.map(lambda g: 1 / (DAMPING + jnp.sqrt(jnp.mean(g**2, axis=0))), slopes)
        return State(position, scale, own_key)

    def step(self, key, state, step_size, estimator):
        carry, now = jax.random.split(state.key)
        g = estimator.estimate(key, (), state.position)[0].gradient
        move = lambda x, m, s, e: (x - step_size * m * s + jnp.sqrt(2 * step_size * m) * e).astype(x.dtype)
        position = jax.tree.map(move, state.position, state.scale, g, noise_like(now, state.position))
        return state._replace(position=position, key=carry)
