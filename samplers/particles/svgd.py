"""Stein variational gradient descent (SVGD)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import Row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import (
    AdaGradSteps,
    BalancedVelocity,
    CarriedState,
    Claims,
    KernelWidth,
    ParticleLaw,
    ParticleVelocity,
    Source,
    SteinVelocity,
)
from sgmcmc_verification.samplers.particles.common import (
    PARTICLE_FLAT,
    ParticleMixin,
    estimates,
    flatten,
    particle_row,
    unflatten,
    uniform_weights,
)
from sgmcmc_verification.samplers.particles.kernels import (
    Bandwidth,
    bandwidths_of,
    carried_width,
    first_bandwidth,
    gaussian_moments,
    require_bandwidth,
    squared_distances,
)


class SVGDState(NamedTuple):
    """Particles (leading axis M), running mean square of the direction, number of steps, what the bandwidth rule
    carries, estimators' states.
    """

    position: Position
    square: jax.Array
    count: jax.Array  # pyright: ignore[reportIncompatibleMethodOverride]  # hides tuple.count
    bandwidth: jax.Array
    estate: EstimatorState


def stein_direction(
    particles: jax.Array, gradients: jax.Array, weights: jax.Array, bandwidths: Sequence[Scalar]
) -> jax.Array:
    """phi(x_j) = sum_i w_i [-K_ij grad U(x_i) + grad_{x_i} K_ij], K_ij = sum_m exp(-|x_i - x_j|^2 / (2 h_m)).

    Source: liu2016stein, equation (8), with w_i = 1 / M.

    Args:
        particles: (M, d).
        gradients: grad U at the particles, (M, d).
        weights: (M,), the sum is one.
        bandwidths: h_m, squares of length scales.

    Returns:
        phi, (M, d).
    """
    x = particles - weights @ particles  # no cancellation far from the origin
    kernel, slope = gaussian_moments(squared_distances(x), bandwidths, 2)
    # sum_i w_i grad_{x_i} K_ij = sum_i w_i slope_ij (x_j - x_i)
    repulsion = (slope.T @ weights)[:, None] * x - slope.T @ (weights[:, None] * x)
    return repulsion - kernel.T @ (weights[:, None] * gradients)


@dataclass(frozen=True)
class SVGD(ParticleMixin):
    """Particles transported along the kernelised gradient of the Kullback-Leibler divergence.

        x_j' = x_j + h phi(x_j),   phi(x_j) = (1/M) sum_i [-K_ij grad U~(x_i) + grad_{x_i} K_ij]

    or, with `adagrad`, x_j' = x_j + h phi / (10^-6 + sqrt(s)), s <- 0.9 s + 0.1 phi^2 (s = phi^2 in the first step).

    Source: liu2016stein, Algorithm 1; the AdaGrad variant is that of its released code. Sums of kernels are those of
    liu2018riemannian, section 5.1.

    Positions have a leading particle axis in every leaf. All particles see the same minibatch: the estimator is
    called once for each with the same key, and each particle carries an estimator's state of its own.

    Args:
        bandwidth: h of the kernel exp(-|x - y|^2 / (2 h)), a squared length; a tuple of them for the sum of their
            kernels; `"median"`, or `"he"` (`samplers.particles.kernels`).
        adagrad: scale the steps.

    Error: none is claimed for a finite number of particles; in the mean-field limit the target is stationary.

    Raises:
        ValueError: if `bandwidth` is none of these.
    """

    bandwidth: Bandwidth = "median"
    adagrad: bool = False

    def __post_init__(self) -> None:
        require_bandwidth(self.bandwidth)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("liu2016stein", "Algorithm 1"),
            ParticleLaw(),
            CarriedState("the averages of squares of velocities") if self.adagrad else carried_width(self.bandwidth),
            ParticleVelocity(self.velocity),
            BalancedVelocity(),
            SteinVelocity(self.kernel),
            KernelWidth(self, "bandwidth"),
            AdaGradSteps() if self.adagrad else None,
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
        """phi (M, d)."""
        return stein_direction(particles, gradients, weights, bandwidths)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> SVGDState:
        """Start a chain at a position."""
        particles = flatten(position)
        estate = jax.vmap(lambda x: estimator.init(key, x))(position)
        start = first_bandwidth(self.bandwidth, particles)
        return SVGDState(position, jnp.zeros_like(particles), jnp.zeros((), jnp.int32), start, estate)

    def step(self, key: jax.Array, state: SVGDState, step_size: Scalar, estimator: Estimator) -> SVGDState:
        """Take one step."""
        gradients, estate = estimates(estimator, key, state.estate, state.position)
        particles = flatten(state.position)
        bandwidths, carried = bandwidths_of(self.bandwidth, particles, state.bandwidth)
        direction = self.move(particles, gradients, uniform_weights(particles), bandwidths)
        square = direction**2
        square = jnp.where(state.count == 0, square, 0.9 * state.square + 0.1 * square)
        move = direction / (1e-6 + jnp.sqrt(square)) if self.adagrad else direction
        position = unflatten(state.position)(particles + step_size * move)
        return SVGDState(position, square, state.count + 1, carried, estate)


ENTRIES: tuple[Row, ...] = (
    particle_row(
        "svgd",
        plain(SVGD),
        PARTICLE_FLAT,
        {"bandwidth": 0.5},
        {"bandwidth": "he"},
        {"bandwidth": (0.3, 1.0, 10.0)},
        {"bandwidth": 2.0, "adagrad": True},
    ),
)
