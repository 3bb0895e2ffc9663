"""Moves of a Metropolis kernel, and what their comparisons of draws with the state accept.

Known are u < a, log u < log a, -e < log a, u > 1 - a, where u or 1 - u is uniform and e exponential, and for a coin
u < p or u > p.

Source: metropolis1953equation; hastings1970monte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sgmcmc_verification.checks.proof.draws import Draw, History, draws_in
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import Absolute, Applied, opened
from sgmcmc_verification.checks.proof.laws import Exponential, Uniform
from sgmcmc_verification.checks.proof.reader.paths import Acceptance
from sgmcmc_verification.checks.proof.ring import Generator, Polynomial

Vector = list[Polynomial]


@dataclass(frozen=True, eq=False)
class Move:
    """One path of a step from a point.

    Attributes:
        z: after it.
        visited: the points at which the potential was asked for.
        acceptances: comparisons of draws with the state on the path.
        draws: key -> the draws that were made of it, in order.
        outcomes: of integers and of draws that were compared with numbers: the kernel is a mixture of those with them.
        place: of the comparison that accepts; the others are coins, unless
        joint: all of them have to accept, one after the other.
        alone: the others are of the other kernels that a step is made of.
    """

    z: Vector
    visited: tuple[tuple[Polynomial, ...], ...]
    acceptances: tuple[Acceptance, ...]
    draws: Mapping[History, Vector]
    outcomes: frozenset[Any] = frozenset()
    place: int = 0
    joint: bool = False
    alone: bool = False

    @property
    def decision(self) -> Acceptance:
        """The comparison that accepts."""
        return self.acceptances[self.place]

    @property
    def sides(self) -> tuple[bool, ...]:
        """The outcomes of all comparisons."""
        return tuple(each.holds for each in self.acceptances)

    @property
    def decisions(self) -> tuple[Acceptance, ...]:
        """The comparisons that accept."""
        return self.acceptances if self.joint else (self.decision,)

    @property
    def coins(self) -> tuple[Acceptance, ...]:
        """The comparisons but those that accept."""
        if self.joint or self.alone:
            return ()
        return self.acceptances[: self.place] + self.acceptances[self.place + 1 :]

    @property
    def compared(self) -> tuple[Acceptance, ...]:
        """The comparisons that accept, and the coins."""
        return (self.decision,) if self.alone else self.acceptances

    @property
    def drawn(self) -> frozenset[int]:
        """The draws that z and what is compared depend on."""
        return frozenset().union(*map(draws_in, (*self.z, *(each.difference for each in self.compared))))


def log_ratio(acceptance: Acceptance, moving: frozenset[int] = frozenset()) -> Polynomial:
    """log of the probability with which a comparison accepts, without its cut at 1: a = exp(..) or min(1, exp(..)).

    Args:
        acceptance: the comparison.
        moving: draws that do not decide, because the proposal moves with them.

    Raises:
        Unreadable: for any other rule.
    """
    p, is_logarithm = _compared(acceptance, moving)
    return uncut(p if is_logarithm else _log_of_exponential(p))


def log_acceptance(acceptance: Acceptance, moving: frozenset[int] = frozenset()) -> Polynomial:
    """log of the number that a comparison accepts below: of the probability, where it is not above 1.

    Raises:
        Unreadable: for a comparison of another kind.
    """
    p, is_logarithm = _compared(acceptance, moving)
    return p if is_logarithm else p.ring.generator(Applied("log", p))


def _compared(acceptance: Acceptance, moving: frozenset[int]) -> tuple[Polynomial, bool]:
    """The number that a draw has to be below, and whether that is log a; else it is a.

    Known are u < a, log u < log a, -e < log a, u > 1 - a, where u or 1 - u is uniform and e exponential.

    Raises:
        Unreadable: for any other rule.
    """
    # accepted where g < 0
    g = _with_deciders(acceptance) if acceptance.holds else -_with_deciders(acceptance)
    for factors, value in g.terms():
        if len(factors) != 1 or factors[0][1] != 1 or abs(value) != 1 or moving & g.ring.atoms(factors[0][0]):
            continue
        rest = g - g.ring.monomial(factors, value)
        match g.ring.generators[factors[0][0]]:
            case Draw(law=Exponential()) if value == -1:
                return -rest, True
            case Applied("log", argument) if value == 1 and _is_uniform(argument):
                return -rest, True
            case Draw(law=Uniform()):
                return (-rest if value == 1 else g.ring.one - rest), False
            case _:
                continue
    raise Unreadable(f"a rule of acceptance that is not known, {g.text()} < 0", acceptance.place)


def is_shared(comparisons: Sequence[Acceptance]) -> bool:
    """True if two comparisons are with the same draw, so that their chances are no product."""
    draws = [
        number
        for each in comparisons
        for number in each.difference.atoms()
        if _decides(each.difference.ring.generators[number])
    ]
    return len(draws) > len(set(draws))


def chance(coin: Acceptance) -> Polynomial:
    """The probability of the side of a coin, u < p or u > p with a uniform draw u.

    Raises:
        Unreadable: for a comparison of another kind.
    """
    g = coin.difference if coin.holds else -coin.difference
    draws = [number for number in draws_in(g) if _decides(g.ring.generators[number])]
    if len(draws) == 1 and isinstance(u := g.ring.generators[draws[0]], Draw) and u.law == Uniform():
        for slope in (1, -1):
            rest = g - g.ring.generator(u).scaled(slope)
            if draws[0] not in rest.atoms():
                return -rest if slope == 1 else g.ring.one - rest
    raise Unreadable(f"a coin of a kind that is not known, {g.text()} < 0", coin.place)


def _with_deciders(acceptance: Acceptance) -> Polynomial:
    """The difference that is compared with 0, with the draws that may decide outside of abbreviations."""
    g = acceptance.difference
    return opened(g, frozenset(number for number in draws_in(g) if _decides(g.ring.generators[number])))


def deciders(acceptance: Acceptance) -> frozenset[int]:
    """The uniform or exponential draws that a comparison is with: those that no potential is asked at."""
    difference, found = _with_deciders(acceptance), set[int]()
    generators = difference.ring.generators
    for number in difference.numbers():
        generator = generators[number]
        inside = generator.argument.numbers() if isinstance(generator, Applied) and generator.name == "log" else ()
        found |= {n for n in (number, *inside) if _decides(generators[n])}
    return frozenset(found)


def _decides(generator: Generator) -> bool:
    """True for a draw of a law that a rule of acceptance compares with."""
    return isinstance(generator, Draw) and isinstance(generator.law, Uniform | Exponential)


def _is_uniform(p: Polynomial) -> bool:
    numbers = p.numbers()
    (number,) = numbers if len(numbers) == 1 else (None,)
    generator = p.ring.generators[number] if number is not None else None
    if not isinstance(generator, Draw) or generator.law != Uniform():
        return False
    u = p.ring.generator(generator)
    return p in (u, p.ring.one - u)  # 1 - u is as uniform as u


def _log_of_exponential(p: Polynomial) -> Polynomial:
    terms = list(p.terms())
    if len(terms) == 1 and terms[0][1] == 1:
        parts = [(p.ring.generators[g], e) for g, e in terms[0][0]]
        if all(isinstance(part, Applied) and part.name == "exp" for part, _ in parts):
            return p.ring.sum(part.argument.scaled(e) for part, e in parts if isinstance(part, Applied))
    raise Unreadable(f"a probability that is no exponential, {p.text()}")


def uncut(p: Polynomial) -> Polynomial:
    """a where p is min(a, 0), which may be written as (a - |a|) / 2, else p."""
    terms = list(p.terms())
    for factors, value in terms:
        generator = p.ring.generators[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 else None
        if isinstance(generator, Absolute) and value < 0:
            half, rest = generator.argument.scaled(-value), p - p.ring.monomial(factors, value)
            if rest in (half, -half):
                return rest.scaled(2)
    if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0][1] == 1:
        generator = p.ring.generators[terms[0][0][0][0]]
        if isinstance(generator, Applied) and generator.name == "min0":
            return uncut(generator.argument)
    return p
