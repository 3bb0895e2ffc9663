"""SGLD with batches of my own, plain and with control variates."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def langevin(key, x, h, gradient):
    return x - h * gradient + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def total(terms, x, data):
    return jnp.sum(jax.vmap(terms.datum, (None, 0))(x, data))


def draw(terms, key, n):
    i = jax.random.randint(key, (n,), 0, terms.size)
    return jax.tree.map(lambda a: jnp.asarray(a)[i], terms.data)


def own_batches(target, batch_size=2):
    terms = target.terms

    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        if terms is None:
            return langevin(b, x, h, estimator.estimate(a, (), x)[0].gradient)
        batch = draw(terms, a, batch_size)
        U = lambda x: terms.prior(x) + terms.size / batch_size * total(terms, x, batch)
        return langevin(b, x, h, jax.grad(U)(x))

    return simple_sampler(step)


def control_variates(target, batch_size=2):
    terms = target.terms

    def step(key, x, h, estimator):
        a, b = jax.random.split(key)
        if terms is None:
            return langevin(b, x, h, estimator.estimate(a, (), x)[0].gradient)
        centre = jnp.asarray(target.example, x.dtype)
        batch = draw(terms, a, batch_size)
        slope = jax.grad(lambda x, data: total(terms, x, data))
        g = jax.grad(terms.prior)(x) + slope(centre, terms.data)
        g = g + terms.size / batch_size * (slope(x, batch) - slope(centre, batch))
        return langevin(b, x, h, g)

    return simple_sampler(step)
