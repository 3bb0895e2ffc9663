"""A random walk that tunes its own scale (Andrieu and Thoms, 2008), so that nobody has to set one."""

import jax
import jax.numpy as jnp
from jax import random

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

TARGET_ACCEPTANCE = 0.234


def start(key, position, estimator):
    return {"position": position, "log_scale": jnp.zeros((), position.dtype)}


@jax.jit
def propose(key, x, log_scale):
    return x + jnp.exp(log_scale) * random.normal(key, x.shape, x.dtype)


def step(key, state, step_size, estimator):
    k1, k2, k3 = random.split(key, 3)
    x, log_scale = state["position"], state["log_scale"]
    U = lambda q: estimator.estimate(k1, (), q)[0].potential
    y = propose(k2, x, log_scale)
    alpha = jnp.exp(jnp.clip(U(x) - U(y), max=0.0))
    x = jnp.where(random.uniform(k3, dtype=x.dtype) < alpha, y, x)
    return {"position": x, "log_scale": log_scale + (alpha - TARGET_ACCEPTANCE)}


adaptive = simple_sampler(step, init=start, claims=Claims(Source("", "own"), ExactLaw()))
