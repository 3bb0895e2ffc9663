"""Underdamped Langevin MCMC, Algorithm 1 of Cheng, Chatterji, Bartlett and Jordan (COLT 2018).

    dv = -gamma v dt - u grad f(x_0) dt + sqrt(2 gamma u) dB,    dx = v dt

is solved exactly over one step with the gradient frozen at the left end.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


class Phase(NamedTuple):
    position: Any
    velocity: Any


def split_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    return jax.tree.unflatten(treedef, list(jax.random.split(key, len(leaves))))


def ulmc(gamma=2.0, u=1.0):
    def init(key, position, estimator):
        draw = lambda k, x: jnp.sqrt(u).astype(x.dtype) * jax.random.normal(k, x.shape, x.dtype)
        return Phase(position, jax.tree.map(draw, split_like(key, position), position))

    def step(key, state, h, estimator):
        a = gamma * h
        lost = -jnp.expm1(-a)  # 1 - exp(-gamma h)
        std_v = jnp.sqrt(-u * jnp.expm1(-2 * a))
        # E[noise_x | noise_v] = slope * noise_v, and what is left of its variance
        slope = jnp.tanh(a / 2) / gamma
        std_x = jnp.sqrt(2 * u * (a - 2 * jnp.tanh(a / 2))) / gamma

        key_g, key_v, key_x = jax.random.split(key, 3)
        grad = estimator.estimate(key_g, (), state.position)[0].gradient

        def leaf(x, v, g, kv, kx):
            noise_v = std_v * jax.random.normal(kv, x.shape, x.dtype)
            noise_x = slope * noise_v + std_x * jax.random.normal(kx, x.shape, x.dtype)
            new_v = (1 - lost) * v - u / gamma * lost * g + noise_v
            new_x = x + lost / gamma * v - u / gamma**2 * (a - lost) * g + noise_x
            return Phase(new_x.astype(x.dtype), new_v.astype(x.dtype))

        x, v = state
        both = jax.tree.map(leaf, x, v, grad, split_like(key_v, x), split_like(key_x, x))
        pick = lambda i: jax.tree.map(lambda pair: pair[i], both, is_leaf=lambda t: isinstance(t, Phase))
        return Phase(pick(0), pick(1))

    return simple_sampler(step, init=init)


sampler = ulmc()
