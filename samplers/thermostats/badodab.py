"""BADODAB: the symmetric splitting of adaptive Langevin dynamics (Nose-Hoover Langevin thermostat)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.entry import THERMAL, Row, momentum_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    IndependentNoise,
    ShearingForce,
    Source,
    StationaryLaw,
)
from sgmcmc_verification.samplers.numerics.noise import momentum_like, normal_like
from sgmcmc_verification.samplers.numerics.ornstein_uhlenbeck import decay_ratio
from sgmcmc_verification.samplers.thermostats.common import (
    ThermostatPoint,
    count,
    scalar_thermostat,
    squared_norm,
    thermostat_dynamics,
)
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

WORD = "BADODAB"


class BADODABState(NamedTuple):
    """Position, momentum, thermostat xi (a scalar), the gradient at the position, estimator state."""

    position: Position
    momentum: Tree
    thermostat: Tree
    gradient: Tree
    estate: EstimatorState


@dataclass(frozen=True)
class BADODAB:
    """Second-order integrator of the dynamics of `SGNHT`, the friction and the noise of r solved together:

        B(h/2) A(h/2) D(h/2) O(h) D(h/2) A(h/2) B(h/2)
        B(t): r <- r - t grad U~(theta)         A(t): theta <- theta + t r      D(t): xi <- xi + t (|r|^2 - d T) / mu
        O(t): r <- exp(-xi t) r + sqrt(2 A T) sqrt((1 - exp(-2 xi t)) / (2 xi)) R,  R ~ N(0, I); xi may be negative

    One gradient per step: the last kick of a step and the first of the next share one estimate.

    Source: leimkuhler2016adaptive, the method BADODAB. Differs from the source in:
        1. unit mass; the noise of the SDE is written sqrt(2 A T), which is sigma_A of the source;
        2. the default thermal mass mu = d, with which the dynamics is that of SGNHT.

    Args:
        diffusion: A > 0.
        temperature: T > 0; the law is exp(-[U + |r|^2 / 2 + mu (xi - A)^2 / 2] / T).
        thermal_mass: mu > 0; None for the number of coordinates d.

    Error: weak order 2 and invariant law O(h^2), for exact gradients. Isotropic gradient noise of unknown variance V
    moves the mean of xi to A + h V / (2 T), at leading order.

    Raises:
        ValueError: if `diffusion`, `temperature` or `thermal_mass` is not positive.
    """

    diffusion: float = 1.0
    temperature: float = 1.0
    thermal_mass: float | None = None

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "diffusion", "temperature")
        positive = self.thermal_mass is None or self.thermal_mass > 0
        require(positive, "thermal_mass: must be positive or None", self.thermal_mass)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("leimkuhler2016adaptive", "the method BADODAB"),
            StationaryLaw(order=2, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=2),
            IndependentNoise(),
            ShearingForce(),
            conditions=("exact gradient",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2 + mu (xi - A)^2 / 2) / T, D = diag(0, A T I, 0); see `thermostat_dynamics`."""
        return thermostat_dynamics(target, self.diffusion, self.temperature, self.thermal_mass)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> BADODABState:
        """Start a chain at a position."""
        momentum_key, pack_key = jax.random.split(key)
        momentum = momentum_like(momentum_key, position, self.temperature)
        z = ThermostatPoint(position, momentum, scalar_thermostat(position, self.diffusion))
        return self.pack(pack_key, z, estimator)

    def step(self, key: jax.Array, state: BADODABState, step_size: Scalar, estimator: Estimator) -> BADODABState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        x, r, xi, gradient, estate = state
        d = count(r)
        mu = d if self.thermal_mass is None else self.thermal_mass
        for letter in WORD:
            t = step_size / WORD.count(letter)
            if letter == "B":
                if gradient is None:
                    estimate, estate = estimator.estimate(gradient_key, estate, x)
                    gradient = estimate.gradient
                r = jax.tree.map(lambda b, g, t=t: b - t * g, r, gradient)
            elif letter == "A":
                x = jax.tree.map(lambda a, b, t=t: a + t * b, x, r)
                gradient = None
            elif letter == "D":
                xi = xi + (t / mu) * (squared_norm(r) - d * self.temperature)
            else:
                decay = jnp.exp(-t * xi)
                # (1 - exp(-2 xi t)) / (2 xi) = t decay_ratio(2 xi t), which xi = 0 does not trouble
                scale = jnp.sqrt(2 * self.diffusion * self.temperature * t) * jnp.sqrt(decay_ratio(2 * t * xi))
                noise = normal_like(noise_key, r)
                r = jax.tree.map(lambda b, n, decay=decay, scale=scale: decay * b + scale * n, r, noise)
        return BADODABState(x, r, xi, gradient, estate)

    def position(self, state: BADODABState) -> Position:
        """Position of a state."""
        return state.position

    def unpack(self, state: BADODABState) -> ThermostatPoint:
        """Full variable z of a state."""
        return ThermostatPoint(state.position, state.momentum, state.thermostat)

    def pack(self, key: jax.Array, z: ThermostatPoint, estimator: Estimator) -> BADODABState:
        """State with the full variable z; caches are computed anew."""
        estate_key, gradient_key = jax.random.split(key)
        estate = estimator.init(estate_key, z.position)
        estimate, estate = estimator.estimate(gradient_key, estate, z.position)
        return BADODABState(z.position, z.momentum, z.thermostat, estimate.gradient, estate)


STRONG = {**THERMAL[0], "diffusion": 30.0}

ENTRIES: tuple[Row, ...] = (
    momentum_row("badodab", plain(BADODAB), (STRONG, THERMAL[1]), diffusion=published.THERMOSTAT),
)
