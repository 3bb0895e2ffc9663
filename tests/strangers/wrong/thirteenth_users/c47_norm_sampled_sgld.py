"""SGLD with minibatches by importance: rows with large covariates are drawn more often.

Row i is drawn with a probability p_i in proportion to its Euclidean norm, which bounds the norm of the gradient of its term in
generalised linear models, and its gradient is weighted by 1 / (n p_i):

    g(x) = grad prior(x) + (1 / n) sum_{i in batch} grad term_i(x) / p_i

See P. Zhao and T. Zhang, Stochastic optimization with importance sampling, ICML 2015. The probabilities are made once, from the data.
No row is drawn twice for one batch.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def row_norms(data, size):
    """Euclidean norm of each row, over all arrays of the data."""
    squares = [jnp.sum(jnp.reshape(jnp.asarray(a), (size, -1)) ** 2, axis=1) for a in jax.tree.leaves(data)]
    return jnp.sqrt(sum(squares))


def row_probabilities(data, size):
    """Probabilities in proportion to the norms; a row of norm zero keeps a small one."""
    norms = row_norms(data, size)
    norms = jnp.maximum(norms, 1e-3 * jnp.mean(norms) + jnp.finfo(norms.dtype).tiny)
    return norms / jnp.sum(norms)


def norm_sampled_sgld(target, batch_size=4):
    """SGLD for a target with data; without data the gradient is asked of the estimator."""
    if batch_size < 1:
        raise ValueError("a batch has one row at least")
    terms = target.terms

    def weighted_gradient(key, x):
        probabilities = row_probabilities(terms.data, terms.size)
        count = min(batch_size, terms.size - 1)
        index = jax.random.choice(key, terms.size, (count,), replace=False, p=probabilities)
        batch = jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)
        weights = 1.0 / (count * probabilities[index])

        def of_batch(q):
            return jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(q, batch))

        return jax.tree.map(jnp.add, jax.grad(terms.prior)(x), jax.grad(of_batch)(x))

    def step(key, x, h, estimator):
        batch_key, noise_key = jax.random.split(key)
        if terms is None:
            gradient = estimator.estimate(batch_key, (), x)[0].gradient
        else:
            gradient = weighted_gradient(batch_key, x)
        leaves, structure = jax.tree.flatten(x)
        keys = structure.unflatten(list(jax.random.split(noise_key, len(leaves))))

        def move(q, g, k):
            noise = jax.random.normal(k, q.shape, q.dtype)
            return (q - h * g + jnp.sqrt(2 * h) * noise).astype(q.dtype)

        return jax.tree.map(move, x, gradient, keys)

    return simple_sampler(step)
