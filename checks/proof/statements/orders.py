"""The order of a step, its generator, and the law that its SDE keeps, on one region of the state space.

With A_k as in `operators`, and c_k = e^H A_k^* e^-H at h^k, k = 1/2, 1, 3/2, ..:

    generator         A_(1/2) = 0 and A_1 = L, the generator of the declared D, Q and H
    recipe            e^H L^* e^-H = 0, Q skew, D symmetric
    weak order p      A_j = L^j / j! for j <= p, and A_(j - 1/2) = 0
    invariant order q c_k = 0 for all k <= q + 1/2

The last one is for every smooth U at once: pi_h(f) = pi(f) + O(h^q) iff the c_k up to q vanish, by the expansion
pi_h = e^-H (1 + h rho_1 + ..), L^* rho_k = -c_(k + 1) + ..; c_(q + 1/2) adds a term in h^(q - 1/2). If the position is
z and an independent noise with the operators B_k, it has the law e^-H where z has e^-H sum_k r_k h^k with
r_k = -sum_(j > 0) B_j^* r_(k - j), r_0 = 1, and c_k = sum_(j > 0) e^H A_j^* (r_(k - j) e^-H).

Source: talay1990expansion; vollmer2016exploration, section 3; leimkuhler2014long for the noise of the readout;
ma2015complete for the recipe.
"""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from sgmcmc_verification.checks.proof.expansion import Expansion, Region
from sgmcmc_verification.checks.proof.functions import all_substituted, power, substituted
from sgmcmc_verification.checks.proof.matrices import determinant
from sgmcmc_verification.checks.proof.operators import Operator, coefficient, composed, generator_of, sum_of, unit
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.statements.result import Result, of_polynomials, power_of_step

GENERATOR, RECIPE, WEAK, INVARIANT = "generator", "recipe", "weak order", "invariant order"
MARGINAL = "law of the position"
SECOND = 2
"""The order that a step may have for the positions, and not for the momenta."""
FEW = 4
"""Coordinates of which drift and covariance are told."""


def invariant_coefficients(expansion: Expansion, region: Region) -> list[Polynomial]:
    """c_k of the law of the position for k = 1/2, 1, .., as far as the expansion goes."""
    density, orders = region.density, range(1, expansion.order + 1)
    steps = {k: coefficient(region.moments, k) for k in orders}
    weights = _weights(expansion, region)
    return [
        expansion.ring.sum(density.adjoint(steps[j], weights[k - j]) for j in range(1, k + 1) if weights[k - j])
        for k in orders
    ]


def _weights(expansion: Expansion, region: Region) -> list[Polynomial]:
    """r_0, r_1/2, r_1, .. of the law e^-H sum_k r_k h^k of z with which the position has the law e^-H exactly."""
    ring, found = expansion.ring, [expansion.ring.one]
    if region.readout is None:
        return found + [ring.zero] * expansion.order
    for k in range(1, expansion.order + 1):
        parts = (region.density.adjoint(coefficient(region.readout, j), found[k - j]) for j in range(1, k + 1))
        found.append(-ring.sum(parts))
    return found


def invariant_order(expansion: Expansion, region: Region, order: int | Fraction) -> Result:
    """Decide if the law of the positions is exp(-H) up to O(h^order), for every smooth potential.

    With order 1/2 it is asked whether the law is right in the limit h -> 0.
    """
    count = int(2 * order + 1)
    named = _named_coefficients(invariant_coefficients(expansion, region)[:count])
    equation = f"e^H A_k^* e^-H = 0 for k <= {power_of_step(count)}"
    found = of_polynomials(f"{INVARIANT} {order}", equation, named, region.conditions)
    return found if found.holds or order != SECOND else _of_position(expansion, region, count) or found


