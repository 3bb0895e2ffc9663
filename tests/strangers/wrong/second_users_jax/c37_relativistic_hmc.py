# Relativistic HMC (Lu et al., 2017): the speed of a particle is bounded by c, so steep regions do no harm.
from functools import partial

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def kinetic(p, c):
    return c**2 * jnp.sqrt(1 + jnp.sum(p**2) / c**2)


def trajectory(q, p, eps, gradient, c, length):
    velocity = jax.grad(partial(kinetic, c=c))

    def leap(_, carry):
        q, p = carry
        p = p - 0.5 * eps * gradient(q)
        q = q + eps * velocity(p)
        return q, p - 0.5 * eps * gradient(q)

    return jax.lax.fori_loop(0, length, leap, (q, p))


def relativistic(c=3.0, length=8):
    def step(key, position, eps, estimator):
        k_model, k_momentum, k_accept = jax.random.split(key, 3)
        q0, unravel = ravel_pytree(position)
        estimate = lambda q: estimator.estimate(k_model, (), unravel(q))[0]
        gradient = lambda q: ravel_pytree(estimate(q).gradient)[0]

        p0 = jax.random.normal(k_momentum, q0.shape, q0.dtype)
        q1, p1 = trajectory(q0, p0, eps, gradient, c, length)
        error = estimate(q1).potential + kinetic(p1, c) - estimate(q0).potential - kinetic(p0, c)
        accept = jax.random.uniform(k_accept, dtype=q0.dtype) < jnp.exp(jnp.minimum(0.0, -error))
        return unravel(jnp.where(accept, q1, q0))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


hmc = relativistic()
