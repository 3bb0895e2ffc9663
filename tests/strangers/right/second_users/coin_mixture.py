"""Small-world Metropolis: mostly a local random walk, with probability 0.3 an independent proposal of wide Student t's."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

P_GLOBAL, DF, WIDTH = 0.3, 4.0, 2.0


class Chain(NamedTuple):
    position: jax.Array
    logp: jax.Array
    n_accepted: jax.Array


def log_q(x):
    return -0.5 * (DF + 1) * jnp.sum(jnp.log1p((x / WIDTH) ** 2 / DF))


def init(key, position, estimator):
    logp = -estimator.estimate(key, (), position)[0].potential
    return Chain(position, logp, jnp.zeros((), jnp.int32))


def step(key, chain, step_size, estimator):
    k_coin, k_prop, k_batch, k_u = jax.random.split(key, 4)
    x = chain.position

    def local(k):
        y = x + jnp.sqrt(2 * step_size) * jax.random.normal(k, x.shape, x.dtype)
        return y.astype(x.dtype), jnp.zeros((), x.dtype)

    def globe(k):
        y = WIDTH * jax.random.t(k, DF, x.shape, x.dtype)
        return y, log_q(x) - log_q(y)

    y, log_hastings = jax.lax.cond(jax.random.uniform(k_coin) < P_GLOBAL, globe, local, k_prop)
    logp = -estimator.estimate(k_batch, (), y)[0].potential
    ok = jnp.log(jax.random.uniform(k_u, dtype=x.dtype)) < logp - chain.logp + log_hastings
    new = Chain(y, logp, chain.n_accepted + 1)
    return jax.tree.map(lambda a, b: jnp.where(ok, a, b), new, chain)


small_world = simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()))
