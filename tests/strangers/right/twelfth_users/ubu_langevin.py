"""UBU splitting of kinetic Langevin dynamics.

    dx = v dt,   dv = -friction v dt - inverse_mass grad U(x) dt + sqrt(2 friction inverse_mass) dW

U is free motion with friction and noise, which is solved exactly with two correlated Gaussians a coordinate; B is the kick by the
gradient. One step is U(h/2) B(h) U(h/2) with a single gradient, at the point where the first half step ends
(Zapatero 2017; Sanz-Serna and Zygalakis 2021).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


class UBUState(NamedTuple):
    position: Any
    velocity: Any


def one_minus_tanhc(y):
    """1 - tanh(y) / y, by its series where the difference would cancel."""
    s = y * y
    series = s * (1 / 3 + s * (-2 / 15 + s * (17 / 315 + s * (-62 / 2835 + s * 1382 / 155925))))
    large = jnp.where(y < 0.1, 1.0, y)
    return jnp.where(y < 0.1, series, 1 - jnp.tanh(large) / large)


def flow_coefficients(time, friction):
    """Numbers of the exact flow of the U part.

    With G1 = W(t) and G2 = int exp(-friction (t - s)) dW(s): G1 = first xi_1, G2 = shared xi_1 + second xi_2.
    """
    a = friction * time
    kept = jnp.exp(-a)
    mean_kept = -jnp.expm1(-a) / a
    first = jnp.sqrt(time)
    shared = first * mean_kept
    second = first * jnp.sqrt(mean_kept * (1 + kept) / 2 * one_minus_tanhc(a / 2))
    return kept, time * mean_kept, first, shared, second


def ubu(friction: float = 2.0, inverse_mass: float = 1.0):
    if friction <= 0 or inverse_mass <= 0:
        raise ValueError("friction and inverse_mass are positive")
    noise_scale = (2 * friction * inverse_mass) ** 0.5

    def free_flow(key, x, v, time):
        kept, reach, first, shared, second = flow_coefficients(time, friction)
        xi = jax.random.normal(key, (2, *x.shape), x.dtype)
        g1 = first * xi[0]
        g2 = shared * xi[0] + second * xi[1]
        return x + reach * v + noise_scale / friction * (g1 - g2), kept * v + noise_scale * g2

    def init(key, position, estimator):
        flat, unravel = ravel_pytree(position)
        return UBUState(position, unravel(inverse_mass**0.5 * jax.random.normal(key, flat.shape, flat.dtype)))

    def step(key, state, step_size, estimator):
        before_key, gradient_key, after_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        v, _ = ravel_pytree(state.velocity)
        h = jnp.asarray(step_size, x.dtype)
        x, v = free_flow(before_key, x, v, h / 2)
        gradient, _ = ravel_pytree(estimator.estimate(gradient_key, (), unravel(x))[0].gradient)
        v = v - h * inverse_mass * gradient
        x, v = free_flow(after_key, x, v, h / 2)
        return UBUState(unravel(x), unravel(v))

    claims = Claims(Source("", "Sanz-Serna and Zygalakis 2021, section 4"), StationaryLaw(order=2))
    return simple_sampler(step, init=init, claims=claims)
