"""The state is closed and has no clock: a step from a state that has lived is the step from pack(unpack(state)).

The exact laws are those of the kernel z -> step(pack(z)). That is the kernel that runs only if nothing else of a state
enters the next step: no average, no draw, no gradient of a rejected proposal, no count of steps.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import CLOSED_STATE
from sgmcmc_verification.checks.core.selection import informative, structured_targets
from sgmcmc_verification.checks.core.start_position import start_position, start_state
from sgmcmc_verification.checks.programs.trees import flattened
from sgmcmc_verification.checks.tiers.premises.clocks import KEYS, SPREAD, TOLERANCE, ahead, host_clock
from sgmcmc_verification.checks.tiers.premises.fresh_draws import repeated
from sgmcmc_verification.checks.tiers.premises.passes import Passes, units_of
from sgmcmc_verification.checks.tracing.callbacks import callbacks
from sgmcmc_verification.checks.tracing.key_lineage import consumed_keys
from sgmcmc_verification.checks.tracing.live_leaves import autonomous_leaves, leaves_at_rest
from sgmcmc_verification.checks.tracing.stream_counts import comes_back, stream_counts
from sgmcmc_verification.checks.tracing.whole_numbers import of_program
from sgmcmc_verification.samplers.interface.capabilities import MappedSampler, PeriodicEstimator, on_host
from sgmcmc_verification.samplers.interface.claims import (
    CarriedState,
    CyclicalSchedule,
    ExactLaw,
    LearntPreconditioner,
    StationaryLaw,
)
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.turns import turn_of
from sgmcmc_verification.samplers.interface.whole_state import is_key, key_words
from sgmcmc_verification.targets.target import Target

NUM_STEPS = 12_000
"""Steps of the run of a traced sampler: past the burn-in and the first cycles of what people write."""
FEWER_STEPS = 1_000
"""Steps of its runs at the larger step sizes, where kernels that reject do so in every few steps."""
HOST_STEPS = 1_200
"""Steps of the run of a host sampler, which is called from Python; at the larger step sizes `HOST_STEPS` / 20."""
CONSECUTIVE = 32
"""First steps of a host sampler, all of which are compared; later on every 1.1th is."""
STEP_SIZES = (1.0, 4.0, 16.0)
"""Multiples of the usual step size: at the larger ones exact kernels reject; a run that diverges is left there."""


class Run(NamedTuple):
    """A run in which every step was compared.

    Attributes:
        state: at its end, or at the last step that was finite.
        steps: that were compared.
        finite: whether all of them were.
        first: the first step that differs, or -1.
        gap: its difference relative to the end of the step; else the largest difference.
        passes: to and fro of the position, for a Gaussian law.
    """

    state: Any
    steps: int
    finite: bool
    first: int
    gap: float
    passes: Passes


def _targets(subject: Subject) -> tuple[str, ...]:
    names = informative(subject)[-1:]
    return names if subject.options else tuple(dict.fromkeys((*names, *structured_targets(subject))))


@statement(
    tier="contract",
    equation="step(key, state) = step(key, pack(unpack(state))) at every time of a run",
    targets=_targets,
    cost=1.0,
    decides="premise",
    meets=lambda target: (CLOSED_STATE,),
    about=("hidden-clock", "kept-cache"),
    finite=None,
)
def closed_state(case: Case) -> Finding:
    """Along a run each step is the one that starts anew from z = unpack(state), under the same key.

    Compared are z' and the position that is read. The run is taken at 1, 4 and 16 times the usual step size, where
    Metropolis kernels reject; what its last state counts is then put forward by up to 10^6 steps and to the whole
    numbers that stand in the program, which must not matter: a schedule compares a count with one of these. Host
    samplers are compared with a copy of the object that has not run, so that attributes count as state.
    A step that calls Python back is not decided: the callee may keep anything.
    """
    sampler, estimator = case.subject.sampler(case.target), case.subject.estimator(case.target)
    found, compared, worst = [], 0, 0.0
    if changed := _changed_by_tracing(sampler, estimator, case):
        found.append(f"the step changes {changed}, which is no part of the state")
    if calls := _calls_back(sampler, estimator, case):
        raise Inconclusive(f"the step calls Python back ({', '.join(calls)}): what that keeps is no part of the state")
    memory = sampler.claims.get(CarriedState)
    if memory is None and (kept := _kept_keys(sampler, estimator, case)):
        found.append(f"keys of the state are a memory: in two steps {kept}")
    run_at = runs_of(case.subject, case.target)
    for factor in STEP_SIZES:
        run = run_at(factor * case.step_size, factor == 1.0)
        compared += run.steps
        worst = max(worst, run.gap if run.first < 0 or memory is None else 0.0)
        if run.first >= 0 and memory is None:
            found.append(
                f"from step {run.first + 1} on (step size {factor * case.step_size:.4g}) the next step is not the one "
                f"that starts from unpack(state): they differ by {run.gap:.3g}; the state holds more than unpack shows"
            )
            break
        if factor == 1.0 and run.finite and (ahead := _clock(sampler, estimator, case.step_size, run.state)):
            leaf, count, gap = ahead
            worst = max(worst, gap)
            moved = f"put forward by {count}" if count > 0 else "set back to its value at the start"
            why = f"{leaf} {moved} changes the step by {gap:.3g}: the kernel depends on time"
            found.append(f"{leaf} leads to the same key at two readings: draws come back" if count == 0 else why)
            break
    declared = "" if memory is None else f", but for {memory.what}, which is declared"
    return Finding(
        effect=max(worst, 1.0) if found else worst,
        tolerance=Tolerance(TOLERANCE, "round-off of two programs of one step, iterative solvers included"),
        minimum_detectable_effect=2 * TOLERANCE,
        required_sensitivity=1e-6,
        reason="; ".join(found) or f"{compared} steps are those from z alone, at any time{declared}",
        statistic="step of a run less that from z alone",
        unit="relative to the end of the step",
        step_size=case.step_size,
    )


@functools.lru_cache(maxsize=16)
def runs_of(subject: Subject, target: Target) -> Callable[..., Run]:
    """(h, whether it is the usual step size) -> the run; compiled once for all of them, and each is taken once.

    A third argument is a number of times as many steps, of what is traced.
    """
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    if on_host(sampler):
        return functools.cache(lambda h, usual: _host_run(sampler, estimator, target, h, usual))
    start = start_state(sampler, jax.random.key(0), start_position(sampler, target), estimator)
    streams = stream_counts(sampler, start, estimator, 0.01 / target.curvature)
    compiled = _compiled(sampler, estimator, streams, units_of(target))

    @functools.cache
    def run(h: float, usual: bool, times: int = 1) -> Run:
        state, steps, first, gap, size, passes = compiled(start, h, times * (NUM_STEPS if usual else FEWER_STEPS))
        return Run(state, int(steps), bool(np.isfinite(size)), int(first), float(gap), jax.tree.map(np.asarray, passes))

    return run


def _compiled(
    sampler: Sampler, estimator: Estimator, streams: frozenset[int], units: Callable[[Any], Any]
) -> Callable[..., Any]:
    """(state, h) -> the run; steps are taken until one differs or is not finite. Leaves `streams` enter keys alone."""
    # one program, which both steps call: it is traced and lowered once
    step = jax.jit(lambda key, state, h: sampler.step(key, state, h, estimator))

    def advance(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        state, steps, _, _, h, passes, last = carry
        step_key, pack_key = jax.random.split(jax.random.fold_in(jax.random.key(1), steps))
        after = step(step_key, state, h)
        anew = step(step_key, _from_z(sampler, pack_key, state, estimator, streams), h)
        ours, fresh = _seen(sampler, after), _seen(sampler, anew)
        finite = jnp.all(jnp.isfinite(ours))
        gap = jnp.where(finite, _gap(ours, fresh), 0.0)
        differs = ~(gap <= TOLERANCE)
        keep = jax.tree.map(lambda a, b: _where(finite & ~differs, a, b), after, state)
        passes = passes.after(units(sampler.position(keep)))
        return keep, steps + 1, jnp.where(differs, steps, -1), gap, jnp.where(finite, h, jnp.nan), passes, last

    def go_on(carry: tuple[Any, ...]) -> jax.Array:
        _, steps, first, _, h, _, last = carry
        return (steps < last) & (first < 0) & jnp.isfinite(h)

    def run(state: Any, h: float, last: int) -> tuple[Any, ...]:
        passes = Passes.at(units(sampler.position(state)))
        return jax.lax.while_loop(go_on, advance, (state, 0, -1, 0.0, h, passes, last))[:6]

    return jax.jit(run)


def _from_z(sampler: Sampler, key: jax.Array, state: Any, estimator: Estimator, streams: frozenset[int]) -> Any:
    """`pack(unpack(state))` with the keys that the state holds, and what is counted for them alone.

    A stream of keys is no memory if it is fresh.
    """
    packed = sampler.pack(key, sampler.unpack(state), estimator)
    new, structure = jax.tree.flatten(packed)
    old = jax.tree.leaves(state)
    if structure != jax.tree.structure(state):
        return packed
    pairs = enumerate(zip(new, old, strict=True))
    return jax.tree.unflatten(structure, [b if is_key(b) or i in streams else a for i, (a, b) in pairs])


def _where(condition: jax.Array, a: Any, b: Any) -> jax.Array:
    return jax.lax.select(jnp.broadcast_to(condition, jnp.shape(a)), jnp.asarray(a), jnp.asarray(b))


def _seen(sampler: Sampler, state: Any) -> jax.Array:
    """z and the position, flat; keys among them by their raw words."""
    leaves = jax.tree.leaves((sampler.unpack(state), sampler.position(state)))
    return flattened([key_words(leaf) for leaf in leaves])[0].astype(float)


def _gap(ours: jax.Array, fresh: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(ours - fresh)) / (1e-300 + jnp.max(jnp.abs(ours)))


def _clock(sampler: Sampler, estimator: Estimator, h: float, state: Any) -> tuple[str, int, float] | None:
    """(leaf, steps, gap) of the first leaf that counts and matters, at a state that has lived; 0 steps if keys return.

    Put forward are integers that `unpack` does not show, and numbers that are neither shown nor follow from z. Where a
    state is declared to carry more than z its law is that of all of it, examined at the first reading of a clock: what
    goes on by itself, whatever is drawn, is then put forward, and set back to its value at the start.
    """
    if CyclicalSchedule in sampler.claims or (isinstance(estimator, PeriodicEstimator) and estimator.period != 1):
        return (
            None  # a declared clock, each reading of which has its law (`cycle_law`, `checks.tracing.periodic_state`)
        )
    carried = CarriedState in sampler.claims
    if carried and (on_host(sampler) or not {StationaryLaw, ExactLaw} & {type(sampler.claims.law)}):
        return None  # what a transient leaves behind has no law
    if on_host(sampler):
        return None if isinstance(sampler, MappedSampler) else host_clock(sampler, estimator, h, state)
    leaves, structure = jax.tree.flatten(state)
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
    anew = jax.tree.leaves(sampler.pack(jax.random.key(2), sampler.unpack(state), estimator))
    shown = _seen(sampler, state)
    # what goes by itself and has come to rest, such as a count down, has no other reading any more
    rests = leaves_at_rest(sampler, state, estimator, h)
    examined = autonomous_leaves(sampler, state, estimator, h) if carried else [not each for each in rests]
    learns = LearntPreconditioner in sampler.claims or bool(
        jax.tree.leaves(estimator.init(jax.random.key(2), sampler.position(state)))
    )
    written = of_program(lambda key: sampler.step(key, state, h, estimator), jax.random.key(3))
    streams = stream_counts(sampler, state, estimator, h)

    put = lambda i, value: jax.tree.unflatten(structure, [*leaves[:i], value, *leaves[i + 1 :]])

    @functools.partial(jax.jit, static_argnums=0)
    def ends(i: int, values: jax.Array, keys: jax.Array) -> jax.Array:
        step = lambda value, key: _seen(sampler, sampler.step(key, put(i, value), h, estimator))
        return jax.vmap(lambda value: jax.vmap(lambda key: step(value, key))(keys))(values)

    found = None
    keys = jax.random.split(jax.random.key(3), KEYS)
    for i, leaf in enumerate(leaves):
        kind = jnp.result_type(leaf)
        if is_key(leaf) or jnp.issubdtype(kind, jnp.bool_) or not examined[i]:
            continue
        counts = jnp.issubdtype(kind, jnp.integer)
        if not counts and (learns or np.allclose(leaf, anew[i], rtol=1e-8, atol=1e-12)):
            continue  # an average that is claimed, and has checks of its own; a cache, or constant
        largest = np.iinfo(kind).max if counts else np.inf
        moves = counts or not carried
        steps = ahead(np.asarray(leaf), (*written, *SPREAD), largest, turn_of(sampler, i)) if moves else []
        if i in streams:
            if found is None and comes_back(sampler, state, estimator, h, i, steps):
                found = (f"state{names[i]}", 0, 1.0)
            continue
        moved = jnp.asarray([0, *steps]).astype(kind).reshape(-1, *([1] * jnp.ndim(leaf)))
        values = jnp.concatenate([leaf + moved, *([jnp.asarray(anew[i])[None]] if carried else [])])
        if len(values) > 1 and not np.array_equal(_seen(sampler, put(i, values[1])), shown):
            continue  # a part of z
        after = np.asarray(ends(i, values, keys))
        gaps = np.abs(after[1:] - after[0]).max(axis=(1, 2)) / np.abs(after[0]).max()
        worst = np.flatnonzero(~(gaps <= TOLERANCE))
        if worst.size and found is None:
            found = (f"state{names[i]}", [*steps, -NUM_STEPS][worst[0]], float(gaps[worst[0]]))
    return found


def _host_run(sampler: Sampler, estimator: Estimator, target: Target, h: float, usual: bool) -> Run:
    """The run of a host sampler, against copies of the object as it was before."""
    key = lambda *numbers: np.random.default_rng([1, *numbers])
    fresh = copied(sampler) if not isinstance(sampler, MappedSampler) else sampler
    # of another process, z is all of the state
    steps = 20 if fresh is sampler else HOST_STEPS if usual else HOST_STEPS // 20
    state, worst = sampler.init(np.random.default_rng(0), start_position(sampler, target), estimator), 0.0
    if fresh is not sampler:
        # what is set up, or drawn, in the first step is there from then on
        state = sampler.step(key(0, 2), state, h, estimator)
    seen = lambda s: np.concatenate(
        [np.ravel(np.asarray(leaf, float)) for leaf in jax.tree.leaves((sampler.unpack(s), sampler.position(s)))]
    )
    units = units_of(target)
    compared, passes = 0, Passes.at(units(sampler.position(state)))
    for i in range(steps):
        passes = passes.after(units(sampler.position(state)))
        if i >= CONSECUTIVE and i < 1.1 * compared:
            state = sampler.step(key(i), state, h, estimator)
            continue
        compared = i
        other = copied(fresh) if fresh is not sampler else sampler
        z = copied(sampler.unpack(state))
        after = sampler.step(key(i), state, h, estimator)
        ours = seen(after)
        if not np.all(np.isfinite(ours)):
            return Run(state, i, False, -1, worst, passes)
        anew = seen(other.step(key(i), other.pack(key(i, 1), z, estimator), h, estimator))
        gap = float(np.max(np.abs(ours - anew)) / (1e-300 + np.max(np.abs(ours))))
        if not gap <= TOLERANCE:
            return Run(state, i + 1, True, i, gap, passes)
        worst, state = max(worst, gap), after
    return Run(state, steps, True, -1, worst, passes)


def _calls_back(sampler: Sampler, estimator: Estimator, case: Case) -> tuple[str, ...]:
    """Calls back to Python in one step."""
    if on_host(sampler):
        return ()
    state = start_state(sampler, jax.random.key(0), start_position(sampler, case.target), estimator)
    return callbacks(lambda key, s: sampler.step(key, s, case.step_size, estimator), jax.random.key(0), state)


def _kept_keys(sampler: Sampler, estimator: Estimator, case: Case) -> str:
    """The draws of two successive steps that share a key, which the state has kept, in words; empty if none do."""
    if on_host(sampler):
        return ""
    state = start_state(sampler, jax.random.key(0), start_position(sampler, case.target), estimator)
    if not any(is_key(leaf) for leaf in jax.tree.leaves(state)):
        return ""

    def two(key: jax.Array) -> Any:
        first, second = jax.random.split(key)
        after = sampler.step(first, state, case.step_size, estimator)
        return sampler.step(second, after, case.step_size, estimator)

    return "; ".join(repeated(consumed_keys(two, jax.random.split(jax.random.key(1), 1))[0], [])[:1])


def _changed_by_tracing(sampler: Sampler, estimator: Estimator, case: Case) -> str | None:
    """Name of what a traced step of this object changes besides its state: an attribute, or a variable of its code."""
    if on_host(sampler):
        return None  # the copy that has not run shows whether it matters
    before = _surroundings(sampler)
    state = start_state(sampler, jax.random.key(0), start_position(sampler, case.target), estimator)
    begun = _surroundings(sampler)
    for seed in range(2):
        jax.eval_shape(lambda key: sampler.step(key, state, case.step_size, estimator), jax.random.key(seed))
    after = _surroundings(sampler)
    # `init` may keep a function that makes a position of a vector: that knows of shapes alone
    moved = [n for n, v in begun.items() if n in before and before[n] is not v and not callable(v)]
    moved += [n for n, value in begun.items() if n in after and not _is_same(after[n], value)]
    return moved[0] if moved else None


def _is_same(a: Any, b: Any) -> bool:
    """True for one object, and for two functions of JAX that are equal."""
    return a is b or (callable(a) and callable(b) and (a == b) is True)


def _surroundings(sampler: Sampler) -> dict[str, Any]:
    """Everything that a step could write to: attributes, variables of enclosing functions, numbers of its module.

    Containers are compared by the numbers in them.
    """
    found: dict[str, Any] = {}
    step = sampler.step if inspect.ismethod(sampler.step) else inspect.unwrap(sampler.step)
    method = inspect.ismethod(step)  # of the object that a completed sampler was made from
    owner, function = (step.__self__, step.__func__) if method else (sampler, step)
    for name, value in (vars(owner) if hasattr(owner, "__dict__") else {}).items():
        found[f"the attribute {name}"] = value
    function = inspect.unwrap(function)
    if inspect.isfunction(function):
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                found[f"the variable {name}"] = cell.cell_contents
            except ValueError:
                continue
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, int | float | list | dict | np.ndarray):
                found[f"the variable {name} of its module"] = value
    for name, value in list(found.items()):
        if isinstance(value, list | dict) or (dataclasses.is_dataclass(value) and hasattr(value, "__dict__")):
            items = value if isinstance(value, list) else dict(value if isinstance(value, dict) else vars(value))
            pairs = enumerate(items) if isinstance(items, list) else items.items()
            found |= {f"{name}[{key!r}]": item for key, item in pairs}
    return found