def _of_position(expansion: Expansion, region: Region, count: int) -> Result | None:
    """Order 2 of the law of the positions alone, where that of (x, p) is e^-H (1 + h rho), rho = a p . grad U.

    L^* rho = -c_2 with a number a, and what is left at the orders up to `count` vanishes. Where H is even in p, the
    mean of rho over p is zero. So it is for a step that is conjugate to one of order 2 by a kick, p + a h grad U.

    Source: leimkuhler2013rational, section 3, for conjugate splittings; vollmer2016exploration, section 3, for rho.
    """
    dimension = len(expansion.variables) // 2
    density, zero = region.density, expansion.ring.zero
    if region.readout is not None or region.places != tuple(range(dimension)) or count > expansion.order:
        return None
    positions, momenta = expansion.variables[:dimension], expansion.variables[dimension:]
    reversed_momenta = {v: -expansion.ring.power(v, 1) for v in momenta}
    if all_substituted(density.hamiltonian, reversed_momenta) != density.hamiltonian:
        return None
    steps = {k: coefficient(region.moments, k) for k in range(1, count + 1)}
    slopes = zip(positions, momenta, strict=True)
    rho = expansion.ring.sum(density.hamiltonian.derivative(x) * expansion.ring.power(p, 1) for x, p in slopes)
    turned, c_2 = density.adjoint(steps[2], rho), density.adjoint(steps[4])
    if not turned or any(density.adjoint(steps[k]) for k in (1, 2, 3)):
        return None
    known = dict(turned.terms())
    a = next((-value / known[factors] for factors, value in c_2.terms() if factors in known), None)
    if a is None:
        return None
    weights = [expansion.ring.one, zero, rho.scaled(a), *[zero] * count]
    left = [
        expansion.ring.sum(density.adjoint(steps[j], weights[k - j]) for j in range(1, k + 1) if weights[k - j])
        for k in range(1, count + 1)
    ]
    equation = f"e^H A^* e^-H (1 + h rho) = 0 up to {power_of_step(count)}, rho = {a} p . grad H, odd in p"
    found = of_polynomials(f"{INVARIANT} {SECOND}", equation, _named_coefficients(left), region.conditions)
    return found if found.holds else None


def _named_coefficients(coefficients: Sequence[Polynomial]) -> Iterator[tuple[str, Polynomial]]:
    return ((f"c_{power_of_step(k)}", c) for k, c in enumerate(coefficients, 1))


def generator(expansion: Expansion, region: Region) -> Result:
    """Decide if the step discretises the declared SDE."""
    equation = "A_1/2 = 0 and A_1 = L"
    if region.recipe is None:
        return Result(GENERATOR, equation, "undecided", "no dynamics is declared", region=region.conditions)
    L = generator_of(region.density, region.recipe.D, region.recipe.Q)
    terms = [*_named_terms(coefficient(region.moments, 1), expansion), *_difference(region, L, 1, expansion)]
    return of_polynomials(GENERATOR, equation, terms, region.conditions)


def in_terms_of_recipe(region: Region) -> Region:
    """A region on which A_1 = L with the coefficients of A_1 as D and Q give them: they are equal, and shorter."""
    assert region.recipe is not None
    L = generator_of(region.density, region.recipe.D, region.recipe.Q)
    zero = region.density.hamiltonian.ring.zero
    found = {index: list(row) for index, row in region.moments.items()}
    for index in L.keys() - found.keys():
        found[index] = [zero] * max(map(len, region.moments.values()))
    for index, row in found.items():
        row[2] = L.get(index, zero).scaled(math.prod(map(math.factorial, index)))
    return replace(region, moments=found)


def recipe(expansion: Expansion, region: Region) -> Result:
    """Decide if the declared SDE keeps exp(-H)."""
    equation = "e^H L^* e^-H = 0, Q + Q^T = 0, D - D^T = 0"
    if region.recipe is None:
        return Result(RECIPE, equation, "undecided", "no dynamics is declared", region=region.conditions)
    D, Q = region.recipe.D, region.recipe.Q
    n = len(expansion.variables)
    pairs = list(itertools.combinations_with_replacement(range(n), 2))
    named = [(f"Q_{i + 1}{j + 1} + Q_{j + 1}{i + 1}", Q[i, j] + Q[j, i]) for i, j in pairs]
    named += [(f"D_{i + 1}{j + 1} - D_{j + 1}{i + 1}", D[i, j] - D[j, i]) for i, j in pairs]
    named.append(("the residual of Fokker and Planck", region.density.adjoint(generator_of(region.density, D, Q))))
    return of_polynomials(RECIPE, equation, named, region.conditions)


