"""Comparisons and what hangs on them: decided by the limit h -> 0, by the outcome of a draw, or by a branch.

A comparison is decided if its leading term as h -> 0 has a sign, whatever the state. One of a uniform draw with a
smooth number is a coin, whose sides are ways through the step with weights that are series. What is left splits the
state space into regions (`paths`), each of which has its own identity. A function of draws alone that is not smooth is
a random variable with moments of its own (`DrawFunction`), and no branch.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from sgmcmc_verification.checks.proof.draws import Draw, DrawFunction, draws_in, evaluator
from sgmcmc_verification.checks.proof.errors import PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.functions import Applied, absolute, signum
from sgmcmc_verification.checks.proof.laws import Normal, Rademacher, Uniform
from sgmcmc_verification.checks.proof.potential import StepRoot
from sgmcmc_verification.checks.proof.reader.interpreter import Handler, Reader, numbers
from sgmcmc_verification.checks.proof.reader.paths import Acceptance, Option
from sgmcmc_verification.checks.proof.reader.values import (
    UNKNOWN,
    Array,
    Coin,
    Equation,
    Predicate,
    Unknown,
    booleans,
    draws_only,
    each,
    folded,
    is_discrete,
    is_infinite,
    is_symbolic,
    objects,
)
from sgmcmc_verification.checks.proof.ring import Polynomial, Value
from sgmcmc_verification.checks.proof.series import EXACT, Series

Truth = bool | Predicate
NOT_SMOOTH = "a comparison of draws and state, which is not smooth"
"""The reason why a Metropolis kernel has no expansion in h."""
FLAG = "a counter or flag of the state"
"""Begins the label of a branch on one."""
GRID = 200
"""Intervals in which a break of a function of a draw is looked for."""


def less(reader: Reader, a: Any, b: Any, or_equal: bool = False) -> Truth:
    """a < b; where both are the same number, `or_equal`."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return Predicate(None)
    difference = a - b
    if not difference:
        if difference.precision < EXACT:
            raise PrecisionLost
        return or_equal
    lead = difference.leading
    # -e < s a is true with a probability of 1 - O(s), not 1: a draw decides alone or not at all
    sign = None if lead.has("draw") and not difference.is_constant else known_sign(reader, lead)
    if sign is not None:
        if not difference.is_constant and not any(p.has("state") for p in difference.polynomials()):
            reader.limits.add(f"{difference.text()} {'<' if sign < 0 else '>'} 0 ({reader.here})")
        return sign < 0
    if not lead.has("state") and difference.is_constant:
        return Predicate(lead, probability=_probability(lead), of_draws=True)
    return Predicate(lead, coin=_coin(reader, difference))


def _coin(reader: Reader, difference: Series) -> Coin | None:
    """The coin that a (u - p) < 0 is, for a uniform draw u and a smooth p with a limit in [0, 1]; None if none.

    A p that tends to 0 or 1 has to come from inside, whatever the state and the draws.
    """
    linear = _uniform(difference.constant_term) if difference.precision > 0 else None
    if linear is None or difference.valuation < 0:
        return None
    number, slope, cut = linear
    rest, one = difference.without_constant(), difference.space.one
    if not 0 <= cut <= 1 or any(number in draws_in(p) for p in rest.polynomials()):
        return None
    below = difference.space.constant(cut) - rest.scaled(1 / slope)
    if cut in (0, 1):
        small = below if not cut else one - below
        if not small or any(p.has("draw") for p in small.polynomials()) or known_sign(reader, small.leading) != 1:
            return None
    return Coin(number, below if slope > 0 else one - below)


def known_sign(reader: Reader, p: Polynomial) -> int | None:
    """The sign of a polynomial that has the same one at all generic points; None if none is seen."""
    if is_infinite(p):
        return next(1 if value > 0 else -1 for factors, value in p.terms() if is_infinite(p.ring.monomial(factors)))
    if not p.has("state") and not p.has("draw"):
        return 1 if evaluator(p.ring, {})(p) > 0 else -1
    if reader.small_steps and (sign := _sign_of_small_steps(reader, p)) is not None:
        return sign
    terms = list(p.terms())
    signs = {value > 0 for _, value in terms}
    definite = all(e % 2 == 0 or reader.is_positive(g) for factors, _ in terms for g, e in factors)
    if definite and len(signs) == 1:
        return 1 if signs == {True} else -1
    return None


