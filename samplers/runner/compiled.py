"""The compiled loop of a run: steps in blocks whose random numbers are drawn in bulk, and the draws that are kept."""

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from sgmcmc_verification.samplers.interface.aliases import Builder, Scalar, Tree
from sgmcmc_verification.samplers.interface.sampler import Estimator, Position, Sampler, State
from sgmcmc_verification.samplers.runner import presample
from sgmcmc_verification.samplers.runner.digests import is_key

BLOCK_BYTES = 2**20
"""Default bound of the memory of the random draws of one block, chosen to stay in the second-level cache of a CPU."""
MAX_BLOCK = 2000
"""Default bound of the number of steps in a block."""
CHAINS = "chains"
"""Name of the axis that is shared out to devices."""
Devices = tuple[Hashable, ...]
"""Some of `jax.local_devices()`."""


class Carry(NamedTuple):
    """Carry of the loop: states and averages with the chains on the last axis, and the total weight."""

    state: State
    average: Tree
    weight: jax.Array


class Stretch(NamedTuple):
    """The steps of one call of the compiled loop.

    Attributes:
        start: number of the first step, uint32.
        steps: number of steps, int32; a whole number of steps per draw, if there are draws.
        step_size: () for a constant one, else (steps,).
        weights: (draws,) of the draws that the stretch ends in; none for a burn-in.
    """

    start: jax.Array
    steps: jax.Array
    step_size: jax.Array
    weights: jax.Array


@dataclass(frozen=True)
class Kernel:
    """The functions that are compiled: a sampler on an estimator, and the function of the position that is kept."""

    sampler: Sampler
    estimator: Estimator
    collect: Callable[[Position], Tree]

    def init(self, key: jax.Array, position: Position) -> State:
        """The initial state of a chain."""
        return strong(self.sampler.init(key, position, self.estimator))

    def step(self, key: jax.Array, state: State, step_size: jax.Array) -> State:
        """One step of a chain."""
        return strong(self.sampler.step(key, state, step_size, self.estimator))

    def value(self, state: State) -> Tree:
        """The value that is kept of a state."""
        return self.collect(self.sampler.position(state))


@dataclass(frozen=True)
class Layout:
    """Static properties of the compiled loop.

    Attributes:
        chains: number of chains, of all devices together.
        devices: that share them.
        thin: steps from one draw to the next.
        block_size: steps whose random numbers are drawn at once; None for as many as fit `BLOCK_BYTES`.
        hoisted: False leaves the random numbers inside the loop.
        constant: True for a step size that is the same at every step.
        averaged: True to keep the average of the draws alone.
    """

    chains: int
    devices: Devices
    thin: int
    block_size: int | None
    hoisted: bool
    constant: bool
    averaged: bool


@dataclass(frozen=True)
class Avals:
    """Shapes and dtypes of the arguments of a step of one chain; hashable."""

    key: jax.ShapeDtypeStruct
    structure: Hashable
    leaves: tuple[jax.ShapeDtypeStruct, ...]
    step_size: jax.ShapeDtypeStruct

    @property
    def arguments(self) -> tuple[jax.ShapeDtypeStruct, State, jax.ShapeDtypeStruct]:
        """Key, state and step size."""
        return self.key, jax.tree.unflatten(self.structure, self.leaves), self.step_size


def avals_of(keys: jax.Array, states: State, dtype: np.dtype) -> Avals:
    """Shapes and dtypes for one of these chains: keys (chains,), states with the chains on the last axis."""
    leaves, structure = jax.tree.flatten(states)
    shapes = tuple(jax.ShapeDtypeStruct(leaf.shape[:-1], leaf.dtype) for leaf in leaves)
    return Avals(jax.ShapeDtypeStruct((), keys.dtype), structure, shapes, jax.ShapeDtypeStruct((), dtype))


class Program(NamedTuple):
    """The step in parts, and the compiled loop over it: (consts, keys, carry, stretch) -> (carry, samples)."""

    parts: presample.Parts
    segment: Callable[[list, jax.Array, Carry, Stretch], tuple[Carry, Tree]]


def cached(function: Builder, *arguments: Any) -> Tree:
    """Call a function that has an lru_cache; past the cache, if an argument cannot be hashed."""
    try:
        hash(arguments)
    except TypeError:
        function = getattr(function, "__wrapped__", function)
    return function(*arguments)


