"""Hamiltonian Monte Carlo on trees of arrays, one mass for each run.

Positions may be any tree of arrays: the weights of a network as they come from its initialiser, without flattening.
`step_size` is the step of the leapfrog integrator.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves, tree_map, tree_structure, tree_unflatten

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def squared_norm(tree):
    """Squared Euclidean norm of all entries of a tree."""
    return sum(jnp.linalg.norm(jnp.atleast_1d(leaf), ord=2) ** 2 for leaf in tree_leaves(tree))


def normal_like(key, tree, scale):
    """A tree of independent N(0, scale^2) entries of the shapes and types of `tree`."""
    leaves = tree_leaves(tree)
    keys = jax.random.split(key, len(leaves))
    drawn = [scale * jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)]
    return tree_unflatten(tree_structure(tree), [d.astype(leaf.dtype) for d, leaf in zip(drawn, leaves)])


def axpy(a, x, y):
    """a x + y, leaf by leaf."""
    return tree_map(lambda u, v: (v + a * u).astype(v.dtype), x, y)


@dataclass(frozen=True)
class TreeHMC:
    """HMC with `num_steps` leapfrog steps between two draws of the momentum."""

    num_steps: int = 5
    mass: float = 1.0

    claims = Claims(Source("", "own"), ExactLaw())

    def kinetic(self, momentum):
        return squared_norm(momentum) / (2 * self.mass)

    def leapfrog(self, gradient, position, momentum, eps):
        momentum = axpy(-eps / 2, gradient(position), momentum)
        for i in range(self.num_steps):
            position = axpy(eps / self.mass, momentum, position)
            last = i == self.num_steps - 1
            momentum = axpy(-eps / 2 if last else -eps, gradient(position), momentum)
        return position, momentum

    def step(self, key, position, step_size, estimator):
        batch_key, momentum_key, accept_key = jax.random.split(key, 3)

        def potential(x):
            return estimator.estimate(batch_key, (), x)[0].potential

        def gradient(x):
            return estimator.estimate(batch_key, (), x)[0].gradient

        momentum = normal_like(momentum_key, position, self.mass**0.5)
        proposal, end = self.leapfrog(gradient, position, momentum, step_size)
        before = potential(position) + self.kinetic(momentum)
        after = potential(proposal) + self.kinetic(end)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=before.dtype)) < before - after
        return tree_map(lambda new, old: jnp.where(accepted, new, old), proposal, position)
