"""Class 7: factories of a Target that form their own (minibatch) gradient from `target.terms`, and get it wrong. On a
target without data they use the estimator and are right."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler


def _langevin(target, gradient, **more):
    """SGLD with `gradient(key, x)`, or with the estimator's gradient where there are no data."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        g = gradient(k1, x) if target.terms else estimator.estimate(k1, (), x)[0].gradient
        return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)

    return simple_sampler(step, **more)


def _batch(terms, indices):
    return jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)


def _sum_grad(terms, x, batch):
    return jax.grad(lambda x: jnp.sum(jax.vmap(terms.datum, (None, 0))(x, batch)))(x)


def prior_times_ratio(target):
    """The prior is multiplied by N / n along with the likelihood."""

    def gradient(key, x):
        terms, n = target.terms, 2
        batch = _batch(terms, jax.random.randint(key, (n,), 0, terms.size))
        return terms.size / n * (jax.grad(terms.prior)(x) + _sum_grad(terms, x, batch))

    return _langevin(target, gradient)


def weight_inverted(target):
    """The minibatch has the weight n / N instead of N / n."""

    def gradient(key, x):
        terms, n = target.terms, 2
        batch = _batch(terms, jax.random.randint(key, (n,), 0, terms.size))
        return jax.grad(terms.prior)(x) + n / terms.size * _sum_grad(terms, x, batch)

    return _langevin(target, gradient)


def batch_at_construction(target):
    """One minibatch, drawn when the sampler is made, for all steps."""
    n = 3
    indices = np.random.RandomState(0).choice(target.terms.size, n, replace=False) if target.terms else None

    def gradient(key, x):
        terms = target.terms
        return jax.grad(terms.prior)(x) + terms.size / n * _sum_grad(terms, x, _batch(terms, indices))

    return _langevin(target, gradient)


class WithBatch(NamedTuple):
    position: Any
    indices: Any


def batch_in_init(target):
    """The minibatch is drawn in init and kept in the state for ever."""
    terms, n = target.terms, 3

    def init(key, x, estimator):
        return WithBatch(x, jax.random.choice(key, terms.size if terms else 1, (n if terms else 1,), replace=False))

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x = state.position
        if terms:
            g = jax.grad(terms.prior)(x) + terms.size / n * _sum_grad(terms, x, _batch(terms, state.indices))
        else:
            g = estimator.estimate(k1, (), x)[0].gradient
        x = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
        return WithBatch(x, state.indices)

    return simple_sampler(step, init=init, position=lambda s: s.position, unpack=lambda s: s.position)


def batch_not_rescaled(target):
    """Sum over the minibatch without N / n."""

    def gradient(key, x):
        terms = target.terms
        batch = _batch(terms, jax.random.randint(key, (2,), 0, terms.size))
        return jax.grad(terms.prior)(x) + _sum_grad(terms, x, batch)

    return _langevin(target, gradient)


def mean_likelihood(target):
    """The mean of the log likelihood instead of the sum (as every loss in deep learning); the prior in full."""

    def gradient(key, x):
        terms = target.terms
        return jax.grad(terms.prior)(x) + _sum_grad(terms, x, terms.data) / terms.size

    return _langevin(target, gradient)


def mean_loss(target):
    """Gradient of the mean loss (U / N) with the noise of the sum: temperature N."""

    def gradient(key, x):
        terms = target.terms
        return (jax.grad(terms.prior)(x) + _sum_grad(terms, x, terms.data)) / terms.size

    return _langevin(target, gradient)


def importance_unweighted(target):
    """Data are drawn with probabilities proportional to their norm, and not weighted by the inverse of these."""

    def gradient(key, x):
        terms, n = target.terms, 2
        rows = np.stack([np.asarray(leaf).reshape(terms.size, -1)[:, -1] for leaf in jax.tree.leaves(terms.data)], 1)
        p = np.linalg.norm(rows, axis=1) + 0.1
        indices = jax.random.choice(key, terms.size, (n,), p=jnp.asarray(p / p.sum()))
        return jax.grad(terms.prior)(x) + terms.size / n * _sum_grad(terms, x, _batch(terms, indices))

    return _langevin(target, gradient)


def control_variate_sign(target):
    """Control variates with the wrong sign: full gradient at the centre minus the correction. The mean is
    2 grad U(c) - grad U(x): the chain is pushed away."""
    centre = target.example

    def gradient(key, x):
        terms, n = target.terms, 2
        batch = _batch(terms, jax.random.randint(key, (n,), 0, terms.size))
        full = jax.grad(terms.prior)(centre) + _sum_grad(terms, centre, terms.data)
        prior = jax.grad(terms.prior)(x) - jax.grad(terms.prior)(centre)
        correction = terms.size / n * (_sum_grad(terms, x, batch) - _sum_grad(terms, centre, batch))
        return full - prior - correction

    return _langevin(target, gradient)