@functools.lru_cache(maxsize=16)
def program(kernel: Kernel, layout: Layout, avals: Avals) -> Program:
    """Trace a step and build the compiled loop over it.

    Cached, so that running the same objects again compiles nothing. Constants of the step (data) become arguments of
    the compiled function, so that XLA neither copies nor folds them.

    Raises:
        ValueError: if a step does not return a state like the one it was given.
    """
    _check_step(kernel, avals)
    split = presample.split if layout.hoisted else presample.whole
    parts = split(kernel.step, *avals.arguments)
    chains = layout.chains // len(layout.devices)  # of one device: from here on the code knows of no others
    # At least 2: a step that reads the draws of its block whole, and not a slice, is compiled to another rounding.
    block = max(2, layout.block_size or min(MAX_BLOCK, BLOCK_BYTES // max(1, parts.draw_bytes * chains)))

    def segment(consts: list, keys: jax.Array, carry: Carry, stretch: Stretch) -> tuple[Carry, Tree]:
        return _Segment(kernel, layout, parts, chains, block, consts, keys, stretch).run(carry)

    alone = len(layout.devices) == 1
    return Program(parts, jax.jit(segment if alone else _on_devices(segment, layout.devices)))


def _check_step(kernel: Kernel, avals: Avals) -> None:
    """Raise ValueError unless a step returns a state like the one it was given."""
    text = lambda tree: jax.tree.map(lambda a: f"{a.dtype}{list(a.shape)}", tree)
    before, after = text(avals.arguments[1]), text(jax.eval_shape(kernel.step, *avals.arguments))
    if before != after:
        raise ValueError(f"sampler: `step` must return a state like that of `init`, {before}, got {after}")


@dataclass(frozen=True)
class _Segment:
    """One call of the compiled loop while it is traced, on one device.

    The lengths of the loops over steps are traced, not static: XLA compiles each loop once, whatever is left over for
    the last block, and cannot merge the draws with the update of a block of one step, which would round otherwise.
    Samples must not depend on how a run is cut into blocks and segments.

    Attributes:
        kernel, layout, parts: static.
        chains: of this device.
        block: steps whose random numbers are drawn at once.
        consts: arrays that the step refers to.
        keys: (chains,), one per chain.
        stretch: the steps.
    """

    kernel: Kernel
    layout: Layout
    parts: presample.Parts
    chains: int
    block: int
    consts: list
    keys: jax.Array
    stretch: Stretch

    @property
    def draws(self) -> int:
        """Number of draws."""
        return self.stretch.weights.shape[0]

    @property
    def span(self) -> jax.Array:
        """Steps per draw: `thin`, but not known to the compiler."""
        return self.stretch.steps // self.draws

    @property
    def axes(self) -> Tree:
        """The axis of the chains of each array of the state inside of the loops."""
        # a single chain is not batched: its axis is anywhere, and last outside
        return self.parts.axes if self.chains > 1 else jax.tree.map(lambda _: -1, self.parts.axes)

    def run(self, carry: Carry) -> tuple[Carry, Tree]:
        """All steps; the carry after them, and the samples with the chains first, None if there are none."""
        inwards = jax.tree.map(lambda a, axis: jnp.moveaxis(a, -1, axis), carry.state, self.axes)
        carry, samples = self.loop(carry._replace(state=inwards))
        outwards = jax.tree.map(lambda a, axis: jnp.moveaxis(a, axis, -1), carry.state, self.axes)
        return carry._replace(state=outwards), samples

    def loop(self, carry: Carry) -> tuple[Carry, Tree]:
        """As `run`, for a state with the chains on `axes`."""
        steps, thin = self.stretch.steps, self.layout.thin
        if not self.draws:
            return carry._replace(state=self.walk(carry.state, 0, steps)), None
        samples = None
        if not self.layout.averaged:
            shapes = jax.eval_shape(self.value, carry.state)
            samples = jax.tree.map(lambda a: jnp.zeros((self.draws, *a.shape), a.dtype), shapes)
        group = self.block // thin  # draws per block
        if group:
            near = functools.partial(self.draws_of_block, group)
            both = lax.fori_loop(0, (steps // thin + group - 1) // group, near, (carry, samples))
        else:
            both = lax.fori_loop(0, steps // thin, self.draw_of_blocks, (carry, samples))
        return both[0], chain_first(both[1])

    def draws_of_block(self, group: int, i: jax.Array, both: tuple[Carry, Tree]) -> tuple[Carry, Tree]:
        """Block number i, of `group` draws."""
        thin, first = self.layout.thin, i * group
        drawn = self.prepare(first * thin, group * thin)

        def body(j, both):
            carry, samples = both
            # a static length of 1 saves the loop; this one is the same in every segment, so that nothing changes
            count = 1 if thin == 1 else self.span
            state = self.take(carry.state, drawn, (first + j) * thin, j * thin, count)
            return self.keep(carry, samples, state, first + j)

        return lax.fori_loop(0, jnp.minimum(group, self.stretch.steps // thin - first), body, both)

    def draw_of_blocks(self, k: jax.Array, both: tuple[Carry, Tree]) -> tuple[Carry, Tree]:
        """Draw number k, whose steps take several blocks."""
        carry, samples = both
        return self.keep(carry, samples, self.walk(carry.state, k * self.layout.thin, self.span), k)

    def walk(self, state: State, offset: Scalar, count: jax.Array) -> State:
        """`count` steps, in blocks; the random draws of the last block that are not needed are wasted."""
        block = self.block

        def body(i, state):
            at = i * block
            drawn = self.prepare(offset + at, block)
            return self.take(state, drawn, offset + at, 0, jnp.minimum(block, count - at))

        return lax.fori_loop(0, (count + block - 1) // block, body, state)

    def take(self, state: State, drawn: list | None, offset: Scalar, within: Scalar, count: Scalar) -> State:
        """`count` steps from number start + offset, the `within`-th of their block."""
        # A single chain is not batched (`lanes`): batched products of one are compiled to another rounding.
        update = self.parts.update_lanes if self.chains > 1 else lanes(self.parts.update, 1, (None, -1, -1, None))
        sizes = self.stretch.step_size

        def body(i, state):
            if drawn is None:
                mine = jax.vmap(jax.random.fold_in, (0, None))(self.keys, self.number(offset + i))
            else:
                mine = presample.lanes_at(drawn, (within + i) * self.chains, self.chains)
            return update(self.consts, mine, state, sizes if self.layout.constant else sizes[offset + i])

        return body(0, state) if isinstance(count, int) and count == 1 else lax.fori_loop(0, count, body, state)

    def prepare(self, offset: Scalar, count: int) -> list | None:
        """The random draws of `count` steps of all chains, in lanes (step, chain); None if they stay in the loop."""
        if self.parts.draw is None:
            return None
        numbers = self.number(offset) + jnp.arange(count, dtype=jnp.uint32)
        return self.parts.draw(self.consts, *presample.lane_keys(self.keys, numbers))

    def number(self, offset: Scalar) -> jax.Array:
        """The number of a step, which is folded into the keys."""
        return self.stretch.start + jnp.asarray(offset).astype(jnp.uint32)

    def value(self, state: State) -> Tree:
        """The values that are kept, chains on the last axis."""
        return lanes(self.kernel.value, self.chains, (self.axes,))(state)

    def keep(self, carry: Carry, samples: Tree, state: State, k: Scalar) -> tuple[Carry, Tree]:
        """Put the value of draw k among the samples, or add it to the average."""
        if not self.layout.averaged:
            put = lambda a, v: lax.dynamic_update_index_in_dim(a, v, k, 0)
            return Carry(state, carry.average, carry.weight), jax.tree.map(put, samples, self.value(state))
        # the running mean m += w / W (v - m), in constant memory
        weight = self.stretch.weights[k]
        total = carry.weight + weight
        share = weight / jnp.where(total > 0, total, 1)  # before the first draw with a weight there is none
        move = lambda m, v: m + share.astype(m.dtype) * (v - m)
        return Carry(state, jax.tree.map(move, carry.average, self.value(state)), total), samples


# ------------------------------------------------------------------------------------------- chains on the last axis


def chain_last(tree: Tree) -> Tree:
    """Move the leading axis of every leaf to the end."""
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), tree)


def chain_first(tree: Tree) -> Tree:
    """Move the last axis of every leaf to the front."""
    return jax.tree.map(lambda a: jnp.moveaxis(a, -1, 0), tree)


def strong(tree: Tree) -> Tree:
    """The same arrays without weak types, so that a loop may carry them."""
    return jax.tree.map(
        lambda a: a if is_key(a) else lax.convert_element_type(jnp.asarray(a), jnp.asarray(a).dtype), tree
    )


def lanes(function: Builder, chains: int, in_axes: tuple[Tree, ...]) -> Builder:
    """Batch over chains, which come out on the last axis; a single chain is not batched but has that axis."""
    if chains > 1:
        return jax.vmap(function, in_axes, -1)

    def single(*args):
        pairs = zip(args, in_axes, strict=True)
        out = function(*(tree if axis is None else jax.tree.map(lambda a: a[..., 0], tree) for tree, axis in pairs))
        return jax.tree.map(lambda a: a[..., None], out)

    return single


# ---------------------------------------------------------------------------------------------------------- devices


def chain_mesh(devices: Devices) -> Mesh:
    """The devices in a row, along the axis of chains."""
    return Mesh(np.asarray(devices), (CHAINS,))


def carry_specs(carry: Carry) -> Carry:
    """Placement of the arrays of a carry: the last axis, that of the chains, is shared out."""
    last = lambda a: PartitionSpec(*(None,) * (a.ndim - 1), CHAINS)
    state, average = (jax.tree.map(last, tree) for tree in (carry.state, carry.average))
    return carry._replace(state=state, average=average, weight=PartitionSpec())


def _on_devices(segment: Builder, devices: Devices) -> Builder:
    """A segment that every device runs with its own chains; the devices exchange nothing."""
    everywhere, mesh = PartitionSpec(), chain_mesh(devices)

    def shared_out(consts, keys, carry, stretch):
        specs = carry_specs(carry)
        inputs, outputs = (everywhere, PartitionSpec(CHAINS), specs, everywhere), (specs, PartitionSpec(CHAINS))
        each = jax.shard_map(segment, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
        return each(consts, keys, carry, stretch)

    return shared_out
