"""Langevin dynamics on the unit box. What leaves by one face comes in by the opposite one."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


@jax.jit
def into_box(y):
    return y - jnp.floor(y)


def langevin_in_box(key, x, step_size, estimator):
    for_gradient, for_noise = jax.random.split(key)
    score = -estimator.estimate(for_gradient, (), x)[0].gradient
    brownian = jax.random.normal(for_noise, x.shape, x.dtype)
    return into_box(x + step_size * score + (2 * step_size) ** 0.5 * brownian)


wrapped = simple_sampler(
    langevin_in_box, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("box",))
)
