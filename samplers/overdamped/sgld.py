"""Stochastic gradient Langevin dynamics (SGLD)."""

from dataclasses import dataclass

import jax

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import Row, known_noise, langevin_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    EpochLaw,
    IndependentNoise,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.estimates import CompensationMixin
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target

SGLDState = PositionState
"""The name of its state."""


@dataclass(frozen=True)
class SGLD(CompensationMixin, PositionMixin):
    """Euler-Maruyama on the overdamped Langevin equation.

        theta' = theta - h grad U~(theta) + N(0, 2 h T - h^2 V^)

    where V^ = 0 unless `compensate`.

    Source: welling2011bayesian, equation (4), with h = epsilon / 2 of the source; ma2015complete, section 3.1
    (D = I, Q = 0). Differs from the source in:
        1. the temperature T and the compensation of the gradient noise (ma2015complete, equation (9)).

    Args:
        temperature: T > 0; the law is exp(-U / T).
        compensate: subtract the estimate's covariance from the injected noise; needs an estimator that returns one.

    Error: weak order 1 and invariant law O(h), for exact gradients or compensated noise. Uncompensated gradient
    noise V adds h V / 2 to the variance of a unit Gaussian at first order.

    Raises:
        ValueError: if `temperature` is not positive.
    """

    temperature: float = 1.0
    compensate: bool = False

    backend = "jax"

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        T = self.temperature
        return Claims(
            Source("welling2011bayesian", "equation (4)"),
            StationaryLaw(order=1, temperature=T),
            Diffusion(self.dynamics, weak_order=1),
            # (1 - h lambda)^2 s + 2 h T = s: the fixed point of the recursion of the variance
            StationaryMoments(lambda h, curvature: {"position": T / curvature / (1 - h * curvature / 2)}),
            IndependentNoise(),
            EpochLaw(order=1),
            conditions=("exact gradient or compensated noise",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """D = T I, Q = 0, H = U / T."""
        return overdamped_dynamics(target, self.temperature)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> SGLDState:
        """Start a chain at a position."""
        return SGLDState(position, estimator.init(key, position))

    def step(self, key: jax.Array, state: SGLDState, step_size: Scalar, estimator: Estimator) -> SGLDState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.position)
        covariance = estimate.covariance if self.compensate else None
        noise = injected_noise(noise_key, state.position, 2 * self.temperature * step_size, step_size, covariance)
        position = jax.tree.map(lambda x, g, n: x - step_size * g + n, state.position, estimate.gradient, noise)
        return SGLDState(position, estate)


ENTRIES: tuple[Row, ...] = (
    langevin_row("sgld", plain(SGLD)),
    langevin_row("sgld-compensated", plain(SGLD, compensate=True), estimator=known_noise),
)
