"""What the runner drives: chains of a JAX sampler in compiled loops, or of a host sampler in Python loops.

An engine holds the chains and their running averages. `JaxEngine` and `HostEngine` have the same methods.
"""

import copy
import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from samplers.runner import presample
from samplers.runner.schedules import Constant, Schedule

BLOCK_BYTES = 2**20
"""Default bound of the memory of the random draws of one block, chosen to stay in the second-level cache of a CPU."""
MAX_BLOCK = 2000
"""Default bound of the number of steps in a block."""
CHAINS = "chains"
"""Name of the axis that is shared out to devices."""


@dataclass(frozen=True, eq=False)
class Setup:
    """The arguments of a run that an engine needs, as in `samplers.run.run`; `positions` has a leading chain axis."""

    sampler: Any
    estimator: Any
    key: jax.Array
    positions: Any
    chains: int
    first_chain: int
    schedule: Schedule
    thin: int
    collect: Callable[[Any], Any]
    averaged: bool
    block_size: int | None
    hoisted: bool


class Carry(NamedTuple):
    """What a compiled loop carries: states and averages with the chains on the last axis, and the total weight."""

    state: Any
    average: Any
    weight: Any


def step_sizes(schedule: Schedule, numbers: np.ndarray) -> np.ndarray:
    """The step sizes of the steps of these numbers, float64."""
    return np.array(np.broadcast_to(np.asarray(schedule(numbers), np.float64), np.shape(numbers)))


def draw_weights(schedule: Schedule, taken: np.ndarray) -> np.ndarray:
    """The weights in averages of the draws after so many steps, float64: 0 for a draw that is not to be kept.

    The size of the step that leaves a draw [teh2016consistency, equation (3)], or what `weights` of the schedule says.
    """
    return step_sizes(getattr(schedule, "weights", schedule), taken)


def chain_last(tree: Any) -> Any:
    """Move the leading axis of every leaf to the end."""
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), tree)


def chain_first(tree: Any) -> Any:
    """Move the last axis of every leaf to the front."""
    return jax.tree.map(lambda a: jnp.moveaxis(a, -1, 0), tree)


def digest(value: Any) -> str:
    """A hash of the text of a value, without addresses in memory."""
    return hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", str(value)).encode()).hexdigest()[:16]


def digest_arrays(arrays: Any) -> str:
    """A hash of the contents of all leaves."""
    h = hashlib.sha256()
    for leaf in jax.tree.leaves(arrays):
        array = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        h.update(f"{array.dtype}{array.shape}".encode())
        h.update(np.ascontiguousarray(array).tobytes())
    return h.hexdigest()[:16]


def is_key(a: Any) -> bool:
    """Whether an array holds typed keys."""
    return hasattr(a, "dtype") and jnp.issubdtype(a.dtype, jax.dtypes.prng_key)


def strong(tree: Any) -> Any:
    """The same arrays without weak types, so that a loop may carry them."""
    return jax.tree.map(
        lambda a: a if is_key(a) else lax.convert_element_type(jnp.asarray(a), jnp.asarray(a).dtype), tree
    )


# ----------------------------------------------------------------------------------------------------------- JAX


def _cached(function: Callable, *arguments: Any) -> Any:
    """Call a function with an lru_cache; past the cache, if an argument cannot be hashed."""
    try:
        hash(arguments)
    except TypeError:
        function = getattr(function, "__wrapped__", function)
    return function(*arguments)


class Program(NamedTuple):
    """The step in parts, and the compiled loop over it."""

    parts: presample.Parts
    segment: Callable


def _lanes(function: Callable, chains: int, in_axes: tuple) -> Callable:
    """Batch over chains on the last axis; a single chain is not batched but has the axis all the same."""
    if chains > 1:
        return jax.vmap(function, in_axes, -1)

    def single(*args):
        lanes = zip(args, in_axes, strict=True)
        out = function(*(tree if axis is None else jax.tree.map(lambda a: a[..., 0], tree) for tree, axis in lanes))
        return jax.tree.map(lambda a: a[..., None], out)

    return single


def _check_step(before: Any, after: Any) -> None:
    """A step must return a state like the one it was given."""
    text = lambda tree: jax.tree.map(lambda a: f"{a.dtype}{list(a.shape)}", tree)
    if text(before) != text(after):
        raise ValueError(f"sampler: `step` must return a state like that of `init`, {text(before)}, got {text(after)}")


