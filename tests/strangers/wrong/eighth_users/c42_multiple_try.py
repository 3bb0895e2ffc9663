"""Multiple-try Metropolis (Liu, Liang, Wong, 2000) with a symmetric walk and weights exp(-U)."""
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

TRIES = 4


def multiple_try(key, x, step_size, estimator):
    k_batch, k_try, k_pick, k_back, k_accept = jax.random.split(key, 5)
    scale = jnp.sqrt(2 * step_size)

    @jax.vmap
    def log_weight(q):
        return -estimator.estimate(k_batch, (), q)[0].potential

    tries = x + scale * jax.random.normal(k_try, (TRIES, *x.shape), x.dtype)
    forward = log_weight(tries)
    y = tries[jax.random.categorical(k_pick, forward)]
    references = y + scale * jax.random.normal(k_back, (TRIES, *x.shape), x.dtype)
    backward = log_weight(references)
    ok = jnp.log(jax.random.uniform(k_accept, dtype=x.dtype)) < logsumexp(forward) - logsumexp(backward)
    return jnp.where(ok, y, x)


mtm = simple_sampler(multiple_try, claims=Claims(Source("", "own"), ExactLaw()))
