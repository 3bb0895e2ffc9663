"""Overdamped schemes: averaged discrete noise, a metric that depends on the point, a rotation that does."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def force(key, x, unravel, estimator):
    return ravel_pytree(estimator.estimate(key, (), unravel(x))[0].gradient)[0]


# Leimkuhler-Matthews: x' = x - h U'(x) + sqrt(h / 2) (xi + xi'), where xi is the draw of the step before, with random signs: mean 0
# and variance 1, so that the second moments of a Gaussian are right to every order.
# WRONG: order 2 needs the fourth moment of the draws as well, 3, and signs have 1.  With y = x - sqrt(h / 2) xi on a curvature k:
# y' = (1 - h k) y + sqrt(2 h) (1 - h k / 2) xi, fourth cumulant of x = -2 [4 h^2 (1 - h k / 2)^4 / (1 - (1 - h k)^4) + h^2 / 4]
# = -2 h / k + ..: E x^4 = 3 / k^2 - 2 h / k, order 1, and 2 is claimed.
def signs(key, x):
    return (2 * jax.random.randint(key, x.shape, 0, 2) - 1).astype(x.dtype)


def averaged_init(key, position, estimator):
    x, _ = ravel_pytree(position)
    return {"position": position, "draw": signs(key, x)}


def averaged_step(key, state, step_size, estimator):
    x, unravel = ravel_pytree(state["position"])
    h = jnp.asarray(step_size, x.dtype)
    gradient_key, draw_key = jax.random.split(key)
    draw = signs(draw_key, x)
    x = x - h * force(gradient_key, x, unravel, estimator) + jnp.sqrt(h / 2) * (state["draw"] + draw)
    return {"position": unravel(x), "draw": draw}


averaged = simple_sampler(
    averaged_step, init=averaged_init, claims=Claims(Source("", "own"), StationaryLaw(order=2))
)


# Langevin with a diagonal metric, D_i(x) = f + (1 - f) / (1 + |x|^2 / d), the same for all coordinates:
#   x' = x - h D grad U + h Gamma + N(0, 2 h D),   Gamma_i = d_i D_i
# WRONG: Gamma is the gradient of sum_j D_j, which is d_i D_i only if D_j depends on x_j alone; here it is d times that.  Then
# J = rho (-D grad U + d grad D) - grad(D rho) = 0 for rho = exp(-U) D^(d-1).  Right in one dimension; variances of N(0, 1) in two:
# 0.77 (with r = |x|^2 / 2 of the law Exp(1): E[r D] / E[D] = 0.523 / 0.677).
@dataclass(frozen=True)
class RadialMetric:
    floor: float = 0.2

    def metric(self, q):
        return jnp.full_like(q, self.floor + (1 - self.floor) / (1 + jnp.mean(q * q)))

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        gradient_key, noise_key = jax.random.split(key)
        gradient = force(gradient_key, x, unravel, estimator)
        value = self.metric(x)
        divergence = jax.grad(lambda q: jnp.sum(self.metric(q)))(x)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x + h * (divergence - value * gradient) + jnp.sqrt(2 * h * value) * noise)


# Irreversible Langevin: f = -(1 + Q) grad U with Q skew, within pairs (a, b) of coordinates Q_ab = -Q_ba = s,
# s = c tanh(a + b); the last coordinate of an odd number is left alone.  WRONG: "a skew Q does no work": true if it is
# constant; here div Q = (c sech^2(a + b), -c sech^2(a + b)) is missing.  In the stationary law E a = -E[s U_b], and under the target that is
# -c E sech^2(a + b), which is not 0: on N(0, 1) in two dimensions E a = -0.39, E b = 0.39 for c = 1 (of a chain).  Right in one.
@dataclass(frozen=True)
class Twisted:
    twist: float = 1.0

    def rotation(self, x, gradient):
        pairs = x.size // 2
        a, b = x[: 2 * pairs].reshape(pairs, 2).T
        slope_a, slope_b = gradient[: 2 * pairs].reshape(pairs, 2).T
        s = self.twist * jnp.tanh(a + b)
        turned = jnp.stack([-s * slope_b, s * slope_a], axis=1).reshape(-1)
        return jnp.concatenate([turned, jnp.zeros(x.size - 2 * pairs, x.dtype)])

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        gradient_key, noise_key = jax.random.split(key)
        gradient = force(gradient_key, x, unravel, estimator)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x + h * (self.rotation(x, gradient) - gradient) + jnp.sqrt(2 * h) * noise)
