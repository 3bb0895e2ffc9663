"""Delayed acceptance: the ratio is a product of factors, each tested with a coin of its own, and a proposal has to pass
all of them. As each factor is inverted by the way back, and the product is the whole ratio, balance holds exactly."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "Christen and Fox (2005)"), ExactLaw())


def _delayed_mala(key, x, h, estimator):
    # Stage one: MALA's ratio for the surrogate |x|^2 / 2. Stage two: what the surrogate lacks.
    a, b, c = jax.random.split(key, 3)
    here = estimator.estimate(c, (), x)[0]
    y = x - h * here.gradient + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
    there = estimator.estimate(c, (), y)[0]
    log_q = lambda end, start, g: -jnp.sum((end - start + h * g) ** 2) / (4 * h)
    surrogate = (jnp.sum(x**2) - jnp.sum(y**2)) / 2
    first = surrogate + log_q(x, y, there.gradient) - log_q(y, x, here.gradient)
    second = here.potential - there.potential - surrogate
    passed = -jax.random.exponential(b, (2,), x.dtype) < jnp.stack([first, second])
    return jnp.where(jnp.all(passed), y, x)


delayed_mala = simple_sampler(_delayed_mala, claims=EXACT)


def prior_first(target):
    """The ratio of the priors first, then that of the likelihoods; without data the whole potential at once."""
    terms = target.terms

    def step(key, x, h, estimator):
        a, b, c = jax.random.split(key, 3)
        y = x + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
        change = estimator.estimate(c, (), x)[0].potential - estimator.estimate(c, (), y)[0].potential
        prior = jnp.zeros_like(change) if terms is None else terms.prior(x) - terms.prior(y)
        u = jnp.log(jax.random.uniform(b, (2,), x.dtype))
        return jnp.where((u[0] < prior) & (u[1] < change - prior), y, x)

    return simple_sampler(step, claims=EXACT)


def host_chunks(target):
    """Data in chunks of three, rejected at the first chunk that fails (Banterle et al.), by an early return."""
    terms = target.terms

    def whole(x, rng, estimator):
        return float(estimator.estimate(rng, (), x)[0].potential)

    def chunk(start):
        part = jax.tree.map(lambda a: jnp.asarray(a)[start : start + 3], terms.data)
        return lambda x, rng, estimator: float(jnp.sum(jax.vmap(terms.datum, (None, 0))(x, part)))

    if terms is None:
        factors = [whole]
    else:
        factors = [lambda x, rng, estimator: float(terms.prior(x)), *(chunk(i) for i in range(0, terms.size, 3))]

    def step(rng, x, h, estimator):
        x = np.asarray(x)
        y = (x + np.sqrt(2 * h) * rng.standard_normal(x.shape)).astype(x.dtype)
        for part in factors:
            if np.log(rng.random()) >= part(x, rng, estimator) - part(y, rng, estimator):
                return x
        return y

    return simple_sampler(step, backend="host", claims=EXACT)
