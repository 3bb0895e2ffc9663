"""Geodesic stochastic gradient Nose-Hoover thermostat (gSGNHT)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.charts import InChart, thermostat_in_charts
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics, geodesic_thermostat
from sgmcmc_verification.samplers.entry import EMBEDDED, MANIFOLD_TIERS, THERMAL, Row, on_manifold
from sgmcmc_verification.samplers.geodesic.common import SPACES, boundary_conditions, projected_noise, velocity_like
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    EmbeddedDiffusion,
    FollowsGeodesics,
    KineticEnergy,
    Source,
    StationaryLaw,
)
from sgmcmc_verification.samplers.interface.from_step import PointMixin
from sgmcmc_verification.samplers.interface.metropolis import inner
from sgmcmc_verification.samplers.thermostats.common import scalar_thermostat, thermostat_dynamics
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.numerics.small_sums import computed_once
from sgmcmc_verification.targets.target import Target


class TangentThermostatPoint(NamedTuple):
    """The full variable z: position and velocity in ambient coordinates, and the thermostat xi."""

    position: Position
    velocity: Tree
    thermostat: jax.Array


class GeodesicThermostatState(NamedTuple):
    """Position, velocity, thermostat xi (a scalar) and the estimator's own state."""

    position: Position
    velocity: Tree
    thermostat: jax.Array
    estate: EstimatorState


@dataclass(frozen=True, eq=False)
class GSGNHT(PointMixin):
    """Langevin dynamics on an embedded manifold of dimension m, whose friction xi adapts to gradient noise.

        A(h/2) B(h/2) O(h) B(h/2) A(h/2)
        A(t): (x, v) <- geodesic flow for a time t,  xi <- xi + (|v|^2 - m T) t / mu   (the flow keeps |v|)
        B(t): v <- exp(-xi t) v
        O(h): v <- v + P(x) [-h grad U~(x) + N(0, 2 A T h)],  P(x) = projection onto the tangent space

    m is the dimension of the manifold (n - 1 for a sphere in R^n), not of the ambient space: with the latter the
    velocity has the temperature n T / m.

    Source: liu2016stochastic, Algorithm 2 (T = 1 and mu = m). Differs from the source in:
        1. the temperature T and the thermal mass mu (leimkuhler2016adaptive): xi ~ N(A, T / mu);
        2. after a step the position is moved back to the constraint, and O projects the velocity with its increment:
           both change them by round-off.

    Args:
        manifold: where the position lives; needs `dim`, `tangent`, `geodesic` and `project_roundoff`.
        diffusion: A > 0 (C in the source), the strength of the injected noise and the mean of xi.
        temperature: T > 0; the law is exp(-U / T) with respect to the Hausdorff measure.
        thermal_mass: mu > 0; m if None.

    Error: weak order 2 and invariant law O(h^2), for exact gradients. Whatever the noise of the gradient,
    E |v|^2 = m T exactly in the stationary law, if it exists (the increments of xi have mean zero); isotropic noise of
    variance V moves the mean of xi to A + h V / (2 T) + O(h^2). At a boundary see `samplers.geodesic.common`.

    Raises:
        ValueError: if `diffusion`, `temperature` or `thermal_mass` is not positive.
    """

    manifold: Manifold
    diffusion: float = 1.0
    temperature: float = 1.0
    thermal_mass: float | None = None

    backend = "jax"
    needs = frozenset({"gradient"})
    point = TangentThermostatPoint
    state = GeodesicThermostatState

    def __post_init__(self) -> None:
        require_positive(self, "diffusion", "temperature")
        valid = self.thermal_mass is None or self.thermal_mass > 0
        require(valid, "thermal_mass: must be positive or None", self.thermal_mass)

    @property
    def mass(self) -> float:
        """mu."""
        return self.manifold.dim if self.thermal_mass is None else self.thermal_mass

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        flat = self.manifold.is_linear
        return Claims(
            Source("liu2016stochastic", "Algorithm 2"),
            StationaryLaw(order=2, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=2) if flat else None,
            None if flat else EmbeddedDiffusion(self.embedded, weak_order=2, charts=self.charts),
            KineticEnergy(lambda h: 1.0),
            FollowsGeodesics(self.manifold),
            conditions=("exact gradient", *boundary_conditions(self.manifold)),
            spaces=SPACES,
        )

    def dynamics(self, target: Target) -> Dynamics:
        """Dynamics of SGNHT, on a Euclidean space."""
        return thermostat_dynamics(target, self.diffusion, self.temperature, self.thermal_mass)

    def embedded(self, target: Target) -> EmbeddedDynamics:
        """The dynamics in ambient coordinates; see `geodesic_thermostat`."""
        return geodesic_thermostat(target, self.diffusion, self.temperature, self.thermal_mass)

    def charts(self, target: Target) -> tuple[InChart, ...]:
        """The dynamics in charts of the manifold; see `thermostat_in_charts`."""
        return thermostat_in_charts(target, self.diffusion, self.temperature, self.thermal_mass)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> GeodesicThermostatState:
        """Start a chain at a position."""
        velocity_key, estimator_key = jax.random.split(key)
        velocity = velocity_like(velocity_key, self.manifold, position, self.temperature)
        xi = scalar_thermostat(position, self.diffusion)
        return GeodesicThermostatState(position, velocity, xi, estimator.init(estimator_key, position))

    def _glide(self, x: Position, v: Tree, xi: jax.Array, time: Scalar) -> tuple[Position, Tree, jax.Array]:
        x, v = self.manifold.geodesic(x, v, time)
        return x, v, xi + time * (inner(v, v) - self.manifold.dim * self.temperature) / self.mass

    def step(
        self, key: jax.Array, state: GeodesicThermostatState, step_size: Scalar, estimator: Estimator
    ) -> GeodesicThermostatState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        h, T = step_size, self.temperature
        x, v, xi = self._glide(state.position, state.velocity, state.thermostat, 0.5 * h)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        noise = projected_noise(noise_key, self.manifold, x, self.diffusion, None, T, h, None)
        (decay,) = computed_once(jnp.exp(-0.5 * h * xi))
        kicked = jax.tree.map(lambda b, g, n: decay * (decay * b - h * g + n), v, estimate.gradient, noise)
        x, v, xi = self._glide(x, self.manifold.tangent(x, kicked), xi, 0.5 * h)
        return GeodesicThermostatState(self.manifold.project_roundoff(x), v, xi, estate)


ENTRIES: tuple[Row, ...] = (
    Row(
        "gsgnht",
        on_manifold(GSGNHT),
        tiers=MANIFOLD_TIERS,
        targets=(*EMBEDDED, "dirichlet-concentrated"),
        variants=THERMAL,
        step_power=0.5,
        diffusion=published.GEODESIC_THERMOSTAT,
    ),
)
