"""The leading term of the bias of a scheme at a small step size, from the series of its step.

With c_k = e^H A_k^* e^-H at h^k, the first of them that is not zero for every smooth potential, a Poisson equation
gives the bias of an expectation:

    pi_h(f) = pi(f) - h^(k - 1) integral of c_k psi dpi + ..,   L psi = f - pi(f).

L is the generator of the step, of order h. On positions of one coordinate the equation is projected onto polynomials
phi in the position and the auxiliary variables, orthonormal under pi: sum_j <phi_i, L phi_j> psi_j = <phi_i, f>. On a
Gaussian, where L takes polynomials to those of the same degree, psi of f = x^2 is a quadratic and the projection exact;
on other lines it converges faster than any power of the degree.

Source: talay1990expansion; leimkuhler2014long for the expansion of averages; vollmer2016exploration, section 3, for the
Poisson equation; roussel2018spectral for the projection of generators with auxiliary variables.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import numpy as np

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
from sgmcmc_verification.checks.proof.zero import is_zero
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.interface.claims import StationaryLaw
from sgmcmc_verification.targets.target import Target

MORE = 2
"""Powers of s = sqrt(h) by which the series is prolonged once, where no coefficient is found."""
DEGREES: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
    1: ((20,), (24,)),
    2: ((14, 8), (18, 10)),
    3: ((8, 6, 6), (10, 8, 8)),
}
"""Coordinates of z -> degrees of the polynomials along each axis of a coarse and of a fine basis; their difference is
the estimate of the error."""
NODES = {1: 160, 2: 100, 3: 60}
"""Coordinates of z -> nodes of Gauss and Legendre for the position, on the interval of a target."""
SPARE = 8
"""Nodes of Gauss and Hermite for an axis beyond the degree: c psi and L phi are of higher degree than phi."""
SMALL, SAME = 1e-3, 1e-3
"""Part of the usual step size at which steps are compared with their limits, and the relative difference left there."""
ROUNDOFF = 1e-6
"""Part of an entry that may be due to the quadrature."""


Values = Callable[[Polynomial, np.ndarray], float]
"""(polynomial, z) -> its value."""


class Axis(NamedTuple):
    """Polynomials of one coordinate of z, orthonormal under its law.

    Attributes:
        points, weights: of a rule for the law (m,).
        values: of the polynomials and of their first and second derivatives at the points (3, m, degree + 1).
    """

    points: np.ndarray
    weights: np.ndarray
    values: np.ndarray

    def upto(self, degree: int) -> np.ndarray:
        """Those up to a degree."""
        return self.values[:, :, : degree + 1]


@dataclass(frozen=True, eq=False)
class LeadingTerm:
    """The first coefficient of the law of a scheme that is not zero for every potential, for one coordinate.

    Attributes:
        order: power of h of the bias, q; 1/2 for one that is slower.
        weight: c_(q + 1), of z and the derivatives of U.
        expansion, region: of the step.
        temperature: of the law.
        subject: whose step it is.
    """

    order: Fraction
    weight: Polynomial
    expansion: Expansion
    region: Region
    temperature: float
    subject: Subject

    def bias(self, target: Target, f: Callable[[np.ndarray], np.ndarray]) -> tuple[float, float]:
        """Bias of E f(x) over h^order on a target of one coordinate, with an estimate of its error.

        Args:
            target: a Gaussian, or a law with an `interval`.
            f: of positions (n,).

        Raises:
            NotApplicable: for another target, for steps whose auxiliary variables have no Gaussian law, and for
                samplers that are another one on the target: a scale of theirs may be made from its curvature.
        """
        n = len(self.expansion.variables)
        if target.size != 1 or not target.manifold.is_linear or n not in DEGREES or self.region.places != (0,):
            raise NotApplicable("z is no position with at most two auxiliary variables on a line")
        at = self._values(target)
        self._require_the_same_step(target, at)
        axes = self._axes(target, at)
        fields = self._fields(at, axes)
        coarse, fine = (self._bias(fields, axes, degrees, f) for degrees in DEGREES[n])
        return fine, abs(fine - coarse)

    def _bias(self, fields: "Fields", axes: list[Axis], degrees: Sequence[int], f: Callable[..., np.ndarray]) -> float:
        """The bias with polynomials up to the degrees."""
        n, tables = len(axes), [axis.upto(degree) for axis, degree in zip(axes, degrees, strict=True)]
        entry = lambda field, orders: _entries(
            field,
            [np.einsum("m,mi,mj->mij", a.weights, t[0], t[k]) for a, t, k in zip(axes, tables, orders, strict=True)],
        )
        unit = np.eye(n, dtype=int)
        L: np.ndarray = np.sum([entry(fields.drift[i], unit[i]) for i in range(n)], axis=0)
        for (i, j), field in fields.covariance.items():
            L = L + entry(field, unit[i] + unit[j]) / (2 if i == j else 1)
        if not L.any():
            raise NotApplicable("the step has no generator at the order of h: it moves by h, or by h^2, in its time")
        if np.abs(L[0]).max() > ROUNDOFF * np.abs(L).max():
            raise NotApplicable("the SDE of the code has another law")
        project = lambda field: _entries(field, [a.weights[:, None] * t[0] for a, t in zip(axes, tables, strict=True)])
        values = f(axes[0].points)
        right = project(np.broadcast_to(values.reshape(-1, *[1] * (n - 1)), fields.weight.shape))
        psi = np.linalg.lstsq(L[1:, 1:], right[1:], rcond=None)[0]
        return float(-project(fields.weight)[1:] @ psi)

    def _require_the_same_step(self, target: Target, at: Values) -> None:
        """Raise NotApplicable unless drift and covariance of a step on the target are those of the expansion."""
        step, h = step_map(self.subject, target), SMALL * self.subject.step_size(target)
        base = np.asarray(step.template.flat, float)
        z = base + np.linspace(-0.4, 0.5, 3)[:, None] * np.cos(np.arange(len(base)))
        drift, covariance = drift_and_covariance(self.expansion, self.region)
        if step.size != len(drift):
            raise NotApplicable("z is another one on this target")
        whole, half = step.moments(z, h), step.moments(z, h / 2)
        limit = lambda name: (4 * getattr(half, name) - getattr(whole, name)) / h
        value = lambda p, point: at(p, point) if p else 0.0
        expected = [[value(p, point) for p in drift] for point in z]
        spreads = [[[value(p, point) for p in row] for row in covariance] for point in z]
        for found, told in ((limit("increment"), expected), (limit("square"), spreads)):
            if not np.allclose(found, told, rtol=SAME, atol=SAME * np.abs(told).max(initial=1.0)):
                raise NotApplicable("the sampler is another one on this target")

    def _axes(self, target: Target, at: Values) -> list[Axis]:
        """Rules and polynomials for the position and for each auxiliary variable, under the law of z."""
        n = len(self.expansion.variables)
        most = DEGREES[n][1]
        axes = [_orthonormal(*_position(target, self.temperature, NODES[n], most[0] + SPARE), most[0])]
        origin = np.zeros(n)
        for i, degree in enumerate(most[1:], 1):
            slope = self.region.density.slope[i]
            precision = at(slope.derivative(self.expansion.variables[i]), origin)
            if precision <= 0:
                raise NotApplicable("an auxiliary variable has no Gaussian law")
            points, weights = gauss_hermite(1, degree + SPARE)
            axes.append(_orthonormal(points[:, 0] / precision**0.5 - at(slope, origin) / precision, weights, degree))
        return axes

    def _fields(self, at: Values, axes: list[Axis]) -> "Fields":
        """Drift, covariance and c at all nodes. Raises NotApplicable where the law of z is no product of the axes."""
        n = len(axes)
        drift, covariance = drift_and_covariance(self.expansion, self.region)
        nodes = np.array(list(itertools.product(*(axis.points for axis in axes))))
        shape = tuple(len(axis.points) for axis in axes)
        over = lambda p: np.array([at(p, z) for z in nodes]).reshape(shape) if p else np.zeros(shape)
        origin = np.zeros(n)
        for i, slope in enumerate(self.region.density.slope[1:], 1):
            # linear in its own variable, and free of the others
            for z in nodes[:: max(1, len(nodes) // 50)]:
                own = np.where(np.arange(n) == i, z, origin)
                linear = at(slope, origin) + own[i] * at(slope.derivative(self.expansion.variables[i]), origin)
                if not np.isclose(at(slope, z), linear, atol=1e-9):
                    raise NotApplicable("an auxiliary variable has no Gaussian law of its own")
        upper = itertools.combinations_with_replacement(range(n), 2)
        spreads = {(i, j): over(covariance[i][j]) for i, j in upper if covariance[i][j]}
        return Fields([over(p) for p in drift], spreads, over(self.weight))

    def _values(self, target: Target) -> Values:
        """A function for the value of a polynomial in z and the derivatives of U on a target, at z."""
        ring, variables = self.expansion.ring, self.expansion.variables
        jets = _Jets(target, max((sum(g.orders) for g in ring.generators if isinstance(g, Jet)), default=0))

        def value(p: Polynomial, z: np.ndarray) -> float:
            place = {number: float(each) for number, each in zip(variables, z, strict=True)}

            def free(number: int) -> float:
                generator = ring.generators[number]
                if isinstance(generator, Coordinate):
                    return place[number]
                if isinstance(generator, Jet) and generator.name == "U":
                    return jets(sum(generator.orders), in_floats(ring, free)(generator.point[0]))
                raise NotApplicable(f"{generator} has no value on this target")

            try:
                return in_floats(ring, free)(p)
            except (NotReal, ZeroDivisionError, OverflowError) as error:
                raise NotApplicable(f"no value at a point of this target: {error}") from error

        return value


class Fields(NamedTuple):
    """Drift, the upper triangle of the covariance over h where it is not 0, and c, at all nodes."""

    drift: list[np.ndarray]
    covariance: dict[tuple[int, int], np.ndarray]
    weight: np.ndarray


class _Jets:
    """Derivatives of U at points of a line, each taken once."""

    def __init__(self, target: Target, highest: int) -> None:
        function = lambda y: target.flat_potential(y[None])
        self._functions = []
        for _ in range(highest + 1):
            self._functions.append(jax.jit(function))
            function = jax.grad(function)
        self._known: dict[tuple[int, float], float] = {}

    def __call__(self, order: int, x: float) -> float:
        if (order, x) not in self._known:
            self._known[order, x] = float(self._functions[order](np.float64(x)))
        return self._known[order, x]


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
            if not is_zero(c):
                return LeadingTerm(Fraction(k, 2) - 1, c, expansion, region, claims.temperature, subject)
    raise NotApplicable(f"no bias up to h^{Fraction(first + MORE, 2) - 1}")


def _prepared(subject: Subject) -> tuple[Any, ...]:
    try:
        with jax.enable_x64(True):
            return prepared(subject.sampler, LINE, subject.estimator)
    except Exception as error:  # of the author's code, or what is not read
        raise NotApplicable(str(error)) from error


def _position(target: Target, temperature: float, nodes: int, of_hermite: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights (m,) of a rule for the law of the position."""
    if target.gaussian is not None:
        points, weights = gauss_hermite(1, of_hermite)
        return target.gaussian.mean[0] + points[:, 0] * (temperature / target.gaussian.precision[0, 0]) ** 0.5, weights
    if target.interval is None:
        raise NotApplicable("no interval is known that holds the law")
    low, high = target.interval
    t, weights = np.polynomial.legendre.leggauss(nodes)
    points = (low + high) / 2 + (high - low) / 2 * t
    energy = np.asarray(jax.vmap(target.flat_potential)(points[:, None]))
    weights = weights * np.exp(-(energy - energy.min()) / temperature)
    return points, weights / weights.sum()


