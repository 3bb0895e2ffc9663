"""Langevin samplers that make their own gradients: minibatches of the data of a target, or differences of energies."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        structure, [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    )


def langevin(position, gradient, noise, step_size):
    def move(x, g, n):
        h = jnp.asarray(step_size, x.dtype)
        return x - h * g + jnp.sqrt(2 * h) * n

    return jax.tree.map(move, position, gradient, noise)


def full_gradient_step(key, position, step_size, estimator):
    """Plain SGLD, for targets that are not a sum over data."""
    gradient_key, noise_key = jax.random.split(key)
    gradient = estimator.estimate(gradient_key, (), position)[0].gradient
    return langevin(position, gradient, normal_like(noise_key, position), step_size)


class Epoch(NamedTuple):
    position: Any
    order: jax.Array
    cursor: jax.Array


def epoch_sgld(target, batch_size: int = 3):
    """SGLD whose minibatches go through a fresh permutation of the data, as a data loader with shuffle=True does."""
    terms = target.terms
    if terms is None:
        return simple_sampler(full_gradient_step)
    n = min(batch_size, terms.size)
    batches = -(-terms.size // n)

    def shuffled(key):
        order = jax.random.permutation(key, terms.size)
        # the last batch is filled up with the index N, which is masked below
        return jnp.concatenate([order, jnp.full((batches * n - terms.size,), terms.size, order.dtype)])

    def batch_potential(position, indices):
        rows = jax.tree.map(lambda a: jnp.asarray(a)[jnp.minimum(indices, terms.size - 1)], terms.data)
        values = jax.vmap(terms.datum, (None, 0))(position, rows)
        return jnp.sum(jnp.where(indices < terms.size, values, 0))

    def init(key, position, estimator):
        return Epoch(position, shuffled(key), jnp.zeros((), jnp.int32))

    def step(key, state, step_size, estimator):
        order_key, noise_key = jax.random.split(key)
        order = jnp.where(state.cursor == 0, shuffled(order_key), state.order)
        indices = jax.lax.dynamic_slice(order, (state.cursor * n,), (n,))
        prior = jax.grad(terms.prior)(state.position)
        likelihood = jax.grad(batch_potential)(state.position, indices)
        gradient = jax.tree.map(lambda a, b: a + (terms.size / n) * b, prior, likelihood)
        position = langevin(state.position, gradient, normal_like(noise_key, state.position), step_size)
        return Epoch(position, order, (state.cursor + 1) % batches)

    return simple_sampler(step, init=init)


def window_sgld(target, batch_size: int = 3):
    """SGLD with contiguous minibatches: one random offset and one slice, which is kinder to memory than a gather."""
    terms = target.terms
    if terms is None:
        return simple_sampler(full_gradient_step)
    n = min(batch_size, terms.size)

    def window_potential(position, start):
        rows = jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(jnp.asarray(a), start, n), terms.data)
        return jnp.sum(jax.vmap(terms.datum, (None, 0))(position, rows))

    def step(key, position, step_size, estimator):
        start_key, noise_key = jax.random.split(key)
        start = jax.random.randint(start_key, (), 0, terms.size - n + 1)
        prior = jax.grad(terms.prior)(position)
        likelihood = jax.grad(window_potential)(position, start)
        gradient = jax.tree.map(lambda a, b: a + (terms.size / n) * b, prior, likelihood)
        return langevin(position, gradient, normal_like(noise_key, position), step_size)

    return simple_sampler(step)


def importance_sgld(target, batch_size: int = 3):
    """SGLD with distinct data, drawn by the size of their gradients (Gumbel top-k) and weighted by 1 / (n p_i)."""
    terms = target.terms
    if terms is None:
        return simple_sampler(full_gradient_step)
    n = min(batch_size, terms.size)

    def step(key, position, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        data = jax.tree.map(jnp.asarray, terms.data)
        gradients = jax.vmap(jax.grad(terms.datum), (None, 0))(position, data)
        squares = sum(jnp.sum(g.reshape(terms.size, -1) ** 2, axis=1) for g in jax.tree.leaves(gradients))
        norms = jnp.sqrt(squares)
        # a mixture with the uniform law bounds the weights
        scores = norms + jnp.mean(norms) + 1e-6
        p = scores / jnp.sum(scores)
        chosen = jax.lax.top_k(jnp.log(p) + jax.random.gumbel(batch_key, p.shape, p.dtype), n)[1]
        weights = 1 / (n * p[chosen])
        likelihood = jax.tree.map(lambda g: jnp.tensordot(weights.astype(g.dtype), g[chosen], axes=1), gradients)
        gradient = jax.tree.map(jnp.add, jax.grad(terms.prior)(position), likelihood)
        return langevin(position, gradient, normal_like(noise_key, position), step_size)

    return simple_sampler(step)


RADIUS = 0.5


def energy_difference_step(key, position, step_size, estimator):
    """Langevin step without gradients: simultaneous perturbation (SPSA), two energies a step in any dimension."""
    energy_key, sign_key, noise_key = jax.random.split(key, 3)
    leaves, structure = jax.tree.flatten(position)
    keys = jax.random.split(sign_key, len(leaves))
    signs = jax.tree.unflatten(
        structure, [jax.random.rademacher(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    )

    def energy(side):
        moved = jax.tree.map(lambda x, s: x + side * RADIUS * s, position, signs)
        # the same key on both sides, so that the same minibatch is compared
        return estimator.estimate(energy_key, (), moved)[0].potential

    slope = (energy(1.0) - energy(-1.0)) / (2 * RADIUS)
    gradient = jax.tree.map(lambda s: slope.astype(s.dtype) * s, signs)
    return langevin(position, gradient, normal_like(noise_key, position), step_size)


energy_difference_sgld = simple_sampler(energy_difference_step)
