"""Overdamped schemes: averaged discrete noise, a metric that depends on the point, a rotation that does."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def force(key, x, unravel, estimator):
    return ravel_pytree(estimator.estimate(key, (), unravel(x))[0].gradient)[0]


# Leimkuhler-Matthews: x' = x - h U'(x) + sqrt(h / 2) (xi + xi'), where xi is the draw of the step before.  It is order 2
# for positions: with y = x - sqrt(h / 2) xi it is y' = y + sqrt(2 h) xi - h U'(y + sqrt(h / 2) xi) and a postprocessor.
# What A_1, A_2 and the postprocessor need of xi are its moments up to the fourth: 0, 1, 0, 3.  The three points
# -sqrt 3, 0, sqrt 3 with 1/6, 2/3, 1/6 have them (3^2 / 3 = 3), so that c_1 = c_2 = 0 as for normal draws.  In several dimensions
# coordinates are independent, and mixed moments are products.
def three_points(key, x):
    root = 3**0.5
    values = jnp.array([-root, 0.0, 0.0, 0.0, 0.0, root], x.dtype)
    return values[jax.random.randint(key, x.shape, 0, 6)]


def averaged_init(key, position, estimator):
    x, _ = ravel_pytree(position)
    return {"position": position, "draw": three_points(key, x)}


def averaged_step(key, state, step_size, estimator):
    x, unravel = ravel_pytree(state["position"])
    h = jnp.asarray(step_size, x.dtype)
    gradient_key, draw_key = jax.random.split(key)
    draw = three_points(draw_key, x)
    x = x - h * force(gradient_key, x, unravel, estimator) + jnp.sqrt(h / 2) * (state["draw"] + draw)
    return {"position": unravel(x), "draw": draw}


averaged = simple_sampler(
    averaged_step, init=averaged_init, claims=Claims(Source("", "own"), StationaryLaw(order=2))
)


# Langevin with the scalar metric D(x) = f + (1 - f) / (1 + |x|^2 / d), the same for all coordinates:
#   x' = x - h D grad U + h Gamma + N(0, 2 h D),   Gamma_i = sum_j d_j (D delta_ij) = d_i D
# and J = pi (-D grad U + grad D) - grad(D pi) = 0 for pi = exp(-U), in every dimension.  Order 1 (Euler).
@dataclass(frozen=True)
class RadialMetric:
    floor: float = 0.2

    def metric(self, q):
        return self.floor + (1 - self.floor) / (1 + jnp.mean(q * q))

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        gradient_key, noise_key = jax.random.split(key)
        gradient = force(gradient_key, x, unravel, estimator)
        value, divergence = jax.value_and_grad(self.metric)(x)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x + h * (divergence - value * gradient) + jnp.sqrt(2 * h * value) * noise)


# Irreversible Langevin: f = -(1 + Q) grad U + Gamma with Q skew, within pairs (a, b) of coordinates Q_ab = -Q_ba = s,
# s = c tanh(a + b); the last coordinate of an odd number is left alone.  Gamma_a = d_b Q_ab = c sech^2(a + b), Gamma_b = d_a Q_ba =
# -c sech^2(a + b).  -Q grad U + Gamma = div(Q pi) / pi is free of divergence under pi.  Order 1 (Euler).
@dataclass(frozen=True)
class Twisted:
    twist: float = 1.0

    def rotation(self, x, gradient):
        pairs = x.size // 2
        a, b = x[: 2 * pairs].reshape(pairs, 2).T
        slope_a, slope_b = gradient[: 2 * pairs].reshape(pairs, 2).T
        s = self.twist * jnp.tanh(a + b)
        gamma = self.twist * (1 - jnp.tanh(a + b) ** 2)
        turned = jnp.stack([gamma - s * slope_b, s * slope_a - gamma], axis=1).reshape(-1)
        return jnp.concatenate([turned, jnp.zeros(x.size - 2 * pairs, x.dtype)])

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)
        gradient_key, noise_key = jax.random.split(key)
        gradient = force(gradient_key, x, unravel, estimator)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return unravel(x + h * (self.rotation(x, gradient) - gradient) + jnp.sqrt(2 * h) * noise)
