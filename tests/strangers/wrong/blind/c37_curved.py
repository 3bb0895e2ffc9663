"""Langevin steps on curved spaces, each in a chart of its own, with JAX doing the derivatives of the chart."""

from functools import partial

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def claims(space):
    return Claims(Source("", "own work"), StationaryLaw(order=1), spaces=(space,))


def chart_step(key, x, step_size, estimator, *, chart, inverse, log_volume):
    """y = inverse(x) has the density exp(-U(chart(y))) |d chart / dy|: a Langevin step of y, and back."""
    gradient_key, noise_key = jax.random.split(key)
    g = estimator.estimate(gradient_key, (), x)[0].gradient
    y = inverse(x)
    _, pull = jax.vjp(chart, y)
    drift = jax.grad(log_volume)(y) - pull(g)[0]
    return chart(y + step_size * drift + jnp.sqrt(2 * step_size) * jax.random.normal(noise_key, y.shape, y.dtype))


# ---- sphere: stereographic from the north pole
def from_plane(y):
    s = jnp.sum(y**2)
    return jnp.append(2 * y, s - 1) / (s + 1)


def to_plane(x):
    return x[:-1] / jnp.maximum(1 - x[-1], 1e-6)


stereographic = simple_sampler(
    partial(
        chart_step, chart=from_plane, inverse=to_plane, log_volume=lambda y: -2 * jnp.log1p(jnp.sum(y**2))
    ),
    claims=claims("sphere"),
)
"""Langevin on the sphere in stereographic coordinates, with the area element (2 / (1 + |y|^2))^2.

WRONG but on S^2: on the sphere of R^n the exponent is n - 1, log_volume = -(n - 1) log(1 + |y|^2). Elsewhere the law is the
target times (1 - x_n)^(3 - n): on S^3, for the uniform law, E x_n = 1/2 for 0; for a von Mises-Fisher law O(1) as well.
"""


# ---- simplex: breaking a stick, as Stan does
def shift(k):
    return jnp.log(jnp.arange(k, 0, -1.0))


def from_sticks(y):
    v = jax.nn.sigmoid(y - shift(y.size))
    left = jnp.concatenate([jnp.ones(1, y.dtype), jnp.cumprod(1 - v)])
    return jnp.append(v, 1.0) * left


def to_sticks(x):
    tails = jnp.cumsum(x[::-1])[::-1]
    return jnp.log(x[:-1]) - jnp.log(tails[1:]) + shift(x.size - 1)


def sticks_log_volume(y):
    z = y - shift(y.size)
    broken, rest = jax.nn.log_sigmoid(z), jax.nn.log_sigmoid(-z)
    before = jnp.concatenate([jnp.zeros(1, y.dtype), rest[:-1]])
    return jnp.sum(broken + rest + before)


stick_breaking = simple_sampler(
    partial(chart_step, chart=from_sticks, inverse=to_sticks, log_volume=sticks_log_volume),
    claims=claims("simplex"),
)
"""Langevin of the logits of broken sticks, x_k = v_k prod_{j<k} (1 - v_j); the Jacobian is triangular.

WRONG but for two or three parts: d x_k / d y_k = v_k (1 - v_k) times the whole stick that is left, prod_{j<k} (1 - v_j), of
which `before` has the last factor only. Right: before = append(0, cumsum(rest)[:-1]). With four parts the law is the target
times 1 / (1 - x_1): Dirichlet(2, 2, 2, 2) has E x_1 = 2/7 for 1/4, +14%.
"""


# ---- box: a truncated normal
def truncated_step(key, x, step_size, estimator):
    gradient_key, noise_key = jax.random.split(key)
    g = estimator.estimate(gradient_key, (), x)[0].gradient
    scale = jnp.sqrt(2 * step_size).astype(x.dtype)
    mean = x - step_size * g
    noise = jax.random.truncated_normal(noise_key, -mean / scale, (1 - mean) / scale, x.shape, x.dtype)
    return jnp.clip(mean + scale * noise, 0, 1)


truncated = simple_sampler(truncated_step, claims=claims("box"))
"""A Langevin step in the box [0, 1]^d that is conditioned on staying in it (drawn until it does, in one go).

WRONG in its order, 1/2 for the 1 that is claimed: without a drift the kernel N(y; x, 2h) / Z(x) is reversible for Z(x), which
is 1/2 at a face, not 1. 0.56 sqrt(h) of mass times the density there is missing at each face: uniform law, variance -14% at
h = 0.01, -2% at h = 0.0001. Right: fold the step at the faces (order 1).
"""
