"""Metropolis within Gibbs over the blocks of a model.

A block is a leaf of the tree of parameters (weights, biases, scales, ...).  A step is one sweep: each block in turn is moved
by a Gaussian of standard deviation scale / sqrt(size of the block), and accepted or rejected by itself.  The potential
of the current position is kept, so that a sweep costs one evaluation a block.  There is no step size: `scale` is tuned by hand.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class Sweep(NamedTuple):
    position: Any
    potential: jax.Array


def replaced(leaves, index, value):
    return [*leaves[:index], value, *leaves[index + 1 :]]


def block_metropolis(scale=1.5):
    if scale <= 0:
        raise ValueError("scale is positive")

    def init(key, position, estimator):
        return Sweep(position, estimator.estimate(key, (), position)[0].potential)

    def step(key, state, step_size, estimator):
        energy_key, sweep_key = jax.random.split(key)
        leaves, structure = jax.tree.flatten(state.position)
        potential = state.potential

        for index, block_key in enumerate(jax.random.split(sweep_key, len(leaves))):
            move_key, accept_key = jax.random.split(block_key)
            block = leaves[index]
            noise = jax.random.normal(move_key, block.shape, block.dtype)
            moved = block + scale / block.size**0.5 * noise
            proposal = structure.unflatten(replaced(leaves, index, moved))
            proposed = estimator.estimate(energy_key, (), proposal)[0].potential
            log_uniform = jnp.log(jax.random.uniform(accept_key, dtype=block.dtype))
            accept = log_uniform < state.potential - proposed
            leaves = replaced(leaves, index, jnp.where(accept, moved, block))
            potential = jnp.where(accept, proposed, potential)

        return Sweep(structure.unflatten(leaves), potential)

    return simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()))
