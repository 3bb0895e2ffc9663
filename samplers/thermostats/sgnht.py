"""Stochastic gradient Nose-Hoover thermostat (SGNHT), two discretisations."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.entry import DIFFUSIONS, Row, momentum_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    IndependentNoise,
    ShearingForce,
    Source,
    StationaryLaw,
)
from sgmcmc_verification.samplers.numerics.noise import injected_noise, momentum_like
from sgmcmc_verification.samplers.thermostats.common import (
    ThermostatMixin,
    ThermostatState,
    count,
    scalar_thermostat,
    squared_norm,
    thermostat_dynamics,
)
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

Scheme = Literal["euler", "splitting"]


@dataclass(frozen=True)
class SGNHT(ThermostatMixin):
    """Langevin dynamics whose scalar friction xi adapts to gradient noise of unknown size (d coordinates):

        d theta = r dt,  dr = -grad U dt - xi r dt + sqrt(2 A T) dW,  d xi = (|r|^2 / d - T) dt

    euler (ding2014bayesian, the SGNHT algorithm: r, then theta and xi with the new r):
        r' = r - h grad U~(theta) - h xi r + N(0, 2 A T h),  theta' = theta + h r',  xi' = xi + h (|r'|^2 / d - T)
    splitting (chen2015convergence, the symmetric splitting integrator; A B O B A):
        A(h/2): theta += (h/2) r, xi += (h/2) (|r|^2 / d - T);  B(h/2): r *= exp(-xi h/2);
        O(h): r += -h grad U~(theta) + N(0, 2 A T h);  then B(h/2) and A(h/2) again

    Differs from the sources in:
        1. the parameterisation: unit mass and r in SDE time, A multiplies T in the noise;
        2. the temperature T (the sources have T = 1): the thermostat compares |r|^2 / d with T, and the law is
           exp(-[U + |r|^2 / 2 + d (xi - A)^2 / 2] / T), in which xi ~ N(A, T / d).

    Args:
        diffusion: A > 0.
        temperature: T > 0; the law of positions is exp(-U / T).
        scheme: which discretisation.

    Error, for exact gradients: order 1 (euler), order 2 (splitting), weakly and in the invariant law. Isotropic
    gradient noise of unknown variance V moves the mean of xi to A + h V / (2 T), at the same order in the law of theta.

    Raises:
        ValueError: if `diffusion` or `temperature` is not positive, or `scheme` is unknown.
    """

    diffusion: float = 1.0
    temperature: float = 1.0
    scheme: Scheme = "euler"

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "diffusion", "temperature")
        require(self.scheme in ("euler", "splitting"), "scheme: must be euler or splitting", self.scheme)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        order = 2 if self.scheme == "splitting" else 1
        return Claims(
            self._source(),
            StationaryLaw(order=order, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=order),
            IndependentNoise(),
            ShearingForce(),
            conditions=("exact gradient",),
        )

    def _source(self) -> Source:
        if self.scheme == "euler":
            return Source("ding2014bayesian", "the SGNHT algorithm")
        return Source("chen2015convergence", "symmetric splitting integrator")

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2 + d (xi - A)^2 / 2) / T, D = diag(0, A T I, 0); see `thermostat_dynamics`."""
        return thermostat_dynamics(target, self.diffusion, self.temperature)

    def initial_thermostat(self, position: Position) -> Tree:
        """xi = A, the mean of its law."""
        return scalar_thermostat(position, self.diffusion)

    def drive(self, momentum: Tree) -> Tree:
        """d xi / dt = |r|^2 / d - T, of the structure of xi."""
        return squared_norm(momentum) / count(momentum) - self.temperature

    def spread(self, thermostat: Tree, momentum: Tree) -> Tree:
        """xi for every leaf of the momentum."""
        return jax.tree.map(lambda _: thermostat, momentum)

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> ThermostatState:
        """Start a chain at a position."""
        momentum_key, estimator_key = jax.random.split(key)
        momentum = momentum_like(momentum_key, position, self.temperature)
        xi = self.initial_thermostat(position)
        return ThermostatState(position, momentum, xi, estimator.init(estimator_key, position))

    def step(self, key: jax.Array, state: ThermostatState, step_size: Scalar, estimator: Estimator) -> ThermostatState:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        scheme = self._euler if self.scheme == "euler" else self._splitting
        return scheme(gradient_key, noise_key, state, step_size, estimator)

    def _noise(self, key: jax.Array, momentum: Tree, h: Scalar) -> Tree:
        return injected_noise(key, momentum, 2 * self.diffusion * self.temperature * h)

    def _move(self, x: Position, r: Tree, xi: Tree, t: Scalar) -> tuple[Position, Tree]:
        """theta and xi for a time t at fixed r."""
        xi = jax.tree.map(lambda a, b: a + t * b, xi, self.drive(r))
        return jax.tree.map(lambda a, b: a + t * b, x, r), xi

    def _damp(self, r: Tree, xi: Tree, t: Scalar) -> Tree:
        """dr = -xi r dt, exactly."""
        return jax.tree.map(lambda b, c: jnp.exp(-t * c) * b, r, self.spread(xi, r))

    def _euler(
        self, gradient_key: jax.Array, noise_key: jax.Array, state: ThermostatState, h: Scalar, estimator: Estimator
    ) -> ThermostatState:
        x, r, xi, estate = state
        estimate, estate = estimator.estimate(gradient_key, estate, x)
        r = jax.tree.map(
            lambda b, g, c, n: b - h * g - h * c * b + n,
            r,
            estimate.gradient,
            self.spread(xi, r),
            self._noise(noise_key, r, h),
        )
        x, xi = self._move(x, r, xi, h)
        return ThermostatState(x, r, xi, estate)

    def _splitting(
        self, gradient_key: jax.Array, noise_key: jax.Array, state: ThermostatState, h: Scalar, estimator: Estimator
    ) -> ThermostatState:
        x, r, xi, estate = state
        x, xi = self._move(x, r, xi, 0.5 * h)
        r = self._damp(r, xi, 0.5 * h)
        estimate, estate = estimator.estimate(gradient_key, estate, x)
        noise = self._noise(noise_key, r, h)
        r = jax.tree.map(lambda b, g, n: b - h * g + n, r, estimate.gradient, noise)
        r = self._damp(r, xi, 0.5 * h)
        x, xi = self._move(x, r, xi, 0.5 * h)
        return ThermostatState(x, r, xi, estate)


ENTRIES: tuple[Row, ...] = (
    momentum_row("sgnht", plain(SGNHT), DIFFUSIONS, diffusion=published.THERMOSTAT),
    momentum_row("sgnht-splitting", plain(SGNHT, scheme="splitting"), DIFFUSIONS, diffusion=published.THERMOSTAT),
)
