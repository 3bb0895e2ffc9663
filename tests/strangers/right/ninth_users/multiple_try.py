"""Multiple-try Metropolis (Liu, Liang and Wong 2000), weights w(y) = pi(y), symmetric normal proposals, K tries.

    y_1..y_K ~ N(x, 2h I);  y = y_J with P(J = j) ~ pi(y_j);  x*_1..x*_{K-1} ~ N(y, 2h I), x*_K = x
    accept with min(1, sum_j pi(y_j) / sum_j pi(x*_j))

Right: this is MTM(II), reversible for pi since T(x, y) = T(y, x) and w(y, x) = pi(y) has lambda(x, y) = 1 / T, symmetric.
Exact at every step size.        Object: mtm
"""
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

TRIES = 4


def mtm_step(key, position, h, estimator):
    k_est, k_fwd, k_pick, k_back, k_acc = jax.random.split(key, 5)
    x, unravel = ravel_pytree(position)

    def log_density(flat):
        return -estimator.estimate(k_est, (), unravel(flat))[0].potential

    log_densities = jax.vmap(log_density)
    scale = jnp.sqrt(2 * h).astype(x.dtype)

    tries = x + scale * jax.random.normal(k_fwd, (TRIES, x.size), x.dtype)
    log_w = log_densities(tries)
    y = tries[jax.random.categorical(k_pick, log_w)]

    reference = y + scale * jax.random.normal(k_back, (TRIES - 1, x.size), x.dtype)
    log_w_back = log_densities(jnp.vstack([reference, x[None]]))

    log_ratio = logsumexp(log_w) - logsumexp(log_w_back)
    accept = jnp.log(jax.random.uniform(k_acc, (), x.dtype)) < log_ratio
    return unravel(jnp.where(accept, y, x))


mtm = simple_sampler(mtm_step, claims=Claims(Source("", "own"), ExactLaw()))
