"""SGLD in NumPy, with minibatches of its own."""

import jax
import numpy as np

from sgmcmc_verification.samplers import simple_sampler

BATCH, CHUNK, EVERY = 32, 256, 20
SEEDS = 10_000


def langevin(rng, x, h, gradient):
    return x - h * gradient + np.sqrt(2 * h) * rng.standard_normal(x.shape)


def rows_of(data, index):
    return jax.tree.map(lambda a: np.asarray(a)[index], data)


def slopes_of(terms):
    """The gradient of the prior, and the gradients of given rows, one for each."""
    return jax.jit(jax.grad(terms.prior)), jax.jit(jax.vmap(jax.grad(terms.datum), (None, 0)))


def exact(estimator, rng, x):
    return np.asarray(estimator.estimate(rng, (), x)[0].gradient)


def epochs(target):
    """Minibatches without replacement: the data are shuffled, and shuffled again after each epoch."""
    terms = target.terms

    if terms is None:
        return simple_sampler(lambda rng, x, h, estimator: langevin(rng, x, h, exact(estimator, rng, x)), backend="host")
    prior, each = slopes_of(terms)
    batch = min(BATCH, terms.size)

    def init(rng, position, estimator):
        return {"position": np.array(position), "order": rng.permutation(terms.size), "start": 0}

    def step(rng, state, h, estimator):
        x, order, start = state["position"], state["order"], state["start"]
        if start >= terms.size:
            order, start = rng.permutation(terms.size), 0
        rows = rows_of(terms.data, order[start : start + batch])
        gradient = np.asarray(prior(x)) + terms.size / batch * np.asarray(each(x, rows)).sum(0)
        return {"position": langevin(rng, x, h, gradient), "order": order, "start": start + batch}

    return simple_sampler(step, init=init, backend="host")


def variance_reduced(target):
    """SVRG-LD: an anchor with its full gradient, computed in chunks of data, replaced every twenty steps or so."""
    terms = target.terms

    if terms is None:
        return simple_sampler(lambda rng, x, h, estimator: langevin(rng, x, h, exact(estimator, rng, x)), backend="host")
    prior, each = slopes_of(terms)

    def full(x):
        if terms.size <= CHUNK:
            return np.asarray(each(x, terms.data)).sum(0)
        total = 0.0
        for number in range(terms.size // CHUNK):
            total = total + np.asarray(each(x, rows_of(terms.data, np.arange(number * CHUNK, (number + 1) * CHUNK)))).sum(0)
        return total

    def init(rng, position, estimator):
        x = np.array(position)
        return {"position": x, "anchor": x.copy(), "full": full(x)}

    def step(rng, state, h, estimator):
        x, anchor, at_anchor = state["position"], state["anchor"], state["full"]
        if rng.random() < 1 / EVERY:
            anchor, at_anchor = x.copy(), full(x)
        rows = rows_of(terms.data, rng.integers(0, terms.size, 8))
        change = np.asarray(each(x, rows)).sum(0) - np.asarray(each(anchor, rows)).sum(0)
        gradient = np.asarray(prior(x)) + at_anchor + terms.size / 8 * change
        return {"position": langevin(rng, x, h, gradient), "anchor": anchor, "full": at_anchor}

    return simple_sampler(step, init=init, backend="host")


def by_importance(target):
    """Rows are drawn in proportion to the norm of their gradient at the start, and weighted by the inverse."""
    terms = target.terms

    if terms is None:
        return simple_sampler(lambda rng, x, h, estimator: langevin(rng, x, h, exact(estimator, rng, x)), backend="host")
    prior, each = slopes_of(terms)
    batch = min(BATCH, terms.size)

    def init(rng, position, estimator):
        x = np.array(position)
        norms = np.sqrt((np.asarray(each(x, terms.data)).reshape(terms.size, -1) ** 2).sum(1))
        norms = norms + 0.1 * norms.mean() + 1e-12
        return {"position": x, "probability": norms / norms.sum()}

    def step(rng, state, h, estimator):
        x, probability = state["position"], state["probability"]
        if batch == terms.size:
            index, weight = np.arange(terms.size), np.ones(terms.size)
        else:
            index = rng.choice(terms.size, batch, replace=False, p=probability)
            weight = 1 / (batch * probability[index])
        slopes = np.asarray(each(x, rows_of(terms.data, index)))
        gradient = np.asarray(prior(x)) + np.tensordot(weight, slopes, 1)
        return {"position": langevin(rng, x, h, gradient), "probability": probability}

    return simple_sampler(step, init=init, backend="host")


def seeded_step(rng, x, h, estimator):
    """SGLD; the noise is drawn by a generator of its own, so that it can be replayed from its seed."""
    noise_rng = np.random.default_rng(int(rng.integers(SEEDS)))
    return x - h * exact(estimator, rng, x) + np.sqrt(2 * h) * noise_rng.standard_normal(x.shape)


seeded = simple_sampler(seeded_step, backend="host")
