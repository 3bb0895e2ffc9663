"""Langevin chains whose states hold more, or other things, than a position."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def randn(key, tree):
    flat, treedef = jax.tree.flatten(tree)
    draws = [jax.random.normal(jax.random.fold_in(key, i), a.shape, a.dtype) for i, a in enumerate(flat)]
    return jax.tree.unflatten(treedef, draws)


def slope(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def sgld(x, g, n, h):
    """x - h g + sqrt(2 h) n, leaf by leaf."""
    return jax.tree.map(lambda a, b, c: a - h * b + (2 * h) ** 0.5 * c, x, g, n)


# (i) two chains with opposite noise; a coin says which of them is shown --------------------------------------------


class Twins(NamedTuple):
    shown: Any
    hidden: Any


def twins_step(key, state, h, estimator):
    k1, k2, k_noise, k_coin = jax.random.split(key, 4)
    n = randn(k_noise, state.shown)
    one = sgld(state.shown, slope(estimator, k1, state.shown), n, h)
    two = sgld(state.hidden, slope(estimator, k2, state.hidden), jax.tree.map(jnp.negative, n), h)
    heads = jax.random.bernoulli(k_coin)
    pick = lambda a, b: jax.tree.map(lambda u, v: jnp.where(heads, u, v), a, b)
    return Twins(pick(one, two), pick(two, one))


antithetic_twins = simple_sampler(
    twins_step,
    init=lambda key, position, estimator: Twins(position, position),
    position=lambda state: state.shown,
)


# (ii) the position is a point inside of the step, half a kick ahead of what the chain itself carries ---------------
#      (Leimkuhler and Matthews' scheme as a post-processed Euler scheme: nothing of the last noise has to be kept)


class Processed(NamedTuple):
    core: Any
    position: Any


def processed_step(key, state, h, estimator):
    k_gradient, k_noise = jax.random.split(key)
    n = randn(k_noise, state.core)
    ahead = jax.tree.map(lambda c, z: c + 0.5 * (2 * h) ** 0.5 * z, state.core, n)
    return Processed(sgld(state.core, slope(estimator, k_gradient, ahead), n, h), ahead)


postprocessed = simple_sampler(
    processed_step,
    init=lambda key, position, estimator: Processed(position, position),
    claims=Claims(
        Source("", "post-processed integrators"), StationaryLaw(order=2), conditions=("exact gradient",)
    ),
)


# (iii) a key ring: the noise of a step comes from the key that the step before has put aside -----------------------


class KeyRing(NamedTuple):
    position: Any
    put_aside: jax.Array


@dataclass(frozen=True)
class ExponentialEuler:
    """x - (1 - e^(-kh)) / k grad U + N(0, (1 - e^(-2kh)) / k): without any error where U = k |x|^2 / 2."""

    rate: float = 1.0

    def init(self, key, position, estimator):
        return KeyRing(position, key)

    def step(self, key, state, h, estimator):
        k_gradient, k_next = jax.random.split(key)
        g = slope(estimator, k_gradient, state.position)
        n = randn(state.put_aside, state.position)
        drift = -jnp.expm1(-self.rate * h) / self.rate
        spread = (-jnp.expm1(-2 * self.rate * h) / self.rate) ** 0.5
        x = jax.tree.map(lambda a, b, c: a - drift * b + spread * c, state.position, g, n)
        return KeyRing(x, k_next)


# (iv) SVRG without an inner loop: a coin renews the anchor, so that there is no clock ------------------------------

BATCH = 2
RENEWAL = 0.25


def loopless_svrg(target):
    terms = target.terms
    if terms is None:  # no data, nothing to reduce

        def plain(key, x, h, estimator):
            k1, k2 = jax.random.split(key)
            return sgld(x, slope(estimator, k1, x), randn(k2, x), h)

        return simple_sampler(plain)

    total = lambda x, rows: jnp.sum(jax.vmap(terms.datum, (None, 0))(x, rows))
    everything = jax.tree.map(jnp.asarray, terms.data)
    full = lambda x: jax.grad(total)(x, everything)

    def init(key, position, estimator):
        return {"position": position, "anchor": position, "sum": full(position)}

    def step(key, state, h, estimator):
        k_batch, k_noise, k_coin = jax.random.split(key, 3)
        x, anchor = state["position"], state["anchor"]
        drawn = jax.random.randint(k_batch, (BATCH,), 0, terms.size)
        rows = jax.tree.map(lambda a: a[drawn], everything)
        new, old = (jax.grad(total)(at, rows) for at in (x, anchor))
        up = terms.size / BATCH
        g = jax.tree.map(
            lambda p, s, a, b: p + s + up * (a - b), jax.grad(terms.prior)(x), state["sum"], new, old
        )
        x = sgld(x, g, randn(k_noise, x), h)
        anchor, summed = jax.lax.cond(
            jax.random.bernoulli(k_coin, RENEWAL), lambda: (x, full(x)), lambda: (anchor, state["sum"])
        )
        return {"position": x, "anchor": anchor, "sum": summed}

    return simple_sampler(step, init=init)


# (v) random reshuffling, one datum a step: the order of the epoch and the place in it are integers of the state ----


class Deck(NamedTuple):
    position: Any
    order: jax.Array
    top: jax.Array


def reshuffled(target):
    terms = target.terms
    if terms is None:
        return loopless_svrg(target)
    cards = jax.tree.map(jnp.asarray, terms.data)

    def init(key, position, estimator):
        return Deck(position, jax.random.permutation(key, terms.size), jnp.zeros((), jnp.int32))

    def step(key, state, h, estimator):
        k_noise, k_shuffle = jax.random.split(key)
        x, card = state.position, state.order[state.top]
        likelihood = jax.grad(terms.datum)(x, jax.tree.map(lambda a: a[card], cards))
        g = jax.tree.map(lambda p, d: p + terms.size * d, jax.grad(terms.prior)(x), likelihood)
        top = (state.top + 1) % terms.size
        order = jax.lax.cond(
            top == 0, lambda: jax.random.permutation(k_shuffle, state.order), lambda: state.order
        )
        return Deck(sgld(x, g, randn(k_noise, x), h), order, top)

    return simple_sampler(step, init=init)