def _sign_of_small_steps(reader: Reader, p: Polynomial) -> int | None:
    """The sign for small h of a polynomial in s, and of a sum of log h and min(.., 0); None of another polynomial."""
    terms, generators = dict(p.terms()), p.ring.generators
    if all(isinstance(generators[number], StepRoot) for number in p.atoms()):
        lowest = min(terms, key=lambda factors: factors[0][1] if factors else 0)
        sign = -1 if terms[lowest] < 0 else 1
        if len(terms) > 1:
            reader.limits.add(f"{p.text()} {'<' if sign < 0 else '>'} 0 ({reader.here})")
        return sign
    single = [generators[f[0][0]] if len(f) == 1 and f[0][1] == 1 else None for f in terms]
    falls = [isinstance(g, Applied) and g.name == "log" and _vanishes(g.argument) for g in single]
    cut = [isinstance(g, Applied) and g.name == "min0" for g in single]
    signs = {value > 0 for value in terms.values()}
    if any(falls) and all(a or b for a, b in zip(falls, cut, strict=True)) and len(signs) == 1:
        reader.limits.add(f"{p.text()} {'<' if signs == {True} else '>'} 0 ({reader.here})")
        return -1 if signs == {True} else 1
    return None


def _vanishes(p: Polynomial) -> bool:
    """True for a positive number times a power of s, which is below one for small h."""
    terms = list(p.terms())
    if len(terms) != 1 or terms[0][1] <= 0 or not terms[0][0]:
        return False
    return all(isinstance(p.ring.generators[number], StepRoot) and exponent > 0 for number, exponent in terms[0][0])


def _probability(p: Polynomial) -> Fraction | None:
    """The probability that a u + b < 0 for one uniform draw u; None for another polynomial."""
    linear = _uniform(p)
    if linear is None:
        return None
    _, slope, cut = linear
    below = min(max(cut, Fraction(0)), Fraction(1))
    return below if slope > 0 else 1 - below


def _uniform(p: Polynomial) -> tuple[int, Fraction, Fraction] | None:
    """(u, a, cut) for p = a (u - cut) with one uniform draw u."""
    numbers = p.numbers()
    if len(numbers) != 1:
        return None
    (number,) = numbers
    generator = p.ring.generators[number]
    terms = dict(p.terms())
    if not isinstance(generator, Draw) or generator.law != Uniform() or not set(terms) <= {((number, 1),), ()}:
        return None
    slope = terms[((number, 1),)]
    return number, slope, -terms.get((), Fraction(0)) / slope


def decided(reader: Reader, truth: Any, equation: Equation) -> bool:
    """The truth of a predicate on the present path.

    Raises:
        Unreadable: if it depends on draws and on the state and the step is read as h -> 0.
    """
    if isinstance(truth, bool | np.bool_):
        return bool(truth)
    if isinstance(truth, Unknown) or truth.difference is None:
        place = reader.place(equation)
        labels = (f"{FLAG} is on ({place})", f"{FLAG} is off ({place})")
        return reader.path.choose([Option(True, None, labels[0]), Option(False, None, labels[1])])
    if truth.coin is not None and not reader.finite:
        return _tossed(reader, truth.coin) != truth.negated
    difference = truth.difference.scaled(1 / abs(truth.difference.leading()))
    flipped = difference.leading() < 0
    asked = -difference if flipped else difference
    if asked not in reader.path.assumed:
        negative = _chosen(reader, truth, equation)
        reader.path.assumed[asked] = negative != flipped
    return (reader.path.assumed[asked] != flipped) != truth.negated


def _chosen(reader: Reader, truth: Predicate, equation: Equation) -> bool:
    """True if truth.difference < 0 on the present path."""
    difference, place = truth.difference, reader.place(equation)
    assert difference is not None
    uniform = _uniform(difference) if truth.probability is not None else None
    if uniform is not None:
        return _uniform_outcome(reader, *uniform)
    if difference.has("draw"):
        if not reader.finite:
            raise Unreadable(NOT_SMOOTH, place)
        holds = reader.path.choose([Option(True, None, "accept"), Option(False, None, "reject")])
        reader.path.acceptances.append(Acceptance(difference, holds, place))
        return holds
    text = difference.text(3)
    return reader.path.choose(
        [Option(True, None, f"{text} < 0 ({place})"), Option(False, None, f"{text} > 0 ({place})")]
    )


