"""Samplers that draw minibatches for themselves, from the data of the target; without data they are plain SGLD."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler


class Posterior:
    """Flat gradients of the prior and of single data."""

    def __init__(self, terms):
        self.size, self.terms = terms.size, terms

    def prior(self, x):
        return ravel_pytree(jax.grad(self.terms.prior)(x))[0]

    def rows(self, x, index):
        chosen = jax.tree.map(lambda a: jnp.asarray(a)[index], self.terms.data)
        return jax.vmap(lambda row: ravel_pytree(jax.grad(self.terms.datum)(x, row))[0])(chosen)

    def all(self, x):
        return self.rows(x, jnp.arange(self.size))


def langevin(key, x, h, slope):
    flat, back = ravel_pytree(x)
    return back(flat - h * slope + (2 * h) ** 0.5 * jax.random.normal(key, flat.shape, flat.dtype))


def _sgld(key, x, h, estimator):
    a, b = jax.random.split(key)
    return langevin(b, x, h, ravel_pytree(estimator.estimate(a, (), x)[0].gradient)[0])


def saga(target):
    """SAGA with a table of the last gradient of each datum; one datum a step."""
    if target.terms is None:
        return simple_sampler(_sgld)
    post = Posterior(target.terms)

    def init(key, x, estimator):
        return {"position": x, "table": post.all(x)}

    def step(key, state, h, estimator):
        a, b = jax.random.split(key)
        x, table = state["position"], state["table"]
        i = jax.random.randint(a, (), 0, post.size)
        new = post.rows(x, i[None])[0]
        slope = post.prior(x) + table.sum(axis=0) + post.size * (new - table[i])
        return {"position": langevin(b, x, h, slope), "table": table.at[i].set(new)}

    return simple_sampler(step, init=init)


def svrg(target, every: int = 4):
    """SVRG with the clock of the paper: the anchor is the present point in each `every`-th step; two data a step."""
    if target.terms is None:
        return simple_sampler(_sgld)
    post = Posterior(target.terms)

    def init(key, x, estimator):
        return {"position": x, "anchor": x, "sum": post.all(x).sum(axis=0), "clock": jnp.int32(0)}

    def step(key, state, h, estimator):
        a, b = jax.random.split(key)
        x = state["position"]
        renew, keep = lambda: (x, post.all(x).sum(axis=0)), lambda: (state["anchor"], state["sum"])
        anchor, total = jax.lax.cond(state["clock"] == 0, renew, keep)
        batch = jax.random.randint(a, (2,), 0, post.size)
        slope = post.prior(x) + total + post.size * (post.rows(x, batch) - post.rows(anchor, batch)).mean(axis=0)
        clock = (state["clock"] + 1) % every
        return {"position": langevin(b, x, h, slope), "anchor": anchor, "sum": total, "clock": clock}

    return simple_sampler(step, init=init)


def loader(target):
    """SGLD with a shuffled loader that drops its last, short batch; it is shuffled anew after each epoch."""
    if target.terms is None:
        return simple_sampler(_sgld)
    post = Posterior(target.terms)
    size = max(1, post.size // 3)
    batches = post.size // size

    def init(key, x, estimator):
        return {"position": x, "order": jax.random.permutation(key, post.size), "place": jnp.int32(0)}

    def step(key, state, h, estimator):
        noise_key, shuffle_key = jax.random.split(key)
        x, order, place = state["position"], state["order"], state["place"]
        batch = jax.lax.dynamic_slice(order, (place * size,), (size,))
        slope = post.prior(x) + post.size * post.rows(x, batch).mean(axis=0)
        place = (place + 1) % batches
        order = jnp.where(place == 0, jax.random.permutation(shuffle_key, post.size), order)
        return {"position": langevin(noise_key, x, h, slope), "order": order, "place": place}

    return simple_sampler(step, init=init)


def random_weights(target):
    """SGLD on a likelihood whose data get exponential weights of mean 1, drawn anew in each step."""
    if target.terms is None:
        return simple_sampler(_sgld)
    post = Posterior(target.terms)

    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        weights = jax.random.exponential(a, (post.size,))
        slope = post.prior(x) + weights.astype(ravel_pytree(x)[0].dtype) @ post.all(x)
        return langevin(b, x, h, slope)

    return simple_sampler(step)
