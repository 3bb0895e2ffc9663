"""Stein variational gradient descent in several forms; positions have a leading axis of particles (M, d). In the
limit of many particles E[-k grad U + grad k] = 0 for particles from exp(-U) (Stein's identity), so that the
target is a fixed point; nothing is claimed for finitely many."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import (
    AdaGradSteps,
    BalancedVelocity,
    CarriedState,
    Claims,
    ParticleLaw,
    ParticleVelocity,
    Source,
    SteinVelocity,
)

LAW = Claims(Source("liu2016stein", "Algorithm 1"), ParticleLaw(), conditions=("infinitely many particles",))


def gradients(estimator, key, particles):
    """grad U at every particle, one key for all."""
    return jax.vmap(lambda x: estimator.estimate(key, (), x)[0].gradient)(particles)


def rbf(h):
    """exp(-|x - y|^2 / (2 h))."""
    return lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2) / (2 * h))


def imq(x, y):
    """Inverse multiquadric (1 + |x - y|^2)^(-1/2)."""
    return 1 / jnp.sqrt(1 + jnp.sum((x - y) ** 2))


def stein(kernel, x, g, w):
    """phi(x_j) = sum_i w_i [-k(x_i, x_j) g_i + grad_1 k(x_i, x_j)]."""

    def pair(xi, gi, xj):
        return -kernel(xi, xj) * gi + jax.grad(kernel)(xi, xj)

    return jax.vmap(lambda xj: w @ jax.vmap(pair, (0, 0, None))(x, g, xj))(x)


def equal(x):
    """1 / M for every particle."""
    return jnp.full(x.shape[0], 1 / x.shape[0], x.dtype)


def _fixed_width(key, x, h, estimator):
    return x + h * stein(rbf(0.7), x, gradients(estimator, key, x), equal(x))


# SVGD with a fixed width, its velocity and kernel claimed.
fixed_width = simple_sampler(
    _fixed_width,
    claims=Claims(
        Source("liu2016stein", "Algorithm 1"),
        ParticleLaw(),
        ParticleVelocity(lambda x, g, w: stein(rbf(0.7), x, g, w)),
        SteinVelocity(lambda particles: rbf(0.7)),
        BalancedVelocity(),
        conditions=("infinitely many particles",),
    ),
)


def _median(key, x, h, estimator):
    differences = x[:, None] - x[None]
    distances = jnp.sum(differences**2, axis=-1)
    width = jnp.maximum(jnp.median(distances) / jnp.log(x.shape[0] + 1.0), 1e-6)  # exp(-d / width)
    k = jnp.exp(-distances / width)
    repulsion = 2 / width * jnp.einsum("ij,ijd->jd", k, -differences)
    return x + h * (-k.T @ gradients(estimator, key, x) + repulsion) / x.shape[0]


# SVGD with the median heuristic, vectorised by hand, the law alone claimed.
median_width = simple_sampler(_median, claims=LAW)


def _imq(key, x, h, estimator):
    return x + h * stein(imq, x, gradients(estimator, key, x), equal(x))


# SVGD with the inverse multiquadric kernel.
inverse_multiquadric = simple_sampler(
    _imq,
    claims=Claims(
        Source("", "SVGD with an IMQ kernel"),
        ParticleLaw(),
        ParticleVelocity(lambda x, g, w: stein(imq, x, g, w)),
        SteinVelocity(lambda particles: imq),
    ),
)


def _preconditioned(key, x, h, estimator):
    d = x.shape[1]
    A = jnp.eye(d, dtype=x.dtype) + 0.5 * jnp.ones((d, d), x.dtype) / d
    return x + h * stein(rbf(1.0), x, gradients(estimator, key, x), equal(x)) @ A


# SVGD with a constant symmetric positive matrix in front of the velocity.
preconditioned = simple_sampler(_preconditioned, claims=LAW)


class Adaptive(NamedTuple):
    """Particles, running mean square of the velocity, number of steps."""

    position: jax.Array
    square: jax.Array
    steps: jax.Array


@dataclass(frozen=True)
class AdaGradSVGD:
    """SVGD with the step rule of the released code: h v / (10^-6 + sqrt(s)), s <- 0.9 s + 0.1 v^2."""

    width: float = 1.0

    @property
    def claims(self):
        kernel = rbf(self.width)
        return Claims(
            Source("liu2016stein", "released code"),
            ParticleLaw(),
            ParticleVelocity(lambda x, g, w: stein(kernel, x, g, w)),
            SteinVelocity(lambda particles: kernel),
            AdaGradSteps(),
            CarriedState("the running mean square of the velocity"),
        )

    def init(self, key, position, estimator):
        return Adaptive(position, jnp.zeros_like(position), jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        x = state.position
        v = stein(rbf(self.width), x, gradients(estimator, key, x), equal(x))
        square = jnp.where(state.steps == 0, v**2, 0.9 * state.square + 0.1 * v**2)
        return Adaptive(x + step_size * v / (1e-6 + jnp.sqrt(square)), square, state.steps + 1)

    def position(self, state):
        return state.position


def _two_widths(key, x, h, estimator):
    kernel = lambda a, b: rbf(0.3)(a, b) + rbf(3.0)(a, b)
    return x + h * stein(kernel, x, gradients(estimator, key, x), equal(x))


# SVGD with the sum of two Gaussian kernels.
two_widths = simple_sampler(_two_widths, claims=LAW)
