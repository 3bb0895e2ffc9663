"""The leading term of the bias of a scheme at a small step size, from the series of its step.

With c_k = e^H A_k^* e^-H at h^k, the first of them that is not zero for every smooth potential, a Poisson equation
gives the bias of an expectation:

    pi_h(f) = pi(f) - h^(k - 1) integral of c_k psi dpi + ..,   L psi = f - pi(f).

On a Gaussian, where drift and H are those of a linear SDE dz = B z dt + (2 D)^(1/2) dW, f = x^2 has a quadratic psi:
psi = z^T M z with B^T M + M B = e_x e_x^T. On a line, where z is the position, (pi D psi')' = (f - pi(f)) pi, and an
integration by parts leaves the integral of C psi' with C' = c_k pi.

Source: talay1990expansion; leimkuhler2014long for the expansion of averages; vollmer2016exploration, section 3, for the
Poisson equation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import scipy
from scipy.linalg import solve_continuous_lyapunov

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotApplicable
from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite
from sgmcmc_verification.checks.proof.draws import in_floats
from sgmcmc_verification.checks.proof.errors import NotReal
from sgmcmc_verification.checks.proof.expansion import Expansion, Region
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet
from sgmcmc_verification.checks.proof.prove import expansion_of, prepared
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.settings import LINE
from sgmcmc_verification.checks.proof.statements.orders import drift_and_covariance, invariant_coefficients
from sgmcmc_verification.samplers.interface.claims import StationaryLaw
from sgmcmc_verification.targets.target import Target

MORE = 2
"""Powers of s = sqrt(h) by which the series is prolonged once, where no coefficient is found."""
NODES = 12
"""Nodes of Gauss and Hermite a coordinate of z: exact for c_k psi up to the power 23."""
GRID = 4001
"""Points of the composite rule on a line."""


@dataclass(frozen=True, eq=False)
class LeadingTerm:
    """The first coefficient of the law of a scheme that is not zero for every potential, for one coordinate.

    Attributes:
        order: power of h of the bias, q; 1/2 for one that is slower.
        weight: c_(q + 1), of z and the derivatives of U.
        expansion, region: of the step.
        temperature: of the law.
    """

    order: Fraction
    weight: Polynomial
    expansion: Expansion
    region: Region
    temperature: float

    def of_variance(self, curvature: float) -> float:
        """Relative error of the variance of the position on U = curvature x^2 / 2, over h^order.

        Raises:
            NotApplicable: for a step that is no linear SDE there as h -> 0.
        """
        at = lambda p, z: self._value(p, z, lambda orders, x: _quadratic(curvature, orders, x))
        n, places = len(self.expansion.variables), self.region.places
        if places is None or n > 2:
            raise NotApplicable("z has more than a position and a momentum")
        B, D = self._linear(at, n)
        slopes, variables = self.region.density.slope, self.expansion.variables
        precision = np.array([[at(p.derivative(v), np.zeros(n)) for v in variables] for p in slopes])
        covariance = np.linalg.inv(precision)
        unit = np.eye(n)[places[0]]
        if np.linalg.eigvals(B).real.max() >= 0:
            raise NotApplicable("the SDE has no stationary law")
        M = solve_continuous_lyapunov(B.T, np.outer(unit, unit))
        if not np.allclose(B @ covariance + covariance @ B.T, -2 * D, atol=1e-9 * np.abs(D).max()):
            raise NotApplicable("the SDE of the code has another law")
        points, weights = gauss_hermite(n, NODES)
        z = points @ np.linalg.cholesky(covariance).T
        values = np.array([at(self.weight, each) for each in z])
        integral = weights @ (values * np.einsum("ki,ij,kj->k", z, M, z))
        return float(-integral / covariance[places[0], places[0]])

    def on_line(self, target: Target, f: Callable[[np.ndarray], np.ndarray]) -> float:
        """Bias of E f(x) over h^order on a target of one coordinate, for a scheme whose z is the position.

        Args:
            target: with an `interval`.
            f: of points (n,).

        Raises:
            NotApplicable: for another target or scheme.
        """
        if len(self.expansion.variables) != 1 or target.interval is None or target.size != 1:
            raise NotApplicable("z is more than one coordinate, or the target is no line")
        x = np.linspace(*target.interval, GRID)
        jets = _derivatives(target, x, self._highest())
        at = lambda p: np.array(
            [self._value(p, np.array([y]), lambda o, _, i=i: jets[sum(o)][i]) for i, y in enumerate(x)]
        )
        _, (diffusion,) = drift_and_covariance(self.expansion, self.region)
        density = np.exp(-(jets[0] - jets[0].min()) / self.temperature)
        density /= np.trapezoid(density, x)
        total = lambda values: scipy.integrate.cumulative_simpson(values, x=x, initial=0)
        values = f(x)
        centred = (values - total(values * density)[-1]) * density
        flux = total(centred)
        flux = np.where(x < x[np.argmax(np.abs(flux))], flux, flux - flux[-1])  # from the nearer end
        weight = total(at(self.weight) * density)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(density > 0, flux / (density * at(diffusion[0]) / 2), 0.0)
        return float(total(weight * slope)[-1])

    def _linear(self, at: Callable[[Polynomial, np.ndarray], float], n: int) -> tuple[np.ndarray, np.ndarray]:
        """B and D of dz = B z dt + (2 D)^(1/2) dW."""
        drift, covariance = drift_and_covariance(self.expansion, self.region)
        probes = np.vstack([np.zeros(n), np.eye(n), np.full((1, n), 0.7), np.full((1, n), -1.3)])
        drifts = np.array([[at(p, z) for p in drift] for z in probes])
        spreads = np.array([[[at(p, z) for p in row] for row in covariance] for z in probes])
        B = drifts[1 : n + 1].T
        if not np.allclose(drifts, probes @ B.T, atol=1e-9) or not np.allclose(spreads, spreads[0], atol=1e-9):
            raise NotApplicable("the SDE is not linear on a Gaussian")
        return B, spreads[0] / 2

    def _highest(self) -> int:
        """The highest derivative of U that is met."""
        generators = self.expansion.ring.generators
        return max(sum(g.orders) for g in generators if isinstance(g, Jet))

    def _value(self, p: Polynomial, z: np.ndarray, jet: Callable[[tuple[int, ...], float], float]) -> float:
        """The value of a polynomial in z and the derivatives of U at its position."""
        ring = self.expansion.ring
        place = {number: float(value) for number, value in zip(self.expansion.variables, z, strict=True)}

        def free(number: int) -> float:
            generator = ring.generators[number]
            if isinstance(generator, Coordinate):
                return place[number]
            if isinstance(generator, Jet) and generator.name == "U":
                at = in_floats(ring, free)
                return float(jet(generator.orders, at(generator.point[0])))
            raise NotApplicable(f"{generator} has no value on this target")

        try:
            return in_floats(ring, free)(p)
        except (NotReal, ZeroDivisionError, OverflowError) as error:
            raise NotApplicable(f"no value at a point of this target: {error}") from error


def leading_term(subject: Subject) -> LeadingTerm:
    """The leading term of the bias of a scheme, for positions of one coordinate.

    Raises:
        NotApplicable: for kernels without a bias that is a power of h, programs that cannot be read or that branch, and
            coefficients that vanish farther than they are looked for.
    """
    target, sampler, oracle = _prepared(subject)
    claims = sampler.claims
    if not isinstance(claims.law, StationaryLaw):
        raise NotApplicable("no law at a fixed step size")
    first = 2 * math.ceil(claims.invariant_order or 1) + 2
    for powers in (first, first + MORE):
        try:
            with jax.enable_x64(True):
                expansion, jumps = expansion_of(sampler, target, oracle, powers)
        except Exception as error:  # what the reader does not know of ends nothing
            raise NotApplicable(str(error)) from error
        if jumps or expansion.unread or len(expansion.regions) != 1:
            raise NotApplicable("the step has branches or jumps")
        region = expansion.regions[0]
        for k, c in enumerate(invariant_coefficients(expansion, region), 1):
            if c:
                return LeadingTerm(Fraction(k, 2) - 1, c, expansion, region, claims.temperature)
    raise NotApplicable(f"no bias up to h^{Fraction(first + MORE, 2) - 1}")


def _prepared(subject: Subject) -> tuple[Any, ...]:
    try:
        with jax.enable_x64(True):
            return prepared(subject.sampler, LINE, subject.estimator)
    except Exception as error:  # of the author's code, or what is not read
        raise NotApplicable(str(error)) from error


def _quadratic(curvature: float, orders: tuple[int, ...], x: float) -> float:
    """The derivative of curvature x^2 / 2."""
    return (curvature * x * x / 2, curvature * x, curvature)[sum(orders)] if sum(orders) < 3 else 0.0


def _derivatives(target: Target, x: np.ndarray, highest: int) -> list[np.ndarray]:
    """U, U', .., at points of a line."""
    found, function = [], lambda y: target.flat_potential(y[None])
    for _ in range(highest + 1):
        found.append(np.asarray(jax.vmap(function)(x)))
        function = jax.grad(function)
    return found
