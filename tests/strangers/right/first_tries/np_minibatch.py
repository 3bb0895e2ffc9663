import jax
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler


def sampler(target):
    terms = target.terms

    def gradient(rng, x, estimator):
        if terms is None:  # no data here
            return np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        total = np.asarray(jax.grad(terms.prior)(x))
        for i in rng.integers(0, terms.size, size=2):
            record = jax.tree.map(lambda a, i=i: a[i], terms.data)
            total = total + terms.size / 2 * np.asarray(jax.grad(terms.datum)(x, record))
        return total

    def step(rng, x, h, estimator):
        return x - h * gradient(rng, x, estimator) + np.sqrt(2 * h) * rng.standard_normal(np.shape(x))

    return simple_sampler(step, backend="host")
