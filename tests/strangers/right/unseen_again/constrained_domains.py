"""Rates and proportions: samplers on positive numbers and on the simplex."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler

FRICTION = 1.0


# -- positive numbers: BAOAB for y = log x, written for x. The density of y is x pi(x): force 1 - x U'(x)


def init_log_momentum(key, rate, estimator):
    return {"rate": rate, "p": jax.random.normal(key, rate.shape, rate.dtype)}


def log_baoab(key, state, step_size, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    rate, p = state["rate"], state["p"]
    h = jnp.asarray(step_size, rate.dtype)
    c = jnp.exp(-FRICTION * h)

    def force(k, x):
        return 1 - x * estimator.estimate(k, (), x)[0].gradient

    p = p + h / 2 * force(k1, rate)
    rate = rate * jnp.exp(h / 2 * p)
    p = c * p + jnp.sqrt(1 - c * c) * jax.random.normal(k2, p.shape, p.dtype)
    rate = rate * jnp.exp(h / 2 * p)
    p = p + h / 2 * force(k3, rate)
    return {"rate": rate, "p": p}


positive_rates = simple_sampler(
    log_baoab,
    init=init_log_momentum,
    position=lambda state: state["rate"],
    claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",)),
)


# -- simplex: move probability between two cells, a random walk of their log odds, Metropolis


def transfer(rng, pi, step_size, estimator):
    pi = np.asarray(pi)
    i, j = rng.choice(pi.size, size=2, replace=False)
    total = pi[i] + pi[j]
    odds = np.log(pi[i]) - np.log(pi[j])
    odds_new = odds + np.sqrt(2 * step_size) * rng.standard_normal()

    def log_jacobian(t):  # d u / d t = u (1 - u), u = 1 / (1 + exp(-t))
        return -np.logaddexp(0, t) - np.logaddexp(0, -t)

    new = pi.copy()
    new[i] = total * np.exp(-np.logaddexp(0, -odds_new))
    new[j] = total * np.exp(-np.logaddexp(0, odds_new))
    before = estimator.estimate(rng, (), pi)[0].potential
    after = estimator.estimate(rng, (), new)[0].potential
    log_alpha = before - after + log_jacobian(odds_new) - log_jacobian(odds)
    return new if np.log(1.0 - rng.uniform()) < log_alpha else pi


simplex_transfer = simple_sampler(
    transfer, claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",)), backend="host"
)
