"""SGLD with control variates, importance-weighted minibatches and a frozen diagonal preconditioner.

Before the chain starts an anchor is found by a short run of Adam from the origin. At the anchor the gradient of all data is summed once
(Baker et al. 2019); data are then drawn with replacement, with probabilities that follow the norms of their gradients there, mixed with
uniform ones, and each difference of gradients is divided by its probability. The preconditioner is the inverse of the empirical Fisher
diagonal at the anchor, scaled to be one at most. None of this changes during the run.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

PILOT_STEPS = 150


class Anchored(NamedTuple):
    position: Any
    anchor: Any
    total: jax.Array  # gradient of the data at the anchor, summed
    probabilities: jax.Array
    scales: jax.Array


def pilot(gradient, start):
    rule = optax.adam(0.05)

    def body(_, carry):
        x, memory = carry
        updates, memory = rule.update(gradient(x), memory, x)
        return optax.apply_updates(x, updates), memory

    return jax.lax.fori_loop(0, PILOT_STEPS, body, (start, rule.init(start)))[0]


def sgld_cv(target, batch_size: int = 2, uniform_share: float = 0.4, damping: float = 1.0):
    if not 0 < uniform_share <= 1 or batch_size < 1 or damping <= 0:
        raise ValueError("uniform_share is in (0, 1], batch_size at least 1, damping positive")
    terms = target.terms

    def weighted_gradient(x, rows, weights):
        of_data = lambda q: jnp.dot(weights, jax.vmap(terms.datum, (None, 0))(q, rows))
        return ravel_pytree(jax.grad(of_data)(x))[0]

    def init(key, position, estimator):
        flat, unravel = ravel_pytree(position)
        origin = unravel(jnp.zeros(flat.shape, flat.dtype))
        if terms is None:
            nothing = jnp.zeros((), flat.dtype)
            return Anchored(position, origin, nothing, nothing, jnp.ones(flat.shape, flat.dtype))
        data = jax.tree.map(jnp.asarray, terms.data)
        energy = lambda q: terms.prior(q) + jnp.sum(jax.vmap(terms.datum, (None, 0))(q, data))
        anchor = pilot(jax.grad(energy), origin)
        slopes = jax.vmap(lambda row: ravel_pytree(jax.grad(terms.datum)(anchor, row))[0])(data)
        norms = jnp.linalg.norm(slopes, axis=1) + 1e-12
        probabilities = uniform_share / terms.size + (1 - uniform_share) * norms / jnp.sum(norms)
        scales = 1 / (damping + jnp.sum(slopes**2, axis=0))
        return Anchored(position, anchor, jnp.sum(slopes, axis=0), probabilities, scales / jnp.max(scales))

    def noisy_gradient(key, state, estimator):
        if terms is None:
            return ravel_pytree(estimator.estimate(key, (), state.position)[0].gradient)[0]
        index = jax.random.choice(key, terms.size, (batch_size,), p=state.probabilities)
        rows = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
        weights = 1 / (batch_size * state.probabilities[index])
        here, there = (weighted_gradient(x, rows, weights) for x in (state.position, state.anchor))
        return ravel_pytree(jax.grad(terms.prior)(state.position))[0] + state.total + here - there

    def step(key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype) * state.scales
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        moved = x - h * noisy_gradient(batch_key, state, estimator) + jnp.sqrt(2 * h) * noise
        return state._replace(position=unravel(moved))

    claims = Claims(Source("", "Baker, Fearnhead, Fox and Nemeth 2019, with importance weights"), StationaryLaw(order=1))
    return simple_sampler(step, init=init, claims=claims)
