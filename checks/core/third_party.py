"""A sampler of another author as a row: what it does not say is found out, not asked.

Its default z is every number of its state (`samplers.interface.whole_state`), its `needs` are the parts of an estimate
without which it cannot be traced, and the power with which its steps scale is read off the steps. What it is given is
sealed: an estimator that has `init` and `estimate`, and nothing else.
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line, source_of
from sgmcmc_verification.checks.core.likely_mistakes import refuse
from sgmcmc_verification.checks.core.options import takes_a_target, variants
from sgmcmc_verification.checks.core.selection import BANANA
from sgmcmc_verification.checks.core.start_position import of_particles, start_position, start_state
from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.checks.programs.operations import operation_names
from sgmcmc_verification.samplers.adapters.torch.written import OnTape, is_written_in_torch
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.anchored import anchors
from sgmcmc_verification.samplers.interface.capabilities import PartSampler, on_host
from sgmcmc_verification.samplers.interface.claims import CarriedState, Claims, Moves, ParticleLaw, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import Completed, complete
from sgmcmc_verification.samplers.interface.opened_state import open_state
from sgmcmc_verification.samplers.interface.outline import ESTIMATE, outline
from sgmcmc_verification.samplers.interface.part import on_part
from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator, Need, Sampler
from sgmcmc_verification.samplers.interface.settled import begins_with, settled
from sgmcmc_verification.samplers.interface.trees import EstimatorState, Key, Position, State
from sgmcmc_verification.samplers.interface.turns import Turns, by_turns
from sgmcmc_verification.samplers.interface.whole_state import (
    KnownTurn,
    Programs,
    WholeState,
    shown_by,
    whole_state,
    with_leaves,
)
from sgmcmc_verification.targets.target import Target

NEEDS: tuple[Need, ...] = ("gradient", "potential", "covariance", "statistics")
FEWEST = tuple(frozenset(chosen) for n in range(5) for chosen in itertools.combinations(NEEDS, n))
"""Sets of parts of an estimate, the smaller ones first."""
TAGS = "verification_tags"
"""Attribute by which an object says what it is not made for."""
MANY_DATA, MANY_COORDINATES = 1 << 10, 1_000
"""Data up to which a turn is looked for: more of them are for what is seen in one step; coordinates up to which a
target shows by itself how a sampler counts."""
REFUSALS = (ValueError, AssertionError, NotImplementedError)
"""What a sampler raises where it says that it is not made for something."""
TINY = 1e-8
"""Share of the usual step size at which the leading power of a move is read off."""


@dataclasses.dataclass(frozen=True, eq=False)
class Sealed:
    """An estimator that shows `init` and `estimate` alone, and of an estimate what a sampler says that it needs.

    Args:
        inner: the estimator.
        needs: parts of an estimate; the others are None.
    """

    _inner: Estimator
    _needs: frozenset[str] = frozenset(NEEDS)

    def init(self, key: Key, position: Position) -> EstimatorState:
        """First state of the estimator."""
        return self._inner.init(key, position)

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        estimate, estate = self._inner.estimate(key, estate, position)
        shown = [getattr(estimate, name) if name in self._needs else None for name in NEEDS]
        return Estimate(*shown), estate


class Whole(Exact):
    """Estimates by one operation of a program, `ESTIMATE`: programs for two targets are the same but for it."""

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, traced once for a target."""
        del key
        value, gradient = _named(self.target)(position)
        return Estimate(gradient, value), estate


@functools.lru_cache(maxsize=64)
def _named(target: Target) -> Callable[[Position], Any]:
    of = lambda position: target.value_and_gradient(position)
    of.__name__ = ESTIMATE
    return jax.jit(of)