def _uniform_outcome(reader: Reader, number: int, slope: Fraction, cut: Fraction) -> bool:
    """True if slope (u - cut) < 0, given the interval that u has been found in so far."""
    if number in reader.path.coins:
        raise Unreadable("a uniform draw that is compared with two numbers")
    low, high = reader.path.intervals.get(number, (Fraction(0), Fraction(1)))
    inside = min(max(cut, low), high)
    below = (inside - low) / (high - low)
    options = [Option(True, below), Option(False, 1 - below)]
    is_below = reader.path.choose(options) if 0 < below < 1 else below == 1
    reader.path.intervals[number] = (low, inside) if is_below else (inside, high)
    return is_below == (slope > 0)


def _tossed(reader: Reader, coin: Coin) -> bool:
    """One side of a coin, whose probability is a weight of the present path."""
    tossed, intervals, space = reader.path.coins, reader.path.intervals, coin.chance.space
    if coin.number in intervals or (coin.number in tossed and not tossed[coin.number][0].same(coin.chance)):
        raise Unreadable("a uniform draw that is compared with two numbers")
    if coin.number not in tossed:
        limit = coin.chance.constant_term.rational
        assert limit is not None  # a coin has one
        if not any(coin.chance.same(p) or coin.chance.same(space.one - p) for p in space.shares):
            reader.path.limits.add(f"0 < {coin.chance.text()} < 1 ({reader.here})")
        rare = limit in (0, 1)  # one side has no weight in the limit: it is taken with its chance alone
        shares = (Fraction(1), Fraction(1)) if rare else (limit, 1 - limit)
        holds = reader.path.choose([Option(True, shares[0]), Option(False, shares[1])])
        side = coin.chance.scaled(1 / shares[0]) if holds else (space.one - coin.chance).scaled(1 / shares[1])
        reader.path.rare |= rare and holds == (limit == 0)
        before = reader.path.chance
        reader.path.chance = side if before is None else before * side
        tossed[coin.number] = coin.chance, holds
    return tossed[coin.number][1]


# Functions of draws that are not smooth -------------------------------------------------------------------------------


def function_of_draws(
    reader: Reader, name: str, inputs: Sequence[Polynomial], function: Callable[[Sequence[Value]], Value]
) -> Series:
    """A function of one draw by its moments; its breaks are the zeros of the first argument."""
    breaks = _breaks(inputs[0])
    generator = DrawFunction(name, tuple(inputs), function, breaks)
    return reader.space.lift(reader.ring.generator(generator))


def _breaks(p: Polynomial) -> tuple[Value, ...]:
    """The zeros of a polynomial in one draw, in the support of its law."""
    draws = draws_in(p)
    if len(draws) != 1:
        raise Unreadable("a function of several draws that is not smooth")
    (number,) = draws
    generator = p.ring.generators[number]
    assert isinstance(generator, Draw)
    low, high = generator.law.support[0], generator.law.support[-1]
    value = lambda x: evaluator(p.ring, {number: mpf(x)})(p)
    # off the round numbers, at which breaks lie
    grid = [low + (high - low) * mpf(i) / GRID + mpf(10) ** -9 for i in range(GRID)]
    signs = [value(x) for x in grid]
    pairs = zip(grid, grid[1:], signs, signs[1:], strict=False)
    return tuple(mpmath.findroot(value, (a, b), solver="anderson") for a, b, u, v in pairs if u * v < 0)


def extreme(reader: Reader, a: Series, b: Series, equation: Equation, largest: bool) -> Series:
    """max(a, b) or min(a, b)."""
    if a.same(b):
        return Series(a.space, a.coefficients, min(a.precision, b.precision))
    truth = less(reader, a, b)
    if isinstance(truth, Predicate):
        if reader.finite and not largest and (a.is_zero or b.is_zero):
            return reader.space.lift(reader.ring.generator(Applied("min0", (a + b).constant_term)))
        if truth.of_draws and draws_only(a) and draws_only(b):
            inputs = ((a - b).constant_term, a.constant_term, b.constant_term)
            function = lambda v: max(v[1:]) if largest else min(v[1:])
            return function_of_draws(reader, "max" if largest else "min", inputs, function)
        if reader.finite:
            return _extreme_of_both(a, b, largest)
    return b if decided(reader, truth, equation) == largest else a


