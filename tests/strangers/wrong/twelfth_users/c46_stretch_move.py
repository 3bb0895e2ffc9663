"""Affine-invariant ensemble sampler (Goodman and Weare, 2010), parallel over two halves of the ensemble as in emcee.

Positions may be arrays or trees of arrays: walkers are kept as one tree with a leading axis. With probability `walk` a half makes an
ordinary random-walk step instead of a stretch, so that the ensemble does not stay in its affine hull if it is small.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Ensemble(NamedTuple):
    walkers: object
    energy: jax.Array


def num_dimensions(position):
    """Number of coordinates of one walker."""
    return sum(jnp.atleast_1d(leaf).shape[-1] for leaf in jax.tree.leaves(position))


def along(scale, leaf):
    """`scale`, one number a walker, to be multiplied with a leaf of walkers."""
    return scale.reshape(scale.shape + (1,) * (leaf.ndim - 1)).astype(leaf.dtype)


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return structure.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


class StretchMove:
    """`walkers` walkers (rounded up to an even number), stretched by z in [1/a, a]."""

    claims = Claims(Source("goodman2010", "section 2, with two halves"), ExactLaw())

    def __init__(self, walkers=10, a=2.0, walk=0.25):
        if walkers < 4 or a <= 1 or not 0 <= walk < 1:
            raise ValueError("at least four walkers, a > 1 and 0 <= walk < 1")
        self.half, self.a, self.walk = (walkers + 1) // 2, a, walk

    def init(self, key, position, estimator):
        copies = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (2 * self.half, *leaf.shape)), position)
        spread = jax.tree.map(lambda noise: noise.at[0].set(0), normal_like(key, copies))
        walkers = jax.tree.map(jnp.add, copies, spread)
        return Ensemble(walkers, self.energies(key, walkers, estimator))

    def position(self, state):
        return jax.tree.map(lambda leaf: leaf[0], state.walkers)

    def energies(self, key, walkers, estimator):
        return jax.vmap(lambda q: estimator.estimate(key, (), q)[0].potential)(walkers)

    def propose(self, key, movers, others, step_size):
        choice_key, partner_key, stretch_key, noise_key = jax.random.split(key, 4)
        energy_type = jax.tree.leaves(movers)[0].dtype
        partner = jax.random.randint(partner_key, (self.half,), 0, self.half)
        u = jax.random.uniform(stretch_key, (self.half,), energy_type)
        z = ((self.a - 1) * u + 1) ** 2 / self.a
        stretched = jax.tree.map(lambda x, o: o[partner] + along(z, x) * (x - o[partner]), movers, others)
        walked = jax.tree.map(lambda x, n: x + jnp.sqrt(2 * step_size).astype(x.dtype) * n, movers, normal_like(noise_key, movers))
        stretch = jax.random.uniform(choice_key, (self.half,), energy_type) >= self.walk
        proposal = jax.tree.map(lambda s, w: jnp.where(along(stretch, s) > 0, s, w), stretched, walked)
        dim = num_dimensions(jax.tree.map(lambda leaf: leaf[0], movers))
        return proposal, jnp.where(stretch, (dim - 1) * jnp.log(z), 0)

    def move(self, key, movers, energy, others, step_size, estimator):
        propose_key, energy_key, accept_key = jax.random.split(key, 3)
        proposal, log_jacobian = self.propose(propose_key, movers, others, step_size)
        new = self.energies(energy_key, proposal, estimator)
        accept = jnp.log(jax.random.uniform(accept_key, energy.shape, energy.dtype)) < log_jacobian + energy - new
        movers = jax.tree.map(lambda n, x: jnp.where(along(accept, x) > 0, n, x), proposal, movers)
        return movers, jnp.where(accept, new, energy)

    def step(self, key, state, step_size, estimator):
        step_size = jnp.asarray(step_size)
        first_key, second_key = jax.random.split(key)
        first, second = (jax.tree.map(lambda leaf: leaf[s], state.walkers) for s in (slice(0, self.half), slice(self.half, None)))
        u, v = state.energy[: self.half], state.energy[self.half :]
        first, u = self.move(first_key, first, u, second, step_size, estimator)
        second, v = self.move(second_key, second, v, first, step_size, estimator)
        return Ensemble(jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first, second), jnp.concatenate([u, v]))
