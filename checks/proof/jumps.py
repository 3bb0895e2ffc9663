"""Jumps: numbers of a state that are drawn afresh now and then, as Andersen's thermostat draws velocities.

A step takes one of several ways, with chances w that are no matter of the state. On each of them it is one step K_0 of
a scheme, before or after which some numbers are replaced by draws of the law that exp(-H) has for them (R). Then

    pi K f = sum w pi K_0 R f  or  sum w pi R K_0 f,   and   pi R = pi,

so that pi K f - pi f is as small as pi K_0 f - pi f is for all smooth f: the step has the law that K_0 has, to its
order, however often it jumps. [andersen1980molecular; bourabee2017randomized, for jumps at a rate]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sgmcmc_verification.checks.proof.draws import Draw, draws_in
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import all_substituted
from sgmcmc_verification.checks.proof.laws import Normal
from sgmcmc_verification.checks.proof.operators import Density
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import Series

OTHERWISE = "a jump that is more than new draws before or after a step"
OTHER_LAW = "numbers are drawn afresh from another law than that of H"


@dataclass(frozen=True)
class Fresh:
    """A number of z that a way through a step has replaced by c xi, a draw of N(0, c^2)."""

    draw: int
    factor: Polynomial

    @property
    def variance(self) -> Polynomial:
        """c^2."""
        return self.factor * self.factor


@dataclass(frozen=True)
class Way:
    """One way through a step.

    Attributes:
        end: z'.
        fresh: place in z -> the draw in its place; empty for a way without a jump.
        chance: of this way, where it is no number.
    """

    end: Sequence[Series]
    fresh: Mapping[int, Fresh] = field(default_factory=dict)
    chance: Series | None = None


def fresh_numbers(end: Sequence[Series]) -> dict[int, Fresh]:
    """Those numbers of z' that are in the limit h -> 0 normal draws of their own, whatever they were before."""
    limits = [_normal(change.constant_term) if not change or change.valuation >= 0 else None for change in end]
    found = {i: each for i, each in enumerate(limits) if each is not None}
    used = [each.draw for each in found.values()]
    return {i: each for i, each in found.items() if used.count(each.draw) == 1}


def _normal(p: Polynomial) -> Fresh | None:
    """The draw that p is, times a number that no draw and no state is in."""
    draws = draws_in(p)
    if len(draws) != 1:
        return None
    (number,) = draws
    generator, factor = p.ring.generators[number], p.derivative(number)
    if not isinstance(generator, Draw) or generator.law != Normal():
        return None
    alone = p == factor * p.ring.power(number, 1) and not factor.has("draw") and not factor.has("state")
    return Fresh(number, factor) if alone else None


def without_jumps(start: Sequence[Polynomial], ways: Sequence[Way]) -> tuple[Sequence[Series], dict[int, Polynomial]]:
    """The end of the step without jumps, and the variance from which each number that jumps is drawn.

    Args:
        start: z, as generators.
        ways: all of them.

    Raises:
        Unreadable: if the ways differ in anything else, or their chances depend on the state.
    """
    still = next((way for way in ways if not way.fresh), None)
    if still is None:
        raise Unreadable(f"{OTHERWISE}: no way is without one")
    variances: dict[int, Polynomial] = {}
    for way in ways:
        if way.chance is not None and any(p.has("state") or p.has("draw") for p in way.chance.polynomials()):
            raise Unreadable("a jump with a chance that depends on the state")
        if not (_after(way, still.end) or _before(way, still.end, start)):
            raise Unreadable(OTHERWISE)
        for place, each in way.fresh.items():
            if variances.setdefault(place, each.variance) != each.variance:
                raise Unreadable(OTHER_LAW)
    return still.end, variances


def _after(way: Way, still: Sequence[Series]) -> bool:
    """True if a way makes the step, and then draws."""
    others = [(k, end) for k, end in enumerate(way.end) if k not in way.fresh]
    used = {each.draw for each in way.fresh.values()}
    alone = all(way.end[j].is_constant for j in way.fresh)
    return alone and all(end.same(still[k]) and used.isdisjoint(_draws(end)) for k, end in others)


def _before(way: Way, still: Sequence[Series], start: Sequence[Polynomial]) -> bool:
    """True if a way draws, and then makes the step, without a look at what the draws have replaced."""
    ring = start[0].ring
    symbols = {j: next(iter(start[j].numbers())) for j in way.fresh}
    values = {symbols[j]: each.factor * ring.power(each.draw, 1) for j, each in way.fresh.items()}
    used, replaced = {each.draw for each in way.fresh.values()}, {*symbols.values()}
    if any(used & _draws(end) for end in still):
        return False
    if any(replaced & p.atoms() for end in way.end for p in end.polynomials()):
        return False
    return all(
        end.same(_replaced(before, values)) and end.precision == before.precision
        for end, before in zip(way.end, still, strict=True)
    )


def _replaced(a: Series, values: Mapping[int, Polynomial]) -> Series:
    return Series(a.space, {k: all_substituted(p, values) for k, p in a.coefficients.items()}, a.precision)


def _draws(a: Series) -> frozenset[int]:
    return frozenset().union(*(draws_in(p) for p in a.polynomials()))


def require_law(density: Density, start: Sequence[Polynomial], variances: Mapping[int, Polynomial]) -> None:
    """Raises Unreadable unless exp(-H) has N(0, c^2) for each number that jumps, given the others: dH = z / c^2."""
    H = density.hamiltonian
    for place, variance in variances.items():
        (number,) = start[place].numbers()
        if H.derivative(number) * variance != start[place]:
            raise Unreadable(OTHER_LAW)