@functools.lru_cache(maxsize=16)
def _program(
    sampler, estimator, collect, avals, key_type, dtype, chains, thin, block_size, hoisted, constant, averaged, devices
):
    """Trace a step and build the compiled loop over it.

    Cached, so that running the same objects again compiles nothing. Constants of the step (data) become arguments of
    the compiled function, so that XLA neither copies nor folds them.
    """
    structure, shapes = avals
    state_avals = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*s) for s in shapes])
    key_aval = jax.ShapeDtypeStruct((), key_type)
    split = presample.split if hoisted else presample.whole
    step = lambda key, state, h: strong(sampler.step(key, state, h, estimator))
    size_aval = jax.ShapeDtypeStruct((), dtype)
    _check_step(state_avals, jax.eval_shape(step, key_aval, state_avals, size_aval))
    parts = split(step, key_aval, state_avals, size_aval)
    draw = parts.draw
    chains = chains // len(devices)  # those of one device: from here on the code knows of no others
    # At least 2: a step that reads the draws of its block whole, and not a slice, is compiled to another rounding.
    block = max(2, block_size or min(MAX_BLOCK, BLOCK_BYTES // max(1, parts.draw_bytes * chains)))

    def segment(consts, keys, carry, start, steps, h, weights):
        """Take `steps` steps from number `start`; h is () or (steps,), weights (draws,).

        The lengths of the loops over steps are not known to the compiler: it compiles each loop once, whatever is
        left over for the last block, and cannot merge the draws with the update of a block of one step, which would
        round otherwise.
        """
        update = parts.update_lanes if chains > 1 else _lanes(parts.update, 1, (None, -1, -1, None))
        value = _lanes(lambda state: collect(sampler.position(state)), chains, (-1,))

        def number(offset):
            return start + jnp.asarray(offset).astype(jnp.uint32)

        def prepare(offset, count):
            """The random draws of `count` steps, all chains, in lanes."""
            if draw is None:
                return None
            return draw(consts, *presample.lane_keys(keys, number(offset) + jnp.arange(count, dtype=jnp.uint32)))

        def loop(state, drawn, offset, within, count):
            """`count` steps from number start + offset, the `within`-th of its block."""

            def body(i, state):
                if draw is None:
                    mine = jax.vmap(jax.random.fold_in, (0, None))(keys, number(offset + i))
                else:
                    mine = presample.lanes_at(drawn, (within + i) * chains, chains)
                return update(consts, mine, state, h if constant else h[offset + i])

            return body(0, state) if isinstance(count, int) and count == 1 else lax.fori_loop(0, count, body, state)

        def walk(state, offset, count):
            """`count` steps, in blocks; the draws of the last block that are not needed are wasted."""

            def body(i, state):
                at = i * block
                return loop(state, prepare(offset + at, block), offset + at, 0, jnp.minimum(block, count - at))

            return lax.fori_loop(0, (count + block - 1) // block, body, state)

        def keep(carry, samples, state, k):
            """Put the value of draw k among the samples, or add it to the average."""
            if not averaged:
                put = lambda a, v: lax.dynamic_update_index_in_dim(a, v, k, 0)
                return Carry(state, carry.average, carry.weight), jax.tree.map(put, samples, value(state))
            total = carry.weight + weights[k]
            share = weights[k] / jnp.where(total > 0, total, 1)  # before the first draw with a weight there is none
            move = lambda m, v: m + share.astype(m.dtype) * (v - m)
            return Carry(state, jax.tree.map(move, carry.average, value(state)), total), samples

        def far(k, both):
            """One draw, `thin` steps away, which take several blocks."""
            carry, samples = both
            return keep(carry, samples, walk(carry.state, k * thin, span), k)

        def near(i, both):
            """The draws of one block."""
            first = i * group
            drawn = prepare(first * thin, group * thin)

            def body(j, both):
                carry, samples = both
                state = loop(carry.state, drawn, (first + j) * thin, j * thin, 1 if thin == 1 else span)
                return keep(carry, samples, state, first + j)

            return lax.fori_loop(0, jnp.minimum(group, steps // thin - first), body, both)

        draws = weights.shape[0]
        if not draws:
            return carry._replace(state=walk(carry.state, 0, steps)), None
        span = steps // draws  # thin, but not known to the compiler
        samples = None
        if not averaged:
            shapes = jax.eval_shape(value, carry.state)
            samples = jax.tree.map(lambda a: jnp.zeros((draws, *a.shape), a.dtype), shapes)
        group = block // thin
        if group:
            both = lax.fori_loop(0, (steps // thin + group - 1) // group, near, (carry, samples))
        else:
            both = lax.fori_loop(0, steps // thin, far, (carry, samples))
        return both[0], chain_first(both[1])

    return Program(parts, jax.jit(segment if len(devices) == 1 else on_devices(segment, devices)))


def chain_mesh(devices: tuple[Any, ...]) -> Mesh:
    """The devices in a row, along the axis of chains."""
    return Mesh(np.asarray(devices), (CHAINS,))


def carry_specs(carry: Carry) -> Carry:
    """Where the arrays of a carry are: the last axis, that of the chains, is shared out."""
    last = lambda a: PartitionSpec(*(None,) * (a.ndim - 1), CHAINS)
    return Carry(jax.tree.map(last, carry.state), jax.tree.map(last, carry.average), PartitionSpec())


def on_devices(segment: Callable, devices: tuple[Any, ...]) -> Callable:
    """A segment that every device runs with its own chains; the devices have nothing to say to each other."""
    everywhere, mesh = PartitionSpec(), chain_mesh(devices)

    def shared_out(consts, keys, carry, start, steps, h, weights):
        specs = carry_specs(carry)
        inputs = (everywhere, PartitionSpec(CHAINS), specs, *(everywhere,) * 4)
        outputs = (specs, PartitionSpec(CHAINS))
        each = jax.shard_map(segment, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
        return each(consts, keys, carry, start, steps, h, weights)

    return shared_out


def devices_for(chains: int) -> tuple[Any, ...]:
    """As many of this process's devices as share the chains evenly, with at least two chains each.

    A single chain of a device would be compiled without an axis of chains, to another rounding.
    """
    local = jax.local_devices()
    count = max(n for n in range(1, len(local) + 1) if n == 1 or (chains % n == 0 and chains >= 2 * n))
    return tuple(local[:count])


@functools.lru_cache(maxsize=16)
def _beginning(sampler, estimator, collect):
    """Compiled: initial states, chains last, zeros like the collected values, and which gradients are finite."""

    def begin(keys, positions):
        keys = jax.vmap(jax.random.fold_in, (0, None))(keys, 0)
        states = jax.vmap(lambda k, x: strong(sampler.init(k, x, estimator)))(keys, positions)
        values = jax.vmap(lambda state: collect(sampler.position(state)))(states)
        finite = None
        if "gradient" in sampler.needs:
            estates = jax.vmap(estimator.init)(keys, positions)
            gradients = jax.vmap(lambda k, e, x: estimator.estimate(k, e, x)[0].gradient)(keys, estates, positions)
            finite = _finite_lanes(gradients)
        return chain_last(states), chain_last(jax.tree.map(jnp.zeros_like, values)), finite

    return jax.jit(begin)


class JaxEngine:
    """Chains of a sampler with `backend == "jax"`, batched on the last axis of every array.

    The last axis is the one that a CPU runs through vector registers: with a thousand chains of ten coordinates the
    other order is several times slower. All devices of this process take part (`devices_for`).
    """

    def __init__(self, setup: Setup):
        self.setup = setup
        s = setup
        self.dtype = jnp.result_type(*jax.tree.leaves(s.positions))
        numbers = jnp.uint32(s.first_chain) + jnp.arange(s.chains, dtype=jnp.uint32)
        self.keys = jax.vmap(jax.random.fold_in, (None, 0))(s.key, numbers)

        begin = _cached(_beginning, s.sampler, s.estimator, s.collect)
        state, average, finite = begin(self.keys, s.positions)
        bad = 0 if finite is None else int(np.sum(~np.asarray(finite)))
        if bad:
            raise ValueError(
                f"positions: the gradient is not finite at the initial position of {bad} of {s.chains} chains; "
                "start inside the support of the target and check its data for NaN"
            )
        self.structure = jax.tree.structure(average)
        self.devices = devices_for(s.chains)
        self.carry = self._placed(Carry(state, average if s.averaged else None, jnp.zeros((), self.dtype)))
        leaves, structure = jax.tree.flatten(state)
        avals = (structure, tuple((leaf.shape[:-1], leaf.dtype) for leaf in leaves))
        arguments = (
            s.sampler, s.estimator, s.collect, avals, self.keys.dtype, self.dtype, s.chains, s.thin, s.block_size,
            s.hoisted, isinstance(s.schedule, Constant), s.averaged, self.devices,
        )  # fmt: skip
        self.program = _cached(_program, *arguments)

    def _placed(self, carry: Carry) -> Carry:
        """Every chain on its device."""
        if len(self.devices) == 1:
            return carry
        mesh = chain_mesh(self.devices)
        return jax.tree.map(lambda a, spec: jax.device_put(a, NamedSharding(mesh, spec)), carry, carry_specs(carry))

    def _segment(self, start: int, steps: int, draws: int) -> Any:
        s = self.setup
        count = draws * s.thin or steps
        if isinstance(s.schedule, Constant):
            h = jnp.asarray(s.schedule.step_size, self.dtype)
        else:
            h = jnp.asarray(step_sizes(s.schedule, np.arange(start, start + count)), self.dtype)
        after = start + s.thin * np.arange(1, draws + 1)
        weights = jnp.asarray(draw_weights(s.schedule, after), self.dtype)
        first = jnp.asarray(start + 1, jnp.uint32)  # the key of `init` has number 0
        self.carry, samples = self.program.segment(
            self.program.parts.consts, self.keys, self.carry, first, jnp.asarray(count, jnp.int32), h, weights
        )
        return samples

    def advance(self, start: int, steps: int) -> None:
        """Take steps number start, start + 1, ... and keep nothing."""
        self._segment(start, steps, 0)

    def draw(self, start: int, draws: int) -> Any:
        """Take draws * thin steps; return the collected values, axes (chain, draw, ...), None if averaged."""
        return self._segment(start, 0, draws)

    def state(self) -> Any:
        """The states, leading chain axis."""
        return chain_first(self.carry.state)

    def position(self) -> Any:
        """The positions, leading chain axis."""
        return jax.vmap(self.setup.sampler.position)(self.state())

    def averages(self) -> Any:
        """The weighted averages of the collected values, leading chain axis."""
        return chain_first(self.carry.average)

    def finite(self) -> np.ndarray:
        """(chains,), whether each chain's position is finite."""
        return np.asarray(_finite_lanes(self.position()))

    def identity(self) -> dict[str, str]:
        """What tells this run from others."""
        s = self.setup
        collect = jax.make_jaxpr(s.collect)(jax.tree.map(lambda a: a[0], s.positions))
        return {
            "sampler and target": digest(self.program.parts.jaxpr),
            "data": digest_arrays(self.program.parts.consts),
            "collect": digest(collect),
            "key": f"{jax.random.key_impl(s.key)} {digest_arrays(s.key)}",
            "positions": digest_arrays(s.positions),
        }

    def dump(self) -> list[np.ndarray]:
        """The chains as arrays."""
        return [np.asarray(jax.random.key_data(a) if is_key(a) else a) for a in jax.tree.leaves(self.carry)]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Inverse of `dump`; takes its arrays off the front of the list."""
        leaves, structure = jax.tree.flatten(self.carry)
        mine, arrays[:] = arrays[: len(leaves)], arrays[len(leaves) :]
        wrap = lambda old, new: (
            jax.random.wrap_key_data(jnp.asarray(new), impl=jax.random.key_impl(old))
            if is_key(old)
            else jnp.asarray(new)
        )
        carry = jax.tree.unflatten(structure, [wrap(a, b) for a, b in zip(leaves, mine, strict=True)])
        self.carry = self._placed(carry)


def _finite_lanes(tree: Any) -> jax.Array:
    """(chains,), whether all numbers of each chain are finite; leading chain axis."""
    leaves = [a for a in jax.tree.leaves(tree) if jnp.issubdtype(a.dtype, jnp.inexact)]
    checks = [jnp.all(jnp.isfinite(a), axis=tuple(range(1, a.ndim))) for a in leaves]
    return functools.reduce(jnp.logical_and, checks)


# ---------------------------------------------------------------------------------------------------------- host


class HostEngine:
    """Chains of a sampler with `backend == "host"`, one after the other, each with its own NumPy generator.

    Chain c draws from `SeedSequence(data of the key, spawn_key=(c,))`, so it is the same with or without others.
    """

    def __init__(self, setup: Setup):
        self.setup = setup
        s = setup
        entropy = [int(x) for x in np.asarray(jax.random.key_data(s.key)).ravel()]
        seeds = [np.random.SeedSequence(entropy, spawn_key=(s.first_chain + c,)) for c in range(s.chains)]
        self.generators = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
        starts = [jax.tree.map(lambda a, c=c: np.array(a[c]), s.positions) for c in range(s.chains)]
        chains = zip(self.generators, starts, strict=True)
        self.states = [s.sampler.init(generator, start, s.estimator) for generator, start in chains]
        values = [self._value(c) for c in range(s.chains)]
        self.structure = jax.tree.structure(values[0])
        self.average = [jax.tree.map(np.zeros_like, v) for v in values]
        self.weight = 0.0

    def _value(self, chain: int) -> Any:
        return jax.tree.map(np.array, self.setup.collect(self.setup.sampler.position(self.states[chain])))

    def _step(self, chain: int, size: float) -> None:
        s = self.setup
        self.states[chain] = s.sampler.step(self.generators[chain], self.states[chain], size, s.estimator)

    def advance(self, start: int, steps: int) -> None:
        """Take steps number start, start + 1, ... and keep nothing."""
        sizes = step_sizes(self.setup.schedule, np.arange(start, start + steps)).tolist()
        for chain in range(self.setup.chains):
            for size in sizes:
                self._step(chain, size)

    def draw(self, start: int, draws: int) -> Any:
        """Take draws * thin steps; return the collected values, axes (chain, draw, ...), None if averaged."""
        s = self.setup
        sizes = step_sizes(s.schedule, np.arange(start, start + draws * s.thin)).reshape(draws, s.thin).tolist()
        weights = draw_weights(s.schedule, start + s.thin * np.arange(1, draws + 1))
        rows, total = [], self.weight
        for chain in range(s.chains):
            total, row = self.weight, []
            for group, weight in zip(sizes, weights, strict=True):
                for size in group:
                    self._step(chain, size)
                value = self._value(chain)
                if s.averaged:
                    total += weight
                    move = lambda m, v, share=weight / (total or 1.0): m + share * (v - m)
                    self.average[chain] = jax.tree.map(move, self.average[chain], value)
                else:
                    row.append(value)
            rows.append(jax.tree.map(lambda *a: np.stack(a), *row) if row else None)
        self.weight = float(total) if s.averaged else 0.0
        return None if s.averaged else jax.tree.map(lambda *a: np.stack(a), *rows)

    def state(self) -> Any:
        """The states, a list."""
        return list(self.states)

    def position(self) -> Any:
        """The positions, leading chain axis."""
        return jax.tree.map(lambda *a: np.stack(a), *(self.setup.sampler.position(x) for x in self.states))

    def averages(self) -> Any:
        """The weighted averages of the collected values, leading chain axis."""
        return jax.tree.map(lambda *a: np.stack(a), *self.average)

    def finite(self) -> np.ndarray:
        """(chains,), whether each chain's position is finite."""
        return np.asarray(_finite_lanes(self.position()))

    def identity(self) -> dict[str, str]:
        """What tells this run from others; of the sampler and the estimator only their texts are known."""
        s = self.setup
        return {
            "sampler and target": digest((type(s.sampler).__qualname__, s.sampler, s.estimator)),
            "collect": digest(getattr(s.collect, "__qualname__", s.collect)),
            "key": digest_arrays(s.key),
            "positions": digest_arrays(s.positions),
        }

    def dump(self) -> list[np.ndarray]:
        """The chains as arrays.

        Raises:
            ValueError: if a state holds something that is not an array, a number, or a dataclass or pytree of those.
        """
        generators = json.dumps([g.bit_generator.state for g in self.generators])
        return [np.frombuffer(generators.encode(), np.uint8), *_numbers((self.states, self.average, self.weight))]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Inverse of `dump`; takes its arrays off the front of the list."""
        for generator, state in zip(self.generators, json.loads(arrays.pop(0).tobytes()), strict=True):
            generator.bit_generator.state = state
        self.states, self.average, self.weight = _refill((self.states, self.average, self.weight), arrays)


def _is_object(leaf: Any) -> bool:
    return dataclasses.is_dataclass(leaf) and not isinstance(leaf, type)


def _numbers(tree: Any) -> list[np.ndarray]:
    """The arrays and numbers of a pytree, also of those in dataclasses that are not registered as pytrees."""
    found = []
    for leaf in jax.tree.leaves(tree):
        if _is_object(leaf):
            found += _numbers([getattr(leaf, f.name) for f in dataclasses.fields(leaf)])
        elif isinstance(leaf, np.ndarray | jax.Array | np.generic | int | float | bool):
            found.append(np.asarray(leaf))
        else:
            raise ValueError(
                f"checkpoint: a state of this sampler holds a {type(leaf).__name__}, which cannot be written; "
                "make the state a pytree or a dataclass of arrays, or run without a checkpoint"
            )
    return found


def _refill(tree: Any, arrays: list[np.ndarray]) -> Any:
    """A copy of a pytree with the numbers replaced by those at the front of `arrays`, which loses them."""

    def refill(leaf):
        if _is_object(leaf):
            new = copy.copy(leaf)
            for f in dataclasses.fields(leaf):
                object.__setattr__(new, f.name, _refill(getattr(leaf, f.name), arrays))
            return new
        array = arrays.pop(0)
        if isinstance(leaf, np.ndarray):
            return array
        return jnp.asarray(array) if isinstance(leaf, jax.Array) else type(leaf)(array[()])

    return jax.tree.map(refill, tree)
