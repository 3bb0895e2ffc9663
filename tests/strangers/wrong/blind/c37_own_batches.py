"""Samplers that manage their minibatches themselves. The key of an estimate decides its minibatch, so keys are batches."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def normal_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        treedef, [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
    )


def langevin(key, x, g, h):
    return jax.tree.map(lambda a, b, n: a - h * b + jnp.sqrt(2 * h) * n, x, g, normal_like(key, x))


def gradients_of(keys, x, estimator):
    """Gradients of several minibatches, stacked."""
    return jax.vmap(lambda k: estimator.estimate(k, (), x)[0].gradient)(keys)


class Loader(NamedTuple):
    """Position, the batches of an epoch, and the number of the next one."""

    position: jax.Array
    batches: jax.Array
    cursor: jax.Array


class CyclicSGLD:
    """SGLD with a loader of 4 batches that are drawn at the start; step t takes batch t mod 4.

    WRONG: the batches are never drawn again, and do not partition the data: in the long run the gradient is that of 4 frozen
    batches. Right: new keys whenever the cursor is back at 0. Exact with exact gradients. Batches of n of N data, Gaussian
    mean: the posterior is off by sqrt(N / n) / 2 of its standard deviations (N / n = 10: 1.6 sd), however small h is.
    """

    num_batches = 4

    def init(self, key, position, estimator):
        return Loader(position, jax.random.split(key, self.num_batches), jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        g = estimator.estimate(state.batches[state.cursor], (), state.position)[0].gradient
        moved = langevin(key, state.position, g, step_size)
        return Loader(moved, state.batches, (state.cursor + 1) % self.num_batches)

    def position(self, state):
        return state.position


def robust_step(key, position, step_size, estimator):
    batch_key, noise_key = jax.random.split(key)
    stacked = gradients_of(jax.random.split(batch_key, 3), position, estimator)
    middle = jax.tree.map(lambda g: jnp.median(g, axis=0), stacked)
    return langevin(noise_key, position, middle, step_size)


def weighted_pool(pool=4, chosen=3):
    """SGLD from a pool of minibatches, of which some are kept, with a probability proportional to the gradient's norm.

    WRONG: drawn without replacement, a batch of share p is kept with a probability that is not `chosen` p, by which it is
    divided (Horvitz and Thompson need the inclusion probability). Right: with replacement. Exact where all batches agree;
    one coordinate, where the noise of a batch is larger than the gradient: drift -13%, variance +15%, as h -> 0.
    """

    def step(key, position, step_size, estimator):
        batch_key, choice_key, noise_key = jax.random.split(key, 3)
        stacked = gradients_of(jax.random.split(batch_key, pool), position, estimator)
        squares = sum(jnp.sum(g.reshape(pool, -1) ** 2, axis=1) for g in jax.tree.leaves(stacked))
        norms = jnp.sqrt(squares) + 1e-12
        p = norms / jnp.sum(norms)
        kept = jax.random.choice(choice_key, pool, (chosen,), replace=False, p=p)
        weight = 1 / (pool * chosen * p[kept])
        g = jax.tree.map(lambda g: jnp.tensordot(weight.astype(g.dtype), g[kept], axes=1), stacked)
        return langevin(noise_key, position, g, step_size)

    return simple_sampler(step)


cyclic = CyclicSGLD()

median_of_batches = simple_sampler(robust_step)
"""SGLD with the median of three minibatch gradients, coordinate by coordinate, as a defence against outliers.

WRONG: the median of three is unbiased only if the noise is symmetric; right: the mean. Nothing is seen with exact gradients
or Gaussian noise. Skewed data, x_i - theta exponential of sd s: E median - E = -0.17 sd of a batch, so with batches of one
the mean is off by 0.17 s, 0.17 sqrt(N) posterior sd (N = 100: 1.7 sd); batches of ten: 0.17 sd.
"""

importance_pool = weighted_pool()
