"""Langevin samplers that draw their own minibatches: blocks of a data set, and SVRG."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def block_sgld(target):
    """SGLD on consecutive blocks of data, one of them at random in each step; four batches or so an epoch."""
    terms = target.terms
    if terms is not None:
        batch_size = max(1, terms.size // 4)
        num_batches = terms.size // batch_size + 1

    def gradient(key, theta, estimator):
        if terms is None:
            return estimator.estimate(key, (), theta)[0].gradient
        start = batch_size * jax.random.randint(key, (), 0, num_batches)
        rows = start + jnp.arange(batch_size)
        inside = rows < terms.size
        batch = jax.tree.map(lambda a: jnp.asarray(a)[jnp.minimum(rows, terms.size - 1)], terms.data)

        def loss(q):
            per_row = jax.vmap(terms.datum, (None, 0))(q, batch)
            return terms.prior(q) + terms.size / batch_size * jnp.sum(jnp.where(inside, per_row, 0.0))

        return jax.grad(loss)(theta)

    def step(key, theta, h, estimator):
        k_batch, k_noise = jax.random.split(key)
        g = gradient(k_batch, theta, estimator)
        return theta - h * g + jnp.sqrt(2 * h) * jax.random.normal(k_noise, theta.shape, theta.dtype)

    return simple_sampler(step)


class SVRGState(NamedTuple):
    position: jax.Array
    anchor: jax.Array
    anchor_gradient: jax.Array
    age: jax.Array


def svrg_langevin(target, epoch_length=5):
    """SVRG-LD (Dubey et al., 2016) with minibatches of two."""
    terms = target.terms

    def rows(index):
        return jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)

    def log_likelihood_gradient(q, batch):
        return jax.grad(lambda y: jnp.sum(jax.vmap(terms.datum, (None, 0))(y, batch)))(q)

    def full_gradient(key, q, estimator):
        if terms is None:
            return estimator.estimate(key, (), q)[0].gradient
        return jax.grad(terms.prior)(q) + log_likelihood_gradient(q, terms.data)

    def init(key, position, estimator):
        return SVRGState(position, position, full_gradient(key, position, estimator), jnp.zeros((), jnp.int32))

    def step(key, state, h, estimator):
        k_full, k_batch, k_noise = jax.random.split(key, 3)
        x = state.position
        renew = state.age >= epoch_length
        anchor = jnp.where(renew, x, state.anchor)
        anchor_gradient = jnp.where(renew, full_gradient(k_full, x, estimator), state.anchor_gradient)
        if terms is None:
            g = estimator.estimate(k_batch, (), x)[0].gradient
        else:
            batch = rows(jax.random.randint(k_batch, (2,), 0, terms.size))
            correction = log_likelihood_gradient(x, batch) - log_likelihood_gradient(anchor, batch)
            g = jax.grad(terms.prior)(x) + anchor_gradient + terms.size / 2 * correction
        x = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k_noise, x.shape, x.dtype)
        return SVRGState(x, anchor, anchor_gradient, jnp.where(renew, 0, state.age) + 1)

    return simple_sampler(step, init=init)
