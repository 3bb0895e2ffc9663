"""The contract tier: what any sampler must do before its law is worth asking about; no tolerance but round-off.

Every check runs the sampler from a position in the bulk at the usual step size of its row.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.key_reuse._core import check_key_reuse_jaxpr

from sgmcmc_verification.checks.core.accept_step import potential_decides
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, statement
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.noisy_gradient import with_noise
from sgmcmc_verification.checks.core.precision import in_dtype
from sgmcmc_verification.checks.core.preflight import difference
from sgmcmc_verification.checks.core.selection import first_and_structured, structured_targets
from sgmcmc_verification.checks.core.start_position import (
    in_one_program,
    program_of_first_step,
    start_position,
    start_state,
)
from sgmcmc_verification.checks.end_points.bounded_loops import bounded, with_one_turn
from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.checks.programs.key_uses import consumes_twice, indexes_keys
from sgmcmc_verification.checks.programs.operations import operation_names
from sgmcmc_verification.checks.programs.trees import placed
from sgmcmc_verification.checks.tracing.estimator_state import drops_state
from sgmcmc_verification.samplers.estimators.basic import Exact, compiled_gradient
from sgmcmc_verification.samplers.estimators.host import in_numpy
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import Composite, ExactLaw, Exchange, ParticleLaw
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator, Sampler
from sgmcmc_verification.samplers.interface.whole_state import is_key
from sgmcmc_verification.targets.target import Target

REFUSED = "is refused where double precision is switched on"
"""Of positions in single precision: constants of a program are doubles then, and branches may differ in their types."""
MOST_VALUES = 3
"""Sizes of draws that vectors of a few coordinates may have in common by chance."""
DIFFERENT = 1e-2
"""Relative difference of moves that were not made by the same draws: of their lengths, or across their line."""
MOST_ESTIMATES = 8
"""Estimates of a step that are looked at one by one."""
KEYS = 4
"""Keys under which a part of a state is moved: one in so many may draw it afresh at once."""
LONGER = 16
"""Factor of the steps of a path that has not gone in all directions."""
INSIDE = frozenset({"scan", "while", "cond"})
"""Operations with programs of their own."""
RARE = 256
"""Steps after which what happens in some steps only, such as a refreshed momentum, has happened."""


@dataclasses.dataclass(frozen=True, eq=False)
class Shifted:
    """An estimator whose gradient (and statistics) are moved, to see whether they are used at all.

    Entry i is moved by `offset` (1 + i / 2): a method on the simplex takes what is common to all entries away.
    """

    inner: Estimator
    offset: Any

    def init(self, key, position):
        """First state of the estimator."""
        return self.inner.init(key, position)

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        estimate, estate = self.inner.estimate(key, estate, position)
        ramp = lambda x: 1 + np.arange(x.size).reshape(x.shape) / 2
        move = lambda tree: jax.tree.map(lambda x: x + jnp.asarray(self.offset * ramp(x), x.dtype), tree)
        moved = estimate._replace(gradient=move(estimate.gradient), statistics=move(estimate.statistics))
        return in_numpy(moved) if on_host(self.inner) else moved, estate

    def __getattr__(self, name):
        return getattr(self.inner, name)


@dataclasses.dataclass(eq=False)
class Nth:
    """An estimator that takes its key in one estimate alone, counted as a step is traced; others have a constant."""

    inner: Estimator
    number: int
    calls: int = 0

    def init(self, key, position):
        """First state of the estimator; a step is traced next."""
        self.calls = 0
        return self.inner.init(key, position)

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        self.calls += 1
        return self.inner.estimate(key if self.calls == self.number + 1 else jax.random.key(0), estate, position)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class CompiledExact(Exact):
    """The exact gradient, compiled, for steps that are not."""

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        del key
        value, gradient = compiled_gradient(self.target)(position)
        return Estimate(gradient, value), estate


@dataclasses.dataclass(frozen=True, eq=False)
class Kit:
    """A sampler on a target, ready to run, compiled once for all the checks of this tier."""

    sampler: Sampler
    estimator: Estimator
    target: Target
    step_size: float
    init: Callable[..., Any]
    advance: Callable[..., Any]

    @property
    def host(self) -> bool:
        """True for a sampler that is not traced."""
        return self.sampler.backend == "host"

    @property
    def deterministic(self) -> bool:
        """True for a particle method, which uses no noise of its own."""
        return ParticleLaw in self.sampler.claims

    @property
    def rejecting(self) -> bool:
        """True if one step may leave the position where it is (a Metropolis step)."""
        return ExactLaw in self.sampler.claims

    def key(self, seed: int, *stream: int):
        """A fresh key, the same for the same numbers."""
        if self.host:
            return np.random.default_rng([seed, *stream])
        key = jax.random.key(seed)
        for number in stream:
            key = jax.random.fold_in(key, number)
        return key

    def position(self, seed: int):
        """A position in the bulk, off the mode."""
        sample = self.target.sample
        if sample is None or self.deterministic:
            return start_position(self.sampler, self.target)
        draw = in_one_program(lambda key: sample(key, 1), jax.random.fold_in(jax.random.key(seed), 90))
        return jax.tree.map(lambda x, e: jnp.asarray(x[0], e.dtype), draw, self.target.example)

    def start(self, seed: int):
        """A state from `init`."""
        return self.init(self.key(seed, 91), self.position(seed))

    def run(self, seed: int, state: Any, steps: int, step_size: float | None = None, offset: float = 0.0):
        """The state after `steps` steps."""
        h = self.step_size if step_size is None else step_size
        for i in range(steps):
            state = self.advance(self.key(seed, i), state, h, offset)
        return state

    def z(self, state: Any) -> np.ndarray:
        """The full variable as a flat vector."""
        return flat(self.sampler.unpack(state))


def flat(tree: Any) -> np.ndarray:
    """All entries of a pytree in one float64 vector."""
    leaves = [np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


@functools.lru_cache(maxsize=32)
def kit(subject: Subject, target: Target) -> Kit:
    """The kit of a subject on a target; cached, so that a step is compiled once, for the default options."""
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    begin = evaluated(lambda key, position: sampler.init(key, position, estimator))
    init = lambda key, position: start_state(sampler, key, position, estimator, begin)
    inner = estimator
    step = lambda key, state, h, offset: sampler.step(key, state, h, Shifted(inner, offset))
    # A variant takes a few dozen steps: dispatching their operations one by one, compiled once for all samplers, costs
    # less than compiling each variant, unless it loops inside of a step.
    loops = Composite in sampler.claims or isinstance(sampler.claims.law, ExactLaw | ParticleLaw)
    if sampler.backend == "jax":
        if loops or not subject.options or _has_programs_inside(sampler, estimator, target, subject.step_size(target)):
            step = jax.jit(bounded(step))  # parts of a state are moved to where no law has mass
        elif type(estimator) is Exact:
            inner = CompiledExact(estimator.target)
    else:
        in_place = step
        step = lambda key, state, h, offset: in_place(key, copied(state), h, offset)  # it may change its state
    return Kit(sampler, estimator, target, subject.step_size(target), init, step)


def _has_programs_inside(sampler: Sampler, estimator: Estimator, target: Target, h: float) -> bool:
    """True if a step has loops or branches, which are traced and lowered again in each step that is not compiled."""
    try:
        program = program_of_first_step(sampler, estimator, start_position(sampler, target), h)
    except RAISED:  # the checks say so
        return True
    return not INSIDE.isdisjoint(operation_names(program.jaxpr))


def _count(
    case: Case, found: list[str], fine: str, statistic: str = "violations", minor: bool = False, **measurements: Any
) -> Finding:
    """Fail if any violation was found; the effect is how many."""
    return Finding(
        effect=float(len(found)),
        tolerance=Tolerance(0.0, "an identity"),
        minimum_detectable_effect=1.0,
        required_sensitivity=1.0,
        reason="; ".join(found) if found else fine,
        statistic=statistic,
        unit="violations",
        step_size=case.step_size,
        measurements=measurements,
        minor=minor,
    )


@statement(
    tier="contract",
    equation="init, step, position, pack and unpack keep structure, shape and dtype",
    targets=first_and_structured,
    cost=0.1,
    decides="conduct",
    finite=None,
)
def shapes_and_dtypes(case: Case, seed: int) -> Finding:
    """Structure, shapes and dtypes survive init, step, position, unpack and pack, in float32 and float64."""
    found: list[str] = []
    for name in ("float32", "float64"):
        if name == "float64" and jnp.zeros(()).dtype != jnp.float64:
            continue
        law = in_dtype(case.target, name)
        sampler, estimator = case.subject.sampler(law), case.subject.estimator(law)
        h, start = case.subject.step_size(law), start_position(sampler, law)

        def trace(key, position, h, sampler=sampler, estimator=estimator):
            state = sampler.init(key, position, estimator)
            after = sampler.step(key, state, h, estimator)
            z = sampler.unpack(after)
            packed = sampler.pack(key, z, estimator)
            return state, after, sampler.position(after), z, packed, sampler.unpack(packed)

        for kind, value in (("a Python float", h), (f"a {name} array", np.asarray(h, name))):
            if sampler.backend == "host":
                if name == "float32":
                    continue
                with_h = functools.partial(trace, h=h)
                shapes = with_h(np.random.default_rng(seed), start)
            else:
                bound = functools.partial(trace, h=value) if kind.startswith("a P") else trace
                arguments = (jax.random.key(seed), start, *(() if kind.startswith("a P") else (value,)))
                try:
                    shapes = jax.eval_shape(bound, *arguments)
                except (TypeError, ValueError) as error:
                    if name != "float32":
                        raise
                    # a matter of form: types that differ in single precision where double precision is switched on
                    found.append(f"{name} {REFUSED} ({one_line(error)})")
                    continue
            state, after, position, z, packed, again = shapes
            for what, before, now in (
                ("step", state, after),
                ("position(step(...))", start, position),
                ("pack(unpack(...))", after, packed),
                ("unpack(pack(...))", z, again),
            ):
                changed = difference(before, now)
                if changed:
                    found.append(f"{what} in {name} with step_size {kind}: {changed}")
    fine = "state, position and packing keep structure, shape and dtype"
    found = list(dict.fromkeys(found))
    # another precision than was asked for costs memory and recompilation; another shape is another variable
    formal = [" had dtype " in each or f" {REFUSED} " in each for each in found]
    return _count(case, found, fine, minor=bool(found) and all(formal))


@statement(
    tier="contract",
    equation="step = jit(step); vmap over chains = a loop over them, to round-off",
    targets=structured_targets,
    cost=2.0,
    decides="conduct",
    once=True,
    finite=None,
)
def jit_vmap_loop_agree(case: Case, seed: int) -> Finding:
    """One eager step = one compiled step; chains under vmap = a Python loop over them, to round-off."""
    k = kit(case.subject, case.target)
    if k.host:
        raise NotApplicable("a host sampler is not traced: there is no compiled or vectorised form to compare")
    chains, steps = 3, 2
    step = lambda key, state: k.sampler.step(key, state, k.step_size, k.estimator)
    states = [k.start(seed + c) for c in range(chains)]
    keys = [[k.key(seed, c, i) for i in range(steps)] for c in range(chains)]
    eager = k.z(step(keys[0][0], states[0]))
    looped = [k.advance(keys[c][0], states[c], k.step_size, 0.0) for c in range(chains)]
    pairs = [("eager against jit", eager, k.z(looped[0]))]
    for i in range(1, steps):
        looped = [k.advance(keys[c][i], looped[c], k.step_size, 0.0) for c in range(chains)]
    batched = jax.tree.map(lambda *x: jnp.stack(x) if is_key(x[0]) else placed(np.stack(x)), *states)
    many = jax.jit(jax.vmap(step))
    for i in range(steps):
        batched = many(jnp.stack([jnp.asarray(row[i]) for row in keys]), batched)
    for c in range(chains):
        one = jax.tree.map(lambda x, c=c: x[c] if is_key(x) else placed(np.asarray(x)[c]), batched)
        pairs.append((f"vmap against a loop, chain {c}", k.z(one), k.z(looped[c])))
    gaps = [(float(np.max(np.abs(a - b))) / max(1.0, float(np.max(np.abs(b)))), name) for name, a, b in pairs]
    worst, name = max(gaps)
    # a step sums at most a few times `size` products; 64 covers the growth of two steps below the stability limit
    allowance = 64 * np.finfo(jnp.result_type(float)).eps * max(8, case.target.size)
    return Finding(
        effect=worst,
        tolerance=Tolerance(float(allowance), "round-off: 64 eps times the number of summed products"),
        reason=f"{name}: largest difference {worst:.2g}",
        statistic="difference of the full variable",
        unit="relative to the largest entry",
        minimum_detectable_effect=2 * float(allowance),
        required_sensitivity=1e-8,
        step_size=k.step_size,
    )


@statement(
    tier="contract",
    equation="the key decides the result, and is consumed once",
    targets=structured_targets,
    cost=0.2,
    decides="conduct",
    about=("reused-key",),
)
def key_discipline(case: Case, seed: int) -> Finding:
    """The same key gives the same result, another key another one, and no key is consumed twice."""
    k = kit(case.subject, case.target)
    state, found = k.start(seed), []
    starts = ((seed, state), (seed, state), (seed + 1, rekeyed(k, state, seed)))
    ends = [k.z(k.run(s, start, 3)) for s, start in starts]
    if np.array_equal(ends[0], ends[2]) and not k.deterministic:
        ends = [k.z(k.run(s, start, RARE)) for s, start in starts]
    if not np.array_equal(ends[0], ends[1]):
        found.append("the same key gives different results: the step has a source of randomness of its own")
    if np.array_equal(ends[0], ends[2]) and not k.deterministic:
        found.append("another key gives the same result: the key is ignored")
    # An exact estimator consumes no key: a noisy one shows whether the gradient and the injected noise share theirs.
    reused = key_reuse(case.subject, case.target, seed) or _reuse_by_an_estimate(case.subject, case.target, seed)
    if reused:
        found.append(reused)
    statistic = "key reuse" if reused else "violations"
    return _count(case, found, "keys are used once and decide the result", statistic=statistic)


def _reuse_by_an_estimate(subject: Subject, target: Target, seed: int) -> str | None:
    """Report of a key that an estimate shares with a draw of the step.

    Several estimates may have one key in common: the same minibatch at two points, or in all turns of a loop that
    solves an equation. One at a time has a key, therefore, and a loop takes one turn.
    """
    noisy = with_noise(subject, target)
    report = key_reuse(noisy, target, seed)
    for number in range(MOST_ESTIMATES if report else 0):
        alone = dataclasses.replace(noisy.row, estimator=lambda t, n=number: Nth(noisy.estimator(t), n))
        if again := key_reuse(Subject(alone, noisy.options, noisy.reference), target, seed, with_one_turn):
            return again
    return None


def key_reuse(
    subject: Subject, target: Target, seed: int = 0, changed: Callable[..., Any] = lambda program: program
) -> str | None:
    """Report of JAX's key-reuse checker on one unbatched init and step, from a typed key; nothing of host samplers.

    The checker of `jax.debug_key_reuse` is called on the traced program, which spares the compilation.

    Args:
        subject: the sampler.
        target: that it samples.
        seed: of the state that is stepped from, and of the key.
        changed: what is made of init and step before they are looked at.
    """
    k = kit(subject, target)
    if k.host:
        return None
    state = k.start(seed)
    position = k.position(seed)
    programs = (
        ("init", lambda key: k.sampler.init(key, position, k.estimator)),
        ("step", lambda key: k.sampler.step(key, state, k.step_size, k.estimator)),
    )
    for name, program in programs:
        read = jax.make_jaxpr(changed(program))(k.key(seed, 7))
        try:
            check_key_reuse_jaxpr(read.jaxpr)
        except jax.errors.KeyReuseError as error:
            runs = (consumes_twice(read, [k.key(seed, number)]) for number in range(KEYS))
            if not indexes_keys(read.jaxpr) or any(twice is not False for twice in runs):
                return f"{name} consumes a key twice: {' '.join(str(error).split())[:200]}"
    return None


@statement(
    tier="contract",
    equation="noise of different leaves, keys and steps is not the same draw",
    targets=structured_targets,
    cost=0.3,
    decides="conduct",
)
def chains_and_leaves_independent(case: Case, seed: int) -> Finding:
    """Leaves of equal shape, chains and steps get different draws.

    At a tiny step size the difference of two runs from one state under two keys is linear in the noise. Two such
    vectors that are parallel to 1e-6 come from the same draws: independent ones of length n are with probability
    below 1e-6 ** ((n - 1) / 2).
    """
    k = kit(case.subject, case.target)
    if k.deterministic:
        raise NotApplicable("a particle method draws no noise of its own")
    state, pairs = k.start(seed), 8
    tiny = 1e-4 * k.step_size
    # two steps, since a scheme may show the noise of a step in z only at the next one
    ends = []
    for i in range(2 * pairs):
        once = k.advance(k.key(seed, 50, i), state, tiny, 0.0)
        ends.append(k.sampler.unpack(k.advance(k.key(seed, 51, i), once, tiny, 0.0)))
    moves = [
        jax.tree.map(lambda a, b: np.asarray(a) - np.asarray(b), ends[2 * i], ends[2 * i + 1]) for i in range(pairs)
    ]
    found, compared = [], 0
    for block, leaves in _blocks(case.target, moves).items():
        names = list(leaves)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                a, b = leaves[first], leaves[second]
                if a.shape == b.shape and np.any(a) and np.any(b):
                    compared += 1
                    if _parallel(a.ravel(), b.ravel()):
                        found.append(f"leaves {first} and {second} of {block} get identical draws")
    rows = [flat(m) for m in moves]
    if not any(np.any(r) for r in rows) and not k.rejecting:
        raise Inconclusive("no noise was seen in two steps at a tiny step size")
    # too short a vector can be parallel by chance, and what follows from one draw (weights that are learned) always is
    if len(rows[0]) > 3 and case.target.size > 1 and not _along_a_line(rows):
        found += [
            f"steps under keys {2 * i} and {2 * j} get identical draws"
            for i in range(pairs)
            for j in range(i)
            if np.any(rows[i]) and np.any(rows[j]) and _parallel(rows[i], rows[j])
        ]
    fine = f"{compared} pairs of leaves and {pairs * (pairs - 1) // 2} pairs of keys get different draws"
    return _count(case, found, fine, pairs_of_leaves=compared)


def _along_a_line(rows: list[np.ndarray]) -> bool:
    """True if all moves lie on one line and differ in length: one number a step moves z along one direction."""
    values = np.linalg.svd(np.stack(rows), compute_uv=False)
    lengths = np.array([np.linalg.norm(row) for row in rows if np.any(row)])
    return bool(values[1] <= DIFFERENT * values[0] and np.ptp(lengths) > DIFFERENT * lengths.max())


def _parallel(a: np.ndarray, b: np.ndarray) -> bool:
    """True if two vectors of noise are parallel, and not by chance as those of a few values are: of a coin or a die."""
    sizes = np.abs(a[a != 0])
    if len(np.unique(np.round(sizes / sizes.max(), 2))) <= MOST_VALUES:
        return False
    return bool(1 - abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b)) < 1e-6)


def _blocks(target: Target, moves: list[Any]) -> dict[str, dict[str, np.ndarray]]:
    """Parts of z that are shaped like a position, each with its leaves stacked over the moves."""
    shape = jax.tree.structure(target.example)
    parts: dict[str, list[Any]] = {}
    for move in moves:
        if jax.tree.structure(move) == shape:
            parts.setdefault("the position", []).append(move)
        elif isinstance(move, tuple | list):
            names = getattr(move, "_fields", range(len(move)))
            for name, part in zip(names, move, strict=True):
                if jax.tree.structure(part) == shape:
                    parts.setdefault(str(name), []).append(part)
    blocks = {}
    for name, trees in parts.items():
        paths = [jax.tree_util.keystr(p) or "value" for p, _ in jax.tree_util.tree_flatten_with_path(trees[0])[0]]
        columns = zip(*(jax.tree.leaves(t) for t in trees), strict=True)
        blocks[name] = {path: np.stack(column) for path, column in zip(paths, columns, strict=True)}
    return blocks


@statement(
    tier="contract",
    equation="step(key, state, step_size, estimator) depends on each of its arguments and each part of the state",
    targets=structured_targets,
    cost=0.2,
    decides="conduct",
)
def every_input_matters(case: Case, seed: int) -> Finding:
    """The output changes with each part of the state, the step size, the key and the estimator's gradient and state.

    What enters the chance of a coin alone shows only where the coin falls the other way. Each input is therefore moved
    further and further, up and down, for more steps and with other keys, until the output changes: an offset of either
    sign that is large enough takes every chance to 0 or to 1, and what one key draws afresh the next one may not.
    """
    k = kit(case.subject, case.target)
    few = 8 if k.rejecting else 3
    state, found, tried = k.start(seed), [], []
    base = functools.cache(lambda steps, seed: k.z(k.run(seed, state, steps)))

    def expect(what: str, moved: Callable[[float, int, int], np.ndarray], sizes: tuple[float, ...]) -> None:
        tried.append(what)
        keys = range(seed, seed + KEYS)
        # what forgets its state at once, now and then, shows it in one step
        rungs = [(size, n, seed) for n in (few, 1) for seed in keys for size in sizes] + [(sizes[0], RARE, seed)]
        if all(np.array_equal(moved(size, *rung), base(*rung)) for size, *rung in rungs):
            found.append(f"{what} does not change the result")

    needs = k.sampler.needs
    exact = ExactLaw in k.sampler.claims or potential_decides(case.subject)
    if not exact or "gradient" in needs:  # a stretch move, or a slice, has no step size
        expect("the step size", lambda size, n, key: k.z(k.run(key, state, n, size * k.step_size)), (1.37, 0.137, 13.7))
    if not k.deterministic:
        expect("the key", lambda other, n, key: k.z(k.run(key + int(other), rekeyed(k, state, seed), n)), (1, 2, 3))
    if needs & {"gradient", "statistics"} and not _asks_for_both(k):
        expect("the gradient of the estimator", lambda size, n, key: k.z(k.run(key, state, n, offset=size)), FURTHER)
    if not k.host and _drops_estimator_state(k, seed):
        found.append("the state that the estimator returns is dropped: every step gives it that of the start")
    shown = _shown_alone(k, state)
    for i, name in enumerate(_names_of_parts(k, state)):
        if i in shown:
            continue
        part = lambda size, n, key, i=i: k.z(k.run(key, _moved_part(k, seed, state, i, size), n))
        # a host sampler may draw integers, which small changes leave as they are
        expect(name, part, (*(() if k.host else (1e-3,)), 1.0, -1.0, 1e3, -1e3))
    # an exact kernel may choose its step size in each state by itself: that it takes no other is a remark
    own_size = exact and found == ["the step size does not change the result"]
    return _count(case, found, f"the result changes with {', '.join(tried)}", minor=own_size)


def _asks_for_both(k: Kit) -> bool:
    """True for a sampler that declares no needs, and cannot run without the gradient or without the potential.

    One that takes both out of an estimate may read the potential alone; that it needs the other is not its word.
    """
    found = isinstance(k.sampler, Completed) and "needs" not in k.sampler.given
    return found and {"gradient", "potential"} <= k.sampler.needs


def _shown_alone(k: Kit, state: Any) -> range:
    """Places of the position in a z that was found in the state, beside numbers from which a step may go on alone.

    A position that is computed on the way of a step, and read by no other, is a right one: its law is judged.
    """
    count, parts = len(jax.tree.leaves(k.target.example)), len(jax.tree.leaves(k.sampler.unpack(state)))
    found = isinstance(k.sampler, Completed) and "unpack" not in k.sampler.given
    return range(count if found and parts > count else 0)


def _drops_estimator_state(k: Kit, seed: int) -> bool:
    """`drops_state`; False for a sampler that takes no estimator with a state, and says so."""
    try:
        return drops_state(k.sampler, k.estimator, k.position(seed), k.step_size)
    except RAISED:
        return False


FURTHER = (0.731, 731.0, -731.0)
"""Offsets of a gradient, up to those that leave no coin a choice."""


def rekeyed(k: Kit, state: Any, seed: int) -> Any:
    """The state with the keys that it holds, if any, taken from another `init`: a sampler may keep its key itself."""
    other = k.init(k.key(seed + 1, 91), k.position(seed))
    return jax.tree.map(lambda leaf, new: new if is_key(leaf) else leaf, state, other)


def _names_of_parts(k: Kit, state: Any) -> list[str]:
    """A name for each leaf of z."""
    return [f"z{jax.tree_util.keystr(p)}" for p, _ in jax.tree_util.tree_flatten_with_path(k.sampler.unpack(state))[0]]


def _moved_part(k: Kit, seed: int, state: Any, i: int, size: float) -> Any:
    """The state with leaf i of z moved by a relative size, along a geodesic on a manifold."""
    leaves, structure = jax.tree.flatten(k.sampler.unpack(state))
    manifold = k.target.manifold
    tangent, geodesic = manifold.tangent, lambda x, v: manifold.geodesic(x, v, size)
    if k.deterministic:  # a manifold a particle
        tangent, geodesic = jax.vmap(tangent), jax.vmap(geodesic)
    point_structure = jax.tree.structure(k.target.example)
    count = point_structure.num_leaves  # the leaves of z start with those of the position
    leaf = leaves[i]
    if manifold.is_linear or i >= count:
        moved = leaf + size * (1 + abs(leaf))
        # NumPy makes a number of an array without axes, into which no step can write
        leaves[i] = np.asarray(moved) if isinstance(leaf, np.ndarray) else moved
    else:
        point = jax.tree.unflatten(point_structure, leaves[:count])
        # in a direction that no normal of a sphere or of a simplex has
        along = [jnp.zeros_like(value) for value in leaves[:count]]
        along[i] = jnp.cos(1.7 * jnp.arange(leaf.size) + 0.4).reshape(leaf.shape).astype(leaf.dtype)
        velocity = tangent(point, jax.tree.unflatten(point_structure, along))
        leaves[:count] = jax.tree.leaves(geodesic(point, velocity)[0])
    return k.sampler.pack(k.key(seed, 92), jax.tree.unflatten(structure, leaves), k.estimator)


@statement(
    tier="contract",
    equation="each option changes the kernel at two values that are not the default",
    targets=lambda subject: subject.row.targets[:1],
    cost=1.0,
    decides="conduct",
    once=True,
)
def every_option_matters(case: Case, seed: int) -> Finding:
    """Each option of the row's variants changes the output of a few steps, or of many, or the claims, at each value."""
    values: dict[str, list[Any]] = {}
    for variant in case.subject.row.variants:
        for name, value in variant.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    if not values:
        raise NotApplicable("the row has no options")
    if case.subject.row.foreign:
        raise NotApplicable("the values were made up: an option of another author may be a bound that is never reached")
    # with gradient noise, options that only matter when there is some (compensation, fresh gradients) are seen too
    row = with_noise(case.subject, case.target).row
    base = kit(Subject(row, case.subject.options, case.subject.reference), case.target)
    steps = 8 if base.rejecting or Exchange in base.sampler.claims else 3  # two chains start as one
    claims = _plain(base.sampler)
    ends = functools.cache(lambda steps: base.z(base.run(seed, base.start(seed), steps)))
    found, tried = [], 0
    for name, options in values.items():
        if len(options) < 2 and not isinstance(options[0], bool | str):
            found.append(f"{name} is exercised at one non-default value only")
        for value in options:
            tried += 1
            other = kit(Subject(row, {**case.subject.options, name: value}, case.subject.reference), case.target)
            if _plain(other.sampler) != claims:
                continue
            # the level of a slice, like the chance of a coin, shows only where a point falls on its other side
            if all(_alike(other.z(other.run(seed, other.start(seed), n)), ends(n)) for n in (steps, RARE)):
                found.append(f"{name}={value!r} changes nothing")
    return _count(case, found, f"{tried} option values each change the result")


