"""States of host samplers that are objects, as trees of numbers: what an object holds, and the object made again.

A sampler in Python may keep an object of a class of its own, a deque, a structured array or tensors of torch. What it
holds is a Markov chain all the same; its numbers are where z is looked for (`whole_state`), which takes a tree of them.
A generator of NumPy that it keeps from its start gives way to that of each step.
"""

import collections
import copy
import dataclasses
import enum
import inspect
import itertools
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.seeding import Seeding
from sgmcmc_verification.samplers.interface.trees import Builder, Key, Position, Scalar, State, Tree

Held = Tree
"""A value in a state: a number, an array, a container, an object."""
Form = tuple[Held, ...]
"""All of a state but its numbers: nested tuples, which can be compared."""
FIXED = (type(None), str, bytes, enum.Enum, types.FunctionType, types.BuiltinFunctionType, type)
GENERATORS = (np.random.Generator, Seeding)
NUMBERS = (bool, int, float, np.bool_, np.number, jax.Array)
TRIED = 3
"""Steps after which a state still has to come apart."""


class Closed(Exception):
    """A state that cannot be taken apart; the message says what is in it."""


@jax.tree_util.register_pytree_node_class
class Opened:
    """A state that was taken apart, a tree whose leaves are its numbers.

    Args:
        form: of it.
        leaves: its numbers and arrays, in order.
    """

    def __init__(self, form: Form, leaves: list[Held]) -> None:
        self.form, self.leaves = form, leaves

    def tree_flatten(self) -> tuple[list[Held], Form]:
        """The leaves, and the form."""
        return self.leaves, self.form

    @classmethod
    def tree_unflatten(cls, form: Form, leaves: Held) -> "Opened":
        """The state of a form with these leaves."""
        return cls(form, list(leaves))


def is_tree(state: State) -> bool:
    """True for a state that is a tree of numbers, arrays and keys as it is."""
    return all(isinstance(leaf, NUMBERS) or _is_plain(leaf) for leaf in jax.tree.leaves(state))


def opened(state: State, twice: bool = False) -> Opened:
    """A state taken apart; its arrays are copied.

    Args:
        state: of a host sampler.
        twice: whether one array may stand in two places: in the opened state they are two.

    Raises:
        Closed: for what cannot be taken apart, and for an object or memory in two places: to write to one is to change
            the other.
    """
    leaves: list[Held] = []
    held: list[Held] = []
    form = _form(state, leaves, held)
    arrays = [value for value in held if isinstance(value, np.ndarray) and value.size]
    if not twice and any(np.shares_memory(one, other) for i, one in enumerate(arrays) for other in arrays[:i]):
        raise Closed("two arrays that share memory")
    return Opened(form, leaves)


def closed(state: Opened, generator: Key = None) -> State:
    """The state as the sampler knows it, its arrays copied; `generator` stands for the generators that it holds."""
    return _made(state.form, iter(state.leaves), generator)


@dataclass(frozen=True, eq=False)
class OpenStates:
    """The methods of a sampler whose states are objects, by trees of the numbers in them.

    Attributes:
        sampler: with the objects.
    """

    sampler: Completed

    def init(self, key: Key, position: Position, estimator: Estimator) -> Opened:
        """The first state."""
        return opened(self.sampler.init(key, position, estimator), twice=True)

    def step(self, key: Key, state: Opened, step_size: Scalar, estimator: Estimator) -> Opened:
        """The next state."""
        return _as_before(opened(self.sampler.step(key, closed(state, key), step_size, estimator)), state)

    def position(self, state: Opened) -> Position:
        """The position of a state, its tensors as arrays."""
        return jax.tree.map(_as_array, self.sampler.position(closed(state)))


def _as_before(after: Opened, before: Opened) -> Opened:
    """The state in the form of the one before, where they differ in numbers that are arrays of no axes, or were."""
    kinds, old = list(_kinds(after.form)), list(_kinds(before.form))
    if after.form == before.form or _alike(after.form) != _alike(before.form):
        return after
    changed = [i for i, (one, other) in enumerate(zip(kinds, old, strict=True)) if one != other]
    if any(np.ndim(after.leaves[i]) or np.ndim(before.leaves[i]) for i in changed):
        return after
    leaves = list(after.leaves)
    for i in changed:
        leaves[i] = np.array(leaves[i]) if old[i] == "array" else np.asarray(leaves[i])[()]
    return Opened(before.form, leaves)


