"""Affine-invariant interacting Langevin dynamics (ALDI).

N walkers share the covariance C of the ensemble as their preconditioner,

    dx_i = -C grad U(x_i) dt + (d + 1) / N (x_i - m) dt + sqrt(2 C) dW_i,

where the second term is the divergence of C; the joint law is the product of targets (Garbuno-Inigo, Nuesken and Reich 2020). The root
of C is the d x N matrix of deviations over sqrt(N), so that no matrix is factorised. There are always at least 2 (d + 1) walkers, since
C has to have full rank. The first walker is the one that is shown.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

LARGEST_DIMENSION = 1024


class Ensemble(NamedTuple):
    walkers: Any  # a tree like a position, with an axis of walkers in front


def to_matrix(walkers):
    first = jax.tree.map(lambda a: a[0], walkers)
    return jax.vmap(lambda w: ravel_pytree(w)[0])(walkers), ravel_pytree(first)[1]


class ALDI:
    def __init__(self, num_walkers: int = 8, spread: float = 1.0):
        if num_walkers < 4:
            raise ValueError("four walkers at least")
        self.num_walkers = num_walkers
        self.spread = spread

    def init(self, key, position, estimator):
        x, unravel = ravel_pytree(position)
        if x.size > LARGEST_DIMENSION:
            raise ValueError(f"ensembles are for at most {LARGEST_DIMENSION} coordinates")
        number = max(self.num_walkers, 2 * (x.size + 1))
        others = x + self.spread * jax.random.normal(key, (number - 1, x.size), x.dtype)
        return Ensemble(jax.vmap(unravel)(jnp.concatenate([x[None], others])))

    def position(self, state):
        return jax.tree.map(lambda a: a[0], state.walkers)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        x, unravel = to_matrix(state.walkers)
        number, d = x.shape
        h = jnp.asarray(step_size, x.dtype)

        slope = lambda w: ravel_pytree(estimator.estimate(gradient_key, (), w)[0].gradient)[0]
        gradients = jax.vmap(slope)(state.walkers)
        deviations = x - jnp.mean(x, axis=0)
        drift = -(gradients @ deviations.T) @ deviations / number + (d + 1) / number * deviations
        noise = jax.random.normal(noise_key, (number, number), x.dtype) @ deviations / number**0.5
        return Ensemble(jax.vmap(unravel)(x + h * drift + jnp.sqrt(2 * h) * noise))