def _extreme_of_both(a: Series, b: Series, largest: bool) -> Series:
    """(a + b +- |a - b|) / 2, without a branch."""
    spread = a.space.lift(absolute((a - b).constant_term))
    return (a + b + (spread if largest else -spread)).scaled(Fraction(1, 2))


def _sign(reader: Reader, a: Series, equation: Equation) -> Series:
    truth = less(reader, a, reader.space.zero)
    if isinstance(truth, Predicate) and truth.of_draws and draws_only(a):
        return function_of_draws(reader, "sign", (a.constant_term,), lambda v: mpmath.sign(v[0]))
    if reader.finite and isinstance(truth, Predicate):
        return a.space.lift(signum(a.constant_term))
    if decided(reader, truth, equation):
        return reader.space.constant(-1)
    return reader.space.zero if a.is_zero else reader.space.one


# Handlers -------------------------------------------------------------------------------------------------------------


def _entrywise(function: Callable[..., Series]) -> Handler:
    """A handler of function(reader, *entries, equation)."""

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        return [each(lambda *entries: function(reader, *entries, equation), *map(reader.symbols, inputs))]

    return handler


def _comparison(swapped: bool, or_equal: bool) -> Handler:
    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        del equation
        a, b = map(reader.symbols, reversed(inputs) if swapped else inputs)
        return [booleans(each(lambda x, y: less(reader, x, y, or_equal), a, b))]

    return handler


def _is_two_valued(p: Polynomial) -> bool:
    """True if a draw that takes two values only is in a polynomial, so that an equation may hold by chance."""
    generators = (p.ring.generators[number] for number in draws_in(p))
    return any(isinstance(g, Draw) and g.law == Rademacher() for g in generators)


def _equality(equal: bool) -> Handler:
    def entry(a: Any, b: Any) -> Truth:
        if not isinstance(a, Series) or not isinstance(b, Series):
            return Predicate(None)
        difference = a - b
        if not difference and difference.precision < EXACT:
            raise PrecisionLost
        if any(_is_two_valued(p) for p in difference.polynomials()):
            raise Unreadable("a draw of two values that is compared")
        return (not difference) == equal

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        del equation
        return [booleans(each(entry, *map(reader.symbols, inputs)))]

    return handler


