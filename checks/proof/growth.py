"""Memory that stays bounded: what it does to the operators beyond an order is small only then.

One step makes m' = sum_j a_j m_j + b of the numbers m of a memory. It stays as bounded as b is if for each of them

    sum_j |a_j| < 1 with numbers a_j,    or m' = m_j up to the sign,
    or a_j >= 0, sum_j a_j = 1 - w and b = w B with w = c^-1 for a counter c >= 1 of the state, or a power of h,
    where B is free of w: a mean of all that has been seen, or one that forgets at a rate.

A sum that is never divided is none of these: after t / h steps it is large in 1 / h, and so is what it multiplies.
"""

from collections.abc import Mapping
from fractions import Fraction

from sgmcmc_verification.checks.proof.potential import Memory, StepRoot
from sgmcmc_verification.checks.proof.ring import Polynomial


def grows(after: Mapping[int, Polynomial], symbols: Mapping[int, Polynomial]) -> bool:
    """True unless all numbers of a memory are known to stay bounded.

    Args:
        after: the numbers after a step.
        symbols: those before it.
    """
    numbers = {next(iter(p.numbers())) for p in symbols.values()}
    return not all(_is_bounded(p, numbers) for p in after.values())


def _is_bounded(p: Polynomial, numbers: set[int]) -> bool:
    ring = p.ring
    slopes, rest = [], p
    for number in sorted(numbers & p.atoms()):
        slope = p.derivative(number)
        if numbers & slope.atoms():
            return False  # not linear
        slopes.append(slope)
        rest = rest - slope * ring.power(number, 1)
    rational = [slope.rational for slope in slopes]
    if all(a is not None for a in rational):
        size = sum((abs(a) for a in rational if a is not None), Fraction(0))
        return size < 1 or (size == 1 and len(slopes) == 1 and not rest)
    weight = ring.one - ring.sum(slopes)
    terms = list(weight.terms())
    if len(terms) != 1 or terms[0][1] <= 0 or not all(_is_mean(slope) for slope in slopes):
        return False
    ((factors, value),) = terms
    small = all(_is_small(ring.generators[number], exponent) for number, exponent in factors)
    if not small or (any(isinstance(ring.generators[n], Memory) for n, _ in factors) and value > 1):
        return False
    inside = rest * ring.monomial(tuple((number, -exponent) for number, exponent in factors), 1 / value)
    return not any(number in inside.atoms() for number, _ in factors)


def _is_mean(slope: Polynomial) -> bool:
    """True for 1 - w, and for positive numbers times 1 or w: not negative where c >= 1 and h is small."""
    generators = slope.ring.generators
    terms = dict(slope.terms())
    constant = terms.pop((), Fraction(0))
    small = {f for f in terms if any(isinstance(generators[n], StepRoot) for n, _ in f)}
    rest = sum((min(a, Fraction(0)) for f, a in terms.items() if f not in small), constant)
    return rest > 0 if any(terms[f] < 0 for f in small) else rest >= 0


def _is_small(generator: object, exponent: int) -> bool:
    """True for c^-1 with a counter that is at least one, and for positive powers of s."""
    if isinstance(generator, Memory):
        return exponent == -1 and generator.least is not None and generator.least >= 1
    return isinstance(generator, StepRoot) and exponent > 0
