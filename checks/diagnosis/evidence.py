"""The numbers that a diagnosis fits: moments of one step over a ladder of step sizes, and their limits h -> 0."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tracing.one_step_moments import moments_of, step_sizes
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics
from sgmcmc_verification.samplers.interface.claims import StochasticEquation
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.targets.target import Target

EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Evidence:
    """Values of the code of a step at points z, and those that it should have.

    Attributes:
        step: map of one step.
        points: (P, n).
        hs: step sizes, the largest first, (L,).
        increments: E[z'] - z, (L, P, n).
        squares: E[(z' - z)(z' - z)^T], (L, P, n, n).
        known: numbers that a factor may turn out to be, by name: T, options, n/N.
    """

    step: JaxStep | HostStep
    points: np.ndarray
    hs: np.ndarray
    increments: np.ndarray
    squares: np.ndarray
    known: Mapping[str, float]

    def at(self, points: np.ndarray) -> "Evidence":
        """The same at other points."""
        increments, squares = moments_of(self.step, points, self.hs)
        return dataclasses.replace(self, points=points, increments=increments, squares=squares)

    @property
    def target(self) -> Target:
        """The target."""
        return self.step.target

    @cached_property
    def temperature(self) -> float:
        """T, as claimed."""
        return self.step.sampler.claims.temperature

    @cached_property
    def covariances(self) -> np.ndarray:
        """Cov[z'], (L, P, n, n)."""
        return self.squares - self.increments[..., :, None] * self.increments[..., None, :]

    @cached_property
    def drift(self) -> np.ndarray:
        """lim (E[z'] - z) / h, (P, n)."""
        return neville(self.hs, self.increments / self.hs[:, None, None])[0]

    @cached_property
    def diffusion(self) -> np.ndarray:
        """D = lim Cov[z'] / (2 h), (P, n, n)."""
        return neville(self.hs, self.covariances / self.hs[:, None, None, None])[0] / 2

    @cached_property
    def dynamics(self) -> Dynamics | EmbeddedDynamics | None:
        """The dynamics that are declared."""
        claim = self.step.sampler.claims.get(StochasticEquation)
        return None if claim is None else claim.dynamics(self.target)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the coordinates of z."""
        if self.dynamics is not None:
            return tuple(self.dynamics.names)
        d, n = self.target.size, self.step.size
        return tuple(f"x[{i}]" if i < d else f"z[{i}]" if n != 2 * d else f"r[{i - d}]" for i in range(n))

    def at_positions(self, function: Callable[[jax.Array], Any]) -> np.ndarray:
        """`function` of the flat position at every point."""
        return np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(self.points[:, : self.target.size])))

    @cached_property
    def gradient(self) -> np.ndarray:
        """grad U, (P, d)."""
        return self.at_positions(jax.grad(self.target.flat_potential))

    @cached_property
    def drift_error(self) -> float:
        """Of the extrapolation, the largest."""
        return float(neville(self.hs, self.increments / self.hs[:, None, None])[1].max())

    @cached_property
    def scale(self) -> float:
        """Size of what the drift should be: differences below a small part of it are none."""
        declared = 0.0 if self.dynamics is None else float(np.abs(self.declared_drift).max())
        return 1 + max(declared, float(np.abs(self.gradient).max()))

    @cached_property
    def declared_drift(self) -> np.ndarray:
        """f of the declared dynamics, (P, n)."""
        assert self.dynamics is not None
        return np.asarray(jax.jit(jax.vmap(self.dynamics.drift))(jnp.asarray(self.points)))

    @cached_property
    def declared_diffusion(self) -> np.ndarray:
        """D of the declared dynamics, (P, n, n)."""
        assert self.dynamics is not None
        return np.asarray(jax.jit(jax.vmap(self.dynamics.D))(jnp.asarray(self.points)))


def gather(subject: Subject, target: Target) -> Evidence:
    """The evidence on one target. Raises what the step map and quadrature raise where it is out of reach."""
    step = step_map(subject, target)
    points, hs = generic_points(step), step_sizes(subject, target)
    increments, squares = moments_of(step, points, hs)
    if not (np.all(np.isfinite(increments)) and np.all(np.isfinite(squares))):
        raise ArithmeticError("a step is not finite")
    found = Evidence(step, points[: increments.shape[1]], hs, increments, squares, known_numbers(step.sampler, target))
    if _keeps_a_draw(found):
        raise ArithmeticError("part of z is drawn afresh in each step: it is no part of a diffusion")
    return found


def _keeps_a_draw(evidence: Evidence) -> bool:
    """True if a number beside the position is random, of a mean that nothing before the step enters."""
    means = (evidence.points + evidence.increments)[:, :, evidence.target.size :]
    variances = np.diagonal(evidence.covariances, axis1=2, axis2=3)[:, :, evidence.target.size :]
    same = np.ptp(means, axis=1) <= 1e3 * EPS * (1 + np.abs(evidence.points).max())
    return bool(np.any(np.all(same & (variances.min(axis=1) > 1e3 * EPS), axis=0)))


def known_numbers(sampler: Sampler, target: Target) -> dict[str, float]:
    """Numbers that a factor may turn out to be: T, the options of the sampler, the number of data."""
    T = sampler.claims.temperature
    known = {"T": T, "1/T": 1 / T, "T^2": T * T, "sqrt T": T**0.5}
    if dataclasses.is_dataclass(sampler):
        for field in dataclasses.fields(sampler):
            value = getattr(sampler, field.name)
            if (
                field.name != "temperature"
                and isinstance(value, int | float)
                and not isinstance(value, bool)
                and value > 0
            ):
                known |= {field.name: float(value), f"1/{field.name}": 1 / value}
    if target.terms is not None:
        N = float(target.terms.size)
        known |= {"the number N of data": N, "1/N": 1 / N}
    return known
