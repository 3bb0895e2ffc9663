"""Samplers whose state is their position, and the helper that completes an object of another author."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, get_args

import jax
import jax.core
import numpy as np

from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Key, Position, State, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.sampler import Need, Sampler


class PositionState(NamedTuple):
    """Position and the estimator's own state."""

    position: Position
    estate: EstimatorState


class PositionVariable:
    """unpack and pack of a sampler whose full variable z is its position."""

    init: Callable[..., State]
    position: Callable[..., Position]

    def unpack(self, state: State) -> Position:
        """Full variable z of a state."""
        return self.position(state)

    def pack(self, key: Key, z: Position, estimator: Estimator) -> State:
        """State with the full variable z; caches are computed anew."""
        return self.init(key, z, estimator)


class PositionMixin(PositionVariable):
    """init, position, unpack and pack of a sampler with a `PositionState`."""

    def init(self, key: Key, position: Position, estimator: Estimator) -> State:
        """Start a chain at a position."""
        return PositionState(position, estimator.init(key, position))

    def position(self, state: State) -> Position:
        """Position of a state."""
        return state.position


class PointMixin:
    """position, unpack and pack of a sampler whose state is z, part by part, and then the estimator's own state.

    Attributes:
        point: the named tuple of z, which begins with the position.
        state: the named tuple of a state.
    """

    point: ClassVar[Callable[..., Tree]]
    state: ClassVar[Callable[..., State]]

    def position(self, state: State) -> Position:
        """Position of a state."""
        return state.position

    def unpack(self, state: State) -> Tree:
        """Full variable z of a state."""
        return self.point(*state[:-1])

    def pack(self, key: Key, z: Tree, estimator: Estimator) -> State:
        """State with the full variable z."""
        return self.state(*z, estimator.init(key, z.position))


def default_claims() -> Claims:
    """Default claims: a fixed step whose stationary distribution is the target up to O(h) bias."""
    return Claims(
        Source("", "none declared"),
        StationaryLaw(order=1),
        conditions=("exact gradient",),
    )


def _bare_init(key: jax.Array, position: Position, estimator: Estimator) -> Position:
    """Return the position itself; only for estimators that have no state of their own."""
    if jax.tree.leaves(estimator.init(key, position)):
        raise ValueError(
            "estimator: it has a state of its own, which a sampler whose state is its position cannot carry;"
            " give the sampler an `init` and a `position` (see sgmcmc_verification.samplers.types.Sampler)"
        )
    return position


def _from_arrays_of_numpy(init: Callable[..., State]) -> Callable[..., State]:
    """An `init` that is given a position in new arrays of NumPy, whatever it is kept in."""

    @functools.wraps(init)
    def begun(key: Key, position: Position, estimator: Estimator) -> State:
        of_jax = lambda leaf: isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)
        return init(key, jax.tree.map(lambda leaf: np.array(leaf) if of_jax(leaf) else leaf, position), estimator)

    return begun


def _attribute_or_self(state: State) -> Position:
    """`state.position` or `state["position"]` if there is one, else the state."""
    if isinstance(state, Mapping):
        return state.get("position", state)
    return getattr(state, "position", state)


@dataclass(frozen=True, eq=False)
class Completed:
    """A sampler put together from functions; see `simple_sampler` and `complete`.

    Attributes:
        given: names of the attributes that were given; the others are defaults.
    """

    step: Callable[..., State]
    init: Callable[..., State]
    position: Callable[..., Position]
    unpack: Callable[..., Tree]
    pack: Callable[..., State]
    needs: frozenset[Need] = frozenset({"gradient"})
    claims: Claims = field(default_factory=default_claims)
    backend: Literal["jax", "host"] = "jax"
    given: frozenset[str] = frozenset()


