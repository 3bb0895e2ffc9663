"""Code that works in single precision where that is enough, whatever the dtype of the position: for its noise, for the
coin of an accept step. What is lost is 1e-7 of the noise or of a probability."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler


def _noise32(key, x, h, estimator):
    a, b = jax.random.split(key)
    noise = jax.random.normal(b, x.shape, jnp.float32).astype(x.dtype)
    return x - h * estimator.estimate(a, (), x)[0].gradient + jnp.sqrt(2 * h) * noise


# SGLD with normals in single precision.
noise32 = simple_sampler(_noise32)


def _coin32(key, x, h, estimator):
    a, b, c = jax.random.split(key, 3)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(a, x.shape, x.dtype)
    change = estimator.estimate(c, (), x)[0].potential - estimator.estimate(c, (), y)[0].potential
    return jnp.where(jax.random.uniform(b, (), jnp.float32) < jnp.exp(change.astype(jnp.float32)), y, x)


# Random walk Metropolis whose coin and ratio are in single precision.
coin32 = simple_sampler(_coin32, needs=("potential",))


def _host32(rng, x, h, estimator):
    x = np.asarray(x)
    g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
    return (x - h * g + np.sqrt(2 * h) * rng.standard_normal(x.shape, dtype=np.float32)).astype(x.dtype)


# SGLD on the host with rng.standard_normal(dtype=np.float32).
host_noise32 = simple_sampler(_host32, backend="host")
