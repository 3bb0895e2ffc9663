"""The far end of the bridge: a stand-alone program, run by the Python of the other environment.

    python worker.py FAR.py TARGETS

FAR.py knows the library (see `Kernel`), TARGETS is a folder that holds the package `targets`, or `-`. It imports
nothing else of the suite. A line on standard input names a request, an .npz file with a JSON text `meta`; the answer
is written beside it, and a line on standard output says so. What the library prints goes to standard error.

Targets are evaluated from their own source: it is plain JAX and imports under older versions, unlike StableHLO,
which an older jax does not read, and unlike tables of coefficients, it covers every target. The near end compares
potential and gradient at the example position on both sides before anything else.
"""

# It runs under another jax, whose functions it replaces: the types of this one's do not apply.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportArgumentType=false

import contextlib
import functools
import importlib.util
import itertools
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import jax
    import numpy as np

Foreign = Any
"""An object of a library or of JAX that this program only passes on."""
Arrays = dict[str, "np.ndarray"]
Answer = tuple[Arrays, dict[str, Foreign]]
"""Arrays, and the JSON values beside them."""

SAMPLES_AT_ONCE = 200_000
"""Chains that one compiled call advances."""


class Kernel(Protocol):
    """A library's transition at fixed options, on one target, in the units of the suite.

    z is a tuple of arrays, each shaped like the flat position or a scalar; `h` the step size in SDE time; `eta` a flat
    vector that is added to the gradient of U (gradient noise as data).
    """

    map_index: int
    """The number of the step that the one-step map takes: not the first, in which some samplers draw a momentum."""

    def first(self, key: "jax.Array", x: "jax.Array", h: "jax.Array") -> tuple:
        """z as the library starts it at the flat position x."""
        ...

    def start(self, key: "jax.Array", z: tuple, h: "jax.Array", eta: "jax.Array") -> Foreign:
        """The library's own state at z, its caches computed."""
        ...

    def advance(self, i: int, key: "jax.Array", state: Foreign, h: "jax.Array", eta: "jax.Array") -> Foreign:
        """The library's own step number i."""
        ...

    def read(self, state: Foreign, h: "jax.Array") -> tuple:
        """z of a state."""
        ...


class Law(NamedTuple):
    """A target, flat: U(x), the example position, and prior, datum and data where U is a sum over data."""

    potential: Callable[..., "jax.Array"]
    example: "jax.Array"
    unravel: Callable[..., Foreign]
    prior: Callable[..., "jax.Array"] | None = None
    datum: Callable[..., "jax.Array"] | None = None
    data: Foreign = None


def volume(shape: Sequence[int]) -> int:
    """Number of entries of an array."""
    total = 1
    for n in shape:
        total *= int(n)
    return total


class Tape:
    """Values for the random draws of a step; None outside of a one-step map."""

    def __init__(self, values: dict[str, "jax.Array"] | None = None) -> None:
        self.values = values or {}
        self.used = {"normal": 0, "uniform": 0, "integer": 0}
        self.ranges, self.other = [], []

    def draw(self, kind: str, shape: Sequence[int], dtype: Foreign) -> "jax.Array":
        """The next values of a kind; zeros while a step is only counted."""
        import jax.numpy as jnp

        size = volume(shape)
        start = self.used[kind]
        self.used[kind] += size
        if kind not in self.values:
            return jnp.zeros(shape, dtype)
        return self.values[kind][start : start + size].reshape(shape).astype(dtype)

    def integer(self, shape: Sequence[int], span: int) -> "jax.Array":
        """The next integers below `span`."""
        self.ranges.extend([int(span)] * volume(shape))
        return self.draw("integer", shape, "int32")


TAPE: Tape | None = None