def simple_sampler(
    step: Callable[..., State],
    *,
    init: Callable[..., State] | None = None,
    position: Callable[[State], Position] | None = None,
    unpack: Callable[[State], Tree] | None = None,
    pack: Callable[..., State] | None = None,
    needs: Iterable[Need] | None = None,
    claims: Claims | None = None,
    backend: Literal["jax", "host"] = "jax",
) -> Sampler:
    """A sampler from its step alone.

        step(key, position, step_size, estimator) -> position

    where `estimator.estimate(key, (), position)[0].gradient` is +grad U, summed over the data, and `step_size` is SDE
    time (SGLD is theta - epsilon grad U + N(0, 2 epsilon)).

    Args:
        step: the transition.
        init: `(key, position, estimator) -> state`; default: the state is the position (estimators without state).
        position: `state -> position`; default: `state.position` or `state["position"]` if there is one, else the state.
        unpack: `state -> z`, the full variable; default: `position`. The checks take every number of the state instead.
        pack: `(key, z, estimator) -> state`; default: `init`. The checks put z back into a state instead.
        needs: what `step` reads of an estimate; default: the gradient. The checks find out.
        claims: default: a fixed-step sampler of the target with an error O(h), no declared dynamics.
        backend: `host` if `key` is to be a `numpy.random.Generator` and nothing can be traced.

    Raises:
        TypeError: if `step` is not callable, or `claims` no `Claims`.
        ValueError: if a need or the backend is unknown.
    """
    if not callable(step):
        raise TypeError(f"step: must be callable as step(key, state, step_size, estimator), got {step!r}")
    _require_known(needs, claims, backend)
    optional = {
        "init": init,
        "position": position,
        "unpack": unpack,
        "pack": pack,
        "needs": needs,
        "claims": claims,
    }
    init = init or _bare_init
    init = _from_arrays_of_numpy(init) if backend == "host" else init
    position = position or _attribute_or_self
    return Completed(
        step=step,
        init=init,
        position=position,
        unpack=unpack or position,
        pack=pack or init,
        needs=frozenset(("gradient",) if needs is None else needs),
        claims=claims or default_claims(),
        backend=backend,
        given=frozenset(name for name, value in optional.items() if value is not None),
    )


def _require_known(needs: Iterable[str] | None, claims: object, backend: str) -> None:
    """Raise TypeError or ValueError for what no sampler can have: unheeded, it would be taken for a default."""
    known = get_args(Need)
    if isinstance(needs, str):
        raise TypeError(f"needs: must be a set of names, got {needs!r}; write {{{needs!r}}}")
    unknown = sorted(map(str, set(needs or ()) - set(known)))
    if unknown:
        raise ValueError(f"needs: {', '.join(unknown)} is none of {', '.join(known)}")
    if claims is not None and not isinstance(claims, Claims):
        raise TypeError(
            f"claims: must be sgmcmc_verification.samplers.types.Claims, got {claims!r}; without it the checks find "
            "out what they can"
        )
    if backend not in ("jax", "host"):
        raise ValueError(f"backend: must be 'jax' or 'host', got {backend!r}")


def complete(candidate: object) -> Sampler:
    """A sampler from any object with at least a `step`; what it lacks is filled in as by `simple_sampler`.

    Raises:
        TypeError: if `candidate` is a class, or has no callable `step`, or its `claims` are no `Claims`.
        ValueError: if a need or the backend of it is unknown.
    """
    if inspect.isclass(candidate):
        raise TypeError(f"sampler: got the class {candidate.__name__}; pass an instance of it")
    if isinstance(candidate, Sampler) and isinstance(candidate.needs, Set):
        _require_known(candidate.needs, candidate.claims, candidate.backend)
        return candidate
    step = getattr(candidate, "step", None)
    if not callable(step):
        raise TypeError(
            f"sampler: {candidate!r} has no method step(key, state, step_size, estimator); see "
            "sgmcmc_verification.samplers.types.Sampler"
        )
    given = {
        name: getattr(candidate, name)
        for name in ("init", "position", "unpack", "pack", "needs", "claims", "backend")
        if hasattr(candidate, name)
    }
    return simple_sampler(step, **given)
