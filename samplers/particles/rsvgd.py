"""Riemannian Stein variational gradient descent (RSVGD) in coordinates."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.complete_recipe import row_divergence
from sgmcmc_verification.samplers.entry import PLANE, Row, with_metric
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.aliases import Position, Scalar
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    KernelWidth,
    ParticleLaw,
    ParticleVelocity,
    RiemannianVelocity,
    Source,
)
from sgmcmc_verification.samplers.particles.common import BANDWIDTHS, PARTICLE_FLAT, ParticleMixin, particle_row
from sgmcmc_verification.samplers.particles.kernels import (
    Bandwidth,
    bandwidths_of,
    carried_width,
    first_bandwidth,
    gaussian_moments,
    require_bandwidth,
    squared_distances,
)
from sgmcmc_verification.samplers.riemannian.metrics import DiagonalMetric, Metric, NonHessian2D, dense
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target


def functional_gradient(
    particles: jax.Array, inverse: jax.Array, drift: jax.Array, weights: jax.Array, bandwidths: Sequence[Scalar]
) -> jax.Array:
    """X(y) = G^-1(y) grad f(y),  f(y) = sum_i w_i [tau_i . grad_x K(x_i, y) + tr(G_i^-1 Hess_x K(x_i, y))].

    With D = x_i - y, a_k of `gaussian_moments` and A_i = G_i^-1

        grad f(y) = sum_i w_i { a_1 tau_i - 2 a_2 A_i D + [a_3 D^T A_i D - a_2 (tau_i . D + tr A_i)] D }

    Source: liu2018riemannian, equation (6), for a Gaussian kernel or a sum of them.

    Args:
        particles: (M, d).
        inverse: A (M, d, d).
        drift: tau = A grad log p_E + div A (M, d), p_E the density with respect to Lebesgue measure.
        weights: (M,), the sum is one.
        bandwidths: h_m.

    Returns:
        X at the particles, (M, d).
    """
    x = particles - weights @ particles  # no cancellation far from the origin
    M, d = x.shape
    _, a1, a2, a3 = gaussian_moments(squared_distances(x), bandwidths, 4)
    ahead = jnp.einsum("iab,ib->ia", inverse, x)  # A_i x_i
    flat = inverse.reshape(M, d * d)
    outer = (x[:, :, None] * x[:, None, :]).reshape(M, d * d)
    square = jnp.sum(ahead * x, axis=1)[:, None] - 2 * ahead @ x.T + flat @ outer.T  # D^T A_i D
    along = jnp.sum(drift * x, axis=1)[:, None] - drift @ x.T  # tau_i . D
    trace = jnp.einsum("iaa->i", inverse)[:, None]
    w = weights[:, None]
    radial = w * (a3 * square - a2 * (along + trace))
    spread = ((w * a2).T @ flat).reshape(M, d, d)  # sum_i w_i a_2 A_i
    gradient = (
        a1.T @ (w * drift)
        - 2 * ((w * a2).T @ ahead - jnp.einsum("jab,jb->ja", spread, x))
        + radial.T @ x
        - jnp.sum(radial, axis=0)[:, None] * x
    )
    return jnp.einsum("jab,jb->ja", inverse, gradient)


@dataclass(frozen=True, eq=False)
class RSVGD(ParticleMixin):
    """Particles transported along a gradient field of a Riemannian metric, the best one in a kernel's space.

        theta_j' = theta_j + h X(theta_j),   X = G^-1 grad f,
        f(y) = (1/M) sum_i [(G^-1 grad log p_E + div G^-1) . grad K(theta_i, y) + tr(G^-1 Hess K(theta_i, y))]

    where p_E = exp(-U) is the density with respect to Lebesgue measure (`density="lebesgue"`), or p_E = exp(-U) |G|^1/2
    if U is minus the log-density with respect to the Riemannian volume (`"volume"`). X is a gradient field, so that
    with G = I this is not SVGD.

    Source: liu2018riemannian, section 4.2, equation (6). Differs from the source in:
        1. the density: the source's p is that with respect to the volume, and its released code for logistic
           regression passes a Lebesgue density to it, whose law is then p |G|^1/2.

    Args:
        metric: G^-1; a method `divergence(theta) -> (d,)` of it is used in place of differentiating `inverse`.
        bandwidth: as of SVGD.
        density: what U is the density of.

    Error: none is claimed for a finite number of particles; in the mean-field limit the target is stationary.

    Raises:
        ValueError: if an argument is out of range.
    """

    metric: Metric
    bandwidth: Bandwidth = "median"
    density: Literal["lebesgue", "volume"] = "lebesgue"

    def __post_init__(self) -> None:
        require_bandwidth(self.bandwidth)
        require(self.density in ("lebesgue", "volume"), "density: must be lebesgue or volume", self.density)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("liu2018riemannian", "section 4.2, equation (6)"),
            ParticleLaw(),
            carried_width(self.bandwidth),
            ParticleVelocity(self.velocity),
            RiemannianVelocity(self.kernel, self.metric.inverse),
            KernelWidth(self, "bandwidth"),
            conditions=("infinitely many particles",),
        )

    def kernel(self, particles: jax.Array) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """The kernel k(x (d,), y (d,)) of a step from these particles (M, d)."""
        start = first_bandwidth(self.bandwidth, particles)
        bandwidths, _ = bandwidths_of(self.bandwidth, particles, start)
        return lambda x, y: gaussian_moments(jnp.sum((x - y) ** 2), bandwidths, 1)[0]

    def move(
        self, particles: jax.Array, gradients: jax.Array, weights: jax.Array, bandwidths: tuple[Scalar, ...]
    ) -> jax.Array:
        """X (M, d)."""
        inverse = jax.vmap(lambda x: dense(self.metric.inverse(x)))(particles)
        divergence = getattr(self.metric, "divergence", lambda x: row_divergence(self.metric.inverse, x))
        score = -gradients
        if self.density == "volume":
            # grad log |G|^1/2
            score = score - 0.5 * jax.vmap(jax.grad(lambda x: jnp.linalg.slogdet(dense(self.metric.inverse(x)))[1]))(
                particles
            )
        drift = jnp.einsum("iab,ib->ia", inverse, score) + jax.vmap(divergence)(particles)
        return functional_gradient(particles, inverse, drift, weights, bandwidths)


def volume_energy(target: Target) -> Exact:
    """Exact gradients of minus the log-density with respect to the volume of `NonHessian2D`, U + log |G| / 2."""
    metric = NonHessian2D()

    def potential(position: Position) -> jax.Array:
        log_det = jnp.linalg.slogdet(metric.inverse(target.ravel(position)))[1]
        return target.potential(position) - 0.5 * log_det

    return Exact(dataclasses.replace(target, potential=potential))


ENTRIES: tuple[Row, ...] = (
    particle_row("rsvgd", with_metric(RSVGD, lambda target: NonHessian2D(), size=2), (*PLANE, "banana"), *BANDWIDTHS),
    particle_row(
        "rsvgd-diagonal",
        with_metric(RSVGD, lambda target: DiagonalMetric()),
        PARTICLE_FLAT,
        {"bandwidth": 0.5},
        {"bandwidth": (0.5, 2.0)},
    ),
    particle_row(
        "rsvgd-volume",
        with_metric(RSVGD, lambda target: NonHessian2D(), size=2, density="volume"),
        PLANE,
        {"bandwidth": 0.5},
        {"bandwidth": 2.0},
        estimator=volume_energy,
    ),
)
