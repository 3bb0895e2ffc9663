"""Estimates of grad log q at particles that are draws of q: GFSD, GFSF and Blob."""

from typing import Any, Literal

import jax
import jax.numpy as jnp

from samplers.bandwidths import squared_distances

Density = Literal["gfsd", "gfsf", "blob"]
DENSITIES: tuple[Density, ...] = ("gfsd", "gfsf", "blob")
BALANCED: tuple[Density, ...] = ("blob",)
"""The estimates whose mean over the particles is zero, as that of grad log q is."""
RIDGE = 1e-2


def density_gradient(
    density: Density, particles: jax.Array, weights: jax.Array, bandwidth: Any, ridge: float = RIDGE
) -> jax.Array:
    """grad log q^ at the particles; E_ij = exp(-|x_i - x_j|^2 / (2 h)) and e_j = sum_i w_i E_ij.

        gfsd   grad log e_j = (1/h) (sum_i w_i E_ij x_i / e_j - x_j)                      smoothed density
        blob   (1/h) sum_i w_i E_ij (x_i - x_j) (1/e_j + 1/e_i) = grad_j sum_k log e_k    smoothed functional
        gfsf   (1/h) (x_j - [(E W + (rho/M) I)^-1 (e x)]_j)                               smoothed test functions

    The last one solves sum_i w_i [E_ij s_i + grad_i E_ij] = 0 for s, Stein's identity at the particles. As h -> 0 (and
    rho -> 0) all three tend to grad log q; at h > 0 the first is grad log of q * N(0, h I).

    Source: liu2019accelerating (GFSD, GFSF); chen2018unified (w-SGLD-B, which is Blob). The ridge is that of the
    released code.

    Args:
        density: which.
        particles: (M, d).
        weights: (M,), the sum is one; for `gfsf` positive.
        bandwidth: h, the square of the length scale.
        ridge: rho of `gfsf`, relative to the largest entry of E, which is one.

    Returns:
        (M, d).
    """
    x = particles - weights @ particles  # no cancellation far from the origin
    E = jnp.exp(-squared_distances(x) / (2 * bandwidth))
    e = E @ weights
    if density == "gfsf":
        # (E + (rho/M) W^-1) (W s) = e x is symmetric and positive definite
        matrix = E + jnp.diag(ridge / (x.shape[0] * weights))
        smooth = jax.scipy.linalg.solve(matrix, e[:, None] * x, assume_a="pos") / weights[:, None]
        return (x - smooth) / bandwidth
    ahead = (E @ (weights[:, None] * x)) / e[:, None] - x
    if density == "gfsd":
        return ahead / bandwidth
    shares = weights / e
    return (ahead + E @ (shares[:, None] * x) - (E @ shares)[:, None] * x) / bandwidth
