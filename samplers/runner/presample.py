"""Take the random draws of a step out of the loop over steps, and make them in bulk.

A step is written for one chain and one key. Run as it is, each step of each chain hashes a handful of counters, and
a CPU spends most of the time on that. Here the step is traced once, and its equations are divided in two:

    draws = draw(key),  state' = update(draws, state, h)

`draw` holds the equations that depend on the key alone and act elementwise or reindex: random bits, and what turns
them into uniforms, normals and indices. `update` holds the rest, among it everything that reads the state, the step
size or a large constant (rows of data), sums, products of matrices, and loops. `draw_lanes` evaluates `draw` for many
keys at once ("lanes": steps times chains), with the lanes on the last axis of every array, which is the axis that a
CPU runs through its vector registers, and with the same bits as `jax.random` gives key by key: Threefry is a hash of
(key, counter), so it makes no difference in which order it is evaluated [salmon2011parallel; with counters laid out
as under `jax_threefry_partitionable`].

Keys of another implementation, or the other layout of counters, fall back to the whole step in the loop.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core as jex

from sgmcmc_verification.samplers.interface.aliases import Tree

Value = Any
"""A value, variable or equation of a traced program, of a type that JAX keeps to itself."""
MAX_DRAW_BYTES = 2**20
"""A step that draws more than this is not split: its draws would not stay in cache anyway."""
MAX_CONSTANT = 4096
"""Equations that read a larger constant stay in the loop."""
MAX_ROWS = 256
"""Inner products of longer vectors are left to XLA: a running sum loses digits with the number of terms."""
MIN_LANES = 64
"""Fewer lanes do not pay for a loop over rows."""
CHUNK = 2**14
"""Random words hashed at once; a few times this fits the second-level cache of a CPU."""

# Equations outside these sets stay in the loop. Sums and products of matrices are left out on purpose: their
# rounding may depend on the number of lanes, which must not change the samples.
_ARITHMETIC = {"abs", "add", "div", "integer_pow", "mul", "neg", "pow", "rem", "sign", "square", "sub"}
_EXPONENTIALS = {"exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sqrt"}
_FUNCTIONS = {"cos", "erf", "erf_inv", "sin", "tan", "tanh"}
_ROUNDING = {"bitcast_convert_type", "ceil", "convert_element_type", "copy", "floor", "round", "stop_gradient"}
_COMPARISONS = {"clamp", "eq", "ge", "gt", "is_finite", "le", "lt", "max", "min", "ne", "select_n"}
_BITS = {"and", "not", "or", "shift_left", "shift_right_arithmetic", "shift_right_logical", "xor"}
ELEMENTWISE = frozenset(_ARITHMETIC | _EXPONENTIALS | _FUNCTIONS | _ROUNDING | _COMPARISONS | _BITS)
_SHAPES = {"broadcast_in_dim", "expand_dims", "reshape", "squeeze", "transpose"}
_PLACES = {"concatenate", "dynamic_slice", "iota", "pad", "rev", "slice"}
REINDEXING = frozenset(_SHAPES | _PLACES)
INLINED = frozenset({"jit", "pjit", "closed_call", "core_call"})


class Parts(NamedTuple):
    """A step in two parts: `step(key, state, h) = update(consts, draw(consts, key), state, h)`.

    Attributes:
        consts: arrays that the step refers to, such as data.
        draw: `(consts, k0, k1) -> list of arrays`: the draws for many keys, of which k0 and k1, uint32 (lanes,), are
            the words; lanes last. None if the step is not split: then `update` takes a key for its draws.
        update: `(consts, draws, state, h) -> state`, for one lane.
        update_lanes: the same for many lanes, on the last axis of every array of `draws`, and on `axes` of `state`.
        axes: a pytree like the state, the axis of the lanes of each array in `update_lanes`: the last (-1), or the
            first (0) of a table, of which each lane reads and writes other rows.
        draw_bytes: memory of the draws of one lane.
        jaxpr: the traced step.
    """

    consts: list[jax.Array]
    draw: Callable[[list, jax.Array, jax.Array], list] | None
    update: Callable[[list, Tree, Tree, Value], Tree]
    update_lanes: Callable[[list, Tree, Tree, Value], Tree]
    axes: Tree
    draw_bytes: int
    jaxpr: Value


def whole(step: Callable, key: Value, state: Tree, step_size: Value) -> Parts:
    """The step as one part, with its constants taken out.

    Args:
        step: (key, state, step size) -> state, for one chain.
        key, state, step_size: examples of its arguments, arrays or `jax.ShapeDtypeStruct`.
    """
    closed, shape = jax.make_jaxpr(step, return_shape=True)(key, state, step_size)
    structure = jax.tree.structure(shape)

    def update(consts, draws, state, h):
        leaves = jax.tree.leaves((draws, state, h))
        return jax.tree.unflatten(structure, jax.core.eval_jaxpr(closed.jaxpr, consts, *leaves))

    axes = _axes_of(_flatten(closed.jaxpr), state)
    update_lanes = jax.vmap(update, (None, -1, axes, None), axes)
    return Parts(list(closed.consts), None, update, update_lanes, axes, 0, closed.jaxpr)


def split(step: Callable, key: Value, state: Tree, step_size: Value) -> Parts:
    """The step in two parts, or in one if there is nothing to gain; arguments as in `whole`."""
    one = whole(step, key, state, step_size)
    if str(key.dtype) != "key<fry>" or not jax.config.jax_threefry_partitionable:  # pyright: ignore[reportAttributeAccessIssue]
        return one
    flat = _flatten(one.jaxpr)
    drawn, kept, residuals = _divide(flat)
    # bytes per lane; a key is two words of 32 bits
    words = sum(math.prod(v.aval.shape) * (8 if _is_key(v) else v.aval.dtype.itemsize) for v in residuals)
    if not residuals or words > MAX_DRAW_BYTES:
        return one
    structure = jax.tree.structure(jax.eval_shape(step, key, state, step_size))

    def draw(consts, k0, k1):
        env: dict = dict(zip(flat.constvars, consts, strict=True))
        env[flat.invars[0]] = Words(k0, k1)  # the key is the first argument of a step
        for equation in drawn:
            _evaluate_lanes(equation, env)
        return [env[v].value if isinstance(env[v], Lanes) else env[v] for v in residuals]

    axes = jax.tree.leaves(one.axes)

    def given(consts, draws, state, h, mark):
        """The variables that `update` starts from; `mark` is for those that differ from lane to lane."""
        env: dict = dict(zip(flat.constvars, consts, strict=True))
        leaves = [*map(mark, jax.tree.leaves(state), axes), *jax.tree.leaves(h)]
        env.update(zip(flat.invars[1:], leaves, strict=True))
        for v, value in zip(residuals, draws, strict=True):
            env[v] = mark(_wrap(value) if _is_key(v) else value)
        return env

    def update(consts, draws, state, h):
        env = given(consts, draws, state, h, lambda value, axis=-1: value)
        for equation in kept:
            _bind(equation, env)
        return jax.tree.unflatten(structure, [_read(env, v) for v in flat.outvars])

    def update_lanes(consts, draws, state, h):
        # constants and the step size are the same in all lanes: what depends on them alone is computed once
        env = given(consts, draws, state, h, Lanes)
        for equation in kept:
            _bind_in_lanes(equation, env)
        count = jax.tree.leaves(draws)[0].shape[-1]
        out = [_in_lanes(_read(env, v), count, axis) for v, axis in zip(flat.outvars, axes, strict=True)]
        return jax.tree.unflatten(structure, out)

    return Parts(one.consts, draw, update, update_lanes, one.axes, words, one.jaxpr)


def lane_keys(keys: jax.Array, numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Words of `fold_in(keys[c], numbers[t])` as lanes (T * C,), chains fastest; equal to `jax.random.fold_in`."""
    data = jax.random.key_data(keys)
    zero = jnp.zeros((), jnp.uint32)
    k0, k1 = threefry(data[None, :, 0], data[None, :, 1], zero, numbers.astype(jnp.uint32)[:, None])
    return k0.reshape(-1), k1.reshape(-1)


