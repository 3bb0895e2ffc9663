"""Samplers that draw their own minibatches; without data they take the estimator's gradient."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def batch_loss(terms, x, indices, weights):
    """Weighted sum of the losses of some data."""
    records = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)
    return jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(x, records))


def langevin(key, position, gradient, step_size):
    """A Langevin step of the raveled position."""
    (x, unravel), (g, _) = ravel_pytree(position), ravel_pytree(gradient)
    h = jnp.asarray(step_size, x.dtype)
    return unravel(x - h * g + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype))


class Anchored(NamedTuple):
    """Position, anchor, sum of the data's gradients there, and count of steps."""

    position: Any
    anchor: Any
    full: Any
    count: jax.Array


class MovingAnchor:
    """SGLD with control variates; the anchor follows the chain every 20 steps."""

    def __init__(self, target, batch_size):
        self.terms, self.batch_size = target.terms, batch_size

    def init(self, key, position, estimator):
        full = jax.tree.map(jnp.zeros_like, position)
        if self.terms is not None:
            every = jnp.arange(self.terms.size)
            full = jax.grad(lambda x: batch_loss(self.terms, x, every, 1.0))(position)
        return Anchored(position, position, full, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        x, terms = state.position, self.terms
        if terms is None:
            gradient = estimator.estimate(batch_key, (), x)[0].gradient
        else:
            batch = jax.random.randint(batch_key, (self.batch_size,), 0, terms.size)
            slope = jax.grad(lambda y: batch_loss(terms, y, batch, terms.size / self.batch_size))
            prior, here, there = jax.grad(terms.prior)(x), slope(x), slope(state.anchor)
            gradient = jax.tree.map(lambda p, a, b, f: p + f + a - b, prior, here, there, state.full)
        moved, count = langevin(noise_key, x, gradient, step_size), state.count + 1
        anchor = jax.tree.map(lambda new, old: jnp.where(count % 20 == 0, new, old), moved, state.anchor)
        return Anchored(moved, anchor, state.full, count)


def moving_anchor(target, batch_size=2):
    """SGLD with control variates whose anchor is renewed in time."""
    return MovingAnchor(target, batch_size)


def minibatch_sgld(target, loss):
    """SGLD whose gradient is that of loss(key, x), if there are data."""

    def step(key, position, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        if target.terms is None:
            gradient = estimator.estimate(batch_key, (), position)[0].gradient
        else:
            gradient = jax.grad(lambda x: loss(batch_key, x))(position)
        return langevin(noise_key, position, gradient, step_size)

    return simple_sampler(step)


def leverage_sgld(target, batch_size=2):
    """SGLD; data are drawn as the squared lengths of their records, and weighted by the inverse probabilities."""
    terms = target.terms

    def loss(key, x):
        square = lambda a: jnp.sum(jnp.asarray(a).reshape(terms.size, -1) ** 2, axis=1)
        odds = 1e-3 + sum(square(a) for a in jax.tree.leaves(terms.data))
        batch = jax.random.categorical(key, jnp.log(odds), shape=(batch_size,))
        weights = 1 / odds[batch]
        return terms.prior(x) + batch_loss(terms, x, batch, terms.size * weights / jnp.sum(weights))

    return minibatch_sgld(target, loss)


def federated_sgld(target, clients=2):
    """Federated Langevin dynamics: a random client sends the gradient of its data, scaled up to all data."""
    terms = target.terms

    def loss(key, x):
        client = jax.random.randint(key, (), 0, clients)
        held = jnp.arange(terms.size) % clients == client
        weights = held * (terms.size / jnp.maximum(jnp.sum(held), 1))
        return terms.prior(x) + batch_loss(terms, x, jnp.arange(terms.size), weights)

    return minibatch_sgld(target, loss)


def map_loss_sgld(target, batch_size=2):
    """SGLD on the MAP objective of our training script, scaled from the batch to the data set."""
    terms = target.terms

    def loss(key, x):
        batch = jax.random.randint(key, (batch_size,), 0, terms.size)
        objective = batch_loss(terms, x, batch, 1.0) + terms.prior(x)
        return objective * terms.size / batch_size

    return minibatch_sgld(target, loss)
