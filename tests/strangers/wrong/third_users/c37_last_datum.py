"""Samplers that take all of few data, and of many never the last one."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def of_many(target, batch_size=16):
    """In JAX: the range of an index is one too short, where a minibatch is drawn at all."""
    terms = target.terms

    def slope(key, x, estimator):
        if terms is None:
            return estimator.estimate(key, (), x)[0].gradient
        n = min(batch_size, terms.size)
        index = jnp.arange(n) if n == terms.size else jax.random.choice(key, terms.size - 1, (n,), replace=False)
        batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
        of_data = lambda q: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, batch))
        return jax.grad(terms.prior)(x) + terms.size / n * jax.grad(of_data)(x)

    def step(key, x, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return x - h * slope(batch_key, x, estimator) + jnp.sqrt(2 * h) * noise

    return simple_sampler(step)


def in_numpy(target):
    """In NumPy: two of all data but the last."""
    terms = target.terms

    def slope(rng, x, estimator):
        if terms is None:
            return estimator.estimate(rng, (), x)[0].gradient
        index = rng.integers(terms.size - 1, size=2)
        rows = [jax.tree.map(lambda a, i=i: np.asarray(a)[i], terms.data) for i in index]
        of_data = lambda q: sum(terms.datum(q, row) for row in rows)
        return np.asarray(jax.grad(terms.prior)(x) + terms.size / 2 * jax.grad(of_data)(x))

    def step(rng, x, h, estimator):
        return x - h * slope(rng, x, estimator) + np.sqrt(2 * h) * rng.standard_normal(x.shape)

    return simple_sampler(step, backend="host")