@contextlib.contextmanager
def playing(tape: Tape) -> Iterator[Tape]:
    """Random draws come from `tape`, jit compiles nothing of its own, scan is unrolled, cond decides what it can."""
    global TAPE
    TAPE, before = tape, TAPE
    try:
        yield tape
    finally:
        TAPE = before


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _taped_reals(random: ModuleType, canonical: Callable[..., Foreign]) -> dict[str, Callable[..., "jax.Array"]]:
    """Versions of `normal` and `uniform` that ask the tape."""
    normal, uniform = random.normal, random.uniform

    def new_normal(key: "jax.Array", shape: Sequence[int] = (), dtype: Foreign = float) -> "jax.Array":
        if TAPE is None:
            return normal(key, shape, dtype)
        return TAPE.draw("normal", _shape(shape), canonical(dtype))

    def new_uniform(
        key: "jax.Array", shape: Sequence[int] = (), dtype: Foreign = float, minval: float = 0.0, maxval: float = 1.0
    ) -> "jax.Array":
        if TAPE is None:
            return uniform(key, shape, dtype, minval, maxval)
        return minval + (maxval - minval) * TAPE.draw("uniform", _shape(shape), canonical(dtype))

    return {"normal": new_normal, "uniform": new_uniform}


def _taped_integers(random: ModuleType, canonical: Callable[..., Foreign]) -> dict[str, Callable[..., "jax.Array"]]:
    """Versions of `choice` and `randint` that ask the tape where it can answer."""
    import jax.numpy as jnp
    import numpy as np

    choice, randint = random.choice, random.randint

    def new_choice(
        key: "jax.Array", a: Foreign, shape: Sequence[int] = (), replace: bool = True, p: Foreign = None, axis: int = 0
    ) -> "jax.Array":
        if TAPE is None:
            return choice(key, a, shape, replace, p, axis)
        values = jnp.arange(a) if np.ndim(a) == 0 else jnp.asarray(a)
        if p is not None or not (replace or int(np.prod(_shape(shape))) == 1) or axis != 0:
            TAPE.other.append("choice with weights or without replacement")
            return choice(key, a, shape, replace, p, axis)
        return values[TAPE.integer(_shape(shape), len(values))]

    def new_randint(
        key: "jax.Array", shape: Sequence[int], minval: int, maxval: int, dtype: Foreign = int
    ) -> "jax.Array":
        if TAPE is None:
            return randint(key, shape, minval, maxval, dtype)
        span = int(maxval) - int(minval)
        return (minval + TAPE.integer(_shape(shape), span)).astype(canonical(dtype))

    return {"choice": new_choice, "randint": new_randint}


def _unfed(name: str, original: Callable[..., "jax.Array"]) -> Callable[..., "jax.Array"]:
    """A version of a draw that the tape cannot answer: its name is noted."""

    def call(*args: Foreign, **kwargs: Foreign) -> "jax.Array":
        if TAPE is not None:
            TAPE.other.append(name)
        return original(*args, **kwargs)

    return functools.wraps(original)(call)


def _unrolled_scan(scan: Callable[..., tuple]) -> Callable[..., tuple]:
    """A version of `lax.scan` that is a loop of Python under a tape."""
    import jax

    def new_scan(
        f: Callable[..., tuple],
        init: Foreign,
        xs: Foreign = None,
        length: int | None = None,
        *args: Foreign,
        **kwargs: Foreign,
    ) -> tuple:
        if TAPE is None:
            return scan(f, init, xs, length, *args, **kwargs)
        leaves = jax.tree_util.tree_leaves(xs)
        count = len(leaves[0]) if leaves else length
        carry, outputs = init, []
        for k in range(count):
            carry, y = f(carry, jax.tree_util.tree_map(lambda x, k=k: x[k], xs))
            outputs.append(y)
        return carry, jax.tree_util.tree_map(lambda *y: jax.numpy.stack(y), *outputs) if outputs else None

    return new_scan


