"""The balance of a Metropolis kernel at finite h, for every smooth potential.

    log a = -(H(z') - H(z)) + log q(z' -> z) - log q(z -> z') + log |det d(z', xi') / d(z, xi)|,

where z' = F(z, xi) is the proposal with normal draws xi, and xi' are the draws that undo it: F(R z', xi') = R z. They
are solved for; U and its derivatives at each point that the program visits are symbols of their own. With normal draws
the difference of the log densities is (|xi|^2 - |xi'|^2) / 2. A rejected proposal has to leave z,
or R z if there is an R.

Where noise moves what is rejected, as between two halves of an Ornstein-Uhlenbeck flow, such a move is undone as well:
its draws and those of the way back have to be as likely, and the probability of acceptance the same.

Where coins choose the proposal, as the signs of Barker's, q has the logarithms of their chances, and the way back has
the same sides, or the other ones of some coins: of all ways alike, so that they go in pairs. That is enough for
balance, and not needed: other ways may lead back as well. Draws of finitely many
outcomes, as of the length of a trajectory, make a mixture of kernels, each of which has to balance by itself, and so
has each of several kernels that a step is made of, as of a sweep over coordinates.

Source: metropolis1953equation; hastings1970monte; lelievre2019hybrid for the form with an involution R.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import jax
import mpmath
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.proof.densities import log_density
from sgmcmc_verification.checks.proof.draws import Draw, History, draws_in
from sgmcmc_verification.checks.proof.errors import NotReal, PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.expansion import coordinates
from sgmcmc_verification.checks.proof.functions import Applied, is_positive, opened
from sgmcmc_verification.checks.proof.laws import Law, Normal
from sgmcmc_verification.checks.proof.matrices import determinant, solution
from sgmcmc_verification.checks.proof.potential import uninterpreted
from sgmcmc_verification.checks.proof.reader.paths import Path, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import MOST_WORK, Polynomial
from sgmcmc_verification.checks.proof.series import apply
from sgmcmc_verification.checks.proof.slopes import Gradients
from sgmcmc_verification.checks.proof.statements.acceptances import (
    Move,
    Vector,
    chance,
    deciders,
    is_shared,
    log_acceptance,
    log_ratio,
)
from sgmcmc_verification.checks.proof.statements.closure import finite_space, finite_step
from sgmcmc_verification.checks.proof.statements.result import OUTCOMES, Outcome, Result, of_polynomials
from sgmcmc_verification.checks.proof.traced import Traced, evaluated, places_in
from sgmcmc_verification.checks.proof.zero import DIGITS, MORE_DIGITS, POINTS, TINY, is_zero, random_point, vanishes
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target

BALANCE, REJECTION = "balance", "rejected move"
EQUATION = "log a = -(H(z') - H(z)) + log q(z' -> z) - log q(z -> z') + log |Jacobian|"
NO_HAMILTONIAN = "no Hamiltonian is declared"
MOST_TRIES = 64
"""Guesses at the point that a draw of the reverse move leads to."""
MOST_TURNED = 8
"""Choices of coins whose sides are the other ones on the way back."""
BOTH_SIDES = 12
"""Random points for a rule of acceptance: at all of them a chance is cut, or none, in one kernel of 2000."""
LONGEST = 30
"""Terms from which on a polynomial is a name, and an identity is verified at points where it could be proved."""
LARGEST_JACOBIAN = 400
"""Terms of a Jacobian matrix beyond which its determinant is evaluated at points only."""
WORK = 5_000
"""Products of terms that a proof of it may take; where they do not suffice, it is verified at points."""


def balance(
    sampler: Sampler,
    target: Target,
    estimator: Estimator,
    temperature: float = 1.0,
    hamiltonian: Callable[[Any], Any] | None = None,
    reversal: Callable[[Any], Any] | None = None,
    work: int = MOST_WORK,
    turned: bool | None = None,
) -> tuple[tuple[Result, Result], tuple[str, ...]]:
    """Decide if a kernel keeps exp(-H) at every step size: its acceptance and its rejected proposals; and notes.

    Args:
        sampler: the kernel.
        target: with an uninterpreted potential.
        estimator: of the potential and its gradient.
        temperature: T of exp(-U / T), if no Hamiltonian is given.
        hamiltonian: H as a function of flat z.
        reversal: the involution R on z.
        work: products of terms after which it is given up.
        turned: take what z holds beside the position for a momentum of N(0, T), which R turns or not; without an R
            a momentum that is drawn afresh in part is taken for one that is drawn afresh.
    """
    with jax.enable_x64(True):
        try:
            kernel = Kernel(sampler, target, estimator, temperature, hamiltonian, reversal, work, turned)
            return kernel.results(), tuple(sorted(kernel.notes))
        except (Unreadable, PrecisionLost, NotReal) as error:
            reason = str(error) or "no real point was found"
            both = Result(BALANCE, EQUATION, "undecided", reason), Result(REJECTION, "z' = R z", "undecided", reason)
            return both, ()


@dataclass(frozen=True, eq=False)
class _Undone:
    """A move and the draws that undo it.

    Attributes:
        energy: H(z) - H(z').
        density: log q(z' -> z) - log q(z -> z').
        image: z' and those draws, of which the determinant is taken,
        variables: by the numbers of z and of the draws of the move.
        draws: that undo it, by key.
    """

    energy: Polynomial
    density: Polynomial
    image: Vector
    variables: Sequence[int]
    draws: Mapping[History, Vector]


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the acceptance of a kernel, and the whole.

    Attributes:
        ratio: log a of the code.
        potential: (U(x) - U(x')) / T.
        rest: H(z) - H(z') without it, of a momentum.
        density: log q(z' -> z) - log q(z -> z').
        cross: (x' - x) . (grad U(x) + grad U(x')) / (2 T): by -2 of it the density of a Langevin proposal is off
            if it has the gradient with the wrong sign.
        rejected: z' - R z where the proposal is rejected.
        unmoved: z' - z there.
    """

    ratio: Polynomial
    potential: Polynomial
    rest: Polynomial
    density: Polynomial
    cross: Polynomial
    rejected: Vector
    unmoved: Vector


@dataclass(frozen=True, eq=False)
class _Rotation:
    """Of a momentum v and normal draws xi to y and eta; see `Kernel._rotated`.

    Attributes:
        key: of xi.
        pairs: c and s for each number.
        eta: symbols.
        inverse: 1 / T.
    """

    key: History
    pairs: list[tuple[Polynomial, Polynomial]]
    eta: Vector
    inverse: Fraction

    def of(
        self, start: Vector, given: Mapping[History, Vector], places: Sequence[int]
    ) -> tuple[Vector, Mapping[History, Vector], frozenset[int]]:
        """z with v for y, the draws with xi, and the numbers of eta."""
        turned, draws, rest = list(start), [], iter(zip(self.pairs, self.eta, strict=True))
        for i, y in enumerate(start):
            if i not in places:
                (c, s), eta = next(rest)
                turned[i] = c * y - s * eta
                draws.append((s * y).scaled(self.inverse) + c * eta)
        return turned, {**given, self.key: draws}, frozenset(n for p in self.eta for n in p.numbers())


@dataclass(eq=False)
class Kernel:
    """A kernel that accepts or rejects one proposal; the first attributes are the arguments of `balance`.

    Attributes:
        points: that the potential was asked for at.
        notes: of the reader.
        others: places of the coins whose sides are the other ones on the way back.

    Raises:
        Unreadable: if z has a momentum and no Hamiltonian is declared.
    """

    sampler: Sampler
    target: Target
    estimator: Estimator
    temperature: float = 1.0
    hamiltonian: Callable[[Any], Any] | None = None
    reversal: Callable[[Any], Any] | None = None
    work: int = MOST_WORK
    turned: bool | None = None
    points: list[tuple[Polynomial, ...]] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    others: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self.traced = Traced.of(self.sampler, self.estimator, self.target)
        self.space = finite_space(LONGEST, self.work)
        self.ring = self.space.ring
        self.inverse = 1 / Fraction(self.temperature).limit_denominator(1000)
        positive = self.target.manifold.is_positive
        self.z = coordinates(self.ring, self.traced.size, self.traced.dimension, positive)
        self.rotation: _Rotation | None = None
        self.places = tuple(range(self.traced.dimension))
        if self.turned is not None:
            self.places = self._position_in_z()
        elif self.hamiltonian is None and self.traced.size != self.traced.dimension:
            raise Unreadable(f"{NO_HAMILTONIAN} for the {self.traced.size} numbers of z")

    def _position_in_z(self) -> tuple[int, ...]:
        """The places of the position in z, of which it is one half. Raises Unreadable."""
        reader = new_reader(self.space, finite=True, points=self.points)
        start = self.traced.position_of(reader, self.traced.packed(reader, [self.space.lift(p) for p in self.z]))
        places = places_in(self.z, start)
        if places is None or self.traced.size != 2 * len(places):
            raise Unreadable(f"no momentum beside the position in the {self.traced.size} numbers of z")
        return places

    def _at(self, z: Vector) -> Vector:
        """The position in z."""
        return [z[place] for place in self.places]

    def _beside(self, z: Vector) -> Vector:
        """The numbers that z holds beside the position."""
        return [p for i, p in enumerate(z) if i not in self.places]

    def results(self) -> tuple[Result, Result]:
        """The two results.

        Of kernels in turn, or of a mixture of them by draws that know nothing of the state, one alone that does not
        keep the law is one too many; of two, or where coins choose, one may make up for the other.
        """
        ways = self._ways()
        if self.turned is not None and not all(map(self._stirs, itertools.chain(*ways))):
            raise Unreadable("a momentum that is not drawn afresh, neither in whole nor in part")
        if self.turned is False:
            self.rotation = self._rotated(ways[0][1])
            ways = self._ways() if self.rotation else ways
        first: Unreadable | tuple[Result, Result] | None = None
        for self.others in _turned(ways[0][0]):
            try:
                found = self._judged(ways)
            except Unreadable as error:
                first = first or error
                continue
            if found[0].holds and found[1].holds:
                return found
            first = first or found
        assert first is not None  # no coin may be turned as well
        if isinstance(first, Unreadable):
            raise first
        return first

    def _judged(self, ways: Sequence[tuple[Move, Move]]) -> tuple[Result, Result]:
        """The two results for the accepted and the rejected move of each way, which go back with `others`."""
        accepted, rejected = [], []
        for taken, refused in ways:
            self._require_known(taken)
            undone = self._undone(taken)
            found = self._decided(taken, undone)
            if found.outcome == "violated" and len(undone.variables) > 2 * len(self.z):
                # as many draws as numbers of z have one way back, more of them have others than the one that was tried
                found = replace(found, outcome="undecided", reason="a way back of several does not balance")
            accepted.append(found)
            rejected.append(self._rejection(refused))
        worst, rejection = (max(found, key=lambda r: OUTCOMES.index(r.outcome)) for found in (accepted, rejected))
        single = [found.outcome for found in accepted].count("violated") == 1 and not any(a.coins for a, _ in ways)
        if len(ways) > 1 and worst.outcome == "violated" and not single:
            worst = replace(worst, outcome="undecided", reason="one way of several does not balance")
        if any(taken.outcomes for taken, _ in ways) and rejection.outcome == "violated":
            reason = "a move that is rejected for one outcome of a draw does not stay"
            rejection = replace(rejection, outcome="undecided", reason=reason)
        return worst, rejection

    def _stirs(self, move: Move) -> bool:
        """True if each number of the momentum after a move depends on a draw: else no energy is ever exchanged."""
        return all(draws_in(p) for p in self._beside(move.z))

    def _rotated(self, refused: Move) -> "_Rotation | None":
        """The rotation that makes one variable of a momentum and its noise; None if they are not met as one.

        Rejected, the momentum is y = c v + s xi with c^2 + s^2 / T = 1. With (v, xi) = (c y - s eta, s y / T + c eta),
        v^2 / T + xi^2 = y^2 / T + eta^2, so that y and eta are independent, of the laws of v and xi: if eta is nowhere
        in the step, y is all that it knows.
        """
        beside = self._beside(self.z)
        for key, draws in refused.draws.items():
            if len(draws) != len(beside) or self._law(refused, key) != Normal():
                continue
            pairs = []
            for p, v, xi in zip(self._beside(refused.z), beside, draws, strict=True):
                c, s = (p.derivative(next(iter(q.numbers()))) for q in (v, xi))
                if not is_zero(p - c * v - s * xi) or not is_zero(c * c + (s * s).scaled(self.inverse) - self.ring.one):
                    break
                pairs.append((c, s))
            else:
                eta = [self.ring.generator(Draw(Normal(), key.child("rotated"), i)) for i in range(len(draws))]
                return _Rotation(key, pairs, eta, self.inverse)
        return None

    def _rejection(self, move: Move) -> Result:
        """A rejected move is R z, or balanced as the accepted ones are."""
        changes = [
            (f"z'_{i + 1} - (R z)_{i + 1}", a - b)
            for i, (a, b) in enumerate(zip(move.z, self._reversed(self.z), strict=True))
        ]
        if not any(p.has("draw") for p in move.z):
            return of_polynomials(REJECTION, "z' = R z where the proposal is rejected", changes)
        self._require_known(move)
        undone = self._undone(move)
        back = self._back(self._reversed(move.z), undone.draws, move)
        accepts = lambda of: log_ratio(of.decision._replace(holds=not of.decision.holds), self._moving(of))
        same = [("log a there and back", accepts(move) - accepts(back))]
        found = self._acceptance(self.ring.zero, undone), of_polynomials(REJECTION, "", same)
        worst = max(found, key=lambda result: OUTCOMES.index(result.outcome))
        equation = "pi(z) k(z, z') = pi(R z') k(R z', R z) where the proposal is rejected"
        if worst.outcome == "violated":  # of several ways back one was tried
            return Result(REJECTION, equation, "undecided", "noise moves what is rejected, and it was not undone")
        return Result(REJECTION, equation, worst.outcome)

    def parts(self) -> Parts | None:
        """The acceptance by its parts; None if the move changes volume."""
        accepted, rejected = self._two_ways()
        self._require_known(accepted)
        undone = self._undone(accepted)
        if not self._keeps_volume(undone):
            return None
        inverse = self.inverse
        reader = new_reader(self.space, finite=True, points=self.points)
        of = lambda function, z: list(evaluated(reader, function, self._at(z)).ravel())
        potential = (of(uninterpreted, self.z)[0] - of(uninterpreted, accepted.z)[0]).scaled(inverse)
        slopes = zip(*(of(lambda x: uninterpreted(x, order=1), z) for z in (self.z, accepted.z)), strict=True)
        moves = zip(self._at(accepted.z), self._at(self.z), slopes, strict=True)
        cross = self.ring.sum((after - before) * (a + b) for after, before, (a, b) in moves)
        still = self._reversed(self.z)
        return Parts(
            log_ratio(accepted.decision, self._moving(accepted)),
            potential,
            undone.energy - potential,
            undone.density,
            cross.scaled(inverse / 2),
            [a - b for a, b in zip(rejected.z, still, strict=True)],
            [a - b for a, b in zip(rejected.z, self.z, strict=True)],
        )

    def _two_ways(self) -> tuple[Move, Move]:
        """The accepted and the rejected move. Raises Unreadable if there is not exactly one decision."""
        ways = self._ways()
        if len(ways) != 1:
            raise Unreadable("coins that choose the proposal")
        return ways[0]

    def _ways(self) -> list[tuple[Move, Move]]:
        """The accepted and the rejected move for all sides of the coins, and all outcomes of draws that are finite.

        Raises:
            Unreadable: where there is not one decision.
        """
        parts: dict[frozenset[Any], list[Move]] = {}
        for move in self._moves(self.z, {}):
            parts.setdefault(move.outcomes, []).append(move)
        return [pair for moves in parts.values() for pair in self._decisions(moves)]

    def _decisions(self, moves: Sequence[Move]) -> list[tuple[Move, Move]]:
        """The accepted and the rejected move for all sides of the coins."""
        sides = len(moves[0].acceptances)
        if (joint := self._joint(moves)) is not None:
            return [joint]
        if not sides or len(moves) != 2**sides or len({move.sides for move in moves}) != len(moves):
            raise Unreadable(f"{len(moves)} paths through the step, not one decision to accept")
        if sides == 1:
            return [self._told_apart(moves)]
        if any(is_shared(move.acceptances) for move in moves):
            raise Unreadable("one draw for two decisions")
        if sequence := self._sequence(moves):
            return sequence
        for place in range(sides):
            pairs: dict[tuple[bool, ...], list[Move]] = {}
            for move in (replace(move, place=place) for move in moves):
                pairs.setdefault(tuple(coin.holds for coin in move.coins), []).append(move)
            if all(self._moved(a) != self._moved(b) for a, b in pairs.values()):
                return [self._told_apart(pair) for pair in pairs.values()]
        raise Unreadable(f"{sides} comparisons of draws with the state, none of which accepts or rejects")

    def _joint(self, moves: Sequence[Move]) -> tuple[Move, Move] | None:
        """The move that several comparisons have to accept, and one that is rejected; None unless all others stay."""
        taken = [move for move in moves if self._moved(move)]
        if len(moves) < 3 or len(taken) != 1 or len(taken[0].acceptances) < 2 or is_shared(taken[0].acceptances):
            return None
        return replace(taken[0], joint=True), next(move for move in moves if move is not taken[0])

    def _sequence(self, moves: Sequence[Move]) -> list[tuple[Move, Move]] | None:
        """The accepted and the rejected move of each of the kernels that a step is made of; None unless it is.

        The j-th kernel is what a step does whose decisions but the j-th reject. A step is all of them in turn if, where
        others have accepted, it goes on as from the state that they lead to, and if no two have a draw in common. Each
        of them then keeps the law if it balances, and so does the step, which need not balance.
        """
        still = [move for move in moves if not self._moved(move)]
        if self.turned is not None or self.reversal is not None or len(still) != 1:
            return None
        by_sides, stay = {move.sides: move for move in moves}, still[0].sides
        turned = lambda sides, j: (*sides[:j], not sides[j], *sides[j + 1 :])
        kernels = [_alone(replace(by_sides[turned(stay, j)], place=j)) for j in range(len(stay))]
        if sum(len(kernel.drawn) for kernel in kernels) > len(frozenset().union(*(k.drawn for k in kernels))):
            return None
        for j, kernel in enumerate(kernels):
            for sides in itertools.product((True, False), repeat=j):
                before = by_sides[(*sides, *stay[j:])]
                if before is still[0]:
                    continue
                after, expected = by_sides[turned(before.sides, j)], self._accepted(before.z, {}, kernel)
                pairs = [*zip(after.z, expected.z, strict=True)]
                pairs.append((after.acceptances[j].difference, expected.decision.difference))
                if not all(is_zero(a - b) for a, b in pairs):
                    return None
        return [(kernel, replace(still[0], place=j)) for j, kernel in enumerate(kernels)]

    def _moved(self, move: Move) -> bool:
        return any(a - b for a, b in zip(move.z, self.z, strict=True))

    def _position_moved(self, move: Move) -> bool:
        return any(a - b for a, b in zip(self._at(move.z), self._at(self.z), strict=True))

    def _told_apart(self, moves: Sequence[Move]) -> tuple[Move, Move]:
        # a rejected move may be reversed, and noise may move its momentum: the accepted one has the draws of a proposal
        for of in (self._moved, lambda move: any(p.has("draw") for p in move.z), self._position_moved):
            found = [of(move) for move in moves]
            if found[0] != found[1]:
                accepted = found.index(True)
                return moves[accepted], moves[1 - accepted]
        raise Unreadable("which of two moves is the accepted one")

    def _require_known(self, move: Move) -> None:
        """Raises Unreadable if a draw moves the proposal that is none of a law, or the one that decides does."""
        known = {next(iter(p.numbers())) for draws in move.draws.values() for p in draws}
        wrong = self._moving(move) - known
        wrong |= self._moving(move) & self._deciding(move)
        if wrong:
            names = ", ".join(str(self.ring.generators[number]) for number in sorted(wrong))
            raise Unreadable(f"a proposal moved by draws of no known law, or that decide, {names}")

    def _deciding(self, move: Move) -> frozenset[int]:
        """The draws that comparisons are with; one that moves the proposal only where there is no other."""
        moving, found = self._moving(move), [deciders(each) for each in move.compared]
        return frozenset().union(*(draws - moving or draws for draws in found))

    def _moving(self, move: Move) -> frozenset[int]:
        """The draws that z and the points on the way depend on."""
        return frozenset().union(*(draws_in(p) for p in (*move.z, *(c for point in move.visited for c in point))))

    def _moves(self, start: Vector, given: Mapping[History, Vector]) -> Iterator[Move]:
        return (move for _, move in every_path(lambda path: self._move(start, given, path)))

    def _move(self, start: Vector, given: Mapping[History, Vector], path: Path) -> Move:
        hidden, unseen = None, frozenset[int]()
        if self.rotation is not None:
            hidden = self.rotation.key
            start, given, unseen = self.rotation.of(start, given, self.places)
        reader = new_reader(self.space, path, finite=True, given=given, points=self.points)
        leaves = self.traced.packed(reader, [self.space.lift(p) for p in start])
        reader.visited.clear()
        step = self.traced.stepped(reader, leaves, finite_step(self.space))
        self.notes |= reader.notes
        draws = {
            key: [self.ring.generator(Draw(use.law, key, i)) for i in range(_size(use.shape))]
            for key, use in reader.drawn.items()
            if isinstance(use.law, Law) and key != hidden
        }
        z = [a.constant_term for a in step.z]
        met = (*z, *(c for point in reader.visited for c in point), *(a.difference for a in path.acceptances))
        if unseen and any(unseen & p.atoms() for p in met):
            raise Unreadable("a momentum that is drawn afresh in part, and met by itself")
        finite = (*path.outcomes.items(), *path.intervals.items())
        outcomes = frozenset((name, tuple(values)) for name, values in finite)
        return Move(z, tuple(dict.fromkeys(reader.visited)), tuple(path.acceptances), draws, outcomes)

    def _reversed(self, z: Vector) -> Vector:
        """R z."""
        if self.turned:
            return [p if i in self.places else -p for i, p in enumerate(z)]
        if self.reversal is None:
            return z
        reversal = self.reversal
        reader = new_reader(self.space, finite=True, points=self.points)
        return list(evaluated(reader, lambda y: ravel_pytree(reversal(self.traced.unravel(y)))[0], z).ravel())

    def _energy(self, z: Vector) -> Polynomial:
        """H(z), of U at the points that have been met."""
        reader = new_reader(self.space, finite=True, points=self.points)
        if self.hamiltonian is not None:
            return evaluated(reader, self.hamiltonian, z).item()
        energy = evaluated(reader, uninterpreted, self._at(z)).item()
        kinetic = self.ring.sum(p * p for p in self._beside(z)).scaled(Fraction(1, 2))
        return (energy + kinetic).scaled(self.inverse)

    def _reverse_draws(self, accepted: Move) -> dict[History, Vector]:
        """The draws with which the step leads from R z' to R z.

        Raises:
            Unreadable: if none are found.
        """
        back, goal = self._reversed(accepted.z), self._reversed(self.z)
        keys = [key for key, draws in accepted.draws.items() if self._is_used(accepted, draws)]
        anew = lambda key: Draw(self._law(accepted, key), key.child("reverse"), 0)
        given = {
            key: [self.ring.generator(replace(anew(key), place=i)) for i in range(len(accepted.draws[key]))]
            for key in keys
        }
        for choice in itertools.islice(self._guesses(accepted, keys, goal), MOST_TRIES):
            solved = dict(given)
            for key, target in zip(keys, choice, strict=True):
                same = accepted.draws[key]
                found = same if target is None else self._solved(back, solved, key, target, accepted)
                if found is None:
                    break
                solved[key] = found
            else:
                if all(is_zero(a - b) for a, b in zip(self._back(back, solved, accepted).z, goal, strict=True)):
                    return solved
        raise Unreadable("no draws were found that undo the proposal")

    def _guesses(self, accepted: Move, keys: Sequence[History], goal: Vector) -> Iterator[tuple[Vector | None, ...]]:
        """The points that the draws of each key may lead to; first those of the same path in the opposite order.

        None stands for draws that are the same on the way back, as a random step size is: of laws that are not normal,
        and normal ones that a step is not linear in.

        Of points P_0 = x, .., P_n = x', a key whose draws P_m depends on first leads back to P_(n - m). What is
        rejected with the position as it was goes back by way of the same points.
        """
        if not self._position_moved(accepted):
            met = lambda key: next((list(p) for p in accepted.visited if self._depends(p, accepted.draws[key])), goal)
            yield tuple(met(key) for key in keys)
        ends = [tuple(self._at(z)) for z in (self.z, accepted.z)]
        path = [*dict.fromkeys((ends[0], *accepted.visited, ends[1]))]
        path = [point for point in path if point != ends[1]] + [ends[1]]
        last = len(path) - 1

        plain = lambda key: self._law(accepted, key) == Normal()

        def opposite(key: History) -> Vector:
            draws = accepted.draws[key]
            first = next((m for m, point in enumerate(path) if self._depends(point, draws)), last)
            return goal if first == last else list(path[last - first])

        yield tuple(opposite(key) for key in keys)
        same = [not plain(key) or self._bends(accepted, key) for key in keys]
        if any(same):
            yield tuple(None if kept else opposite(key) for key, kept in zip(keys, same, strict=True))
        goals = [goal, *(list(point) for point in reversed(accepted.visited))]
        yield from itertools.product(*(goals if plain(key) else [*goals, None] for key in keys))

    def _bends(self, move: Move, key: History) -> bool:
        """True if the position after a move is no linear function of the draws of a key."""
        numbers = frozenset(next(iter(p.numbers())) for p in move.draws[key])
        at = [p for p in self._at(move.z) if numbers & p.atoms()]
        return any(numbers & p.derivative(number).atoms() for p in at for number in numbers)

    def _depends(self, point: Sequence[Polynomial], draws: Vector) -> bool:
        numbers = {next(iter(p.numbers())) for p in draws}
        return any(numbers & p.atoms() for p in point)

    def _is_used(self, move: Move, draws: Vector) -> bool:
        numbers = {next(iter(p.numbers())) for p in draws}
        if numbers & self._deciding(move):
            return bool(numbers & self._moving(move))
        compared = [each.difference for each in move.compared]
        return self._depends([*move.z, *compared, *(p for point in move.visited for p in point)], draws)

    def _back(self, start: Vector, given: Mapping[History, Vector], like: Move) -> Move:
        """The move on the way back, decided as `like` is, with the other sides of some of its coins."""
        return self._accepted(start, given, like, self.others)

    def _accepted(
        self, start: Vector, given: Mapping[History, Vector], like: Move, others: frozenset[int] = frozenset()
    ) -> Move:
        """The move that is decided as `like` is, with the same sides of its coins but for `others`."""
        sides = tuple(holds != (place in others) for place, holds in enumerate(like.sides))
        straight = self._move(start, given, Path([0 if holds else 1 for holds in sides]))
        for move in itertools.chain((straight,), self._moves(start, given)):
            if (move.sides, move.outcomes) == (sides, like.outcomes):
                move = replace(move, place=like.place, joint=like.joint)
                return _alone(move) if like.alone else move
        raise Unreadable("a reverse move without a decision to accept")

    def _solved(
        self, start: Vector, given: Mapping[History, Vector], key: History, goal: Vector, like: Move
    ) -> Vector | None:
        """The draws of one key with which the first point that depends on them is `goal`; None if there are none."""
        unknowns = [next(iter(p.numbers())) for p in given[key]]
        asked = frozenset(unknowns)
        move = self._back(start, given, like)
        points = [*(list(point) for point in move.visited), move.z]
        first = next((p for p in points if any(asked & c.atoms() for c in p)), None)
        if first is None or len(goal) < len(first):
            return None
        places = [i for i, p in enumerate(first) if asked & p.atoms()]
        rows, goal = [opened(first[i], asked) for i in places], [goal[i] for i in places]
        met = [number for number in unknowns if any(number in p.atoms() for p in rows)]
        if len(places) != len(met):
            return None
        found = self._linear(rows, goal, met) or self._linear(self._logs(rows), self._logs(goal), met)
        # those of the key that are not met, of coordinates that do not move, stay what they were
        known = dict(zip(met, found or (), strict=bool(found)))
        kept = zip(unknowns, like.draws[key], strict=True)
        return [known.get(number, draw) for number, draw in kept] if found else None

    def _linear(self, rows: Vector, goal: Vector, unknowns: Sequence[int]) -> Vector | None:
        """The unknowns with which linear functions of them have these values; None if they are not linear."""
        matrix = [[p.derivative(g) for g in unknowns] for p in rows]
        if not rows or any(frozenset(unknowns) & c.atoms() for row in matrix for c in row):
            return None
        free = [_without(p, unknowns) for p in rows]
        try:
            return solution(matrix, [a - b for a, b in zip(goal, free, strict=False)])
        except Unreadable:
            return None

    def _logs(self, values: Vector) -> Vector:
        """The logarithms of products of exponentials and of positive numbers; nothing if one of the values is none."""
        found = []
        for p in values:
            terms = list(p.terms())
            if len(terms) != 1 or not terms[0][1] > 0:
                return []
            (factors, value), total = terms[0], []
            for number, exponent in factors:
                generator = self.ring.generators[number]
                if isinstance(generator, Applied) and generator.name == "exp":
                    total.append(generator.argument.scaled(exponent))
                elif is_positive(generator):
                    total.append(self._log(self.ring.power(number, 1)).scaled(exponent))
                else:
                    return []
            found.append(self.ring.sum((*total, self._log(self.ring.constant(value)))))
        return found

    def _log(self, p: Polynomial) -> Polynomial:
        return apply("log", self.space.lift(p)).constant_term

    def _undone(self, accepted: Move) -> _Undone:
        """An accepted move with the draws that undo it."""
        reverse = self._reverse_draws(accepted)
        forward = [p for key in reverse for p in accepted.draws[key]]
        backward = [p for draws in reverse.values() for p in draws]
        pairs = [(key, pair) for key in reverse for pair in zip(accepted.draws[key], reverse[key], strict=True)]
        density = self.ring.sum(self._log_densities(self._law(accepted, key), *pair) for key, pair in pairs)
        if accepted.coins:
            back = self._back(self._reversed(accepted.z), reverse, accepted)
            density = density + self._log_chance(back) - self._log_chance(accepted)
        return _Undone(
            self._energy(self.z) - self._energy(accepted.z),
            density,
            [*accepted.z, *backward],
            [next(iter(p.numbers())) for p in (*self.z, *forward)],
            reverse,
        )

    def _law(self, move: Move, key: History) -> Law:
        """The law of the draws of a key."""
        draw = self.ring.generators[next(iter(move.draws[key][0].numbers()))]
        assert isinstance(draw, Draw)
        return draw.law

    def _log_densities(self, law: Law, forward: Polynomial, backward: Polynomial) -> Polynomial:
        """The log density of a draw back less that of a draw there.

        Raises:
            Unreadable: for a law without a formula, if the one is neither the other nor its mirror image.
        """
        if law == Normal():
            return (forward * forward - backward * backward).scaled(Fraction(1, 2))
        if is_zero(backward - forward):
            return self.ring.zero
        if law.centre is not None and is_zero(backward - (self.ring.constant(2 * law.centre) - forward)):
            return self.ring.zero
        there, back = (log_density(law, draw) for draw in (forward, backward))
        if there is not None and back is not None:
            return back - there
        raise Unreadable(f"draws of the law {law} that are not undone by their mirror image")

    def _log_chance(self, move: Move) -> Polynomial:
        """The logarithm of the probability of the sides of the coins."""
        chances = (self.space.lift(chance(coin)) for coin in move.coins)
        return self.ring.sum(apply("log", each).constant_term for each in chances)

    def _decided(self, taken: Move, undone: _Undone) -> Result:
        """The result for the acceptance of a move: by a cut at 1, else by any rule, there and back."""
        found = None
        with contextlib.suppress(Unreadable):
            if not taken.joint:
                found = self._acceptance(log_ratio(taken.decision, self._moving(taken)), undone)
        if found is not None and found.holds:
            return found
        back = self._back(self._reversed(taken.z), undone.draws, taken)
        there, again = ([log_acceptance(a, self._moving(move)) for a in move.decisions] for move in (taken, back))
        same = self._rule_holds(there, again, undone)
        if same is None:
            raise Unreadable("a rule of acceptance that has no value at random points", taken.decision.place)
        if same:
            return Result(BALANCE, EQUATION, "verified")
        reason = "log a there less log a back is not what it should be"
        difference = self.ring.sum(there) - self.ring.sum(again) - undone.energy - undone.density
        return found or Result(BALANCE, EQUATION, "violated", reason, difference.text())

    def _rule_holds(self, there: Vector, back: Vector, undone: _Undone) -> bool | None:
        """True if min(there, 0) - min(back, 0), summed, is what it should be at random points; None without any.

        It is to 50 digits. Hastings' a, Barker's, and any of them times a number balance, whatever they make of the
        ratio.
        """
        with mpmath.workdps(MORE_DIGITS):
            try:
                beside = self.ring.sum((*there, *back, undone.energy, undone.density))
                points = list(self._determinants(undone, beside, BOTH_SIDES))
            except NotReal:
                return None
            log_a = lambda at, parts: mpmath.fsum(min(at(p), mpmath.mpf(0)) for p in parts)
            expected = lambda at, d: at(undone.energy) + at(undone.density) + mpmath.log(d)
            return all(abs(log_a(at, there) - log_a(at, back) - expected(at, d)) < TINY for at, d in points)

    def _acceptance(self, ratio: Polynomial, undone: _Undone) -> Result:
        difference = ratio - undone.energy - undone.density
        found = self._balanced(difference, undone, DIGITS)
        return found if found.holds else self._balanced(difference, undone, MORE_DIGITS)

    def _balanced(self, difference: Polynomial, undone: _Undone, digits: int) -> Result:
        """The result for difference = log |det|."""
        with mpmath.workdps(digits):
            points = list(self._determinants(undone, difference))
            if all(abs(d - 1) < TINY for _, d in points):
                found = of_polynomials(BALANCE, EQUATION, [("log a less what it should be", difference)])
                volume: Outcome = "proved" if self._is_proved_to_keep_volume(undone) else "verified"
                return replace(found, outcome=max(found.outcome, volume, key=OUTCOMES.index))
            sizes = [abs(at(difference) - mpmath.log(d)) for at, d in points]
        if max(sizes) < TINY:
            return Result(BALANCE, EQUATION, "verified")
        return Result(BALANCE, EQUATION, "violated", "log a is not what it should be", difference.text())

    def _keeps_volume(self, undone: _Undone) -> bool:
        """True if |det| = 1, to 50 digits at random points."""
        with mpmath.workdps(DIGITS):
            return all(abs(d - 1) < TINY for _, d in self._determinants(undone, self.ring.zero))

    def _is_proved_to_keep_volume(self, undone: _Undone) -> bool:
        """True if det^2 - 1 is shown to vanish with moderate work."""
        image, variables = undone.image, undone.variables
        if len(image) > 4 or len(variables) * sum(map(len, image)) > LARGEST_JACOBIAN:
            return False
        try:
            with self.ring.limited(WORK):
                d = determinant([[p.derivative(v) for v in variables] for p in image])
                return vanishes(d * d - self.ring.one)
        except Unreadable:
            return False

    def _determinants(self, undone: _Undone, beside: Polynomial, count: int = POINTS) -> Iterator[tuple[Any, Any]]:
        """Values at random points, where another polynomial has one too, and |det| there."""
        everything = self.ring.sum((beside, *undone.image))
        for seed in range(count):
            at = random_point(everything, seed)
            yield at, Gradients(self.ring, at, undone.variables).determinant(undone.image)


def _turned(move: Move) -> Iterator[frozenset[int]]:
    """Choices of coins, as their places: none, all, and as many others as are tried."""
    coins = [] if move.joint or move.alone else [i for i in range(len(move.acceptances)) if i != move.place]
    between = (chosen for n in range(1, len(coins)) for chosen in itertools.combinations(coins, n))
    choices = itertools.chain([()], [tuple(coins)] if coins else [], between)
    return (frozenset(chosen) for chosen in itertools.islice(choices, MOST_TURNED))


def _alone(move: Move) -> Move:
    """The move of the kernel with its decision alone, with the points that were met for it."""
    alone = replace(move, alone=True)
    met = tuple(point for point in move.visited if all(draws_in(p) <= alone.drawn for p in point))
    return replace(alone, visited=met)


def _size(shape: Sequence[int]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _without(p: Polynomial, numbers: Sequence[int]) -> Polynomial:
    """The terms of a polynomial in which some generators do not occur."""
    kept = (p.ring.monomial(f, a) for f, a in p.terms() if not any(g in numbers for g, _ in f))
    return p.ring.sum(kept)
