"""ABOBA splitting of kinetic Langevin, whose Ornstein-Uhlenbeck part has three-point noise in place of a normal.

    A/2: x += h/2 p;  B/2: p -= h/2 U'(x);  O: p <- c p + sqrt(1 - c^2) z, c = exp(-gamma h);  B/2;  A/2
    z = +-sqrt(3) with probability 1/6 each, 0 with 2/3:  E z^k is that of N(0, 1) for k <= 5

Right: the symmetric splitting has weak order 2; z first differs in E z^6 (9 for 15), which enters with (1 - c^2)^3 = O(h^3),
a local error of order 3.  So the stationary law is right to O(h^2).  The gradient is used at one point for both kicks.
Object: ThreePointABOBA
"""
import math

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


def three_point(key, shape, dtype):
    """sqrt(3) times -1, 0, 0, 0, 0, 1 with equal chances."""
    face = jax.random.randint(key, shape, 0, 6)
    return math.sqrt(3) * ((face == 0).astype(dtype) - (face == 5).astype(dtype))


class ThreePointABOBA:
    """State: {"position": tree, "momentum": tree}."""

    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def __init__(self, gamma=1.3):
        self.gamma = gamma

    def init(self, key, position, estimator):
        leaves, treedef = jax.tree.flatten(position)
        keys = jax.random.split(key, len(leaves))
        momentum = treedef.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])
        return {"position": position, "momentum": momentum}

    def step(self, key, state, step_size, estimator):
        key_gradient, key_noise = jax.random.split(key)
        x, treedef = jax.tree.flatten(state["position"])
        p = jax.tree.leaves(state["momentum"])
        noise_keys = jax.random.split(key_noise, len(x))

        x = [a + (step_size / 2 * b).astype(a.dtype) for a, b in zip(x, p)]
        g = jax.tree.leaves(estimator.estimate(key_gradient, (), treedef.unflatten(x))[0].gradient)
        p = [b - (step_size / 2 * c).astype(b.dtype) for b, c in zip(p, g)]
        keep = jnp.exp(-self.gamma * step_size)
        renew = jnp.sqrt(-jnp.expm1(-2 * self.gamma * step_size))
        p = [(keep * b + renew * three_point(k, b.shape, b.dtype)).astype(b.dtype) for b, k in zip(p, noise_keys)]
        p = [b - (step_size / 2 * c).astype(b.dtype) for b, c in zip(p, g)]
        x = [a + (step_size / 2 * b).astype(a.dtype) for a, b in zip(x, p)]
        return {"position": treedef.unflatten(x), "momentum": treedef.unflatten(p)}