def _is_finite(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """Everything is, but infinity itself: at a generic point nothing overflows."""
    del equation
    finite = lambda a: not any(map(is_infinite, a.polynomials()))
    return [booleans(each(finite, reader.symbols(inputs[0])))]


def _negation(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del reader, equation
    negated = lambda p: p.inverted() if isinstance(p, Predicate) else not p
    return [booleans(each(negated, np.asarray(inputs[0], object)))]


def _connective(conjunction: bool) -> Handler:
    """`and` or `or`: the second operand is asked for only where the first leaves it open."""

    def entry(reader: Reader, p: Any, q: Any, equation: Equation) -> Any:
        for a, b in ((p, q), (q, p)):
            if isinstance(a, bool | np.bool_):
                return b if bool(a) == conjunction else not conjunction
        if any(isinstance(a, Unknown) for a in (p, q)):
            return UNKNOWN
        if any(a.difference is None for a in (p, q)):
            return Predicate(None)
        if decided(reader, p, equation) != conjunction:
            return not conjunction
        return decided(reader, q, equation)

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if np.dtype(equation.outvars[0].aval.dtype).kind != "b":
            raise Unreadable(f"the bits of an integer ({equation.primitive.name})")
        arrays = [np.asarray(value, object) for value in inputs]
        return [booleans(each(lambda p, q: entry(reader, p, q, equation), *arrays))]

    return handler


def _reduced_truth(conjunction: bool) -> Handler:
    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        def entry(p: Any, q: Any) -> bool:
            first = decided(reader, p, equation)
            return decided(reader, q, equation) if first == conjunction else first

        value = np.asarray(inputs[0], object)
        out = folded(value, equation.params["axes"], entry, conjunction)
        return [booleans(each(lambda p: decided(reader, p, equation), out))]

    return handler


def _reduced_extreme(largest: bool) -> Handler:
    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        entry = lambda a, b: extreme(reader, a, b, equation, largest)
        return [folded(reader.symbols(inputs[0]), equation.params["axes"], entry, None)]

    return handler


def _select(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    which, *cases = inputs
    aval = equation.outvars[0].aval
    symbolic = any(map(is_symbolic, cases))
    arrays = [np.broadcast_to(reader.symbols(c) if symbolic else np.asarray(c), aval.shape) for c in cases]
    places = np.broadcast_to(np.asarray(which), aval.shape)
    rows = zip(places.ravel(), *(a.ravel() for a in arrays), strict=True)
    flags: dict[int, bool] = {}
    out = [_selected(reader, index, values, equation, flags) for index, *values in rows]
    if symbolic or any(isinstance(v, Unknown | Predicate) for v in out):
        return [objects(out, aval.shape)]
    return [np.array(out, aval.dtype).reshape(aval.shape)]


def _selected(reader: Reader, index: Any, values: list[Any], equation: Equation, flags: dict[int, bool]) -> Any:
    """One entry of a `select_n`; `flags` holds what was chosen for a flag of the state that several entries share."""
    if not isinstance(index, Predicate | Unknown):
        return values[int(index)]
    first, second = values[0], values[-1]
    if all(isinstance(v, Series) for v in values):
        if first.same(second):
            return Series(first.space, first.coefficients, min(first.precision, second.precision))
        random = isinstance(index, Predicate) and index.of_draws and index.probability is None
        if isinstance(index, Predicate) and random and all(map(draws_only, values)):
            return _selected_by_draw(reader, index, first, second)
        if reader.finite and isinstance(index, Predicate) and _is_slope(first, second) and _is_of_proposal(index):
            assert index.difference is not None
            sign = reader.space.lift(signum(index.difference).scaled(Fraction(1, 2)))
            mean, half = (first + second).scaled(Fraction(1, 2)), (second - first) * sign
            return mean + (half if index.negated else -half)
    elif _is_unknown(index) and not any(isinstance(v, Predicate) for v in values):
        return UNKNOWN if first is not second else first
    if not isinstance(index, Predicate) or index.difference is not None:
        return values[int(decided(reader, index, equation))]
    if id(index) not in flags:
        flags[id(index)] = decided(reader, index, equation)
    return values[int(flags[id(index)])]


def _is_slope(first: Series, second: Series) -> bool:
    """True for +-a, or two numbers, as slopes of absolute values and of extremes are."""
    rational = all(a.is_constant and a.constant_term.rational is not None for a in (first, second))
    return rational or not (first + second)


def _is_of_proposal(index: Predicate) -> bool:
    """True for a comparison of the state or of a proposal, and not with a draw that decides."""
    if index.difference is None or is_infinite(index.difference):
        return False
    generators = (index.difference.ring.generators[number] for number in draws_in(index.difference))
    return all(isinstance(g, Draw) and g.law == Normal() for g in generators)


def _is_unknown(index: Predicate | Unknown) -> bool:
    return isinstance(index, Unknown) or index.difference is None


def _selected_by_draw(reader: Reader, index: Predicate, first: Series, second: Series) -> Series:
    assert index.difference is not None
    inputs = (index.difference, first.constant_term, second.constant_term)
    negated = index.negated
    function = lambda v: v[2] if (v[0] < 0) != negated else v[1]
    return function_of_draws(reader, f"select{int(negated)}", inputs, function)


def _rounding(function: Callable[[Fraction], int]) -> Handler:
    """A handler of floor, ceil or round, which are read of numbers only."""

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        def entry(a: Series) -> Series:
            value = a.constant_term.rational if a.is_constant else None
            if value is None:
                raise Unreadable(f"{equation.primitive.name}, which is not smooth")
            return reader.space.constant(function(value))

        return [each(entry, reader.symbols(inputs[0]))]

    return handler


def convert(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """`convert_element_type`."""
    (value,) = inputs
    new = np.dtype(equation.params["new_dtype"])
    if new.kind == "f" or "float" in new.name:
        return [_converted_to_real(reader, value, equation, new)]
    if not is_symbolic(value):
        return [np.asarray(value).astype(new)]
    items = list(value.ravel())
    rationals = [x.constant_term.rational if isinstance(x, Series) and x.is_constant else None for x in items]
    if all(q is not None for q in rationals):
        return [np.array([int(q or 0) for q in rationals]).reshape(value.shape).astype(new)]
    if all(isinstance(x, Unknown) for x in items):
        return [value]
    if all(isinstance(x, Predicate | bool | np.bool_) for x in items):
        if new.kind in "iu" and value.ndim == 0:
            return [value]  # the index of a `cond`, which is decided there
        return [np.array([decided(reader, x, equation) for x in items]).reshape(value.shape).astype(new)]
    raise Unreadable("a number of the state or a draw turned into an integer")


def on_integers(handler: Handler) -> Handler:
    """A handler for which a truth that was made an integer is one, on the present path."""

    def run(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        whole = [_integers(reader, x, v.aval, equation) for x, v in zip(inputs, equation.invars, strict=True)]
        if any(map(is_symbolic, whole)) or not all(is_discrete(v.aval.dtype) for v in equation.outvars):
            return handler(reader, equation, whole)
        return numbers(equation, whole)

    return run


def _integers(reader: Reader, value: Any, aval: Any, equation: Equation) -> Any:
    if not is_symbolic(value) or not is_discrete(aval.dtype) or np.dtype(aval.dtype).kind == "b":
        return value
    items = list(value.ravel())
    if not all(isinstance(x, Predicate) and x.difference is not None for x in items):
        return value
    return np.array([decided(reader, x, equation) for x in items]).reshape(value.shape).astype(aval.dtype)


def _converted_to_real(reader: Reader, value: Any, equation: Equation, new: np.dtype[Any]) -> Array:
    if not is_symbolic(value):
        return reader.symbols(value)
    old = equation.invars[0].aval.dtype
    rounds = new.itemsize < np.dtype(old).itemsize and np.dtype(old).kind == "f"
    if rounds and any(p.has("state") for x in value.ravel() for p in x.polynomials()):
        reader.notes.add(f"rounded to {new} ({reader.place(equation)})")

    def entry(x: Any) -> Series:
        if isinstance(x, Series):
            return x
        if isinstance(x, Unknown):
            return reader.counter(x)
        return reader.space.constant(int(decided(reader, x, equation)))

    return each(entry, value)


def _absolute(reader: Reader, a: Series, equation: Equation) -> Series:
    return extreme(reader, a, -a, equation, True)


def _clamped(reader: Reader, low: Series, a: Series, high: Series, equation: Equation) -> Series:
    return extreme(reader, extreme(reader, a, low, equation, True), high, equation, False)


def _nearest(value: Fraction) -> int:
    return round(value)


PREDICATES: dict[str, Handler] = {
    "lt": _comparison(swapped=False, or_equal=False),
    "le": _comparison(swapped=False, or_equal=True),
    "gt": _comparison(swapped=True, or_equal=False),
    "ge": _comparison(swapped=True, or_equal=True),
    "eq": _equality(True),
    "ne": _equality(False),
    "is_finite": _is_finite,
    "not": _negation,
    "and": _connective(True),
    "or": _connective(False),
    "reduce_and": _reduced_truth(True),
    "reduce_or": _reduced_truth(False),
    "max": _entrywise(lambda reader, a, b, equation: extreme(reader, a, b, equation, True)),
    "min": _entrywise(lambda reader, a, b, equation: extreme(reader, a, b, equation, False)),
    "reduce_max": _reduced_extreme(True),
    "reduce_min": _reduced_extreme(False),
    "clamp": _entrywise(_clamped),
    "abs": _entrywise(_absolute),
    "sign": _entrywise(_sign),
    "floor": _rounding(lambda q: q.numerator // q.denominator),
    "ceil": _rounding(lambda q: -(-q.numerator // q.denominator)),
    "round": _rounding(_nearest),
    "select_n": _select,
    "convert_element_type": convert,
}
