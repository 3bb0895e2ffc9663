import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

POINTS = (-(3.0**0.5), 0.0, 3.0**0.5)
WEIGHTS = (1 / 6, 2 / 3, 1 / 6)


def draw(key, like):
    which = jax.random.categorical(key, jnp.log(jnp.array(WEIGHTS)), shape=like.shape)
    return jnp.array(POINTS, like.dtype)[which]


def step(key, x, h, estimator):
    key_g, key_n = jax.random.split(key)
    estimate, _ = estimator.estimate(key_g, (), x)
    return x - h * estimate.gradient + jnp.sqrt(2 * h) * draw(key_n, x)


sampler = simple_sampler(step, claims=Claims(Source("welling2011", "equation 4"), StationaryLaw(order=1)))
