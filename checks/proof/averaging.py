"""Positions beside momenta that decay at a fixed rate: the expansion of the position, averaged over the momenta.

A momentum that keeps a fixed share of itself, as that of an optimiser does,

    v' = beta v - h g(x) + sqrt(2 (1 - beta) h) n,    x' = x + v',

is of the size of s = sqrt(h) and forgets in a number of steps that does not grow as h -> 0: the position has an SDE in
the limit, the momentum has not. In the numbers w = v / s^k the step is

    w_j' = beta_j w_j + n_j + O(s),    x_i' = x_i + s (sum_j c_ij w_j + noise) + O(s^2),

and y = x + s sum_j r_ij w_j with r_ij = c_ij / (1 - beta_j) moves by noise alone at order s. Where what it moves by in
the mean at order s^2 does not depend on w either, no more corrections are needed up to s^3: the moments of y' - y,
averaged over the law that w has at a fixed x,

    E w_j = 0,    E w_j w_k = E n_j n_k / (1 - beta_j beta_k),

are those of the position. Source: pavliotis2008multiscale, chapter 11, for the averaging and the correction of x by the
solution of a Poisson equation, here in discrete time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sgmcmc_verification.checks.proof.draws import Expectation
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.operators import Moments, moments
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import Series

SCALES = (1, -1)
"""k: a momentum that is added to the position as it is; one that is multiplied by the step size then."""
MOST_POWERS = 3
"""Powers of s up to which the momenta need no further correction."""


@dataclass(frozen=True)
class Fast:
    """Momenta of a fixed decay.

    Attributes:
        shares: number of w_j in the ring -> beta_j.
        squares: (numbers of w_j and w_k, in order) -> E w_j w_k at a fixed x.
    """

    shares: Mapping[int, Fraction]
    squares: Mapping[tuple[int, int], Polynomial]

    def average(self, p: Polynomial) -> Polynomial:
        """E p over the momenta. Raises Unreadable for more than their squares."""
        ring, terms = p.ring, []
        for factors, value in p.terms():
            inside = [(number, power) for number, power in factors if number in self.shares]
            outside = ring.monomial(tuple(f for f in factors if f[0] not in self.shares), value)
            flat = tuple(number for number, power in inside for _ in range(power))
            if any(power < 0 for _, power in inside) or len(flat) > 2:
                raise Unreadable("a momentum of a fixed decay to a power beyond its square")
            if not flat:
                terms.append(outside)
            elif len(flat) == 2:
                terms.append(outside * self.squares[flat[0], flat[1]])
        _require_polynomial(p, self.shares)
        return ring.sum(terms)


def averaged_moments(
    start: Sequence[Polynomial],
    end: Sequence[Series],
    slow: Sequence[int],
    order: int,
    expectation: Expectation,
) -> Moments:
    """Moments of the position, up to s^order.

    Args:
        start: z, with the momenta as w.
        end: z after a step, likewise.
        slow: places of the coordinates of the position in z.
        order: at most `MOST_POWERS`.
        expectation: over the draws.

    Raises:
        Unreadable: if the step is not of the kind in the module.
    """
    if order > MOST_POWERS:
        raise Unreadable("momenta of a fixed decay, beyond the order of the law in the limit")
    places = [i for i in range(len(start)) if i not in slow]
    fast = _fast([start[i] for i in places], [end[i] for i in places], expectation)
    space = end[0].space
    increments = []
    for i in slow:
        change = end[i] - space.lift(start[i])
        if change and change.valuation < 1:
            raise Unreadable("a position that does not tend to itself as h -> 0")
        shares = _linear(expectation(change.coefficient(1)), fast)
        for j in places:
            (number,) = start[j].numbers()
            if shares.get(number):
                factor = shares[number] / (1 - fast.shares[number])
                change = change + (end[j] - space.lift(start[j])).shifted(1).scaled(factor)
        increments.append(change)
    found = moments(increments, order, expectation)
    first = [change.coefficient(1) for change in increments]
    if any(set(fast.shares) & p.atoms() for p in (*first, *(row[2] for row in found.values() if order >= 2))):
        raise Unreadable("a move of the position at first order that depends on a momentum of a fixed decay")
    return {index: [fast.average(p) for p in row] for index, row in found.items()}


def _fast(start: Sequence[Polynomial], end: Sequence[Series], expectation: Expectation) -> Fast:
    """The law of the momenta at a fixed position."""
    shares: dict[int, Fraction] = {}
    noises: dict[int, Polynomial] = {}
    for before, after in zip(start, end, strict=True):
        (number,) = before.numbers()
        if after.valuation < 0:
            raise Unreadable("a momentum that grows as h -> 0")
        share = after.constant_term.coefficient(((number, 1),))
        noise = after.constant_term - before.scaled(share)
        if abs(share) >= 1 or expectation(noise):
            raise Unreadable("a momentum without a fixed decay")
        shares[number], noises[number] = share, noise
    if any(set(shares) & noise.atoms() for noise in noises.values()):
        raise Unreadable("a momentum without a fixed decay of its own")
    squares = {
        (a, b): expectation(noises[a] * noises[b]).scaled(1 / (1 - shares[a] * shares[b]))
        for a in shares
        for b in shares
    }
    return Fast(shares, squares)


def _linear(p: Polynomial, fast: Fast) -> dict[int, Fraction]:
    """The coefficients of the momenta in a linear polynomial of them."""
    found: dict[int, Fraction] = {}
    for factors, value in p.terms():
        if len(factors) != 1 or factors[0][1] != 1 or factors[0][0] not in fast.shares:
            raise Unreadable("a position that moves by more than its momenta at order sqrt(h)")
        found[factors[0][0]] = value
    return found


def _require_polynomial(p: Polynomial, fast: Mapping[int, Fraction]) -> None:
    if any(number not in fast and set(fast) & p.ring.atoms(number) for number in p.numbers()):
        raise Unreadable("a function of a momentum of a fixed decay")
