"""The expansion of a step in s = sqrt(h), on each region of the state space that its branches make."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import jax

from sgmcmc_verification.checks.proof.averaging import SCALES, averaged_moments
from sgmcmc_verification.checks.proof.draws import Expectation, draws_in
from sgmcmc_verification.checks.proof.errors import PrecisionLost, TooManyBranches, Unreadable
from sgmcmc_verification.checks.proof.jumps import Way, fresh_numbers, require_law, without_jumps
from sgmcmc_verification.checks.proof.kinetic import solved_hamiltonian
from sgmcmc_verification.checks.proof.memory import require_one_state
from sgmcmc_verification.checks.proof.operators import Density, Index, Moments, moments
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet, Memory
from sgmcmc_verification.checks.proof.reader.interpreter import Reader
from sgmcmc_verification.checks.proof.reader.paths import Path, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from sgmcmc_verification.checks.proof.series import Series, Space
from sgmcmc_verification.checks.proof.traced import Stepped, Traced, evaluated, places_in
from sgmcmc_verification.checks.proof.zero import witness
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.riemannian.metrics import dense
from sgmcmc_verification.targets.target import Target

SLACKS = (0, 2, 4)
"""Powers of s beyond those asked for that are tried, as divisions by s lose some."""
NOT_SMALL = "the step does not tend to the identity as h -> 0"


@dataclass(frozen=True, eq=False)
class Recipe:
    """The declared SDE on a region: D and Q, object arrays (n, n) of polynomials."""

    D: Any
    Q: Any


@dataclass(frozen=True, eq=False)
class Region:
    """A step on a part of the state space.

    Attributes:
        conditions: what is assumed there, in words with file and line; empty for all of the space.
        moments: of z' - z, see `operators.moments`.
        density: exp(-H).
        recipe: the declared D and Q; None if nothing is declared.
        readout: moments of position' - z', if the position is z' and an independent noise; None where it is z'.
        assumed: the conditions as polynomials, and whether each is negative.
        places: places in z of the coordinates of the position; None if it is not a part of z.
        jumps: places in z of numbers that are drawn afresh now and then, of which the moments know nothing (`jumps`),
            with the variances of the draws.
    """

    conditions: tuple[str, ...]
    moments: Moments
    density: Density
    recipe: Recipe | None
    readout: Moments | None
    assumed: Mapping[Polynomial, bool] = field(default_factory=dict)
    places: tuple[int, ...] | None = None
    jumps: Mapping[int, Polynomial] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _OnePath:
    """A step on one way through it: what a region has of it, and the way as one of several between which it jumps."""

    region: Region
    way: Way


@dataclass(frozen=True, eq=False)
class Unread:
    """A part of the state space where the step could not be read."""

    conditions: tuple[str, ...]
    error: Unreadable


@dataclass(frozen=True, eq=False)
class Expansion:
    """A step as a series.

    Attributes:
        order: the highest power of s that is known.
        variables: numbers of the coordinates z in the ring.
        potential: U / T of the position.
        regions: where it could be read.
        unread: where it could not.
        notes: on keys that are shared and on rounding.
        limits: what holds for small h only, and was taken to hold.
    """

    order: int
    ring: Ring
    variables: tuple[int, ...]
    potential: Polynomial
    regions: tuple[Region, ...]
    unread: tuple[Unread, ...]
    notes: tuple[str, ...]
    limits: tuple[str, ...]


def coordinates(ring: Ring, size: int, dimension: int, positive: bool) -> list[Polynomial]:
    """The numbers of z as generators: positions x, then momenta p or whatever there is."""
    single = dimension == 1
    names = ["x"] if single else [f"x{i + 1}" for i in range(dimension)]
    if size >= 2 * dimension:
        names += ["p"] if single else [f"p{i + 1}" for i in range(dimension)]
    names += [f"y{i + 1}" for i in range(size - len(names))]
    return [ring.generator(Coordinate(names[i], i, positive and i < dimension)) for i in range(size)]


def expand(
    sampler: Sampler,
    target: Target,
    estimator: Estimator,
    order: int,
    dynamics: Dynamics | None = None,
    temperature: float = 1.0,
    memory: frozenset[int] = frozenset(),
) -> Expansion:
    """The expansion of a step up to s^order.

    Args:
        sampler: whose step it is.
        target: with an uninterpreted potential.
        estimator: of its gradient.
        order: highest power of s.
        dynamics: the declared SDE; without one the law of z is exp(-U / T), or has an H that is solved for (`kinetic`).
        temperature: T.
        memory: places of the inexact numbers of a state of which nothing is known (`closure`).

    Raises:
        Unreadable: if no part of the step can be read.
    """
    with jax.enable_x64(True):
        traced = Traced.of(sampler, estimator, target)
        at = lambda scale: _expansion(traced, target, order, dynamics, temperature, memory, scale)
        try:
            return at(None)
        except Unreadable as error:
            if not error.reason.startswith(NOT_SMALL) or traced.size == traced.dimension:
                raise
            for scale in SCALES:
                with contextlib.suppress(Unreadable):
                    return at(scale)
            raise


def _expansion(traced: Traced, target: Target, order: int, *rest: Any) -> Expansion:
    """The expansion with as many powers of s as divisions by it ask for; see `_Expander` for the rest."""
    for slack in SLACKS:
        try:
            return _Expander(traced, target, order, slack, *rest).expansion()
        except PrecisionLost:
            continue
    raise Unreadable(f"more than {SLACKS[-1]} powers of sqrt(h) are lost in divisions by h")


@dataclass(eq=False)
class _Expander:
    """One attempt at an expansion, with a ring of its own.

    Attributes:
        scale: k if what z holds beside the position is taken for momenta of a fixed decay, of size s^k (`averaging`).
    """

    traced: Traced
    target: Target
    order: int
    slack: int
    dynamics: Dynamics | None
    temperature: float
    memory: frozenset[int]
    scale: int | None
    notes: set[str] = field(default_factory=set)
    limits: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ring = Ring()
        self.space = Space(self.ring, self.order + self.slack)
        self.expectation = Expectation(self.ring)
        positive = self.target.manifold.is_positive
        self.z = coordinates(self.ring, self.traced.size, self.traced.dimension, positive)
        self.variables = tuple(next(iter(p.numbers())) for p in self.z)

    @property
    def potential(self) -> Polynomial:
        """U / T of the position."""
        return self._potential_at(self.z[: self.traced.dimension])

    def _potential_at(self, position: Sequence[Polynomial]) -> Polynomial:
        inverse = 1 / Fraction(self.temperature).limit_denominator(1000)
        return self.ring.generator(Jet("U", (0,) * len(position), tuple(position))).scaled(inverse)

    def expansion(self) -> Expansion:
        """All regions, the outcomes of finite draws averaged over."""
        paths: dict[tuple[str, ...], list[tuple[Path, _OnePath | Unreadable]]] = {}
        for path, found in every_path(self._one_path):
            paths.setdefault(tuple(path.region), []).append((path, found))
        assumed = {key: some[-1][0].assumed for key, some in paths.items()}
        weights = {key: sum((p.weight for p, _ in some if not p.rare), Fraction(0)) for key, some in paths.items()}
        regions = {key: self._joined(key, some) for key, some in paths.items()}
        for key, weight in weights.items():
            if weight != 1:  # an average over some of the outcomes is none
                regions[key] = Unreadable("a branch on the state that the outcome of a draw has chosen")
        regions = {key: self._with_law(region) for key, region in regions.items()}
        real = {key: region for key, region in regions.items() if not key or witness(assumed[key])}
        unread = [Unread(key, error) for key, error in real.items() if isinstance(error, Unreadable)]
        known = ((region, assumed[key]) for key, region in real.items() if isinstance(region, Region))
        read = tuple(replace(region, assumed=dict(conditions)) for region, conditions in known)
        if not read:
            raise unread[0].error if unread else Unreadable("no region of the state space with a point in it")
        said = tuple(sorted(self.notes)), tuple(sorted(self.limits))
        variables = read[0].density.variables
        return Expansion(self.order, self.ring, variables, self.potential, read, tuple(unread), *said)

    def _joined(self, key: tuple[str, ...], paths: Sequence[tuple[Path, _OnePath | Unreadable]]) -> Region | Unreadable:
        """The average over all ways through a region, or the step without jumps where it jumps."""
        unread = [found for _, found in paths if isinstance(found, Unreadable)]
        if unread:
            return unread[-1]
        known = [(path, found) for path, found in paths if isinstance(found, _OnePath)]
        if any(found.way.fresh for _, found in known):
            return self._without_jumps(key, known)  # whatever the chances are, cut at 0 and 1 as they may be
        region = None
        for path, found in known:
            self.limits |= path.limits
            region = _averaged(region, found.region, path.weight, key)
        assert region is not None  # a region has a path
        return region

    def _without_jumps(self, key: tuple[str, ...], paths: Sequence[tuple[Path, _OnePath]]) -> Region | Unreadable:
        region = next((found.region for _, found in paths if not found.way.fresh), None)
        try:
            if region is None or region.recipe is not None or region.readout:
                raise Unreadable("jumps beside a declared SDE, or of a position that is not z")
            end, variances = without_jumps(self.z, [found.way for _, found in paths])
            increment = [after - self.space.lift(before) for after, before in zip(end, self.z, strict=True)]
            _require_small(increment)
            own = moments(increment, self.order, self.expectation)
        except Unreadable as error:
            return error
        return replace(region, conditions=key, moments=own, jumps=variances)

    def _one_path(self, path: Path) -> _OnePath | Unreadable:
        reader = new_reader(self.space, path)
        reader.reads_counters = True
        try:
            return self._region(reader)
        except TooManyBranches:
            raise  # the other paths have as many, and take as long each
        except Unreadable as error:
            return error
        finally:
            self.notes |= reader.notes
            self.limits |= reader.limits

    def _region(self, reader: Reader) -> _OnePath:
        start = [self.space.lift(p).shifted(k) for p, k in zip(self.z, self._powers, strict=True)]
        leaves = self._with_memory(reader, self.traced.packed(reader, start))
        before = len(reader.visited)
        step = self.traced.stepped(reader, leaves, self.space.power_of_step(2))
        require_one_state(reader.visited, before)
        if self.scale is not None:
            return _OnePath(self._without_momenta(reader, step), Way(step.z))
        increment = [after - before for after, before in zip(step.z, start, strict=True)]
        chance = reader.path.chance
        _require_fresh([*increment, *(() if chance is None else (chance,))], path=reader.path)
        density, recipe = self._law(reader)
        places = places_in(self.z, step.start)
        if (fresh := fresh_numbers(step.z)) and reader.path.is_drawn and not self.memory:
            return _OnePath(Region((), {}, density, recipe, None, places=places), Way(step.z, fresh, chance))
        _require_small(increment)
        own = moments(increment, self.order, self.expectation, chance)
        readout = self._readout(step, increment)
        if chance is not None and readout:
            raise Unreadable("a coin in a step whose position is not z")
        return _OnePath(Region((), own, density, recipe, readout, places=places), Way(step.z, {}, chance))

    @property
    def _powers(self) -> list[int]:
        """The power of s with which each number of z goes."""
        return [0 if i < self.traced.dimension else self.scale or 0 for i in range(self.traced.size)]

    def _without_momenta(self, reader: Reader, step: Stepped) -> Region:
        """The position, averaged over momenta of a fixed decay."""
        places = places_in(self.z, step.start)
        if places is None or self._declared is not None or places != tuple(range(self.traced.dimension)):
            raise Unreadable(f"{NOT_SMALL}, and the position is not the first part of z, or more is declared")
        path, own = reader.path, self.variables[self.traced.dimension :]
        if path.chance is not None or path.weight != 1 or any(p.atoms() & {*own} for p in path.assumed):
            raise Unreadable("a branch or a coin in a step with momenta of a fixed decay")
        end = [after.shifted(-k) for after, k in zip(step.z, self._powers, strict=True)]
        _require_fresh(end, path=path)
        found = averaged_moments(self.z, end, places, self.order, self.expectation)
        density = Density(self.potential, self.variables[: self.traced.dimension])
        return Region((), found, density, None, None, places=places)

    def _with_memory(self, reader: Reader, leaves: list[Any]) -> list[Any]:
        """A state with symbols at the places of which nothing is known."""
        if not self.memory:
            return leaves
        symbol = lambda i: self.space.lift(self.ring.generator(Memory(f"memory {i + 1}")))
        entries = enumerate(self.traced.inexact(reader, leaves))
        return self.traced.with_inexact(leaves, [symbol(i) if i in self.memory else a for i, a in entries])

    @property
    def _declared(self) -> Dynamics | None:
        """The declared SDE, if it is one of all numbers of z."""
        return self.dynamics if self.dynamics is not None and self.dynamics.dim == self.traced.size else None

    def _law(self, reader: Reader) -> tuple[Density, Recipe | None]:
        """exp(-H) and the D and Q of the declared SDE, or the density of the position alone."""
        declared = self._declared
        if declared is None:
            return Density(self.potential, self.variables), None
        H = evaluated(reader, declared.H, self.z).item()
        D, Q = (evaluated(reader, lambda y, m=m: dense(m(y)), self.z) for m in (declared.D, declared.Q))
        return Density(H, self.variables), Recipe(D, Q)

    def _with_law(self, region: Region | Unreadable) -> Region | Unreadable:
        """The region with the Hamiltonian that its moments have, averaged as they are, where none is declared."""
        if isinstance(region, Unreadable) or self._declared is not None:
            return region
        if len(region.density.variables) != self.traced.dimension:  # not the position alone
            hamiltonian = self._solved(region)
            if hamiltonian is None:
                return Unreadable(
                    f"no Hamiltonian is declared for the {self.traced.size} numbers of z, and none was found for them"
                )
            region = replace(region, density=Density(hamiltonian, self.variables))
        try:
            require_law(region.density, self.z, region.jumps)
        except Unreadable as error:
            return error
        return region

    def _solved(self, region: Region) -> Polynomial | None:
        """U / T and a quadratic of what else is in z, where the position is a part of z; None if there is none."""
        if region.places is None:
            return None
        position = [self.z[place] for place in region.places]
        taken = {number for p in position for number in p.numbers()}
        return solved_hamiltonian(
            region.moments, self._potential_at(position), self.variables, [v for v in self.variables if v not in taken]
        )

    def _readout(self, step: Stepped, increment: Sequence[Series]) -> Moments | None:
        """The moments of position' - z' where z is the position without a noise that is drawn for it alone."""
        if self.traced.size != self.traced.dimension:
            return None
        noise = [a - b for a, b in zip(step.position, step.z, strict=True)]
        if not any(noise):
            return None
        used, own = (
            frozenset().union(*(draws_in(p) for a in part for p in a.polynomials())) for part in (increment, noise)
        )
        if used & own or any(p.has("state") for a in noise for p in a.polynomials()):
            raise Unreadable("a position that is z and a part that depends on the step")
        return moments(noise, self.order, self.expectation)


def _require_small(increment: Sequence[Series]) -> None:
    """Raises Unreadable if the step does not tend to the identity as h -> 0."""
    for change in increment:
        if change and change.valuation < 0:
            raise Unreadable(f"{NOT_SMALL}: it has a term h^{Fraction(change.valuation, 2)}")
        if change and change.valuation == 0:
            raise Unreadable(f"{NOT_SMALL}: z' - z = {change.constant_term.text(3)}")


def _require_fresh(increment: Sequence[Series], path: Path) -> None:
    """Raises Unreadable if a uniform draw that has decided a branch, or a coin, is used for its value too."""
    used = frozenset().union(*(draws_in(p) for change in increment for p in change.polynomials()))
    if used & {*path.intervals, *path.coins}:
        raise Unreadable("a uniform draw that decides and is used again")


def _averaged(before: Region | None, found: Region, weight: Fraction, key: tuple[str, ...]) -> Region:
    """The average over the outcomes of finite draws so far."""
    own = _added({} if before is None else before.moments, found.moments, weight)
    known = before is not None and before.readout is not None
    readout = None
    if known or found.readout is not None:
        readout = _added((before.readout if before is not None else None) or {}, found.readout or {}, weight)
    return Region(key, own, found.density, found.recipe, readout, places=found.places)


def _added(sum_so_far: Moments, more: Moments, weight: Fraction) -> dict[Index, list[Polynomial]]:
    """Moments and the weighted moments of one more outcome."""
    total = {index: list(row) for index, row in sum_so_far.items()}
    for index, row in more.items():
        scaled = [p.scaled(weight) for p in row]
        total[index] = [a + b for a, b in zip(total[index], scaled, strict=True)] if index in total else scaled
    return total
