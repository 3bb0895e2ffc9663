import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def init(key, position, estimator):
    return jnp.zeros_like(position), position


def step(key, state, dt, estimator):
    v, x = state
    kg, kn = jax.random.split(key)
    g = estimator.estimate(kg, (), x)[0].gradient
    sign = 2 * jax.random.bernoulli(kn, 0.5, v.shape).astype(v.dtype) - 1
    v = v - dt * g - dt * v + (2 * dt) ** 0.5 * sign
    x = x + dt * v
    return v, x


sghmc = simple_sampler(
    step,
    init=init,
    position=lambda state: state[1],
    claims=Claims(Source("chen2014", "equation 9"), StationaryLaw(order=1)),
)
