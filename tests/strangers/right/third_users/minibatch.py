"""Four strangers that draw their own data: functions of a target. Where there are no data the estimator is asked.

In all, given the state the gradient has the mean grad U and a bounded variance, so it adds O(h^2) to the noise of a step: law to O(h).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def _rows(terms, index):
    return jax.tree.map(lambda a: jnp.asarray(a)[index], terms.data)


def _sum(terms, q, rows, weights=1.0):
    return jnp.sum(weights * jax.vmap(terms.datum, (None, 0))(q, rows))


def _langevin(key, x, g, h):
    return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


# n of N without replacement: each datum is in with chance n/N, weight N/n.
def without_replacement(target, batch=2):
    terms = target.terms

    def step(key, x, h, estimator):
        k_data, k_noise = jax.random.split(key)
        if terms is None:
            g = estimator.estimate(k_data, (), x)[0].gradient
        else:
            n = min(batch, terms.size)
            rows = _rows(terms, jax.random.permutation(k_data, terms.size)[:n])
            g = jax.grad(lambda q: terms.prior(q) + terms.size / n * _sum(terms, q, rows))(x)
        return _langevin(k_noise, x, g, h)

    return simple_sampler(step)


# Control variates about c, the start of the run: grad U(c) + prior'(x) - prior'(c) + N/n sum (L_i'(x) - L_i'(c)), unbiased for any c.
class Anchored(NamedTuple):
    position: jax.Array
    centre: jax.Array
    slope: jax.Array


def control_variates(target):
    terms = target.terms
    size = 0 if terms is None else terms.size

    def init(key, position, estimator):
        if terms is None:
            return Anchored(position, position, jnp.zeros_like(position))
        whole = jax.tree.map(jnp.asarray, terms.data)
        return Anchored(position, position, jax.grad(lambda q: _sum(terms, q, whole))(position))

    def step(key, state, h, estimator):
        k_data, k_noise = jax.random.split(key)
        x, c, slope = state
        if terms is None:
            g = estimator.estimate(k_data, (), x)[0].gradient
        else:
            rows = _rows(terms, jax.random.randint(k_data, (2,), 0, size))
            some = jax.grad(lambda q: _sum(terms, q, rows))
            g = jax.grad(terms.prior)(x) + slope + size / 2 * (some(x) - some(c))
        return Anchored(_langevin(k_noise, x, g, h), c, slope)

    return simple_sampler(step, init=init)


# Loopless SVRG: the snapshot c is moved to x by a coin (before the gradient is taken), with the full gradient there; unbiased for any c.
def loopless_svrg(target):
    terms = target.terms

    def full(q):
        whole = jax.tree.map(jnp.asarray, terms.data)
        return jax.grad(lambda r: _sum(terms, r, whole))(q)

    def init(key, position, estimator):
        if terms is None:
            return {"position": position}
        return {"position": position, "snapshot": position, "full": full(position)}

    def step(key, state, h, estimator):
        k_coin, k_data, k_noise = jax.random.split(key, 3)
        x = state["position"]
        if terms is None:
            return {"position": _langevin(k_noise, x, estimator.estimate(k_data, (), x)[0].gradient, h)}
        renew = jax.random.bernoulli(k_coin, 0.25)
        c, at_c = jax.lax.cond(renew, lambda: (x, full(x)), lambda: (state["snapshot"], state["full"]))
        rows = _rows(terms, jax.random.randint(k_data, (3,), 0, terms.size))
        some = jax.grad(lambda q: _sum(terms, q, rows))
        g = jax.grad(terms.prior)(x) + at_c + terms.size / 3 * (some(x) - some(c))
        return {"position": _langevin(k_noise, x, g, h), "snapshot": c, "full": at_c}

    return simple_sampler(step, init=init)


# Each datum by its own coin of chance 1/2, weight 2, in SGHMC (Euler for dp = -grad U - c p + sqrt(2c) dW, x += h p'): law to O(h).
class Moving(NamedTuple):
    position: jax.Array
    momentum: jax.Array


def coin_batches_sghmc(target, friction=1.5):
    terms = target.terms

    def init(key, position, estimator):
        return Moving(position, jax.random.normal(key, position.shape, position.dtype))

    def step(key, state, h, estimator):
        k_data, k_noise = jax.random.split(key)
        x, p = state
        if terms is None:
            g = estimator.estimate(k_data, (), x)[0].gradient
        else:
            chosen = jax.random.bernoulli(k_data, 0.5, (terms.size,))
            rows = jax.tree.map(jnp.asarray, terms.data)
            g = jax.grad(lambda q: terms.prior(q) + _sum(terms, q, rows, jnp.where(chosen, 2.0, 0.0)))(x)
        xi = jax.random.normal(k_noise, x.shape, x.dtype)
        p = p - h * g - friction * h * p + jnp.sqrt(2 * friction * h) * xi
        return Moving(x + h * p, p)

    return simple_sampler(step, init=init)


# 5 ------------------------------------------------------------------------------------------------- the same in NumPy


def in_numpy(target):
    """Two data with replacement; gradients by JAX, one datum at a time."""
    terms = target.terms

    def slope(rng, x, estimator):
        if terms is None:
            return estimator.estimate(rng, (), x)[0].gradient
        index = rng.integers(terms.size, size=2)
        rows = [jax.tree.map(lambda a, i=i: np.asarray(a)[i], terms.data) for i in index]
        of_data = lambda q: sum(terms.datum(q, row) for row in rows)
        return np.asarray(jax.grad(terms.prior)(x) + terms.size / 2 * jax.grad(of_data)(x))

    def step(rng, x, h, estimator):
        return x - h * slope(rng, x, estimator) + np.sqrt(2 * h) * rng.standard_normal(x.shape)

    return simple_sampler(step, backend="host")
