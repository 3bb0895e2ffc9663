"""Nose-Hoover-Langevin dynamics by a symmetric splitting, NumPy.

    dx  = p dt
    dp  = -grad U dt - xi p dt - friction p dt + sqrt(2 friction T) dW
    dxi = (|p|^2 - d T) / Q dt - xi_friction xi dt + sqrt(2 xi_friction T / Q) dW'

with Q = thermal_mass * d, which leaves exp(-(U + |p|^2 / 2 + Q xi^2 / 2) / T) invariant. One step is B A E D (O V) D E A B:
kick, drift, thermostat, its damping, the two Ornstein-Uhlenbeck parts, and back. The force at the end of a step is the one
that the next step begins with, so that a step costs one gradient.
"""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


@dataclass
class Thermostatted:
    position: np.ndarray
    momentum: np.ndarray
    xi: float
    force: np.ndarray


@dataclass
class NoseHooverLangevin:
    friction: float = 0.5
    xi_friction: float = 1.0
    thermal_mass: float = 1.0
    temperature: float = 1.0

    backend = "host"

    def __post_init__(self):
        for name in ("friction", "xi_friction", "thermal_mass", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive")

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=2, temperature=self.temperature))

    def init(self, rng, position, estimator):
        x = np.array(position)
        return Thermostatted(
            position=x,
            momentum=np.sqrt(self.temperature) * rng.standard_normal(x.shape),
            xi=float(np.sqrt(self.temperature / self._mass(x)) * rng.standard_normal()),
            force=self._force(rng, x, estimator),
        )

    def step(self, rng, state, step_size, estimator):
        x, p, xi = state.position.copy(), state.momentum.copy(), state.xi
        half = 0.5 * step_size
        mass = self._mass(x)

        p += half * state.force
        x += half * p
        xi += half * (np.sum(p * p) - x.size * self.temperature) / mass
        p *= np.exp(-half * xi)
        p = self._relax(rng, p, self.friction * step_size, self.temperature)
        xi = self._relax(rng, xi, self.xi_friction * step_size, self.temperature / mass)
        p *= np.exp(-half * xi)
        xi += half * (np.sum(p * p) - x.size * self.temperature) / mass
        x += half * p
        force = self._force(rng, x, estimator)
        p += half * force
        return Thermostatted(x, p, float(xi), force)

    def _mass(self, x):
        return self.thermal_mass * x.size

    @staticmethod
    def _relax(rng, value, time, variance):
        """Exact Ornstein-Uhlenbeck step over ``time`` (in units of the relaxation time)."""
        noise = rng.standard_normal(np.shape(value))
        return np.exp(-time) * value + np.sqrt(-np.expm1(-2.0 * time) * variance) * noise

    @staticmethod
    def _force(rng, x, estimator):
        return -np.asarray(estimator.estimate(rng, (), x)[0].gradient)