def _kinds(form: Held) -> Iterator[str]:
    """The kind of each leaf of a form, in order: a number, an array, a tensor, a field."""
    match form:
        case ("number" | "array" | "tensor" as kind, *_):
            yield kind
        case ("fields", kind):
            yield from ["fields"] * len(kind.names)
        case ("fixed", _) | ("generator",):
            return
        case ("mapping" | "object", _, _, *parts) | ("sequence" | "deque", _, *parts):
            for part in parts:
                yield from _kinds(part)


def _alike(form: Held) -> Held:
    """A form in which arrays are called numbers."""
    if form == ("array",):
        return ("number",)
    return tuple(map(_alike, form)) if isinstance(form, tuple) else form


def open_state(sampler: Completed, position: Position, estimator: Estimator, step_size: float) -> Completed:
    """The sampler with states that are trees of numbers; as it is where they are already, or cannot be.

    Args:
        sampler: of the host, without `unpack` and `pack` of its own.
        position: in the bulk.
        estimator: of its gradients.
        step_size: of a few steps after which a state still has to come apart.
    """
    generator = np.random.default_rng(0)
    start = sampler.init(generator, position, estimator)
    if is_tree(start):
        return sampler
    methods = OpenStates(sampler)
    try:
        _require_streams(sampler, start, estimator, step_size, position)
        state = methods.init(generator, position, estimator)
        for _ in range(TRIED):
            state = methods.step(generator, state, step_size, estimator)
    except Closed:
        return sampler
    made = {"init": methods.init, "step": methods.step, "position": methods.position}
    return dataclasses.replace(sampler, **made, unpack=methods.position, pack=methods.init)


def _require_streams(
    sampler: Sampler, state: State, estimator: Estimator, step_size: float, position: Position
) -> None:
    """Raise Closed if generators that states hold are the same for each start, or for each step.

    Others are streams of their own, as a key is that a state of JAX holds: what they draw, the generator of each step
    may draw in their place.
    """
    seen = [_next_draws(state)]
    if not seen[0]:
        return
    seen.append(_next_draws(sampler.init(np.random.default_rng(1), position, estimator)))
    for i in range(TRIED):
        state = sampler.step(np.random.default_rng(2 + i), state, step_size, estimator)
        seen.append(_next_draws(state))
    if any(len(set(streams)) < len(seen) for streams in itertools.zip_longest(*seen)):
        raise Closed("a Generator that is the same for each start or for each step")


def _next_draws(state: State) -> list[bytes]:
    """The next draws of each generator that a state holds, which are left to it."""
    held: list[Held] = []
    _form(state, [], held)
    return [copy.deepcopy(value).bytes(16) for value in held if isinstance(value, np.random.Generator)]


def with_objects(sampler: Sampler) -> Sampler:
    """The sampler whose states are as it was written, of one that has it by the numbers of its states."""
    step = sampler.step
    return step.__self__.sampler if inspect.ismethod(step) and isinstance(step.__self__, OpenStates) else sampler


def step_inside(sampler: Sampler) -> Builder:
    """The step by objects, of a sampler that has it by the numbers of its states."""
    step = sampler.step
    while inspect.ismethod(step) and isinstance(step.__self__, OpenStates):
        step = step.__self__.sampler.step
    return step


def step_of(sampler: Sampler) -> Builder:
    """The step that was written, whatever wraps it."""
    step = step_inside(sampler)
    return step if inspect.ismethod(step) else inspect.unwrap(step)


def _is_plain(value: Held) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.names is None and value.dtype != object


def _form(value: Held, leaves: list[Held], held: list[Held]) -> Form:
    """The form of a value; its numbers are appended to `leaves`, what can be written to, as arrays, to `held`."""
    if isinstance(value, GENERATORS):
        held.append(value)
        return ("generator",)
    if isinstance(value, NUMBERS) or (
        hasattr(value, "dtype") and not (isinstance(value, np.ndarray) or is_tensor(value))
    ):
        leaves.append(value)
        return ("number",)
    if isinstance(value, FIXED):
        return ("fixed", value)
    if isinstance(value, np.ndarray):
        held.append(value)
        return _form_of_array(value, leaves)
    if is_tensor(value):
        if type(value) is not sys.modules["torch"].Tensor or value.requires_grad:
            raise Closed("a parameter of torch")
        held.append(_as_array(value))
        leaves.append(held[-1].copy())
        return ("tensor", value.dtype)
    if not isinstance(value, tuple):
        if any(value is other for other in held):
            raise Closed("an object that holds itself, or stands in two places")
        held.append(value)
    return _form_of_container(value, leaves, held)


