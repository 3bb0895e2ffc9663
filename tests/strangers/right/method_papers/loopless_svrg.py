"""Loopless SVRG Langevin: the snapshot is renewed by a coin instead of an inner loop (Kovalev et al. 2020; Kinoshita and Suzuki 2022).

Own minibatches: batches of two, without replacement.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

REFRESH = 0.2


class SVRGState(NamedTuple):
    position: Any
    anchor: Any
    anchor_gradient: Any  # of the likelihood, over all data


def add(a, b, scale=1.0):
    return jax.tree.map(lambda u, v: u + scale * v, a, b)


def lsvrg(target):
    terms = target.terms
    batch = 0 if terms is None else min(2, terms.size)

    def likelihood_gradient(x, rows):
        return jax.grad(lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows)))(x)

    def everything(key, x, estimator):
        if terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        return likelihood_gradient(x, jax.tree.map(jnp.asarray, terms.data))

    def init(key, position, estimator):
        return SVRGState(position, position, everything(key, position, estimator))

    def gradient(key, state, estimator):
        x, a, full = state
        if terms is None:
            now, then = (estimator.estimate(key, (), q)[0].gradient for q in (x, a))
            return add(full, add(now, then, -1.0))
        rows = jax.random.choice(key, terms.size, (batch,), replace=False)
        data = jax.tree.map(lambda d: jnp.asarray(d)[rows], terms.data)
        change = add(likelihood_gradient(x, data), likelihood_gradient(a, data), -1.0)
        return add(jax.grad(terms.prior)(x), add(full, change, terms.size / batch))

    def step(key, state, h, estimator):
        k_grad, k_noise, k_coin, k_full = jax.random.split(key, 4)
        g = gradient(k_grad, state, estimator)
        leaves, treedef = jax.tree.flatten(state.position)
        keys = treedef.unflatten(list(jax.random.split(k_noise, len(leaves))))
        move = lambda x, g, k: x - h * g + jnp.sqrt(2 * h).astype(x.dtype) * jax.random.normal(k, x.shape, x.dtype)
        x = jax.tree.map(move, state.position, g, keys)
        return jax.lax.cond(
            jax.random.bernoulli(k_coin, REFRESH),
            lambda: SVRGState(x, x, everything(k_full, x, estimator)),
            lambda: SVRGState(x, state.anchor, state.anchor_gradient),
        )

    return simple_sampler(step, init=init)
