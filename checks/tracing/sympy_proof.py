"""The equations of the recipe proved in SymPy, for the program of a `Dynamics`."""

# SymPy and tuple sums are typed too widely for these rules to say anything here.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportCallIssue=false, reportIndexIssue=false

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import mpmath
import numpy as np
import sympy as sp

from sgmcmc_verification.checks.tracing.jaxpr_to_sympy import (
    almost_everywhere,
    coordinate_symbols,
    symbolic_matrix,
    to_sympy,
    vanishes,
)
from sgmcmc_verification.checks.tracing.recipe_equations import (
    CONSTANTS,
    EQUATIONS,
    LARGEST_EXPRESSION,
    EquationCheck,
    worst_of,
)
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics

DIGITS = 50
VERIFIED = 10.0 ** (10 - DIGITS)
"""Relative size that counts as zero in arithmetic of `DIGITS` digits."""


class Symbolic(NamedTuple):
    """A `Dynamics` in SymPy: what its programs compute, and what the formulas of the recipe make of H, D and Q.

    Attributes:
        symbols: one a coordinate.
        H: expression.
        D: (n, n).
        Q: (n, n).
        gamma: (n, 1), from the traced program `dynamics.gamma`.
        drift: (n, 1), from the traced program `dynamics.drift`.
        slope: (n, 1), grad H derived by SymPy.
        derived_gamma: (n, 1), sum_j d_j (D_ij + Q_ij) derived by SymPy.
        derived_drift: (n, 1), -(D + Q) grad H + Gamma derived by SymPy.
        residual_terms: expressions whose sum is the Fokker-Planck residual of `drift`.
    """

    symbols: tuple[sp.Symbol, ...]
    H: sp.Expr
    D: sp.Matrix
    Q: sp.Matrix
    gamma: sp.Matrix
    drift: sp.Matrix
    slope: sp.Matrix
    derived_gamma: sp.Matrix
    derived_drift: sp.Matrix
    residual_terms: list[sp.Expr]


def translate(dynamics: Dynamics, positive: tuple[bool, ...] | None = None) -> Symbolic:
    """The programs of a `Dynamics` as SymPy expressions.

    Args:
        dynamics: H, D, Q and what is derived from them by autodiff.
        positive: which coordinates are positive; the others are real.

    Raises:
        Untranslatable: naming the primitive.
    """
    n = dynamics.dim
    x = coordinate_symbols(dynamics.names, positive or (False,) * n)
    H = to_sympy(dynamics.H, x)
    D, Q = (symbolic_matrix(to_sympy(m, x)) for m in (dynamics.D, dynamics.Q))
    gamma, drift = (symbolic_matrix(to_sympy(f, x)) for f in (dynamics.gamma, dynamics.drift))
    diff = lambda expression, symbol: almost_everywhere(sp.diff(expression, symbol))
    divergence = lambda m: sp.Matrix([sp.Add(*(diff(m[i, j], x[j]) for j in range(n))) for i in range(n)])
    slope = sp.Matrix([diff(H, s) for s in x])
    derived_gamma = divergence(D + Q)
    derived_drift = -(D + Q) * slope + derived_gamma
    first = divergence(D)
    terms = [diff(drift[i], x[i]) for i in range(n)] + [-drift[i] * slope[i] for i in range(n)]
    terms += [-diff(first[i], x[i]) for i in range(n)] + [2 * first[i] * slope[i] for i in range(n)]
    for i, j in itertools.product(range(n), range(n)):
        terms += [-D[i, j] * slope[i] * slope[j], D[i, j] * diff(slope[i], x[j])]
    return Symbolic(x, H, D, Q, gamma, drift, slope, derived_gamma, derived_drift, terms)


def evaluator(symbols: Sequence[sp.Symbol], expressions: Sequence[sp.Expr]) -> Callable[[Sequence], list]:
    """Expressions as one function of a point, in mpmath at the working precision."""
    plain = [sp.sympify(e).rewrite(sp.Max, sp.Piecewise).rewrite(sp.Min, sp.Piecewise) for e in expressions]
    # Dummies: the names of coordinates, such as r[0], are no identifiers.
    dummies = [sp.Dummy() for _ in symbols]
    replaced = [e.xreplace(dict(zip(symbols, dummies, strict=True))) for e in plain]
    function = sp.lambdify(dummies, replaced, modules="mpmath", cse=True)
    return lambda point: function(*point)


def rational_points(points: np.ndarray, denominator: int = 64) -> list[list[sp.Rational]]:
    """Points (m, n) rounded to a grid of rationals, off zero."""
    grid = np.round(np.asarray(points) * denominator).astype(int)
    grid[grid == 0] = 1
    return [[sp.Rational(int(v), denominator) for v in row] for row in grid]


