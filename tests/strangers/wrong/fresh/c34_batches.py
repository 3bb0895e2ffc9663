"""Class 34: factories of a Target that draw minibatches of 32, which small data fill at once; robust gradients."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

BATCH = 32


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _langevin(target, gradient):
    """SGLD with `gradient(key, x)`, or with the estimator's gradient where there are no data."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        g = gradient(k1, x) if target.terms else estimator.estimate(k1, (), x)[0].gradient
        return x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)

    return simple_sampler(step)


def _drawn(terms, key):
    """A minibatch with replacement, or all data if they are few; and its size."""
    n = min(BATCH, terms.size)
    indices = jnp.arange(n) if n == terms.size else jax.random.randint(key, (n,), 0, terms.size)
    return jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data), n


def _sum(terms, batch):
    return lambda x: jnp.sum(jax.vmap(terms.datum, (None, 0))(x, batch))


def batch_sum(target):
    """The sum over the minibatch without N / n. Right for up to 32 data."""

    def gradient(key, x):
        batch, _ = _drawn(target.terms, key)
        return jax.grad(target.terms.prior)(x) + jax.grad(_sum(target.terms, batch))(x)

    return _langevin(target, gradient)


def prior_with_batch(target):
    """The prior is multiplied by N / n along with the likelihood. Right for up to 32 data."""

    def gradient(key, x):
        terms = target.terms
        batch, n = _drawn(terms, key)
        return terms.size / n * (jax.grad(terms.prior)(x) + jax.grad(_sum(terms, batch))(x))

    return _langevin(target, gradient)


def whole_ratio(target):
    """N // n for N / n: right for up to 32 data and for multiples of 32."""

    def gradient(key, x):
        terms = target.terms
        batch, n = _drawn(terms, key)
        return jax.grad(terms.prior)(x) + terms.size // n * jax.grad(_sum(terms, batch))(x)

    return _langevin(target, gradient)


def prior_in_every_chunk(target):
    """The full gradient in chunks of 32, each with the prior (weight decay in the loss of a batch)."""

    def gradient(key, x):
        terms = target.terms
        loss = lambda x, batch: terms.prior(x) + _sum(terms, batch)(x)
        total = jnp.zeros_like(x)
        whole = max(1, terms.size // BATCH)
        first = jax.tree.map(lambda a: jnp.asarray(a)[: min(BATCH, terms.size) * whole], terms.data)
        chunks = jax.tree.map(lambda a: a.reshape(whole, -1, *a.shape[1:]), first)
        total = jax.lax.scan(lambda s, batch: (s + jax.grad(loss)(x, batch), None), total, chunks)[0]
        if terms.size > BATCH and terms.size % BATCH:
            total += jax.grad(loss)(x, jax.tree.map(lambda a: jnp.asarray(a)[BATCH * whole :], terms.data))
        return total

    return _langevin(target, gradient)


def noisy_acceptance(target):
    """Random walk Metropolis by the energies of a minibatch of 32. Exact for up to 32 data, and said to be so."""

    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        y = x + jnp.sqrt(2 * h) * _normal(k1, x)
        if target.terms:
            batch, n = _drawn(target.terms, k2)
            u = lambda x: target.terms.prior(x) + target.terms.size / n * _sum(target.terms, batch)(x)
        else:
            u = lambda x: estimator.estimate(k2, (), x)[0].potential
        return jnp.where(jnp.log(jax.random.uniform(k3)) < u(x) - u(y), y, x)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


def private(target):
    """The gradient of each datum is clipped to a norm of 25, as for differential privacy."""

    def gradient(key, x):
        terms = target.terms
        batch, n = _drawn(terms, key)
        each = jax.vmap(jax.grad(terms.datum), (None, 0))(x, batch)
        norms = jnp.sqrt(jnp.sum(each**2, axis=tuple(range(1, each.ndim)), keepdims=True))
        each = each * jnp.minimum(1.0, 25.0 / jnp.maximum(norms, 1e-12))
        return jax.grad(terms.prior)(x) + terms.size / n * jnp.sum(each, axis=0)

    return _langevin(target, gradient)


def _outlier_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    a, b = (estimator.estimate(k, (), x)[0].gradient for k in (k1, k2))
    fine = jnp.sqrt(jnp.sum((a - b) ** 2)) < 25.0
    return x - h * jnp.where(fine, (a + b) / 2, 0.0) + jnp.sqrt(2 * h) * _normal(k3, x)


# Two gradients that are more than 25 apart are taken for outliers, and the step has no drift.
outlier_gradients = simple_sampler(_outlier_step)


def _median_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    three = [estimator.estimate(k, (), x)[0].gradient for k in jax.random.split(k1, 3)]
    return x - h * jnp.median(jnp.stack(three), axis=0) + jnp.sqrt(2 * h) * _normal(k2, x)


# The median of three stochastic gradients ("robust"): of skewed ones it is biased.
median_of_three = simple_sampler(_median_step)


def _shrunk_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    a, b = (estimator.estimate(k, (), x)[0].gradient for k in (k1, k2))
    mean, spread = (a + b) / 2, (a - b) ** 2 / 4
    return x - h * mean * mean**2 / (mean**2 + spread + 1e-12) + jnp.sqrt(2 * h) * _normal(k3, x)


# A gradient is shrunk by its signal to noise ratio, from two estimates: without noise it is exact.
shrunk_gradients = simple_sampler(_shrunk_step)