def _decided_cond(cond: Callable[..., Foreign]) -> Callable[..., Foreign]:
    """A version of `lax.cond` that takes one branch where the predicate is known."""
    import jax

    def new_cond(
        pred: Foreign,
        true_fun: Callable[..., Foreign],
        false_fun: Callable[..., Foreign],
        *operands: Foreign,
        **kwargs: Foreign,
    ) -> Foreign:
        if TAPE is None or isinstance(pred, jax.core.Tracer):
            return cond(pred, true_fun, false_fun, *operands, **kwargs)
        if not operands and "operand" in kwargs:
            operands = (kwargs["operand"],)
        return (true_fun if bool(pred) else false_fun)(*operands)

    return new_cond


def _transparent_jit(jit: Callable[..., Foreign]) -> Callable[..., Foreign]:
    """A version of `jax.jit` that compiles nothing under a tape."""

    def new_jit(fun: Callable[..., Foreign] | None = None, **kwargs: Foreign) -> Callable[..., Foreign]:
        if fun is None:
            return lambda f: new_jit(f, **kwargs)
        compiled = jit(fun, **kwargs)

        @functools.wraps(fun)
        def call(*args: Foreign, **kw: Foreign) -> Foreign:
            # a traced body is cached: its draws would be taken from the tape once for all calls
            return (compiled if TAPE is None else fun)(*args, **kw)

        return call

    return new_jit


def install_tape() -> None:
    """Replace draws and control flow of JAX by versions that ask the tape; to be run before a library is imported."""
    import jax

    random, lax, canonical = jax.random, jax.lax, jax.dtypes.canonicalize_dtype
    replaced = {**_taped_reals(random, canonical), **_taped_integers(random, canonical)}
    for name in ("bernoulli", "gamma", "exponential", "permutation", "categorical", "bits", "poisson"):
        replaced[name] = _unfed(name, getattr(random, name))
    for name, function in replaced.items():
        setattr(random, name, function)
    lax.scan, lax.cond, jax.jit = _unrolled_scan(lax.scan), _decided_cond(lax.cond), _transparent_jit(jax.jit)