class Shaped(Exact):
    """Estimates of the right shapes and without a value: for tracing alone, which need not trace the potential."""

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Zeros like the position, and zero."""
        del key
        code = self.target.relaxed(position)
        value = jnp.zeros((), jnp.result_type(*jax.tree.leaves(code)))
        return Estimate(jax.tree.map(jnp.zeros_like, code), value), estate


def row(
    reference: str,
    value: Any,
    targets: tuple[str, ...],
    default: Mapping[str, tuple[str, ...]],
    find: Any,
    claims: Claims | None = None,
) -> Row:
    """The row of an object that no registry knows: a Sampler, its class, or a function of a Target that returns one.

    Args:
        reference: value of `--sampler`, for messages.
        value: the object.
        targets: names of targets; () for the defaults of the spaces that it claims.
        default: space -> names of targets.
        find: name -> target.
        claims: what it is held to; None for its own claims, or the default.

    Raises:
        BadInput: if the object is none of these, or its spaces have no default target.
    """
    build = built_once(builder(reference, value) if claims is None else _claiming(builder(reference, value), claims))
    try:
        others = (names[0] for space, names in default.items() if space != "euclidean")
        sampler = _first_built(build, find, targets or (*default["euclidean"], *others))
        spaces = sampler.claims.spaces if hasattr(sampler, "claims") else ("euclidean",)
    except BadInput:
        raise
    except RAISED:
        return Row(reference, build, targets=targets or default["euclidean"], foreign=True)  # `resolve` reports it
    usual = tuple(name for space in spaces for name in default.get(space, ()))
    if isinstance(sampler, PartSampler):  # a mask may have a size of its own
        usual = tuple(name for name in usual if takes_a_step(lambda n=name: build(find(n)), find(name)))
    note = ""
    if usual and not targets:
        usual, note = _of_several(build, usual, find)
    left_out = [find(name) for name in usual if targets and name not in targets]
    left_out = tuple(t.name for t in left_out if takes_a_step(lambda t=t: build(t), t))
    targets = targets or usual
    if not targets:
        raise BadInput(f"--sampler {reference}: no default target for the spaces {spaces}; name one with --target")
    host = on_host(sampler)
    estimator = lambda target: _exact(target, host)
    first = find(targets[0])
    varied, notes, off = variants(
        value,
        lambda options: takes_a_step(lambda: build(first, **options), first),
        lambda options: operations(lambda: build(first, **options), first),
    )
    power = step_power(sampler, first)
    notes = (note, *notes) if note else notes
    kept: dict[str, Any] = {"variants": varied, "step_power": power, "estimator": estimator, "notes": notes, "off": off}
    kept |= {"tags": _tags_of(reference, value), "place": source_of(getattr(value, "step", value))}
    return Row(reference, build, targets=targets, foreign=True, left_out=left_out, **kept)


def _tags_of(reference: str, value: Any) -> tuple[str, ...]:
    """The `verification_tags` of an object, or of its step. Raises BadInput for anything but a sequence of texts."""
    found = getattr(value, TAGS, getattr(getattr(value, "step", None), TAGS, ()))
    if isinstance(found, str) or not isinstance(found, Collection) or not all(isinstance(t, str) for t in found):
        raise BadInput(f"--sampler {reference}: {TAGS} must be a tuple of names, got {found!r}")
    return tuple(found)


def _first_built(build: Callable[..., Any], find: Callable[[str], Target], names: tuple[str, ...]) -> Any:
    """The sampler on the first target for which it can be built; raises what it raises on the first of all."""
    for name in names:
        with contextlib.suppress(*RAISED):
            return build(find(name))
    return build(find(names[0]))


def takes_a_step(build: Callable[[], Any], target: Target) -> bool:
    """True if a sampler can be built and take a step on a target."""
    return step_error(build, target) is None


def step_error(build: Callable[[], Any], target: Target) -> BaseException | None:
    """The error of a sampler when it is built for a target or takes a step there; None if there is none."""
    try:
        sampler = build()
        host = on_host(sampler)
        estimator = _exact(target, host)
        if host:
            one_step(sampler, target, np.random.default_rng(0), estimator)
        else:
            jax.eval_shape(lambda key: one_step(sampler, target, key, estimator), jax.random.key(0))
    except RAISED as error:
        return error
    return None


def _of_several(build: Callable[..., Any], usual: tuple[str, ...], find: Any) -> tuple[tuple[str, ...], str]:
    """Targets of a sampler that refuses positions of one coordinate, and a note about it; `usual` and "" for any other.

    A direction that turns, a pair of coordinates or a covariance may need two; what raises at two coordinates as well
    is in error.
    """
    first = find(usual[0])
    error = step_error(lambda: build(first), first) if first.size == 1 and first.manifold.is_linear else None
    if not isinstance(error, REFUSALS):
        return usual, ""
    several = tuple(name for name in usual if find(name).size > 1)
    if not several or not takes_a_step(lambda: build(find(several[0])), find(several[0])):
        return usual, ""
    without_data = [name for name in several if find(name).terms is None]
    more = () if any(find(name).gaussian is None for name in without_data) else (BANANA,)
    note = f"positions of one coordinate, at which it raises {one_line(error, 120)}"
    return (several[0], *more, *several[1:]), note


def operations(build: Callable[[], Any], target: Target) -> tuple[str, ...] | None:
    """The names of the operations of a first step in their order; None where they cannot be known."""
    try:
        sampler = build()
        if on_host(sampler):
            return None
        program = jax.make_jaxpr(lambda key: one_step(sampler, target, key, _exact(target, False)))(jax.random.key(0))
    except RAISED:
        return None
    return tuple(operation_names(program.jaxpr))


def one_step(sampler: Any, target: Target, key: Key, estimator: Estimator) -> tuple[Any, Any]:
    """The first state and what a small step makes of it; `key` is a numpy Generator on the host."""
    keys = (key, key) if on_host(sampler) else jax.random.split(key)
    state = sampler.init(keys[0], start_position(sampler, target), estimator)
    return state, sampler.step(keys[1], state, 0.01 / target.curvature, estimator)


def _exact(target: Target, host: bool) -> Estimator:
    # a host sampler asks whether an estimator is of its kind
    return HostExact(target) if host else Sealed(Exact(target))


def step_power(sampler: Any, target: Target) -> float:
    """1 if a small step of size h moves the position like sqrt(h), 1/2 if like h or less.

    Step sizes scale with the curvature to minus this power. A momentum, carried or fresh, moves a position by h times
    itself.
    """
    if of_particles(sampler):
        return 1.0
    host = on_host(sampler)
    estimator = _exact(target, host)
    key = np.random.default_rng if host else jax.random.key
    try:
        state = start_state(sampler, key(0), target.example, estimator)
        before = _flat(sampler.position(state))
        one = lambda key, state, size: sampler.step(key, state, size, estimator)
        step = one if host else evaluated(one)
        h = TINY * 0.1 / target.curvature
        moves = [
            [np.abs(_flat(sampler.position(step(key(1 + i), state, size))) - before).max() for i in range(5)]
            for size in (h, 16 * h)
        ]
    except RAISED:
        return 1.0  # the preflight says what is wrong with it
    small, large = np.median(moves, axis=1)
    return 0.5 if large > 8 * small > 0 else 1.0


def _flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(leaf, float)) for leaf in jax.tree.leaves(tree)])


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """Findings about an object, by target and options, or by the kind of the target and options.

    Attributes:
        past_the_start: places of leaves of its states, and the values with which it begins.
        plain: where its steps were seen to have no turns.
        turns: the turns that were seen.
        returns_more: by kind, whether its steps return more beside the state.
        needs: by kind, the fewest parts of an estimate with which it takes a step.
        caches: by the outline of a step, those leaves of its states that `init` makes anew.
        wholes: where z stands in the states of one that runs in Python.
    """

    past_the_start: dict[Any, dict[int, Any]] = dataclasses.field(default_factory=dict)
    plain: set[Any] = dataclasses.field(default_factory=set)
    turns: dict[Any, KnownTurn] = dataclasses.field(default_factory=dict)
    returns_more: dict[Any, bool] = dataclasses.field(default_factory=dict)
    needs: dict[Any, frozenset[str]] = dataclasses.field(default_factory=dict)
    caches: dict[Hashable, list[int]] = dataclasses.field(default_factory=dict)
    wholes: dict[Hashable, WholeState] = dataclasses.field(default_factory=dict)

    def whole_of(self, sampler: Completed, start: Any, name: Hashable, find: Callable[[], WholeState]) -> WholeState:
        """The whole state of a sampler that is built anew for each statement: hundreds of steps in Python found it."""
        leaves, structure = jax.tree.flatten(start)
        found = self.wholes.get(name)
        if found is None or found.structure != structure:
            found = self.wholes[name] = find()
        return dataclasses.replace(found, sampler=sampler, leaves=tuple(leaves))

    def of_state(self, sampler: Completed, target: Target, kind: Any) -> Completed:
        """The sampler whose step returns the state alone."""
        if kind not in self.returns_more and (more := returns_more(sampler, target)) is not None:
            self.returns_more[kind] = more
        return state_alone(sampler) if self.returns_more.get(kind, False) else sampler

    def needs_of(self, sampler: Sampler, target: Target, kind: Any) -> frozenset[str]:
        """`needs_of`; the gradient if no step can be taken at all, as `of_state` has found out."""
        if kind in self.returns_more and kind not in self.needs and (needs := needs_of(sampler, target)) is not None:
            self.needs[kind] = needs
        return self.needs.get(kind, frozenset({"gradient"}))


def _data(target: Target) -> int:
    return 0 if target.terms is None else target.terms.size


def _law(target: Target) -> Any:
    """The name and the shapes of a law without data, which is made anew for some statements; else the target."""
    return target if _data(target) else (target.name, tuple(np.shape(leaf) for leaf in jax.tree.leaves(target.example)))


def _kind(target: Target, chosen: str) -> Any:
    """The space, the number of data, the pytree and the options: programs of one kind differ in shapes alone."""
    return type(target.manifold), _data(target), jax.tree.structure(target.example), chosen


def builder(reference: str, value: Any) -> Callable[..., Any]:
    """`(target, **options) -> sampler` for an object of another author, what it lacks filled in."""
    refuse(reference, value)
    known = Known()
    if isinstance(value, type) and not hasattr(value, "step"):
        raise BadInput(f"--sampler {reference}: the class has no method `step`")
    if hasattr(value, "step") and not isinstance(value, type):
        given = lambda options: complete(_with_options(reference, value, options))
        return lambda target, **options: filled_in(given(options), target, options, known)
    if callable(value):
        made = value if takes_a_target(value) else lambda target, **options: value(**options)
        if isinstance(value, type):
            return lambda target, **options: filled_in(complete(made(target, **options)), target, options, known)
        return lambda target, **options: _if_sampler(reference, made(target, **options), target, options, known)
    raise BadInput(
        f"--sampler {reference}: the object has no method `step` and is not a function of a Target "
        f"(it is a {type(value).__name__})"
    )


def built_once(build: Callable[..., Any]) -> Callable[..., Any]:
    """`build` with one sampler for each target and options: what is found out of it, and its programs, serve again.

    One of the host is built anew each time, for it may count its calls.
    """
    made: dict[Any, Any] = {}

    def built(target: Target, **options: Any) -> Any:
        name = (target, repr(sorted(options.items())))
        if name not in made:
            sampler = build(target, **options)
            if on_host(sampler):
                return sampler
            made[name] = sampler
        return made[name]

    return built


def _claiming(build: Callable[..., Any], claims: Claims) -> Callable[..., Any]:
    """`build` with other claims. Raises BadInput for one that says what positions are."""
    if Moves in claims:
        raise BadInput("claims: Moves says what the positions of a sampler are, which claims it itself")

    def built(target: Target, **options: Any) -> Any:
        found = build(target, **options)
        if isinstance(found, Completed):
            part = found.claims.get(Moves)
            made = claims if part is None else claims.amended(part)
            return dataclasses.replace(found, claims=made, given=found.given | {"claims"})
        names = [field.name for field in dataclasses.fields(Completed)][:-2]
        parts: dict[str, Any] = {name: getattr(found, name) for name in names if hasattr(found, name)}
        parts["claims"] = claims
        return Completed(**parts, backend="host" if on_host(found) else "jax", given=frozenset(parts))

    return built


def _if_sampler(reference: str, value: Any, target: Target, options: Mapping[str, Any], known: Known) -> Any:
    """Filled in if it is a sampler; anything else as it is, for `resolve` to name."""
    refuse(reference, value)
    return filled_in(complete(value), target, options, known) if hasattr(value, "step") else value


def _with_options(reference: str, value: Any, options: Mapping[str, Any]) -> Any:
    if not options:
        return value
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise BadInput(f"--option: {reference} is an object without options; name its class or a function instead")
    return dataclasses.replace(value, **options)


def filled_in(sampler: Sampler, target: Target, options: Mapping[str, Any], known: Known | None = None) -> Sampler:
    """The sampler with `needs`, `unpack` and `pack` found out where they were not given.

    An option `temperature` is the temperature of the law where no claims were given.

    One that raises is returned as it is: the preflight says what is wrong. One that moves a part of its position
    becomes a sampler of that part. One that is different at the start begins past it. `known` remembers what was found
    for a target and options: one that runs in Python is built, and filled in, for every statement anew.
    """
    if Moves in sampler.claims:
        try:
            sampler = on_part(sampler, target.example, _exact(target, on_host(sampler)))
        except RAISED as error:
            raise (error if isinstance(error, ValueError) else ValueError(one_line(error))) from error
    if not isinstance(sampler, Completed) or ParticleLaw in sampler.claims:
        return sampler
    known, chosen = known or Known(), repr(sorted(options.items()))
    kind = _kind(target, chosen)
    sampler = with_open_state(known.of_state(sampler, target, kind), target)
    if "claims" not in sampler.given and "temperature" in options:
        law = dataclasses.replace(sampler.claims[StationaryLaw], temperature=float(options["temperature"]))
        sampler = dataclasses.replace(sampler, claims=Claims(sampler.claims.source, law))
    parts: dict[str, Any] = {}
    # more than a step reads may be declared: what is not read is nothing that has to matter
    declared = sampler.needs if "needs" in sampler.given else frozenset()
    parts["needs"] = known.needs_of(sampler, target, kind) | (declared - {"gradient", "potential"})
    host, given = on_host(sampler), {"unpack", "pack"} <= sampler.given
    target = target if host or target.stand_in is None else target.stand_in
    estimator, unit = HostExact(target) if host else Sealed(Whole(target)), 1 / target.curvature
    make_key = np.random.default_rng if host else jax.random.key
    try:
        programs = _programs(sampler, estimator, 0.1 * unit, known.caches)
        start = start_state(sampler, make_key(0), target.example, estimator, programs.init)
        names = _names(sampler, programs, start, target, chosen)
        if not given:
            if names[0] not in known.past_the_start:
                found = _past_the_start(sampler, start, estimator, 0.1 * unit, make_key, programs)
                known.past_the_start.update(dict.fromkeys(names, found))
            sampler, start = _begun(sampler, start, known.past_the_start[names[0]])
            held = anchors(sampler, start, estimator, unit, make_key(0), evaluated, programs)
            sampler, start = _begun(sampler, start, held)
            find = lambda: whole_state(sampler, start, estimator, unit, make_key, evaluated, programs)
            whole = known.whole_of(sampler, start, (_law(target), chosen), find) if host else find()
            if whole.rest or whole.position is None or "init" in sampler.given:
                parts |= {"unpack": whole.unpack, "pack": whole.pack}
    except RAISED:
        return dataclasses.replace(sampler, **parts)
    sampler = dataclasses.replace(sampler, **parts)
    if _data(target) > MANY_DATA or names[0] in known.plain:
        return sampler
    turns, programs = sampler, dataclasses.replace(programs, turn=known.turns.get(names[-1]))
    with contextlib.suppress(*RAISED):
        turns = by_turns(sampler, start, estimator, unit, make_key, not given, evaluated, programs)
    if turns is sampler:
        known.plain.update(names)
    elif isinstance(turns, Turns):
        known.turns.update(dict.fromkeys(names, KnownTurn(turns.turn, turns.rest, turns.begin)))
    return turns


def _programs(sampler: Completed, estimator: Estimator, h: float, caches: dict[Hashable, list[int]]) -> Programs:
    """A step of a sampler and its `init`, traced when they are asked for."""
    step = evaluated(lambda key, state: sampler.step(key, state, h, estimator))
    init = evaluated(lambda key, position: sampler.init(key, position, estimator))
    return Programs(step, init, step.program, caches)


def _names(sampler: Completed, programs: Programs, start: State, target: Target, chosen: str) -> list[Any]:
    """Names under which it is remembered how a sampler counts its steps, the narrowest first.

    The same code, of as many data and at the same options, counts in the same way in any number of coordinates. Where
    the code is not seen, hundreds of steps in many coordinates show no more than those in few.
    """
    data = _data(target)
    if on_host(sampler):
        return [(data, chosen)] if target.size > MANY_COORDINATES else [(target, chosen), (data, chosen)]
    leaves = jax.tree.leaves(start)
    if len(leaves) == len(jax.tree.leaves(sampler.position(start))):
        return [(data, chosen)]  # nothing that could count
    return [(outline(programs.traced(jax.random.key(0), start).jaxpr), shown_by(leaves), data, chosen)]


def _begun(sampler: Completed, start: State, values: Mapping[int, Any]) -> tuple[Completed, State]:
    """The sampler that begins with some leaves, and the state with them."""
    return (begins_with(sampler, values), with_leaves(start, values)) if values else (sampler, start)


def _past_the_start(
    sampler: Completed,
    start: State,
    estimator: Estimator,
    h: float,
    make_key: Callable[[int], Any],
    programs: Programs,
) -> dict[int, Any]:
    """`settled`; nothing for a state that is declared to carry more, whose clocks are looked at from their start."""
    with contextlib.suppress(*RAISED):
        return {} if CarriedState in sampler.claims else settled(sampler, start, estimator, h, make_key, programs)
    return {}


def returns_more(sampler: Completed, target: Target) -> bool | None:
    """True for a step that returns a tuple of the state and more beside it; None if none can be taken."""
    host = on_host(sampler)
    # shapes are those of an estimate without a value, unless the step asks for more than a gradient and a potential
    for estimator in (HostExact(target),) if host else (Sealed(Shaped(target)), _exact(target, host)):
        ends = lambda key, given=estimator: one_step(sampler, target, key, given)
        try:
            before, after = ends(np.random.default_rng(0)) if host else jax.eval_shape(ends, jax.random.key(0))
        except RAISED:
            continue
        break
    else:
        return None
    shape = lambda tree: (jax.tree.structure(tree), [np.shape(leaf) for leaf in jax.tree.leaves(tree)])
    more = isinstance(after, tuple) and bool(after) and shape(after) != shape(before)
    return more and shape(after[0]) == shape(before)


def state_alone(sampler: Completed) -> Completed:
    """The sampler whose step returns the first part of what it returns."""
    step = sampler.step

    @functools.wraps(step)
    def alone(key: Key, state: Any, step_size: Any, estimator: Estimator) -> Any:
        return step(key, state, step_size, estimator)[0]

    return dataclasses.replace(sampler, step=alone)


def with_open_state(sampler: Completed, target: Target) -> Completed:
    """The sampler whose states are trees of numbers, where it runs in Python and keeps objects.

    One that is written in torch runs on chosen draws too.
    """
    if not on_host(sampler):
        return sampler
    if is_written_in_torch(sampler.step):
        sampler = dataclasses.replace(sampler, init=OnTape(sampler.init), step=OnTape(sampler.step))
    if sampler.given & {"unpack", "pack"}:
        return sampler
    with contextlib.suppress(*RAISED):
        return open_state(sampler, target.example, _exact(target, host=True), 0.01 / target.curvature)
    return sampler


def needs_of(sampler: Sampler, target: Target) -> frozenset[str] | None:
    """The fewest parts of an estimate with which a step can be taken; None if it cannot be taken at all.

    A part that is only kept does not stop a step where it is None: the state then has another structure.
    """
    host = on_host(sampler)
    estimator = HostExact(target) if host else Shaped(target)
    possible: list[frozenset[str]] = []
    for needs in FEWEST:
        ends = lambda key, s=Sealed(estimator, needs): one_step(sampler, target, key, s)
        try:
            before, after = ends(np.random.default_rng(0)) if host else jax.eval_shape(ends, jax.random.key(0))
        except RAISED:
            continue
        possible.append(needs)
        if jax.tree.structure(before) == jax.tree.structure(after):
            return needs
    return next(iter(possible), None)
