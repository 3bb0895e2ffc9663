"""SRK-LD (Li, Wu, Mackey, Erdogdu, 2019): stochastic Runge-Kutta of strong order 1.5, weak order 2, for Langevin."""
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw

PLUS, MINUS = 0.5 + 1 / math.sqrt(6), 0.5 - 1 / math.sqrt(6)
SIDE = 1 / math.sqrt(12)


def gaussian_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


@dataclass(frozen=True)
class SRKLD:
    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def step(self, key, position, step_size, estimator):
        k_xi, k_eta, k_batch = jax.random.split(key, 3)
        root = (2 * step_size) ** 0.5
        grad = lambda q: estimator.estimate(k_batch, (), q)[0].gradient
        cast = lambda new: jax.tree.map(lambda n, x: jnp.asarray(n, x.dtype), new, position)
        xi, eta = gaussian_like(k_xi, position), gaussian_like(k_eta, position)
        h1 = jax.tree.map(lambda x, a, b: x + root * (PLUS * a + SIDE * b), position, xi, eta)
        h2 = jax.tree.map(
            lambda x, g, a, b: x - step_size * g + root * (MINUS * a + SIDE * b), position, grad(position), xi, eta
        )
        g1, g2 = grad(cast(h1)), grad(cast(h2))
        return cast(jax.tree.map(lambda x, u, v, a: x - step_size / 2 * (u + v) + root * a, position, g1, g2, xi))