def lanes_at(draws: list, start: Value, count: int) -> list:
    """`count` lanes from `start`."""
    return jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, start, count, -1), draws)


def threefry(k0: jax.Array, k1: jax.Array, x0: jax.Array, x1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32 with 20 rounds [salmon2011parallel, section 3.3], elementwise with broadcasting.

    Written out, since the hash that JAX lowers to on a CPU is a loop over rounds, which passes over memory five times.
    """
    # rotations of Threefry-2x32, and the parity constant that makes the third word of its key schedule
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for i in range(5):
        for r in rotations[i % 2]:
            x0 = x0 + x1
            # rotate x1 to the left, then mix
            x1 = x0 ^ (lax.shift_left(x1, np.uint32(r)) | lax.shift_right_logical(x1, np.uint32(32 - r)))
        # every four rounds a part of the key is injected, with the number of the injection
        x0, x1 = x0 + keys[(i + 1) % 3], x1 + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


# ---------------------------------------------------------------------------------------------- dividing a jaxpr


class Flat(NamedTuple):
    """A jaxpr without inner calls."""

    constvars: list
    invars: list
    equations: list
    outvars: list


class Equation(NamedTuple):
    """An equation whose atoms are renamed: variables of `Flat`, or literals."""

    primitive: Value
    params: dict
    inputs: list
    outputs: list


class Name:
    """A variable of a `Flat`."""

    __slots__ = ("aval",)

    def __init__(self, aval: Value) -> None:
        self.aval = aval


def _flatten(jaxpr: Value) -> Flat:
    """Inline the inner calls, giving every value a name of its own.

    What is computed twice has one name: indices that pick rows of several arrays would otherwise pass from `draw` to
    `update` once for each of them, and shorten the blocks by so much.
    """
    equations: list[Equation] = []
    known: dict[Value, list[Name]] = {}

    def inline(inner, consts: Sequence, arguments: Sequence) -> list:
        names = dict(zip([*inner.constvars, *inner.invars], [*consts, *arguments], strict=True))
        look = lambda atom: atom if isinstance(atom, jex.Literal) else names[atom]
        for eqn in inner.eqns:
            inputs = [look(a) for a in eqn.invars]
            if eqn.primitive.name in INLINED:
                called = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
                if hasattr(called, "jaxpr"):
                    literals = [
                        jex.Literal(c, v.aval) for c, v in zip(called.consts, called.jaxpr.constvars, strict=True)
                    ]
                    outputs = inline(called.jaxpr, literals, inputs)
                else:
                    outputs = inline(called, [], inputs)
            else:
                signature = _signature(eqn, inputs)
                outputs = known.get(signature)
                if outputs is None:
                    outputs = [Name(v.aval) for v in eqn.outvars]
                    equations.append(Equation(eqn.primitive, eqn.params, inputs, outputs))
                    known[signature] = outputs
            names.update(zip(eqn.outvars, outputs, strict=True))
        return [look(a) for a in inner.outvars]

    constvars = [Name(v.aval) for v in jaxpr.constvars]
    invars = [Name(v.aval) for v in jaxpr.invars]
    return Flat(constvars, invars, equations, inline(jaxpr, constvars, invars))


def _signature(eqn: Value, inputs: Sequence) -> Value:
    """A value that equations with the same results share; one of its own where that is not known."""
    if eqn.effects or eqn.primitive.name not in ELEMENTWISE | REINDEXING | {"gather"}:
        return object()
    atoms = tuple((str(a.aval), np.asarray(a.val).tobytes()) if isinstance(a, jex.Literal) else a for a in inputs)
    signature = (eqn.primitive, atoms, tuple(sorted(eqn.params.items())))
    try:
        hash(signature)
    except TypeError:
        return object()
    return signature


def _axes_of(flat: Flat, state: Tree) -> Tree:
    """The axis of the lanes for each array of a state, see `Parts.axes`.

    A table with the lanes last would be transposed, whole, before and after its rows are picked by every lane.
    """
    leaves, structure = jax.tree.flatten(state)
    variables = flat.invars[1 : 1 + len(leaves)]
    indexed = {e.inputs[0] for e in flat.equations if _by_rows(e) and isinstance(e.inputs[0], Name)}
    table = lambda v: v in indexed and math.prod(v.aval.shape) > MAX_CONSTANT
    return jax.tree.unflatten(structure, [0 if table(v) else -1 for v in variables])


def _by_rows(e: Equation) -> bool:
    """Decide if an equation reads or writes the places of its first input that another one names."""
    name = e.primitive.name
    return name in ("gather", "dynamic_slice", "dynamic_update_slice") or name.startswith("scatter")


def _divide(flat: Flat) -> tuple[list[Equation], list[Equation], list[Name]]:
    """Equations of `draw`, equations of `update`, and the variables that pass from one to the other."""
    # `fixed`: known without key, state and step size. `drawn`: known from the key (and `fixed`) alone.
    key = flat.invars[0]
    fixed, drawn = set(flat.constvars), {key}
    draw: list[Equation] = []
    rest: list[Equation] = []
    small_fixed: list[Equation] = []
    for e in flat.equations:
        names = [v for v in e.inputs if isinstance(v, Name)]
        if all(v in fixed for v in names):
            fixed.update(e.outputs)
            rest.append(e)
            small_fixed.append(e)
        elif all(v in drawn or v in fixed for v in names) and _may_be_drawn(e, drawn):
            drawn.update(e.outputs)
            draw.append(e)
        else:
            rest.append(e)
    # `update` keeps what the new state needs; what it reads of the drawn variables passes from `draw` to it
    needed = {v for v in flat.outvars if isinstance(v, Name)}
    kept = _live(rest, needed)
    read = itertools.chain(*(e.inputs for e in kept), flat.outvars)
    passed = list(dict.fromkeys(v for v in read if isinstance(v, Name) and v in drawn))
    # `draw` evaluates what it needs of the fixed equations itself: passed on, they would take memory in every lane
    order = {id(e): i for i, e in enumerate(flat.equations)}
    candidates = sorted([*small_fixed, *draw], key=lambda e: order[id(e)])
    return _live(candidates, set(passed)), kept, passed


def _may_be_drawn(e: Equation, drawn: set) -> bool:
    # rows of data picked by a drawn index stay in the loop: they would be copied for every step of a block
    if any(math.prod(v.aval.shape) > MAX_CONSTANT for v in e.inputs if not (isinstance(v, Name) and v in drawn)):
        return False
    name = e.primitive.name
    if name in ("random_split", "random_bits", "random_wrap", "random_unwrap"):
        return True
    if name == "random_fold_in":
        return _is_key(e.inputs[0]) and math.prod(e.inputs[1].aval.shape) <= 1
    keys = any(_is_key(v) for v in (*e.inputs, *e.outputs))
    return name in REINDEXING or (name in ELEMENTWISE and not keys)


def _live(equations: Sequence[Equation], needed: set) -> list[Equation]:
    """The equations whose outputs are needed, in order."""
    needed, live = set(needed), []
    for e in reversed(equations):
        if any(v in needed for v in e.outputs):
            live.append(e)
            needed.update(v for v in e.inputs if isinstance(v, Name))
    return live[::-1]


def _is_key(v: Value) -> bool:
    return jnp.issubdtype(v.aval.dtype, jax.dtypes.prng_key)


def _read(env: dict, atom: Value) -> Value:
    return atom.val if isinstance(atom, jex.Literal) else env[atom]


def _bind(e: Equation, env: dict) -> None:
    """Evaluate an equation."""
    _assign(env, e, _apply(e, *(_read(env, v) for v in e.inputs)))


def _apply(e: Equation, *inputs: Value) -> Value:
    """Evaluate the primitive of an equation on these values."""
    params, functions = e.primitive.get_bind_params(e.params), ()
    if isinstance(params, tuple):  # JAX 0.9
        functions, params = params
    return e.primitive.bind(*functions, *inputs, **params)


def _assign(env: dict, e: Equation, out: Value, mark: Callable[[Value], Value] = lambda value: value) -> None:
    """Note the results of an equation."""
    env.update(zip(e.outputs, map(mark, out if e.primitive.multiple_results else [out]), strict=True))


# --------------------------------------------------------------------------------------------- evaluating lanes


class Lanes(NamedTuple):
    """An array with the lanes on its last axis, or another; arrays without are the same in all lanes."""

    value: jax.Array
    axis: int = -1


class Words(NamedTuple):
    """Threefry keys as their two words, uint32 arrays with the lanes on the last axis."""

    k0: jax.Array
    k1: jax.Array


def _wrap(words: Words) -> jax.Array:
    """Typed keys of one lane."""
    return jax.random.wrap_key_data(jnp.stack([words.k0, words.k1], -1), impl="threefry2x32")


def _evaluate_lanes(e: Equation, env: dict) -> None:
    """Evaluate an equation of `draw` in all lanes."""
    inputs = [_read(env, v) for v in e.inputs]
    if not any(isinstance(v, Lanes | Words) for v in inputs):
        _bind(e, env)
        return
    name = e.primitive.name
    if name == "random_bits":
        out = Lanes(_random_bits(inputs[0], e.params["bit_width"], e.params["shape"]))
    elif name == "random_split":
        # child i of a key is the hash of the counter (0, i)
        shape = e.params["shape"]
        counters = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(*shape, 1)
        out = Words(*threefry(*_insert(inputs[0], len(shape)), jnp.zeros((), jnp.uint32), counters))
    elif name == "random_fold_in":
        data = inputs[1].value if isinstance(inputs[1], Lanes) else jnp.asarray(inputs[1])
        data = lax.convert_element_type(data, jnp.uint32)  # folded in as the counter (0, data)
        out = Words(*threefry(inputs[0].k0, inputs[0].k1, jnp.zeros((), jnp.uint32), data))
    elif name == "random_unwrap":
        out = Lanes(jnp.stack(inputs[0], -2))
    elif name == "random_wrap":
        out = Words(inputs[0].value[..., 0, :], inputs[0].value[..., 1, :])
    elif any(isinstance(v, Words) for v in inputs):  # reindexing of keys: both words alike
        k0, k1 = (_bind_lanes(e, [Lanes(v[i]) if isinstance(v, Words) else v for v in inputs]) for i in range(2))
        out = Words(k0, k1)
    else:
        out = Lanes(_bind_lanes(e, inputs))
    env[e.outputs[0]] = out


def _bind_in_lanes(e: Equation, env: dict) -> None:
    """Evaluate an equation of `update` in all lanes."""
    inputs = [_read(env, v) for v in e.inputs]
    if any(isinstance(v, Lanes) for v in inputs):
        # Rows of data are picked lane by lane. They are left so: XLA would move whole batches in memory to put the
        # lanes last, and back again for a product with a vector.
        source = inputs[0]
        data = not isinstance(source, Lanes) and e.outputs[0].aval.ndim > 1
        axis = 0 if _by_rows(e) and (data or (isinstance(source, Lanes) and source.axis == 0)) else -1
        _assign(env, e, _bind_lanes(e, inputs, axis), lambda value: Lanes(value, axis))
    else:
        _bind(e, env)


def _bind_lanes(e: Equation, inputs: list, axis: int = -1) -> Value:
    """One equation, batched over the lanes of its `Lanes`, which come out on an axis, the last unless told.

    Equation by equation, since `jax.vmap` of them all would put the lanes first wherever a scalar meets a vector, and
    XLA would transpose from the one layout to the other in every pass.
    """
    axes = tuple(v.axis if isinstance(v, Lanes) else None for v in inputs)
    values = [v.value if isinstance(v, Lanes) else v for v in inputs]
    if _is_inner_product(e) and axes == (-1, -1):
        rows, lanes = values[0].shape
        if rows <= MAX_ROWS and lanes >= MIN_LANES:
            return _inner_product(*values)
    return jax.vmap(functools.partial(_apply, e), axes, axis)(*values)


def _is_inner_product(e: Equation) -> bool:
    """Decide if an equation is sum_i a_i b_i of two vectors of one floating type."""
    if e.primitive.name != "dot_general":
        return False
    kinds = {v.aval.dtype for v in (*e.inputs, *e.outputs)}
    floating = len(kinds) == 1 and jnp.issubdtype(kinds.pop(), jnp.floating)
    vectors = all(v.aval.ndim == 1 for v in e.inputs)
    return floating and vectors and e.params["dimension_numbers"] == (((0,), (0,)), ((), ()))


def _inner_product(a: jax.Array, b: jax.Array) -> jax.Array:
    """sum_i a_i b_i over rows, (rows, lanes) -> (lanes,).

    A loop over rows: it reads each operand once and writes no product. XLA makes a batched product of it otherwise,
    with the lanes first, and a sum over the first axis runs along the rows of each lane.
    """
    add = lambda i, total: total + a[i] * b[i]
    return lax.fori_loop(0, len(a), add, jnp.zeros(a.shape[1:], a.dtype))


def _in_lanes(value: Value, count: int, axis: int) -> Value:
    """An array with `count` lanes on an axis, the first or the last."""
    if isinstance(value, Lanes):
        return jnp.moveaxis(value.value, value.axis, axis)
    return jnp.moveaxis(jnp.broadcast_to(jnp.asarray(value), (count, *jnp.shape(value))), 0, axis)


def _insert(keys: Words, count: int) -> tuple[jax.Array, jax.Array]:
    """Insert `count` axes before the lanes."""
    axes = tuple(range(keys.k0.ndim - 1, keys.k0.ndim - 1 + count))
    return lax.expand_dims(keys.k0, axes), lax.expand_dims(keys.k1, axes)


def _random_bits(keys: Words, width: int, shape: Sequence[int]) -> jax.Array:
    """Random words (..., *shape, lanes), as `jax.random.bits` gives them key by key.

    The loop is over chunks of the counters. It also keeps the compiler from deriving the keys anew for every counter,
    which it would if it could merge the two computations.
    """
    dtype = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}[width]

    def words(counters):
        rank = counters.ndim
        k0, k1 = _insert(keys, rank)
        # partitionable layout: element i is the hash of the counter (0, i); 64 bits are both words of it, fewer bits
        # the exclusive or of the two, cut to the width
        x0, x1 = threefry(k0, k1, jnp.zeros((), jnp.uint32), counters[..., None])
        if width == 64:
            return lax.shift_left(x0.astype(dtype), np.uint64(32)) | x1.astype(dtype)
        return (x0 ^ x1).astype(dtype)

    count = math.prod(shape)
    lanes = keys.k0.size
    chunks = min(count, max(2, math.ceil(count * lanes / CHUNK)))
    if chunks < 2:
        return words(jnp.arange(count, dtype=jnp.uint32).reshape(shape))
    rows = math.ceil(count / chunks)
    chunks = math.ceil(count / rows)
    counters = jnp.arange(chunks * rows, dtype=jnp.uint32).reshape(chunks, rows)
    out = lax.map(words, counters)  # (chunks, ..., rows, lanes)
    # the counters of the last chunk beyond `count` are cut off below
    out = jnp.moveaxis(out, 0, -3).reshape(*keys.k0.shape[:-1], chunks * rows, keys.k0.shape[-1])
    return out[..., :count, :].reshape(*keys.k0.shape[:-1], *shape, keys.k0.shape[-1])
