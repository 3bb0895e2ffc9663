"""Samplers that draw their own minibatches, functions of a target with data; without data they ask the estimator."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def asked(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def rows(terms, index):
    return jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)


def slope_of_rows(terms, x, batch, weights):
    """Gradient of the weighted sum of the data."""
    return jax.grad(lambda q: jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(q, batch)))(x)


def add(*trees):
    return jax.tree.map(lambda *leaves: sum(leaves), *trees)


def langevin(key, x, gradient, h):
    q, back = ravel_pytree(x)
    g, _ = ravel_pytree(gradient)
    return back(q - h * g + jnp.sqrt(2 * h) * jax.random.normal(key, q.shape, q.dtype))


# -- 1. epochs -------------------------------------------------------------------------------------------------------


def epochs(target):
    """Batches of four from a shuffled data set; what is left over is a shorter batch at the end."""
    terms, size = target.terms, 4
    count = 1 if terms is None else -(-terms.size // size)

    def init(key, position, estimator):
        order = jnp.zeros(1, jnp.int32) if terms is None else jax.random.permutation(key, terms.size)
        return {"position": position, "order": order, "batch": jnp.zeros((), jnp.int32)}

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, order, batch = state["position"], state["order"], state["batch"]
        if terms is None:
            return {**state, "position": langevin(k2, x, asked(estimator, k1, x), h)}
        places = batch * size + jnp.arange(size)
        there = places < terms.size
        index = order[jnp.minimum(places, terms.size - 1)]
        gradient = add(
            jax.grad(terms.prior)(x),
            slope_of_rows(terms, x, rows(terms, index), jnp.where(there, terms.size / size, 0.0)),
        )
        last = batch == count - 1
        order = jnp.where(last, jax.random.permutation(k1, terms.size), order)
        return {"position": langevin(k2, x, gradient, h), "order": order, "batch": jnp.where(last, 0, batch + 1)}

    return simple_sampler(step, init=init)


# -- 2. control variates ---------------------------------------------------------------------------------------------


def anchored(target):
    """Control variates about the first position: the full gradient there, and a batch of two for the difference."""
    terms, size = target.terms, 2

    def init(key, position, estimator):
        return position, position, asked(estimator, key, position)

    def step(key, state, h, estimator):
        x, anchor, full = state
        k1, k2 = jax.random.split(key)
        if terms is None:
            return langevin(k2, x, asked(estimator, k1, x), h), anchor, full
        batch = rows(terms, jax.random.randint(k1, (size,), 0, terms.size))
        weight = terms.size / size
        gradient = add(
            jax.grad(terms.prior)(x),
            full,
            slope_of_rows(terms, x, batch, weight),
            slope_of_rows(terms, anchor, batch, -weight),
        )
        return langevin(k2, x, gradient, h), anchor, full

    return simple_sampler(step, init=init, position=lambda state: state[0])


# -- 3. no datum twice -----------------------------------------------------------------------------------------------


def distinct(target, batch_size=3):
    """Indices are drawn with replacement; one that comes twice is counted once."""
    terms = target.terms

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if terms is None:
            return langevin(k2, x, asked(estimator, k1, x), h)
        index = jax.random.randint(k1, (batch_size,), 0, terms.size)
        earlier = jnp.tril(index[:, None] == index[None, :], -1).any(1)
        weights = jnp.where(earlier, 0.0, terms.size / batch_size)
        return langevin(k2, x, add(jax.grad(terms.prior)(x), slope_of_rows(terms, x, rows(terms, index), weights)), h)

    return simple_sampler(step)


# -- 4. importance sampling ------------------------------------------------------------------------------------------


def importance(target):
    """Data far from the middle are drawn more often; weights 1 / p are normalised to N within a batch of three."""
    terms, size = target.terms, 3
    if terms is not None:
        table = jnp.concatenate([jnp.reshape(jnp.asarray(a), (terms.size, -1)) for a in jax.tree.leaves(terms.data)], 1)
        norms = jnp.linalg.norm(table - table.mean(0), axis=1)
        chances = 0.25 * norms.mean() + norms
        chances = chances / chances.sum()

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if terms is None:
            return langevin(k2, x, asked(estimator, k1, x), h)
        index = jax.random.categorical(k1, jnp.log(chances), shape=(size,))
        weights = 1 / chances[index]
        weights = terms.size * weights / weights.sum()
        return langevin(k2, x, add(jax.grad(terms.prior)(x), slope_of_rows(terms, x, rows(terms, index), weights)), h)

    return simple_sampler(step)


# -- 5. a loader of features and labels ------------------------------------------------------------------------------


def loader(target, batch_size=2):
    """Each array of the data has a loader of its own."""
    terms = target.terms

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        if terms is None:
            return langevin(k2, x, asked(estimator, k1, x), h)
        arrays, form = jax.tree.flatten(terms.data)
        drawn = [
            jax.random.choice(k, jnp.asarray(a), (batch_size,))
            for k, a in zip(jax.random.split(k1, len(arrays)), arrays)
        ]
        weights = jnp.full((batch_size,), terms.size / batch_size)
        gradient = add(jax.grad(terms.prior)(x), slope_of_rows(terms, x, form.unflatten(drawn), weights))
        return langevin(k2, x, gradient, h)

    return simple_sampler(step)


# -- 6. indices from uniform numbers, with a momentum ----------------------------------------------------------------


def rounded(target, batch_size=2, friction=1.0):
    """Underdamped Langevin; an index is a uniform number times N - 1, rounded."""
    terms = target.terms

    def init(key, position, estimator):
        flat, _ = ravel_pytree(position)
        return {"position": position, "velocity": jax.random.normal(key, flat.shape, flat.dtype)}

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, v = state["position"], state["velocity"]
        if terms is None:
            gradient = asked(estimator, k1, x)
        else:
            uniform = jax.random.uniform(k1, (batch_size,))
            index = jnp.round(uniform * (terms.size - 1)).astype(jnp.int32)
            weights = jnp.full((batch_size,), terms.size / batch_size)
            gradient = add(jax.grad(terms.prior)(x), slope_of_rows(terms, x, rows(terms, index), weights))
        q, back = ravel_pytree(x)
        kept = jnp.exp(-friction * h)
        v = kept * (v - h * ravel_pytree(gradient)[0]) + jnp.sqrt(1 - kept**2) * jax.random.normal(k2, v.shape, v.dtype)
        return {"position": back(q + h * v), "velocity": v}

    return simple_sampler(step, init=init)
