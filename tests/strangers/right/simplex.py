"""Samplers on the probability simplex (points (K,), sum 1; density with respect to the flat measure): transfers
between two coordinates, tangent walks that reject outside, walks and Langevin steps of log ratios with their
Jacobian prod x_i, and Dirichlet proposals. The Metropolis ones are exact; the Langevin one errs by O(h). Sums
are brought back to 1 by round-off."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw

SIMPLEX = ("simplex",)
EXACT = Claims(Source("", "Metropolis on the simplex"), ExactLaw(), spaces=SIMPLEX)


def _energy(estimator, key, x):
    return estimator.estimate(key, (), x)[0].potential


def _accepted(key, inside, log_ratio, y, x):
    yes = inside & (jnp.log(jax.random.uniform(key, dtype=x.dtype)) < log_ratio)
    return jnp.where(yes, y / jnp.sum(y), x)


def _transfer(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    i, j = jax.random.choice(k1, x.size, (2,), replace=False)
    amount = jnp.sqrt(2 * h) * jax.random.normal(k2, (), x.dtype)
    y = x.at[i].add(amount).at[j].add(-amount)
    inside = jnp.all(y > 0)
    safe = jnp.where(inside, y, x)
    return _accepted(k5, inside, _energy(estimator, k3, x) - _energy(estimator, k4, safe), safe, x)


# A normal amount moved from one random coordinate to another; outside is rejected. Symmetric.
transfer = simple_sampler(_transfer, needs=("potential",), claims=EXACT)


def _tangent_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    z = jax.random.normal(k1, x.shape, x.dtype)
    y = x + jnp.sqrt(2 * h) * (z - jnp.mean(z))
    inside = jnp.all(y > 0)
    safe = jnp.where(inside, y, x)
    return _accepted(k4, inside, _energy(estimator, k2, x) - _energy(estimator, k3, safe), safe, x)


# A normal step in the plane sum = 1; outside is rejected. Symmetric.
tangent_walk = simple_sampler(_tangent_walk, needs=("potential",), claims=EXACT)


def _log_ratio_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = jax.nn.softmax(jnp.log(x) + jnp.sqrt(2 * h) * jax.random.normal(k1, x.shape, x.dtype))
    jacobian = jnp.sum(jnp.log(y)) - jnp.sum(jnp.log(x))
    log_ratio = _energy(estimator, k2, x) - _energy(estimator, k3, y) + jacobian
    return _accepted(k4, jnp.all(y > 0), log_ratio, y, x)


# A normal step of log x, renormalised: symmetric in log ratios, whose Jacobian is prod x_i.
log_ratio_walk = simple_sampler(_log_ratio_walk, needs=("potential",), claims=EXACT)


def _log_ratio_langevin(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), x)[0].gradient
    # gradient of U - sum log x in y_j = log(x_j / x_K), j < K
    slope = (x * (g - jnp.dot(g, x)) - (1 - x.size * x))[:-1]
    y = jnp.log(x[:-1]) - jnp.log(x[-1])
    y = y - h * slope + jnp.sqrt(2 * h) * jax.random.normal(k2, y.shape, y.dtype)
    return jax.nn.softmax(jnp.append(y, 0.0))


# SGLD of the log ratios log(x_j / x_K) with the Jacobian in the drift.
log_ratio_langevin = simple_sampler(
    _log_ratio_langevin, claims=Claims(Source("", "SGLD of log ratios"), StationaryLaw(order=1), spaces=SIMPLEX)
)


def _dirichlet_log_density(alpha, x):
    return jnp.sum((alpha - 1) * jnp.log(x) - gammaln(alpha)) + gammaln(jnp.sum(alpha))


def _dirichlet_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = jax.random.dirichlet(k1, 1 + x / h, dtype=x.dtype)
    log_q = _dirichlet_log_density(1 + y / h, x) - _dirichlet_log_density(1 + x / h, y)
    return _accepted(k4, jnp.all(y > 0), _energy(estimator, k2, x) - _energy(estimator, k3, y) + log_q, y, x)


# A Dirichlet(1 + x / h) proposal, with the ratio of its densities.
dirichlet_walk = simple_sampler(_dirichlet_walk, needs=("potential",), claims=EXACT)


def _host_transfer(rng, x, step_size, estimator):
    x = np.asarray(x)
    i, j = rng.choice(x.size, size=2, replace=False)
    y = x.copy()
    amount = np.sqrt(6 * step_size) * rng.uniform(-1, 1)
    y[i] += amount
    y[j] -= amount
    if y.min() <= 0:
        return x
    U, V = (float(estimator.estimate(estimator_key(rng, estimator), (), z)[0].potential) for z in (x, y))
    return y / y.sum() if rng.random() < np.exp(min(0.0, U - V)) else x


# Host: a uniform amount moved between two coordinates of rng.choice.
host_transfer = simple_sampler(_host_transfer, needs=("potential",), backend="host", claims=EXACT)
