"""Riemannian Stein variational gradient descent (RSVGD) on spheres, products of spheres and Stiefel manifolds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import EMBEDDED, Row, on_manifold
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    FollowsGeodesics,
    KernelWidth,
    ParticleLaw,
    ParticleVelocity,
    RiemannianVelocity,
    Source,
)
from sgmcmc_verification.samplers.numerics.selection import median_of_nonnegative
from sgmcmc_verification.samplers.particles.common import (
    ParticleMixin,
    Particles,
    estimates,
    flatten,
    particle_row,
    unflatten,
    uniform_weights,
)
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel


def frames(manifold: Manifold) -> tuple[int, int, int]:
    """(L, n, p) with the manifold as V_p(R^n)^L: spheres are V_1. Raises ValueError for others."""
    if isinstance(manifold, Sphere):
        return 1, manifold.n, 1
    if isinstance(manifold, ProductOfSpheres):
        return manifold.count, manifold.n, 1
    if isinstance(manifold, Stiefel):
        return 1, manifold.n, manifold.p
    raise ValueError(f"manifold: must be a sphere, a product of spheres or a Stiefel manifold, got {manifold!r}")


def median_concentration(inner: jax.Array, size: int) -> jax.Array:
    """kappa = log(M - 1) / (p - median over i < j of tr(X_i^T X_j)) for each factor, (L,); 1 if the points coincide.

    Source: liu2018riemannian, section 5.2 (spheres, p = 1), as in the released code.

    Args:
        inner: tr(X_i^T X_j), (L, M, M).
        size: p, the value on the diagonal.
    """
    M = inner.shape[1]
    rows, columns = jnp.triu_indices(M, 1)
    gaps = jnp.maximum(size - inner[:, rows, columns], 0)
    typical = jax.vmap(median_of_nonnegative)(gaps)
    return jnp.where(typical > 0, jnp.log(jnp.maximum(M - 1.0, 2.0)) / jnp.where(typical > 0, typical, 1), 1.0)


def embedded_direction(
    points: jax.Array, gradients: jax.Array, weights: jax.Array, concentrations: jax.Array
) -> jax.Array:
    """X(y) = P_y grad f(y),  f(y) = sum_i w_i [(a_i + m_i) . grad_x K + tr(P_i Hess_x K)](x_i, y).

    P_x is the tangent projection, a = -P grad U with U = -log of the density with respect to Hausdorff measure, m the
    mean curvature vector, and K = exp(sum_l kappa_l (tr(X_l^T Y_l) - p)) = exp(-sum_l kappa_l |X_l - Y_l|^2 / 2). With
    b = kappa y:

        f(y) = sum_i w_i K_i [(a_i + m_i) . b + b . P_i b]
        grad f(y) = kappa sum_i w_i K_i { x_i [(a_i + m_i) . b + b . P_i b] + a_i + m_i + 2 P_i b }

    Source: liu2018riemannian, equations (7) and (8) and appendix A6.3, where the terms of a local chart add up to the
    mean curvature vector, -(n - 1) x on a sphere.

    Args:
        points: X (M, L, n, p), L factors of frames.
        gradients: grad U in the ambient space, of the same shape.
        weights: (M,), the sum is one.
        concentrations: kappa (L,).

    Returns:
        X at the points, of the same shape, tangent.
    """
    n, p = points.shape[2:]
    symmetric = lambda S: 0.5 * (S + jnp.swapaxes(S, -1, -2))
    tangent = lambda X, V: V - X @ symmetric(jnp.swapaxes(X, -1, -2) @ V)
    force = -tangent(points, gradients) - (n - (p + 1) / 2) * points  # a + m
    # S_ij = X_i^T Y_j, and the trace of its part that P_i takes away, factor by factor
    S = jnp.einsum("ilap,jlaq->lijpq", points, points)
    inner = jnp.einsum("lijpp->lij", S)
    kappa = concentrations[:, None, None]
    K = weights[:, None] * jnp.exp(jnp.sum(kappa * (inner - p), axis=0))  # w_i K_ij
    along = jnp.einsum("ilap,jlap->lij", force, points)
    bare = p - jnp.sum(symmetric(S) ** 2, axis=(-1, -2))  # |Y|^2 - |sym S|^2 = y . P_i y
    bracket = jnp.sum(kappa * along + kappa**2 * bare, axis=0)
    taken = jnp.einsum("ij,ilap,lijpq->jlaq", K, points, symmetric(S))  # sum_i w_i K_i X_i sym(S_ij)
    total = jnp.sum(K, axis=0)[:, None, None, None]
    scale = concentrations[None, :, None, None]
    gradient = scale * (
        jnp.einsum("ij,ilap->jlap", K * bracket, points)
        + jnp.einsum("ij,ilap->jlap", K, force)
        + 2 * scale * (total * points - taken)
    )
    return tangent(points, gradient)


class GeodesicParticles(ParticleMixin):
    """A particle method on a manifold: h times the velocity along geodesics, y_j' = Exp_{y_j}(h X(y_j)).

    Source: liu2018riemannian, section 4.3.
    """

    manifold: Manifold

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> Particles:
        """Start a chain at a position."""
        estate = jax.vmap(lambda x: estimator.init(key, x))(position)
        return Particles(position, jnp.zeros((), jnp.int32), jnp.zeros((), flatten(position).dtype), estate)

    def step(self, key: jax.Array, state: Particles, step_size: Scalar, estimator: Estimator) -> Particles:
        """Take one step."""
        gradients, estate = estimates(estimator, key, state.estate, state.position)
        rows = flatten(state.position)
        velocity = unflatten(state.position)(self.velocity(rows, gradients, uniform_weights(rows)))
        advance = lambda x, v: self.manifold.project_roundoff(self.manifold.geodesic(x, v, step_size)[0])
        return state._replace(
            position=jax.vmap(advance)(state.position, velocity), count=state.count + 1, estate=estate
        )


@dataclass(frozen=True)
class EmbeddedRSVGD(GeodesicParticles):
    """Particles on a sphere, a product of spheres or a Stiefel manifold, moved along geodesics by RSVGD.

        y_j' = Exp_{y_j}(h X(y_j)),   X of `embedded_direction` with equal weights

    with the von Mises-Fisher kernel exp(kappa tr(X^T Y)), up to a constant factor, or its product over the spheres. U
    is minus the log-density with respect to Hausdorff measure, which is the Riemannian volume.

    Source: liu2018riemannian, section 4.3, equation (8), and appendix A6.

    Args:
        manifold: of the target.
        concentration: kappa > 0 of the kernel, or `"median"` (`median_concentration`), for each sphere of a product.

    Error: none is claimed for a finite number of particles; in the mean-field limit the target is stationary.

    Raises:
        ValueError: if the manifold is another one, or `concentration` neither positive nor `"median"`.
    """

    manifold: Manifold
    concentration: float | Literal["median"] = "median"

    def __post_init__(self) -> None:
        frames(self.manifold)
        kappa = self.concentration
        valid = kappa == "median" if isinstance(kappa, str) else kappa > 0
        require(valid, 'concentration: must be positive or "median"', kappa)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("liu2018riemannian", "section 4.3, equation (8)"),
            ParticleLaw(),
            ParticleVelocity(self.velocity),
            RiemannianVelocity(self.kernel),
            KernelWidth(self, "concentration"),
            FollowsGeodesics(self.manifold),
            conditions=("infinitely many particles",),
            spaces=("sphere", "stiefel"),
        )

    def _points(self, rows: jax.Array) -> jax.Array:
        return rows.reshape(rows.shape[0], *frames(self.manifold))

    def concentrations(self, rows: jax.Array) -> jax.Array:
        """kappa (L,) of a step from these particles (M, d)."""
        count, _, size = frames(self.manifold)
        if self.concentration == "median":
            points = self._points(rows)
            return median_concentration(jnp.einsum("ilap,jlap->lij", points, points), size)
        return jnp.full(count, self.concentration, rows.dtype)

    def kernel(self, particles: jax.Array) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """The kernel k(x (d,), y (d,)) of a step from these particles (M, d), in the ambient space."""
        count, _, size = frames(self.manifold)
        kappa = jnp.repeat(self.concentrations(particles), particles.shape[1] // count)
        constant = size * jnp.sum(self.concentrations(particles))
        return lambda x, y: jnp.exp(jnp.sum(kappa * x * y) - constant)

    def velocity(self, particles: jax.Array, gradients: jax.Array, weights: jax.Array) -> jax.Array:
        """X (M, d) at particles (M, d) with weights (M,), given grad U (M, d)."""
        kappa = self.concentrations(particles)
        return embedded_direction(self._points(particles), self._points(gradients), weights, kappa).reshape(
            particles.shape
        )


ENTRIES: tuple[Row, ...] = (
    particle_row(
        "rsvgd-embedded",
        on_manifold(EmbeddedRSVGD),
        EMBEDDED[:1] + EMBEDDED[2:],
        {"concentration": 0.5},
        {"concentration": 2.0},
    ),
)
