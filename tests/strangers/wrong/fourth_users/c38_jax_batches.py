"""SGLD in JAX: minibatches of its own, noise, preconditioners."""

import math

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler

BATCH = 32
FREEDOM = 8.0


def exact(key, x, estimator):
    return estimator.estimate(key, (), x)[0].gradient


def langevin(key, x, h, gradient):
    return x - h * gradient + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def without_data(key, x, h, estimator):
    gradient_key, noise_key = jax.random.split(key)
    return langevin(noise_key, x, h, exact(gradient_key, x, estimator))


def weighted_slope(terms, x, rows, weight):
    of_rows = jax.grad(lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows)))(x)
    return jax.grad(terms.prior)(x) + weight * of_rows


def random_rows(target):
    """SGLD; each array of the data is sampled by a gather of its own."""
    terms = target.terms
    if terms is None:
        return simple_sampler(without_data)
    leaves, tree = jax.tree.flatten(terms.data)
    batch = 4

    def step(key, x, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        keys = jax.random.split(batch_key, len(leaves))
        rows = [jnp.asarray(a)[jax.random.randint(k, (batch,), 0, terms.size)] for k, a in zip(keys, leaves, strict=True)]
        gradient = weighted_slope(terms, x, jax.tree.unflatten(tree, rows), terms.size / batch)
        return langevin(noise_key, x, h, gradient)

    return simple_sampler(step)


def rows_in_turn(target):
    """SGLD; the batches are contiguous and taken in turn, as a loader without shuffling gives them."""
    terms = target.terms
    if terms is None:
        return simple_sampler(without_data)
    batch = min(BATCH, terms.size)
    turns = math.ceil(terms.size / batch)

    def init(key, position, estimator):
        return {"position": position, "turn": jnp.zeros((), jnp.int32)}

    def step(key, state, h, estimator):
        x, turn = state["position"], state["turn"]
        rows = jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(jnp.asarray(a), turn * batch, batch), terms.data)
        gradient = weighted_slope(terms, x, rows, terms.size / batch)
        return {"position": langevin(key, x, h, gradient), "turn": (turn + 1) % turns}

    return simple_sampler(step, init=init)


def saga(target):
    """SAGA-LD (Dubey et al. 2016): a table of the last gradient of each datum and its sum, batches of two."""
    terms = target.terms
    if terms is None:
        return simple_sampler(without_data)
    batch = 2
    slopes = jax.vmap(jax.grad(terms.datum), (None, 0))
    data = jax.tree.map(jnp.asarray, terms.data)

    def init(key, position, estimator):
        table = slopes(position, data)
        return {"position": position, "table": table, "total": table.sum(0)}

    def step(key, state, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        x, table, total = state["position"], state["table"], state["total"]
        index = jax.random.randint(batch_key, (batch,), 0, terms.size)
        new = slopes(x, jax.tree.map(lambda a: a[index], data))
        change = (new - table[index]).sum(0)
        gradient = jax.grad(terms.prior)(x) + total + terms.size / batch * change
        x = langevin(noise_key, x, h, gradient)
        return {"position": x, "table": table.at[index].set(new), "total": total + change}

    return simple_sampler(step, init=init)


def heavy_step(key, position, h, estimator):
    """SGLD with noise of Student's law, for rare large moves; in the limit only its variance matters."""
    gradient_key, noise_key = jax.random.split(key)
    x, tree = ravel_pytree(position)
    g, _ = ravel_pytree(exact(gradient_key, position, estimator))
    return tree(x - h * g + jnp.sqrt(2 * h) * jax.random.t(noise_key, FREEDOM, x.shape, x.dtype))


heavy = simple_sampler(heavy_step)


def slow_rms(rate=0.1, floor=0.1):
    """SGLD with RMSprop whose average is slow, over a time of 1 / rate, so that no term for its change is needed."""

    def init(key, position, estimator):
        return {"position": position, "square": jax.tree.map(jnp.ones_like, position)}

    def step(key, state, h, estimator):
        gradient_key, noise_key = jax.random.split(key)
        g = exact(gradient_key, state["position"], estimator)
        square = jax.tree.map(lambda v, slope: v + rate * h * (slope**2 - v), state["square"], g)
        leaves, tree = jax.tree.flatten(state["position"])
        keys = jax.tree.unflatten(tree, list(jax.random.split(noise_key, len(leaves))))

        def move(x, slope, v, k):
            metric = 1 / (floor + jnp.sqrt(v))
            return x - h * metric * slope + jnp.sqrt(2 * h * metric) * jax.random.normal(k, x.shape, x.dtype)

        return {"position": jax.tree.map(move, state["position"], g, square, keys), "square": square}

    return simple_sampler(step, init=init)


def pooled_metric_step(key, position, h, estimator):
    """Riemannian SGLD with the metric 1 / (1 + mean of x^2) for all coordinates, and its correction."""
    gradient_key, noise_key = jax.random.split(key)
    x, tree = ravel_pytree(position)
    g, _ = ravel_pytree(exact(gradient_key, position, estimator))
    metric = lambda q: jnp.full_like(q, 1.0) / (1 + jnp.mean(q**2))
    inverse = metric(x)
    correction = jax.grad(lambda q: jnp.sum(metric(q)))(x)
    noise = jax.random.normal(noise_key, x.shape, x.dtype)
    return tree(x + h * (correction - inverse * g) + jnp.sqrt(2 * h * inverse) * noise)


pooled_metric = simple_sampler(pooled_metric_step)