def marginal(expansion: Expansion, region: Region, potential: Polynomial, dimension: int) -> Result:
    """Decide if the position has the law exp(-U / T) where z has exp(-H), for an H that is quadratic in the rest of z.

    With W = H - U / T = b(x) + p^T A(x) p / 2 it has iff b - log |A| / 2 is constant.
    """
    equation = "d/dx_i log of the integral of exp(U / T - H) over the rest of z = 0"
    rest = region.density.hamiltonian - potential
    positions, others = expansion.variables[:dimension], expansion.variables[dimension:]
    names = [str(expansion.ring.generators[number]) for number in positions]
    slopes = [rest.derivative(v) for v in positions]
    if not any(slopes):
        return Result(MARGINAL, equation, "proved", region=region.conditions)
    A = [[rest.derivative(u).derivative(v) for v in others] for u in others]
    if not others or any(entry.derivative(w) for row in A for entry in row for w in others):
        named = [(f"dH/d{name} - dU/d{name} / T", p) for name, p in zip(names, slopes, strict=True)]
        found = of_polynomials(MARGINAL, equation, named, region.conditions)
        if found.holds or not others:
            return found
        return Result(MARGINAL, equation, "undecided", "H is not quadratic in the rest of z", region=region.conditions)
    volume = determinant(A)
    inverse = power(volume, -1)
    at_zero = lambda p: functools.reduce(lambda q, v: substituted(q, v, expansion.ring.zero), others, p)
    named = [
        (f"d/d{name} (b - log |A| / 2)", at_zero(p) - (inverse * volume.derivative(v)).scaled(Fraction(1, 2)))
        for name, p, v in zip(names, slopes, positions, strict=True)
    ]
    named += [("dH/dp at p = 0", at_zero(rest.derivative(v))) for v in others]
    return of_polynomials(MARGINAL, equation, named, region.conditions)


def weak_order(expansion: Expansion, region: Region, order: int) -> Result:
    """Decide if one step is the semigroup of the declared SDE up to O(h^(order + 1)), for every smooth potential."""
    statement, equation = f"{WEAK} {order}", f"A_j = L^j / j! for j <= {order}"
    if region.recipe is None:
        return Result(statement, equation, "undecided", "no dynamics is declared", region=region.conditions)
    L = generator_of(region.density, region.recipe.D, region.recipe.Q)
    terms: list[tuple[str, Polynomial]] = []
    power: Operator = L
    for j in range(1, order + 1):
        power = composed(L, power, expansion.variables) if j > 1 else L
        terms += _named_terms(coefficient(region.moments, 2 * j - 1), expansion, power_of_step(2 * j - 1))
        terms += _difference(region, power, j, expansion)
    return of_polynomials(statement, equation, terms, region.conditions)


def _difference(region: Region, power: Operator, j: int, expansion: Expansion) -> list[tuple[str, Polynomial]]:
    """The coefficients of A_j - L^j / j!."""
    own = coefficient(region.moments, 2 * j)
    rest = sum_of([(Fraction(1), own), (Fraction(-1, math.factorial(j)), power)])
    return _named_terms(rest, expansion, str(j))


def _named_terms(operator: Operator, expansion: Expansion, k: str = "1/2") -> list[tuple[str, Polynomial]]:
    names = [str(expansion.ring.generators[number]) for number in expansion.variables]

    def derivative(index: Sequence[int]) -> str:
        return " ".join(f"d/d{name}" + (f"^{e}" if e > 1 else "") for name, e in zip(names, index, strict=True) if e)

    return [
        (f"the coefficient of {derivative(index)} in A_{k}, less what it should be", c) for index, c in operator.items()
    ]


def drift_and_covariance(expansion: Expansion, region: Region) -> tuple[list[Polynomial], list[list[Polynomial]]]:
    """The mean of z' - z and E (z' - z)(z' - z)^T at order h."""
    n, zero = len(expansion.variables), expansion.ring.zero
    at_order_h = lambda *places: region.moments[i][2] if (i := unit(n, *places)) in region.moments else zero
    return [at_order_h(i) for i in range(n)], [[at_order_h(i, j) for j in range(n)] for i in range(n)]


def described(expansion: Expansion, region: Region) -> str:
    """Drift and covariance of a step at order h in words."""
    drift, covariance = drift_and_covariance(expansion, region)
    n = len(drift)
    if n > FEW:
        first = f"the drift {drift[0].text(3)} and the variance {covariance[0][0].text(3)} h"
        return f"of {n} coordinates the first has {first}"
    means = ", ".join(p.text(3) for p in drift)
    spread = ", ".join(covariance[i][j].text(3) for i in range(n) for j in range(i, n))
    return f"drift {means}; covariance over h {spread}"
