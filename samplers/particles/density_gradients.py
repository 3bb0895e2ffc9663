"""Estimates of grad log q at particles that are draws of q: GFSD, GFSF, Blob and that of w-SGLD."""

from typing import Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.interface.aliases import Scalar
from sgmcmc_verification.samplers.particles.kernels import squared_distances

Density = Literal["gfsd", "gfsf", "blob", "jko"]
DENSITIES: tuple[Density, ...] = ("gfsd", "gfsf", "blob", "jko")
BALANCED: tuple[Density, ...] = ("blob", "jko")
"""The estimates whose mean over the particles is zero, as that of grad log q is."""
RIDGE = 1e-2
SWEEPS = 40
"""Of `transport_scaling`, each of which at least halves what is left: round-off, also where particles are far apart."""


def density_gradient(
    density: Density, particles: jax.Array, weights: jax.Array, bandwidth: Scalar, ridge: float = RIDGE
) -> jax.Array:
    """grad log q^ at the particles; E_ij = exp(-|x_i - x_j|^2 / (2 h)) and e_j = sum_i w_i E_ij.

        gfsd   grad log e_j = (1/h) (sum_i w_i E_ij x_i / e_j - x_j)                      smoothed density
        blob   (1/h) sum_i w_i E_ij (x_i - x_j) (1/e_j + 1/e_i) = grad_j sum_k log e_k    smoothed functional
        gfsf   (1/h) (x_j - [(E W + (rho/M) I)^-1 (e x)]_j)                               smoothed test functions
        jko    (4/(d h)) sum_i w_i P_ij (1 - |x_i - x_j|^2 / (2 h)) (x_j - x_i)           entropic transport

    `gfsf` solves sum_i w_i [E_ij s_i + grad_i E_ij] = 0 for s, Stein's identity at the particles. As h -> 0 (and
    rho -> 0) all four tend to grad log q; at h > 0 the first is grad log of q * N(0, h I).

    `jko` is, up to a factor, the gradient of the transport cost of a Jordan-Kinderlehrer-Otto step from the
    particles to themselves, sum_ij w_i w_j P_ij |x_i - x_j|^2 with P_ij = u_i u_j exp(-|x_i - x_j|^2 / lambda),
    lambda = 2 h, at fixed multipliers u, where sum_i w_i P_ij = 1 (`transport_scaling`). As h -> 0 the multipliers are
    q^(-1/2), and the sum is (d lambda / 8) grad log q, hence the factor in front, which the source leaves to the step
    size.

    Source: liu2019accelerating (GFSD, GFSF); chen2018unified (w-SGLD-B, which is Blob, and w-SGLD, `jko`). The ridge
    is that of the released code. The factor and the sign of `jko` are derived here, and its multipliers solve their
    equations: with constant ones, a common shortcut, the flow is that of U and of q itself in the place of log q, a
    diffusion in a porous medium, whose stationary law is (C - U)_+ instead of exp(-U).

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
    if density == "jko":
        scaling = transport_scaling(E, weights)
        pull = scaling[:, None] * E * scaling * (1 - squared_distances(x) / (2 * bandwidth))
        return 4 / (x.shape[1] * bandwidth) * ((pull @ weights)[:, None] * x - pull @ (weights[:, None] * x))
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


def transport_scaling(kernel: jax.Array, weights: jax.Array) -> jax.Array:
    """u > 0 with u_j sum_i w_i E_ij u_i = 1 for every j: the coupling w_i u_i E_ij u_j w_j has the marginals w.

    By u <- (u / (E (w u)))^1/2, the geometric mean of u and Sinkhorn's update, which keeps the coupling symmetric. Near
    the solution an eigenvalue mu of the coupling's kernel, in [0, 1] as E is positive semidefinite, becomes
    (1 - mu) / 2.

    Source: chen2018unified (the multipliers of w-SGLD); knight2014symmetry for the symmetric iteration.

    Args:
        kernel: E (M, M), symmetric and positive semidefinite, with positive entries on the diagonal.
        weights: w (M,), not negative.

    Returns:
        u (M,).
    """

    def sweep(u: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jnp.sqrt(u / (kernel @ (weights * u))), None

    start = jax.lax.rsqrt(kernel @ weights)
    return jax.lax.scan(sweep, start, length=SWEEPS)[0]