def _alike(moved: np.ndarray, end: np.ndarray) -> bool:
    """True if two ends are equal to round-off: two builds of one kernel may be compiled differently."""
    tiny = 64 * np.finfo(end.dtype).eps * max(1.0, float(np.abs(end).max()))
    return moved.shape == end.shape and float(np.abs(moved - end).max()) <= tiny


def _plain(sampler: Sampler) -> tuple:
    """The claims that say what the law is; a temperature alone does not excuse an output that never changes."""
    c = sampler.claims
    return (type(c.law), c.weak_order, c.invariant_order, Composite in c, c.spaces)


@statement(
    tier="contract",
    equation="unpack(pack(z)) = z",
    targets=structured_targets,
    cost=0.1,
    decides="conduct",
    finite=None,
)
def pack_unpack_inverse(case: Case, seed: int) -> Finding:
    """unpack(pack(key, z)) = z for the z of a state that has moved, to round-off."""
    k = kit(case.subject, case.target)
    z = k.sampler.unpack(k.run(seed, k.start(seed), 2))
    again = k.sampler.unpack(k.sampler.pack(k.key(seed, 93), z, k.estimator))
    a, b = flat(z), flat(again)
    gap = float(np.max(np.abs(a - b))) / max(1.0, float(np.max(np.abs(a)))) if a.shape == b.shape else np.inf
    allowance = 8 * float(np.finfo(jnp.result_type(float)).eps)
    return Finding(
        effect=gap,
        tolerance=Tolerance(allowance, "round-off: 8 eps for a projection"),
        reason=f"largest difference {gap:.2g} over {a.size} coordinates",
        statistic="difference of z",
        unit="relative to the largest entry",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
        step_size=k.step_size,
    )