def control_variate_prior(target):
    """Control variates whose prior is taken at the centre and never corrected."""
    centre = target.example

    def gradient(key, x):
        terms, n = target.terms, 2
        batch = _batch(terms, jax.random.randint(key, (n,), 0, terms.size))
        full = jax.grad(terms.prior)(centre) + _sum_grad(terms, centre, terms.data)
        return full + terms.size / n * (_sum_grad(terms, x, batch) - _sum_grad(terms, centre, batch))

    return _langevin(target, gradient)


class Snapshot(NamedTuple):
    position: Any
    full: Any


def svrg_snapshot_of_gradient_only(target):
    """SVRG whose full gradient is from the first position and is never renewed, while the minibatch is corrected by the
    gradient at the present position: the correction is zero, the drift is constant."""
    terms, n = target.terms, 2

    def init(key, x, estimator):
        full = jax.grad(terms.prior)(x) + _sum_grad(terms, x, terms.data) if terms else jnp.zeros_like(x)
        return Snapshot(x, full)

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x = state.position
        if terms:
            batch = _batch(terms, jax.random.randint(k1, (n,), 0, terms.size))
            anchor = x  # should be the position of the snapshot
            g = state.full + terms.size / n * (_sum_grad(terms, x, batch) - _sum_grad(terms, anchor, batch))
        else:
            g = estimator.estimate(k1, (), x)[0].gradient
        x = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
        return Snapshot(x, state.full)

    return simple_sampler(step, init=init, position=lambda s: s.position, unpack=lambda s: s.position)


class Saga(NamedTuple):
    position: Any
    table: Any
    total: Any


def saga_stale_total(target):
    """SAGA that renews its table of gradients and never the sum of the table: the estimate is biased for ever."""
    terms = target.terms

    def each(x):
        return jax.vmap(jax.grad(terms.datum), (None, 0))(x, terms.data)

    def init(key, x, estimator):
        table = each(x) if terms else jnp.zeros((1, *x.shape), x.dtype)
        return Saga(x, table, table.sum(0))

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, table, total = state
        if terms:
            i = jax.random.randint(k1, (), 0, terms.size)
            new = jax.grad(terms.datum)(x, _batch(terms, i))
            g = jax.grad(terms.prior)(x) + terms.size * (new - table[i]) + total
            table = table.at[i].set(new)
        else:
            g = estimator.estimate(k1, (), x)[0].gradient
        x = x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
        return Saga(x, table, total)

    return simple_sampler(step, init=init, position=lambda s: s.position)


def no_prior(target):
    """Maximum likelihood: the prior is forgotten."""

    def gradient(key, x):
        terms = target.terms
        return _sum_grad(terms, x, terms.data)

    return _langevin(target, gradient)


def prior_per_datum(target):
    """The prior is inside the vmapped loss of one datum: it counts N times."""

    def gradient(key, x):
        terms, n = target.terms, 2
        batch = _batch(terms, jax.random.randint(key, (n,), 0, terms.size))
        loss = lambda x, datum: terms.datum(x, datum) + terms.prior(x)
        mean = jax.grad(lambda x: jnp.mean(jax.vmap(loss, (None, 0))(x, batch)))(x)
        return terms.size * mean

    return _langevin(target, gradient)


def window_batches(target):
    """Minibatches are windows of consecutive data that do not wrap round: the first and the last datum are drawn half
    as often as the others."""

    def gradient(key, x):
        terms, n = target.terms, 2
        start = jax.random.randint(key, (), 0, terms.size - n + 1)
        batch = _batch(terms, start + jnp.arange(n))
        return jax.grad(terms.prior)(x) + terms.size / n * _sum_grad(terms, x, batch)

    return _langevin(target, gradient)


def last_datum_never(target):
    """randint(0, N - 1): its upper end is exclusive already, so that the last datum is never drawn."""

    def gradient(key, x):
        terms, n = target.terms, 2
        batch = _batch(terms, jax.random.randint(key, (n,), 0, terms.size - 1))
        return jax.grad(terms.prior)(x) + terms.size / n * _sum_grad(terms, x, batch)

    return _langevin(target, gradient)


def integer_ratio(target):
    """N // n in place of N / n: 2 instead of 2.5 for five data in batches of two."""

    def gradient(key, x):
        terms, n = target.terms, 2
        batch = _batch(terms, jax.random.randint(key, (n,), 0, terms.size))
        ratio = terms.size // n if terms.size % n else terms.size // (n + 1)
        return jax.grad(terms.prior)(x) + ratio * _sum_grad(terms, x, batch)

    return _langevin(target, gradient)


def first_batch_only(target):
    """A data loader of which every step takes the first batch: `next(iter(loader))`."""

    def gradient(key, x):
        terms, n = target.terms, 3
        return jax.grad(terms.prior)(x) + terms.size / n * _sum_grad(terms, x, _batch(terms, jnp.arange(n)))

    return _langevin(target, gradient)
