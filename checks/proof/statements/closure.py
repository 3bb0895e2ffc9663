"""Closedness of the state: it is z, and nothing else that matters.

A proof starts from `pack(z)`. It is one about a run only if every later state is as good as a packed one. That is so
for any step if pack(unpack(state)) = state for every state. Else a number of the state is harmless if, at finite h and
on all paths,

    the step makes what `pack` makes of the new z (a cache), or
    nothing that is read later depends on it, or
    it is a fresh draw of the law that `pack` draws it from (a draw that is made ahead).

A number that `pack` makes of the new z with draws of its own, where the step has used its draws for z as well, is named
apart: `drawn_ahead` says what it does to an order.

Everything else is memory, and invalidates a verdict either way. The step is read at finite h, so that an error of a
cache that is small in h does not pass for none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from sgmcmc_verification.checks.proof.draws import Draw
from sgmcmc_verification.checks.proof.errors import PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.expansion import coordinates
from sgmcmc_verification.checks.proof.growth import grows
from sgmcmc_verification.checks.proof.hosts.tensors import RecordedTorch
from sgmcmc_verification.checks.proof.potential import Coordinate, StepRoot
from sgmcmc_verification.checks.proof.reader.interpreter import Reader
from sgmcmc_verification.checks.proof.reader.paths import Path, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import MOST_WORK, Polynomial, Ring
from sgmcmc_verification.checks.proof.series import Series, Space
from sgmcmc_verification.checks.proof.statements.drawn_ahead import own_draws
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.checks.proof.traced import Stepped, Traced
from sgmcmc_verification.checks.proof.zero import is_zero
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target

LONGEST = 50
"""Terms from which on a polynomial is a name: whether two numbers are the same does not depend on what they are."""
ROUNDS = 4
"""Times that a state is followed with more numbers of which nothing is known."""
CLOSED, NOT_FOLLOWED = "closed state", "a state that could not be followed"
EQUATION = "step(pack(z)) = pack(unpack(step(pack(z))))"


def finite_space(longest: int | None, work: int = MOST_WORK) -> Space:
    """Constant series: at finite h nothing is expanded; long polynomials are abbreviated."""
    return Space(Ring(work), 0, longest)


def finite_step(space: Space) -> Series:
    """The step size h = s^2 as an element of the ring."""
    return space.lift(space.ring.generator(StepRoot(), 2))


class Closure(NamedTuple):
    """Numbers of a state beyond z, and what is known of them.

    Attributes:
        result: whether the next step depends on z alone.
        memory: places of the numbers that it may depend on too. A state with anything at these places and the rest as
            `pack` makes it of z is followed by another such state. Empty where no such places are known.
        ahead: True if `pack` makes all of these of the new z, with draws of its own.
    """

    result: Result
    memory: frozenset[int] = frozenset()
    ahead: bool = False


def closed_state(sampler: Sampler, target: Target, estimator: Estimator) -> Result:
    """Decide if the next step depends on z alone."""
    return closure(sampler, target, estimator).result


def closure(sampler: Sampler, target: Target, estimator: Estimator, work: int = MOST_WORK) -> Closure:
    """Decide if the next step depends on z alone; given up after `work` products of terms."""
    with jax.enable_x64(True):
        traced = Traced.of(sampler, estimator, target)
        if traced.keeps_keys:
            return Closure(Result(CLOSED, EQUATION, "undecided", "hidden state: a random key in the state"))
        if isinstance(sampler, RecordedTorch):
            return Closure(Result(CLOSED, "z' is a function of z, in real steps one after the other", "verified"))
        if _is_all_of_the_state(traced):
            return Closure(Result(CLOSED, "pack(unpack(state)) = state", "proved"))
        memory, open_places, points, ahead = set[int](), set[int](), [], []
        space = finite_space(LONGEST, work)
        try:
            for _ in range(ROUNDS):
                followed = []

                def one_path(path: Path, followed: list[frozenset[int]] = followed) -> None:
                    reader = new_reader(space, path, finite=True, points=points)
                    reader.reads_counters = True
                    read, opened, drawn, unknown = _memory(traced, target, reader, frozenset(open_places))
                    memory.update(read)
                    ahead.append(drawn)
                    open_places.update(opened)
                    followed.append(unknown)

                for _ in every_path(one_path):
                    pass
                # nothing is to be learnt of paths that were followed with nothing known of all these places
                if all(open_places <= unknown for unknown in followed):
                    break
            else:
                raise Unreadable("numbers that hang together in too many ways")
        except (Unreadable, PrecisionLost) as error:
            return Closure(Result(CLOSED, EQUATION, "undecided", f"{NOT_FOLLOWED}: {error}"))
    if memory:
        count = len(memory)
        reason = f"hidden state: {count} number{'s' * (count > 1)} beyond z"
        return Closure(Result(CLOSED, EQUATION, "undecided", reason), frozenset(open_places), all(ahead))
    return Closure(Result(CLOSED, EQUATION, "proved"))


def _is_all_of_the_state(traced: Traced) -> bool:
    """True if z is all of every state, so that nothing can be carried beside it."""
    space = finite_space(LONGEST)
    reader = new_reader(space, finite=True)
    state = traced.any_state(reader)
    try:
        pairs = zip(traced.inexact(reader, state), traced.repacked(reader, state), strict=True)
        return all(_equal(a, b) for a, b in pairs)
    except (Unreadable, PrecisionLost):
        return False


def _memory(
    traced: Traced, target: Target, reader: Reader, known: frozenset[int]
) -> tuple[set[int], set[int], bool, frozenset[int]]:
    """The inexact numbers of a state that a later step depends on and that z does not determine, on one path.

    Args:
        traced: the programs.
        target: with the potential.
        reader: of the path.
        known: places of which it is known that they are not what `pack` makes of z.

    Returns:
        The places that are read, all places that `pack` would fill otherwise after a step, whether it would fill these
        with the same function of the new z and of draws of its own, and the places of which nothing was known.
    """
    space = reader.space
    z = coordinates(reader.ring, traced.size, traced.dimension, target.manifold.is_positive)
    leaves = traced.packed(reader, [space.lift(p) for p in z])
    step = traced.stepped(reader, leaves, finite_step(space))
    open_places = [i for i, (a, b) in enumerate(zip(step.after, step.repacked, strict=True)) if not _equal(a, b)]
    open_places = [i for i in open_places if not _is_fresh_draw(step, i)]
    open_places = sorted({*open_places, *known})
    if not open_places:
        return set(), set(), True, frozenset()
    symbols = {i: reader.ring.generator(Coordinate(f"memory {i}", -1 - i)) for i in open_places}
    entries = [space.lift(symbols[i]) if i in symbols else a for i, a in enumerate(step.before)]
    again = traced.stepped(reader, traced.with_inexact(leaves, entries), finite_step(space))
    read = [*again.z, *again.position, *(a for i, a in enumerate(again.after) if i not in symbols)]
    # what decides a branch or an acceptance is read too: a stale cache shows nowhere else
    decisions = [*reader.path.assumed, *(decision.difference for decision in reader.path.acceptances)]
    atoms = frozenset().union(*(p.atoms() for p in (*decisions, *(p for a in read for p in a.polynomials()))))
    # a number that goes into itself, as a step count does, or into such numbers only, is never read
    inner = {i: frozenset().union(*(p.atoms() for p in again.after[i].polynomials())) for i in open_places}
    number = {i: next(iter(p.numbers())) for i, p in symbols.items()}
    found = {i for i in open_places if number[i] in atoms}
    while more := {i for i in open_places if i not in found and any(number[i] in inner[j] for j in found)}:
        found |= more
    if not found:
        return found, set(), True, frozenset(symbols)
    ahead = own_draws(again, open_places) is not None
    # as large as z is, if it is a function of z and of fresh draws
    if not ahead and grows({i: p for i in found for p in again.after[i].polynomials()}, symbols):
        raise Unreadable("hidden state: numbers beyond z that may grow without bound")
    later = zip(again.after, again.repacked, strict=True)
    opened = {i for i, (a, b) in enumerate(later) if i not in symbols and not _equal(a, b)}
    opened = {*open_places, *(i for i in opened if not _is_fresh_draw(again, i))}
    return found, opened, ahead, frozenset(symbols)


def _equal(a: Series, b: Series) -> bool:
    return a.same(b) or all(is_zero(p) for p in (a - b).polynomials())


def _is_fresh_draw(step: Stepped, place: int) -> bool:
    """True if a number of the new state is a draw of its own, and `pack` draws it from the same law."""
    new, packed = _single_draw(step.after[place]), _single_draw(step.repacked[place])
    if new is None or packed is None:
        return False
    ring = step.after[place].space.ring
    laws = [generator.law if isinstance(generator := ring.generators[g], Draw) else None for g in (new, packed)]
    others = [*step.z, *(a for i, a in enumerate(step.after) if i != place)]
    return laws[0] == laws[1] and not any(new in p.atoms() for a in others for p in a.polynomials())


def _single_draw(a: Series) -> int | None:
    """The number of the draw that a series is; None if it is anything else."""
    polynomials: Sequence[Polynomial] = a.polynomials()
    if not a.is_constant or len(polynomials) != 1:
        return None
    numbers = polynomials[0].numbers()
    (number,) = numbers if len(numbers) == 1 else (None,)
    generator = a.space.ring.generators[number] if number is not None else None
    whole = isinstance(generator, Draw) and polynomials[0] == a.space.ring.generator(generator)
    return number if whole else None