@statement(
    tier="contract",
    equation="the position moves in every coordinate and direction, and stays finite",
    targets=structured_targets,
    cost=0.1,
    decides="conduct",
)
def movement(case: Case, seed: int) -> Finding:
    """Every coordinate of the position moves, and stays finite; the steps of a chain go in every direction.

    The steps of a path span as many directions as the manifold has dimensions: noise or a metric of lower rank leaves
    the target invariant, perhaps, but does not lead to it. A path that keeps its direction for a while is longer.
    """
    k = kit(case.subject, case.target)
    dim = 0 if k.deterministic else case.target.manifold.dim
    steps = 2 * dim + (20 if k.rejecting else 3)
    state, found = k.start(seed), []
    path = [flat(k.sampler.position(state))]
    for most in (steps, LONGER * steps):
        for i in range(len(path) - 1, most):
            state = k.advance(k.key(seed, i), state, k.step_size, 0.0)
            path.append(flat(k.sampler.position(state)))
            if not np.all(np.isfinite(path[-1])):
                return _count(case, [f"the position is not finite after {i + 1} steps"], "")
        found = _standstill(np.array(path), dim)
        if not found:
            break
    moves = int(np.sum(np.any(np.diff(path, axis=0) != 0, axis=1)))
    if found and 0 < moves < dim:
        raise Inconclusive(f"{moves} of {len(path) - 1} steps move the position: too few for {dim} directions")
    if found and not moves and case.subject.row.foreign and case.subject.options:
        raise Inconclusive(f"{found[0]}, with values of options that were made up")
    return _count(case, found, f"all {path[0].size} coordinates move and stay finite")


def _standstill(path: np.ndarray, dim: int) -> list[str]:
    """The coordinates or directions in which a path (steps + 1, d) does not go, in words."""
    steps = len(path) - 1
    still = np.flatnonzero(np.all(path == path[0], axis=0))
    if still.size == path.shape[1]:
        return [f"the chain is frozen: {steps} steps leave the position where it was"]
    if still.size:
        return [f"coordinates {still.tolist()} never move in {steps} steps"]
    # an increment is known to the round-off of the two positions that it is the difference of
    tiny = 64 * np.finfo(float).eps * float(np.abs(path).max()) * np.sqrt(steps)
    rank = int(np.sum(np.linalg.svd(np.diff(path, axis=0), compute_uv=False) > tiny))
    return [f"{steps} steps go in {rank} of {dim} directions"] if rank < dim else []