def find_law(spec: dict, folder: str) -> Law:
    """The target that a request names."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    if spec.get("precision") is not None:  # a Gaussian as data: needs no source
        precision, mean, example = (jnp.asarray(spec[name]) for name in ("precision", "mean", "example"))
        return Law(lambda x: 0.5 * (x - mean) @ precision @ (x - mean), example, lambda x: x)
    if "sgmcmc_verification" not in sys.modules:  # the package without its public names, which need more libraries
        package = sys.modules["sgmcmc_verification"] = ModuleType("sgmcmc_verification")
        package.__path__ = [folder]
    from sgmcmc_verification.targets.registry import target

    found = target(spec["name"])
    example, unravel = ravel_pytree(jax.tree_util.tree_map(jnp.asarray, found.example))
    terms = found.terms
    if terms is None:
        return Law(lambda x: found.potential(unravel(x)), example, unravel)
    return Law(
        lambda x: found.potential(unravel(x)),
        example,
        unravel,
        lambda x: terms.prior(unravel(x)),
        lambda x, row: terms.datum(unravel(x), row),
        terms.data,
    )


class Held:
    """Kernel on a target, with its compiled functions."""

    def __init__(self, kernel: Kernel, law: Law) -> None:
        import jax
        import jax.numpy as jnp

        self.kernel, self.law = kernel, law
        self.size = len(law.example)
        h, eta = jnp.asarray(0.1), jnp.zeros(self.size)
        z = jax.eval_shape(lambda: kernel.first(jax.random.PRNGKey(0), law.example, h))
        self.shapes = [tuple(part.shape) for part in z]
        flat = jnp.zeros(sum(volume(s) for s in self.shapes))
        tape = Tape()
        with playing(tape):
            out = jax.eval_shape(lambda z, e: self.mapped(z, e, h, jax.random.PRNGKey(0)), flat, eta)
        if out.shape != flat.shape:
            raise ValueError(f"a step turns z of length {len(flat)} into one of shape {out.shape}")
        self.draws = {"normals": tape.used["normal"], "uniforms": tape.used["uniform"], "ranges": tape.ranges}
        self.other = sorted(set(tape.other))

        def one(
            z: "jax.Array",
            eta: "jax.Array",
            normals: "jax.Array",
            uniforms: "jax.Array",
            integers: "jax.Array",
            h: "jax.Array",
            key: "jax.Array",
        ) -> "jax.Array":
            with playing(Tape({"normal": normals, "uniform": uniforms, "integer": integers})):
                return self.mapped(z, eta, h, key)

        self.many = jax.jit(jax.vmap(one, (0, 0, 0, 0, 0, None, None)))
        self.free = jax.jit(lambda i, key, z, eta, h: self.stepped(i, key, z, h, eta))
        self.firsts = jax.jit(lambda key, x, h: self.join(kernel.first(key, x, h)))

        def chain(
            key: "jax.Array", begin: "jax.Array", h: "jax.Array", steps: int, root: "jax.Array", noisy: bool, full: bool
        ) -> "jax.Array":
            first_key, start_key, key = jax.random.split(key, 3)
            z = self.split(begin) if full else kernel.first(first_key, begin, h)
            # a given momentum must not be drawn over, as some libraries do in step 0
            number = kernel.map_index if full else 0

            def body(i: int, carry: tuple) -> tuple:
                key, state = carry
                key, step_key = jax.random.split(key)
                return key, kernel.advance(i + number, step_key, state, h, jnp.zeros(self.size))

            def noisy_body(i: int, carry: tuple) -> tuple:
                # one eta per step: the cached gradient has to have it too, as in the one-step map
                key, flat = carry
                key, step_key, eta_key, start_key = jax.random.split(key, 4)
                eta = root @ jax.random.normal(eta_key, (self.size,))
                state = kernel.start(start_key, self.split(flat), h, eta)
                return key, self.join(kernel.read(kernel.advance(i + number, step_key, state, h, eta), h))

            if noisy:
                return jax.lax.fori_loop(0, steps, noisy_body, (key, self.join(z)))[1]
            state = kernel.start(start_key, z, h, jnp.zeros(self.size))
            state = jax.lax.fori_loop(0, steps, body, (key, state))[1]
            return self.join(kernel.read(state, h))

        def compiled(noisy: bool, full: bool) -> Callable[..., "jax.Array"]:
            return jax.jit(
                jax.vmap(lambda key, z, h, n, root: chain(key, z, h, n, root, noisy, full), (0, 0, None, None, None))
            )

        self.chained = {kind: compiled(*kind) for kind in itertools.product((False, True), repeat=2)}

    def split(self, flat: "jax.Array") -> tuple:
        """Parts of z from a flat vector."""
        parts, at = [], 0
        for shape in self.shapes:
            parts.append(flat[at : at + volume(shape)].reshape(shape))
            at += volume(shape)
        return tuple(parts)

    def join(self, z: tuple) -> "jax.Array":
        """Flat vector of the parts of z."""
        import jax.numpy as jnp

        return jnp.concatenate([jnp.ravel(part) for part in z])

    def stepped(self, i: int, key: "jax.Array", flat: "jax.Array", h: "jax.Array", eta: "jax.Array") -> "jax.Array":
        """Take step number i of the library from a flat z."""
        import jax

        start_key, step_key = jax.random.split(key)
        state = self.kernel.start(start_key, self.split(flat), h, eta)
        return self.join(self.kernel.read(self.kernel.advance(i, step_key, state, h, eta), h))

    def mapped(self, flat: "jax.Array", eta: "jax.Array", h: "jax.Array", key: "jax.Array") -> "jax.Array":
        """Take one step from z, under the tape."""
        return self.stepped(self.kernel.map_index, key, flat, h, eta)


class Worker:
    """Kernels that are held for the requests of the near end."""

    def __init__(self, far: ModuleType, folder: str) -> None:
        self.far, self.folder, self.held = far, folder, []

    def load(self, meta: dict[str, Foreign], arrays: Arrays) -> Answer:
        """Hold a kernel on a target; the answer has its handle and the numbers of its draws."""
        import jax
        import numpy as np

        law = find_law(meta["target"], self.folder)
        kernel = self.far.kernel(meta["kernel"], law, meta["options"])
        held = Held(kernel, law)
        self.held.append(held)
        value, gradient = jax.value_and_grad(law.potential)(law.example)
        return {"gradient": np.asarray(gradient)}, {
            "handle": len(self.held) - 1,
            **held.draws,
            "other": held.other,
            "shapes": held.shapes,
            "potential": float(value),
        }

    def map(self, meta: dict[str, Foreign], arrays: Arrays) -> Answer:
        """One-step maps of many z with given draws."""
        import jax
        import numpy as np

        held = self.held[meta["handle"]]
        key = jax.random.PRNGKey(meta["seed"])  # decides nothing, unless a draw escapes the tape
        columns = (arrays[name] for name in ("z", "eta", "normals", "uniforms", "integers"))
        out = held.many(*columns, float(meta["h"]), key)
        return {"z": np.asarray(out)}, {}

    def first(self, meta: dict[str, Foreign], arrays: Arrays) -> Answer:
        """Full variable z as the library starts it."""
        import jax
        import numpy as np

        held = self.held[meta["handle"]]
        return {"z": np.asarray(held.firsts(jax.random.PRNGKey(meta["seed"]), arrays["x"], float(meta["h"])))}, {}

    def step(self, meta: dict[str, Foreign], arrays: Arrays) -> Answer:
        """Take one step of the library from one z."""
        import jax
        import numpy as np

        held = self.held[meta["handle"]]
        key = jax.random.PRNGKey(meta["seed"])
        return {"z": np.asarray(held.free(meta["index"], key, arrays["z"], arrays["eta"], float(meta["h"])))}, {}

    def chains(self, meta: dict[str, Foreign], arrays: Arrays) -> Answer:
        """Ends of independent chains."""
        import jax
        import numpy as np

        held = self.held[meta["handle"]]
        starts, ends = arrays["starts"], []
        key, root = jax.random.PRNGKey(meta["seed"]), arrays["root"]
        run = held.chained[bool(np.any(root)), bool(meta["full"])]
        for begin in range(0, len(starts), SAMPLES_AT_ONCE):
            block = starts[begin : begin + SAMPLES_AT_ONCE]
            keys = jax.random.split(jax.random.fold_in(key, begin), len(block))
            ends.append(np.asarray(run(keys, block, float(meta["h"]), meta["steps"], root)))
        return {"z": np.concatenate(ends)}, {}


def answer(worker: Worker, path: str) -> None:
    """Read a request and write its answer; errors are answers too."""
    import numpy as np

    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "meta"}
        meta = json.loads(str(file["meta"]))
    try:
        if meta["op"] not in ("load", "map", "first", "step", "chains"):
            raise ValueError(f"no such request: {meta['op']}")
        out, reply = getattr(worker, meta["op"])(meta, arrays)
    except Exception as error:
        traceback.print_exc()
        out, reply = {}, {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
    with open(path + ".part", "wb") as file:
        np.savez(file, meta=json.dumps(reply), **out)
    os.replace(path + ".part", path + ".answer.npz")


def main() -> None:
    """Serve until standard input ends."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the library prints must not look like an answer
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    far_path, folder = sys.argv[1:3]
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        install_tape()
        spec = importlib.util.spec_from_file_location("far_side", far_path)
        far = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(far)
        hello = {"versions": {**far.versions(), "jax": jax.__version__}}
    except Exception as error:
        traceback.print_exc()
        print(json.dumps({"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}), file=channel)
        return
    print(json.dumps(hello), file=channel)
    worker = Worker(far, folder)
    for line in sys.stdin:
        answer(worker, line.strip())
        print("done", file=channel)


if __name__ == "__main__":
    main()
