"""SGLD with importance sampling of the data: points of a large norm are drawn more often."""

import jax
import numpy as np

from sgmcmc_verification.samplers import simple_sampler

BATCH = 2


def make(target):
    terms = target.terms
    if terms is None:
        return simple_sampler(whole, backend="host")
    first = np.asarray(jax.tree.leaves(terms.data)[0], float).reshape(terms.size, -1)
    chance = 1 + np.linalg.norm(first, axis=1)
    chance /= chance.sum()
    prior, datum = jax.grad(terms.prior), jax.grad(terms.datum)

    def step(rng, x, h, estimator):
        batch = rng.choice(terms.size, BATCH, p=chance)
        g = np.asarray(prior(x), float)
        for i in batch:
            g = g + terms.size / BATCH * np.asarray(datum(x, jax.tree.map(lambda leaf, i=i: leaf[i], terms.data)))
        return x - h * g + np.sqrt(2 * h) * rng.standard_normal(np.shape(x))

    return simple_sampler(step, backend="host")


def whole(rng, x, h, estimator):
    g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
    return x - h * g + np.sqrt(2 * h) * rng.standard_normal(np.shape(x))
