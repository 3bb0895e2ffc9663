"""Kernels of particle methods and their bandwidths: one Gaussian, or a sum of several."""

from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.interface.aliases import Scalar
from sgmcmc_verification.samplers.interface.claims import CarriedState
from sgmcmc_verification.samplers.numerics.selection import median_of_nonnegative
from sgmcmc_verification.samplers.validation import require

Bandwidth = float | tuple[float, ...] | Literal["median", "he"]
"""h of exp(-|x - y|^2 / (2 h)), a squared length; several for the sum of their kernels; or a rule."""
SEARCH = 1.1
"""Factor of one step of the line search of `he_bandwidth`."""


def require_bandwidth(bandwidth: Bandwidth, several: bool = True) -> None:
    """Raise ValueError unless it is a `Bandwidth`; `several=False` refuses sums of kernels."""
    if isinstance(bandwidth, str):
        valid = bandwidth in ("median", "he")
    elif isinstance(bandwidth, tuple):
        valid = several and len(bandwidth) > 0 and all(h > 0 for h in bandwidth)
    else:
        valid = bandwidth > 0
    sums = ", a tuple of positive numbers" if several else ""
    require(valid, f'bandwidth: must be positive{sums}, "median" or "he"', bandwidth)


def carried_width(bandwidth: Bandwidth) -> CarriedState | None:
    """Claim of a method whose bandwidth is sought from that of the step before; None for the other rules."""
    return CarriedState("the bandwidth, from which the next one is sought") if bandwidth == "he" else None


def squared_distances(particles: jax.Array) -> jax.Array:
    """|x_i - x_j|^2, (M, M), for particles (M, d); from differences, so that it is zero on the diagonal."""
    return jnp.sum((particles[:, None, :] - particles[None, :, :]) ** 2, axis=-1)


def gaussian_moments(distances: jax.Array, bandwidths: Sequence[Scalar], count: int) -> list[jax.Array]:
    """a_k = sum_m h_m^-k exp(-d / (2 h_m)) for k = 0 .. count - 1, of the shape of the squared distances d.

    With K = a_0 as a function of x - y = D: grad_x K = -a_1 D, Hess_x K = a_2 D D^T - a_1 I, and the derivative of
    a_k with respect to y is a_(k+1) D.
    """
    total: list[Any] = [0.0] * count
    for h in bandwidths:
        term = jnp.exp(-distances / (2 * h))
        for k in range(count):
            total[k] = total[k] + term
            term = term / h
    return total


def median_bandwidth(distances: jax.Array) -> jax.Array:
    """h = median(|x_i - x_j|^2) / (2 log(M + 1)) over all pairs, diagonal included; 1 if the particles coincide.

    Source: liu2016stein, section 5, in the variant with M + 1 of the released code, for exp(-|x - y|^2 / (2 h)).
    """
    h = 0.5 * median_of_nonnegative(distances) / jnp.log(distances.shape[0] + 1.0)
    return jnp.where(h > 0, h, jnp.ones_like(h))


def heat_residual(particles: jax.Array, bandwidth: Scalar) -> jax.Array:
    """Residual of the heat equation, which the particles would follow, at a kernel density estimate.

        f(h) = sum_k { (1/h) sum_j E_kj [ |x_k - x_j|^2 + (x_j - x_k).(x_j - m_j) ] - d sum_j E_kj }^2
        E_kj = exp(-|x_k - x_j|^2 / (2 h)),   m_j = sum_l E_jl x_l / sum_l E_jl

    which is h^(d + 2) times the squares of Lap q + sum_j grad_(x_j) q . grad log q(x_j) at the particles, free of the
    unit of length.

    Source: liu2019accelerating (the HE method).
    """
    x, h = particles, bandwidth
    distances = squared_distances(x)
    E = jnp.exp(-distances / (2 * h))
    ahead = x - (E @ x) / jnp.sum(E, axis=1)[:, None]  # x_j - m_j
    along = jnp.sum(ahead * x, axis=1)[None, :] - x @ ahead.T  # (x_j - x_k).(x_j - m_j)
    inner = jnp.sum(E * (distances + along), axis=1) / h - x.shape[1] * jnp.sum(E, axis=1)
    return jnp.sum(inner**2)


def he_bandwidth(particles: jax.Array, bandwidth: jax.Array) -> jax.Array:
    """Take one step of a line search for the bandwidth that minimises `heat_residual`, on 1 / h.

    From h the inverse is multiplied or divided by 1.1, against the slope; the parabola through the value and the slope
    there and the value at the new place has a minimum; the best of the three places is taken. It never gets worse.

    Source: liu2019accelerating; one step an iteration as in the released code. Differs from the
    source in:
        1. the factor h^(d + 2) for every d, where the released code has h^4.
    """
    function = lambda inverse: heat_residual(particles, 1 / inverse)
    start = 1 / bandwidth
    value, slope = jax.value_and_grad(function)(start)
    near = jnp.where(slope > 0, start / SEARCH, start * SEARCH)
    other = function(near)
    step = near - start
    curvature = (other - value - slope * step) / step**2
    far = start - slope / (2 * jnp.where(curvature > 0, curvature, jnp.ones_like(curvature)))
    far = jnp.where((curvature > 0) & (far > start / SEARCH**2) & (far < start * SEARCH**2), far, near)
    places = jnp.stack([start, near, far])
    found = jnp.stack([value, other, function(far)])
    return 1 / places[jnp.argmin(found)]


def first_bandwidth(bandwidth: Bandwidth, particles: jax.Array) -> jax.Array:
    """First value of the number that is carried from step to step."""
    if isinstance(bandwidth, str):
        return median_bandwidth(squared_distances(particles))
    number = bandwidth[0] if isinstance(bandwidth, tuple) else bandwidth
    return jnp.asarray(number, particles.dtype)


def bandwidths_of(bandwidth: Bandwidth, particles: jax.Array, last: jax.Array) -> tuple[tuple[Scalar, ...], jax.Array]:
    """(the bandwidths of this step, the number that is carried to the next one).

    Args:
        bandwidth: the option.
        particles: (M, d).
        last: what the last step carried.
    """
    if isinstance(bandwidth, tuple):
        return bandwidth, last
    if not isinstance(bandwidth, str):
        now = jnp.asarray(bandwidth, particles.dtype)
    elif bandwidth == "median":
        now = median_bandwidth(squared_distances(particles))
    else:
        now = he_bandwidth(particles, last)
    return (now,), now