def _orthonormal(points: np.ndarray, weights: np.ndarray, degree: int) -> Axis:
    """Polynomials up to a degree that are orthonormal under a rule, by their three-term recurrence (gautschi2004)."""
    zero = np.zeros_like(points)
    before, now = np.stack([zero, zero, zero]), np.stack([zero + 1, zero, zero])
    found, b = [now], 0.0
    for _ in range(degree):
        a = weights @ (points * now[0] ** 2)
        values, slopes, curvatures = (points - a) * now - b * before
        following = np.stack([values, slopes + now[0], curvatures + 2 * now[1]])
        b = float(np.sqrt(weights @ following[0] ** 2))
        before, now = now, following / b
        found.append(now)
    return Axis(points, weights, np.stack(found, axis=-1))


def _entries(field: np.ndarray, tables: Sequence[np.ndarray]) -> np.ndarray:
    """Sums over the nodes of a field times a table for each axis, as a vector or a matrix over all axes' indices.

    Args:
        field: at the nodes (m_1, .., m_n).
        tables: (m_i, degree_i + 1) each, or (m_i, degree_i + 1, degree_i + 1) each.
    """
    for table in tables:  # the first axis that is left goes, and its indices come last
        field = np.tensordot(field, table, axes=([0], [0]))
    sizes = [table.shape[1] for table in tables]
    count = math.prod(sizes)
    if tables[0].ndim == 2:
        return field.reshape(count)
    n = len(tables)
    order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]
    return field.transpose(order).reshape(count, count)
