"""Langevin steps that weigh prior and likelihood wrongly, as functions of a target.

On a target without data they use the gradient that they are given, and are right: only a sum over data shows the bug.
All data enter each step; the laws are those of the weighted potential.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def _prior(terms, x):
    return jax.grad(terms.prior)(x)


def _likelihood(terms, x):
    return jax.grad(lambda y: jnp.sum(jax.vmap(terms.datum, (None, 0))(y, terms.data)))(x)


def _langevin(target, gradient):
    """SGLD with `gradient(terms, x)` on a target with data, else with the gradient of the estimator."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        g = gradient(target.terms, x) if target.terms else estimator.estimate(k1, (), x)[0].gradient
        return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)

    return simple_sampler(step)


def _posterior(terms, x):
    return _prior(terms, x) + _likelihood(terms, x)


def sbi_1129_before(target):
    """The model declares the prior, and the potential that is added to it contains the prior already."""
    return _langevin(target, lambda terms, x: 2 * _prior(terms, x) + _likelihood(terms, x))


def sbi_1129_after(target):
    """The potential alone."""
    return _langevin(target, _posterior)


def _last(x):
    """Zeros like x, but for a one in the last coordinate."""
    return jnp.zeros_like(x).reshape(-1).at[-1].set(1).reshape(x.shape)


def gpytorch_2340_before(target):
    """The prior of one parameter is met twice, since the module that holds it is reached by two ways."""
    return _langevin(target, lambda terms, x: (1 + _last(x)) * _prior(terms, x) + _likelihood(terms, x))


def gpytorch_2340_after(target):
    """Each prior once."""
    return _langevin(target, _posterior)


def gpytorch_918_before(target):
    """The log-likelihood is that of an optimiser, divided by the number of data; the prior is not."""
    return _langevin(target, lambda terms, x: _prior(terms, x) + _likelihood(terms, x) / terms.size)


def gpytorch_918_after(target):
    """The log-likelihood as a sum."""
    return _langevin(target, _posterior)


def pints_674_before(target):
    """The sampler is handed the log-likelihood; the prior is nowhere."""
    return _langevin(target, _likelihood)


def pints_674_after(target):
    """The log-posterior."""
    return _langevin(target, _posterior)