def prove(
    dynamics: Dynamics,
    points: np.ndarray,
    positive: tuple[bool, ...] | None = None,
    largest_expression: int = LARGEST_EXPRESSION,
) -> tuple[dict[str, EquationCheck], Symbolic]:
    """Every equation of the recipe, symbolically: by name, with what is proved told from what is only evaluated.

    Args:
        dynamics: what to prove it for.
        points: (m, n), where to evaluate (rounded to rationals) what SymPy cannot decide, and what it refutes.
        positive: which coordinates are positive.
        largest_expression: operations up to which an expression is simplified.

    Raises:
        Untranslatable: naming the primitive.
    """
    s, n = translate(dynamics, positive), dynamics.dim
    names = dynamics.names
    pairs = list(itertools.combinations_with_replacement(range(n), 2))
    groups = {
        "skew": [((s.Q[i, j], s.Q[j, i]), f"Q[{names[i]},{names[j]}] + Q[{names[j]},{names[i]}]") for i, j in pairs],
        "symmetric": [
            ((s.D[i, j], -s.D[j, i]), f"D[{names[i]},{names[j]}] - D[{names[j]},{names[i]}]") for i, j in pairs if i < j
        ],
        "gamma": [((s.gamma[i], -s.derived_gamma[i]), f"Gamma of {names[i]}") for i in range(n)],
        "drift": [((s.drift[i], -s.derived_drift[i]), f"drift of {names[i]}") for i in range(n)],
        "residual": [(tuple(s.residual_terms), "the residual")],
    }
    flat = [item for group in groups.values() for item in group]
    places = rational_points(points)
    with mpmath.workdps(DIGITS):
        evaluate = evaluator(s.symbols, [term for terms, _ in flat for term in terms])
        values = [evaluate([mpmath.mpf(v.p) / v.q for v in place]) for place in places]
    found: dict[str, EquationCheck] = {}
    start = 0
    for key, group in groups.items():
        findings, end = [], start + sum(len(terms) for terms, _ in group)
        largest = [max((abs(v) for v in row[start:end]), default=0) for row in values]
        for terms, label in group:
            stop = start + len(terms)
            findings.append(
                _decide(terms, [row[start:stop] for row in values], largest, label, places, largest_expression)
            )
            start = stop
        found[key] = worst_of(findings)
    found["semidefinite"] = _semidefinite(s, places, largest_expression)
    return {key: found[key] for key in EQUATIONS}, s


def _decide(terms: Sequence[sp.Expr], values, largest, label: str, places, largest_expression: int) -> EquationCheck:
    """Decide if a sum of terms vanishes identically.

    `values` are those of the terms at the rational points, `largest` the largest ones of the equation there.
    """
    worst, where, at = 0.0, 0, mpmath.mpf(0)
    with mpmath.workdps(DIGITS):
        for k, row in enumerate(values):
            total = mpmath.fsum(row)
            scale = mpmath.fsum(abs(v) for v in row)
            # Terms may be zero by cancellation of their own, to 50 digits of the other terms.
            ratio = 0.0 if abs(total) <= VERIFIED * largest[k] else float(abs(total) / scale)
            if not ratio <= worst:
                worst, where, at = ratio, k, total
    if not worst <= CONSTANTS:
        z = [float(v) for v in places[where]]
        return EquationCheck("violated", worst, f"{label} is {mpmath.nstr(at, 6)} at z = {z}")
    expression = sp.Add(*terms)
    if worst <= VERIFIED and _proved_zero(expression, largest_expression):
        return EquationCheck("proved", 0.0)
    return EquationCheck("verified" if worst <= VERIFIED else "round-off", worst)


def _proved_zero(expression: sp.Expr, largest: int) -> bool:
    if expression.is_zero:
        return True
    if expression.count_ops() > largest:
        return False
    try:
        return vanishes(expression)
    except (sp.PolynomialError, NotImplementedError, ValueError, TypeError):
        return False


def _semidefinite(s: Symbolic, places, largest: int) -> EquationCheck:
    """All principal minors of D nonnegative: proved by sign, or evaluated."""
    n = s.D.shape[0]
    if all(_nonnegative(minor, largest) for minor in _principal_minors(s.D)):
        return EquationCheck("proved", 0.0)
    evaluate = evaluator(s.symbols, list(s.D))
    shortfall, least, where = 0.0, 0.0, 0
    for k, place in enumerate(places):
        with mpmath.workdps(DIGITS):
            matrix = mpmath.matrix(n, n)
            for index, value in enumerate(evaluate([mpmath.mpf(v.p) / v.q for v in place])):
                matrix[index // n, index % n] = value
            eigenvalues = mpmath.eigsy((matrix + matrix.T) / 2, eigvals_only=True)
            size = max(abs(v) for v in eigenvalues)
            lowest = min(eigenvalues)
        if size and float(-lowest / size) > shortfall:
            shortfall, least, where = float(-lowest / size), float(lowest), k
    if not shortfall <= CONSTANTS:
        z = [float(v) for v in places[where]]
        return EquationCheck("violated", shortfall, f"least eigenvalue {least:.6g} at z = {z}")
    return EquationCheck("verified" if shortfall <= VERIFIED else "round-off", shortfall)


def _principal_minors(matrix: sp.Matrix):
    """Determinants of the principal submatrices of each connected block of D."""
    n = matrix.shape[0]
    linked = [{j for j in range(n) if j == i or matrix[i, j] != 0 or matrix[j, i] != 0} for i in range(n)]
    for rows in (rows for k in range(1, n + 1) for rows in itertools.combinations(range(n), k)):
        # A block that falls apart has the product of smaller minors as its determinant.
        reached, frontier = {rows[0]}, [rows[0]]
        while frontier:
            step = (linked[frontier.pop()] & set(rows)) - reached
            reached |= step
            frontier.extend(step)
        if len(reached) == len(rows):
            yield matrix.extract(list(rows), list(rows)).det(method="berkowitz")


def _nonnegative(expression: sp.Expr, largest: int) -> bool:
    if expression.is_nonnegative:
        return True
    if expression.is_number or expression.count_ops() > largest:
        return bool(expression.is_number and expression >= 0)
    try:
        return bool(sp.factor(sp.together(expression)).is_nonnegative)
    except (sp.PolynomialError, NotImplementedError):
        return False
