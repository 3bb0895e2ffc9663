"""Random-walk Metropolis for trees of parameters.

    y = x + sqrt(2 h) N(0, 1) in every leaf,    accepted with probability min(1, exp(U(x) - U(y)))

Noise of a leaf comes from the key of the step folded with the number of the leaf, so that a leaf keeps its stream where others
are added behind it. Weights of leaves (`scales`, by default 1 for all) are standard deviations of the proposal in units of
sqrt(2 h).
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def leaf_noise(key, tree, scales=None):
    """Standard normal noise in the form of a tree, times the weights of its leaves."""
    leaves, structure = jax.tree.flatten(tree)
    weights = [1.0] * len(leaves) if scales is None else list(scales)
    if len(weights) != len(leaves):
        raise ValueError(f"{len(weights)} scales for {len(leaves)} leaves")
    noise = [
        weight * jax.random.normal(jax.random.fold_in(key, number), leaf.shape, leaf.dtype)
        for number, (weight, leaf) in enumerate(zip(weights, leaves, strict=True))
    ]
    return structure.unflatten(noise)


def metropolis(key, log_ratio, proposal, current):
    """The proposal with probability min(1, exp(log_ratio)), else the current point."""
    accept = jnp.log(jax.random.uniform(key, dtype=log_ratio.dtype)) < log_ratio
    return jax.tree.map(lambda a, b: jnp.where(accept, a, b), proposal, current)


def make_tree_walk(scales=None):
    """The sampler; `scales` has one number for each leaf."""

    def step(key, position, step_size, estimator):
        noise = leaf_noise(key, position, scales)
        batch_key, accept_key = jax.random.split(key)

        def energy(q):
            return estimator.estimate(batch_key, (), q)[0].potential

        size = jnp.sqrt(2 * step_size)
        proposal = jax.tree.map(lambda x, n: x + (size * n).astype(x.dtype), position, noise)
        return metropolis(accept_key, energy(position) - energy(proposal), proposal, position)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


tree_walk = make_tree_walk()
