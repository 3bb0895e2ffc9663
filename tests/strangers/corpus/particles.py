"""Stein variational gradient descent and the sign of the gradient of its kernel; particles are the leading axis."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ParticleLaw, Source

SVGD = Claims(Source("liu2016stein", "Algorithm 1"), ParticleLaw(), conditions=("infinitely many particles",))
WIDTH = 0.7


def _kernel(x, y):
    return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * WIDTH))


def _svgd(sign):
    """x_j + h mean_i [-k(x_i, x_j) grad U(x_i) + sign d/dx_j k(x_i, x_j)]."""

    def step(key, x, h, estimator):
        g = jax.vmap(lambda y: estimator.estimate(key, (), y)[0].gradient)(x)
        pair = lambda xi, gi, xj: -_kernel(xi, xj) * gi + sign * jax.grad(_kernel, argnums=1)(xi, xj)
        velocity = jax.vmap(lambda xj: jnp.mean(jax.vmap(pair, (0, 0, None))(x, g, xj), axis=0))(x)
        return x + h * velocity

    return simple_sampler(step, claims=SVGD)


# The derivative by the particle that is moved is minus that by the other ones: without the minus, particles attract.
svgd_1_before = _svgd(1.0)
svgd_1_after = _svgd(-1.0)
