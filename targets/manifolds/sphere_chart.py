"""The simplex through the sphere: theta_k = x_k^2, with its change of measure."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from sgmcmc_verification.targets.numerics.arrays import AnyArray

Point = Float[AnyArray, " K"]
Potential = Callable[[Point], Float[Array, ""]]

# The map takes S^(K-1) onto the simplex, 2^K to 1 (one point in every orthant), without faces to reflect at:
#     d theta = 2^(K-1) prod_k |x_k| dS(x),   d theta Lebesgue measure of the first K - 1 coordinates
# A law with density pi(theta) is the image of the one with Hausdorff density proportional to pi(x^2) prod_k |x_k|.
# For Dirichlet(alpha): U(x) = -sum_k (2 alpha_k - 1) log |x_k|.
#
# Source: byrne2013geodesic (geodesics for laws on the simplex). The Jacobian is that of the simplex in the coordinates
# x_1 .. x_(K-1) of an orthant: 2^(K-1) x_1 ... x_(K-1), over the slope 1 / x_K of the sphere there.


def to_simplex(point: Point) -> Point:
    """Point x (K,) of the sphere -> theta = x^2 (K,). Below x = 1e-162 (single precision: 1e-22) theta is 0."""
    return point * point


def to_sphere(theta: Point) -> Float[Array, " K"]:
    """Point theta (K,) of the simplex -> its preimage (K,) in the positive orthant, sqrt(theta)."""
    return jnp.sqrt(theta)


def log_volume(point: Point) -> Float[Array, ""]:
    """log (d theta / dS) at x (K,): (K - 1) log 2 + sum_k log |x_k|, -inf where a coordinate is 0."""
    return (point.shape[-1] - 1) * jnp.log(2.0).astype(point.dtype) + jnp.sum(jnp.log(jnp.abs(point)))


def pulled_back(potential: Potential) -> Potential:
    """Potential of a law on the simplex -> that of its pull-back on the sphere, U(x^2) - log_volume(x).

    Args:
        potential: -log density with respect to Lebesgue measure of K - 1 coordinates; theta (K,) -> scalar.

    Returns:
        x (K,) -> scalar. Where the density has theta_k to a small power, its logarithm is better written in log |x_k|
        by hand: theta underflows at half the exponent of x.
    """
    return lambda point: potential(to_simplex(point)) - log_volume(point)
