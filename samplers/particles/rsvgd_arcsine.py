"""Riemannian Stein variational gradient descent (RSVGD) on a sphere with the arcsine kernel."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import CURVED, Row, on_manifold
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    FollowsGeodesics,
    KernelWidth,
    ParticleLaw,
    ParticleVelocity,
    RiemannianVelocity,
    Source,
)
from sgmcmc_verification.samplers.particles.common import particle_row
from sgmcmc_verification.samplers.particles.rsvgd_embedded import GeodesicParticles
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.sphere import Sphere


def arcsine_derivatives(t: jax.Array, scale: float) -> tuple[jax.Array, jax.Array, jax.Array]:
    """First three derivatives of arcsin(rho t), with u = rho t and r = 1 - u^2.

        rho r^-1/2,   rho^2 u r^-3/2,   rho^3 (1 + 2 u^2) r^-5/2

    Args:
        t: any shape, |t| <= 1.
        scale: rho in (0, 1).
    """
    u = scale * t
    r = 1 - u * u
    root = jnp.sqrt(r)
    return scale / root, scale**2 * u / (r * root), scale**3 * (1 + 2 * u * u) / (r * r * root)


def zonal_direction(
    points: jax.Array, gradients: jax.Array, weights: jax.Array, derivatives: tuple[jax.Array, jax.Array, jax.Array]
) -> jax.Array:
    """X(y) = P_y grad f(y) on a sphere for a kernel k(t), t = x . y, of which k1, k2, k3 are the derivatives.

        f(y) = sum_i w_i [(a_i . y) k1 + (1 - t_i^2) k2 - (n - 1) t_i k1]
        grad f(y) = sum_i w_i { a_i k1 + x_i [(a_i . y) k2 + (1 - t_i^2) k3 - (n + 1) t_i k2 - (n - 1) k1] }

    with a = -P grad U, U minus the log-density with respect to Hausdorff measure. The last two terms of f are the
    Laplacian of the kernel on the sphere.

    Source: liu2018riemannian, equation (8), for a kernel that is a function of the inner product.

    Args:
        points: x (M, n).
        gradients: grad U in the ambient space (M, n).
        weights: (M,), the sum is one.
        derivatives: k1, k2, k3 at t_ij = x_i . x_j, each (M, M).

    Returns:
        X at the points (M, n), tangent.
    """
    first, second, third = derivatives
    n, w = points.shape[1], weights[:, None]
    tangent = lambda v: v - jnp.sum(points * v, axis=1, keepdims=True) * points
    force = -tangent(gradients)
    t, along = points @ points.T, force @ points.T
    radial = along * second + (1 - t * t) * third - (n + 1) * t * second - (n - 1) * first
    return tangent((w * first).T @ force + (w * radial).T @ points)


@dataclass(frozen=True)
class ArcsineRSVGD(GeodesicParticles):
    """Particles on a sphere, moved along geodesics by RSVGD with the kernel arcsin(rho x . y).

    The kernel is odd in each argument, so that every function of its space is odd. Where the target is uniform, two
    antipodal particles are at rest, and so are particles in antipodal pairs wherever they are: E_q Lap g = 0 for every
    odd g and every q with q(-y) = q(y). The source reports that the kernel does not work well.

    Source: liu2018riemannian, section 5.2 (the kernel) and equation (8). Differs from the source in:
        1. rho < 1: at rho = 1 the kernel has no derivative where x = y, and f is infinite at every particle but on a
           circle, where the Laplacian is zero up to point masses.

    Args:
        manifold: a sphere.
        scale: rho in (0, 1). The stiffness of the repulsion between neighbours grows as (1 - rho^2)^-3/2.

    Error: none is claimed for a finite number of particles; in the mean-field limit the target is stationary, though
        not the only stationary law.

    Raises:
        ValueError: if the manifold is no sphere, or `scale` not in (0, 1).
    """

    manifold: Manifold
    scale: float = 0.7

    def __post_init__(self) -> None:
        require(isinstance(self.manifold, Sphere), "manifold: must be a sphere", self.manifold)
        require(0 < self.scale < 1, "scale: must be in (0, 1)", self.scale)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("liu2018riemannian", "section 5.2, equation (8)"),
            ParticleLaw(),
            ParticleVelocity(self.velocity),
            RiemannianVelocity(self.kernel),
            KernelWidth(self, "scale"),
            FollowsGeodesics(self.manifold),
            conditions=("infinitely many particles",),
            spaces=("sphere",),
        )

    def kernel(self, particles: jax.Array) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """The kernel k(x (n,), y (n,)), in the ambient space; it does not depend on the particles."""
        del particles
        return lambda x, y: jnp.arcsin(self.scale * jnp.sum(x * y))

    def velocity(self, particles: jax.Array, gradients: jax.Array, weights: jax.Array) -> jax.Array:
        """X (M, n) at particles (M, n) with weights (M,), given grad U (M, n)."""
        found = arcsine_derivatives(particles @ particles.T, self.scale)
        return zonal_direction(particles, gradients, weights, found)


ENTRIES: tuple[Row, ...] = (
    particle_row("rsvgd-arcsine", on_manifold(ArcsineRSVGD), (CURVED[0], CURVED[2]), {"scale": 0.3}, {"scale": 0.5}),
)
