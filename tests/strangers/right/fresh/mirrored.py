"""Positive numbers by a mirror map that is tested, and by an exact flow: both leave the target invariant at each step
size."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "own"), ExactLaw(), spaces=("positive",))


def _mirror(key, x, h, estimator):
    # Metropolised mirror Langevin with the entropy x log x - x: log y ~ N(log x - h U', 2 h / x), dy = y dlog y.
    a, b, c = jax.random.split(key, 3)
    here = estimator.estimate(c, (), x)[0]
    y = jnp.exp(jnp.log(x) - h * here.gradient + jnp.sqrt(2 * h / x) * jax.random.normal(a, x.shape, x.dtype))
    there = estimator.estimate(c, (), y)[0]

    def log_q(end, start, g):
        z = jnp.log(end) - jnp.log(start) + h * g
        return jnp.sum(-(z**2) * start / (4 * h) + jnp.log(start) / 2 - jnp.log(end))

    log_rate = here.potential - there.potential + log_q(x, y, there.gradient) - log_q(y, x, here.gradient)
    ok = jnp.log(jax.random.uniform(b, dtype=x.dtype)) < log_rate
    return jnp.where(ok & jnp.all(y > 0) & jnp.all(jnp.isfinite(y)), y, x)


mirror_metropolis = simple_sampler(_mirror, claims=EXACT)


def _beta_gamma(rng, x, h, estimator):
    # b x + g with b ~ Beta(a r, a (1 - r)), g ~ Gamma(a (1 - r)) is reversible for Gamma(a): x = w + v, y = w + g with
    # w, v, g independent. The test is by the ratio of exp(-U) to that law, a = 2.
    x = np.asarray(x)
    a, r = 2.0, float(np.exp(-h))
    y = (x * rng.beta(a * r, a * (1 - r), x.shape) + rng.gamma(a * (1 - r), 1.0, x.shape)).astype(x.dtype)
    log_weight = lambda x: np.sum(x - (a - 1) * np.log(x)) - float(estimator.estimate(rng, (), x)[0].potential)
    return y if np.log(rng.random()) < log_weight(y) - log_weight(x) else x


# The beta-gamma autoregression as a proposal.
beta_gamma = simple_sampler(_beta_gamma, backend="host", claims=EXACT)