def _as_array(value: Held) -> Held:
    """A tensor as an array, one of a type that NumPy lacks, as bfloat16, by its numbers in single precision."""
    if not is_tensor(value):
        return value
    try:
        return value.numpy(force=True)
    except TypeError:
        return value.float().numpy(force=True)


def is_tensor(value: Held) -> bool:
    """True for a tensor of torch; where that was not imported there is none."""
    torch: Held = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _form_of_array(value: np.ndarray, leaves: list[Held]) -> Form:
    if value.dtype == object:
        raise Closed("an array of objects")
    if value.dtype.names is None:
        leaves.append(value.copy())
        return ("array",)
    if any(value[name].dtype.names for name in value.dtype.names):
        raise Closed("a structured array of structured arrays")
    leaves += [value[name].copy() for name in value.dtype.names]
    return ("fields", value.dtype)


def _form_of_container(value: Held, leaves: list[Held], held: list[Held]) -> Form:
    kind = type(value)
    if isinstance(value, Mapping):
        return ("mapping", kind, tuple(value), *(_form(item, leaves, held) for item in value.values()))
    if isinstance(value, collections.deque):
        return ("deque", value.maxlen, *(_form(item, leaves, held) for item in value))
    if isinstance(value, tuple | list):
        return ("sequence", kind, *(_form(item, leaves, held) for item in value))
    if isinstance(value, np.random.RandomState | np.random.BitGenerator | types.ModuleType):
        raise Closed(f"a {kind.__name__}")
    parts = _attributes(value)
    if not parts:
        raise Closed(f"a {kind.__name__}")
    return ("object", kind, tuple(parts), *(_form(item, leaves, held) for item in parts.values()))


def _attributes(value: Held) -> dict[str, Held]:
    """The attributes of an object that are set, those with slots included."""
    slots = [s for kind in type(value).__mro__ for s in _names(getattr(kind, "__slots__", ()))]
    found = {name: getattr(value, name) for name in slots if not name.startswith("__") and hasattr(value, name)}
    return found | dict(getattr(value, "__dict__", {}))


def _names(slots: Held) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _made(form: Form, leaves: Iterator[Held], generator: Key) -> Held:
    """The value of a form, from its numbers in order."""
    match form:
        case ("number",):
            return next(leaves)
        case ("fixed", value):
            return value
        case ("generator",):
            return generator
        case ("array",):
            leaf = next(leaves)
            return leaf.copy() if isinstance(leaf, np.ndarray) else leaf
        case ("tensor", kind):
            return sys.modules["torch"].tensor(next(leaves), dtype=kind)
        case ("fields", kind):
            parts = [np.asarray(next(leaves)) for _ in kind.names]
            array = np.empty(parts[0].shape[: parts[0].ndim - len(kind[0].shape)], kind)
            for name, part in zip(kind.names, parts, strict=True):
                array[name] = part
            return array
        case _:
            return _made_container(form, leaves, generator)


def _made_container(form: Form, leaves: Iterator[Held], generator: Key) -> Held:
    match form:
        case ("mapping", kind, names, *parts):
            items = zip(names, (_made(part, leaves, generator) for part in parts), strict=True)
            return kind(items)
        case ("deque", longest, *parts):
            return collections.deque((_made(part, leaves, generator) for part in parts), maxlen=longest)
        case ("sequence", kind, *parts):
            items = [_made(part, leaves, generator) for part in parts]
            return kind(*items) if hasattr(kind, "_fields") else kind(items)
        case ("object", kind, names, *parts):
            made = kind.__new__(kind)
            for name, part in zip(names, parts, strict=True):
                object.__setattr__(made, name, _made(part, leaves, generator))
            return made
        case _:
            raise AssertionError(form)
