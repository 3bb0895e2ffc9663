"""The runner: many steps of any sampler, on many chains, with schedules, thinning, averages and checkpoints.

    run(SGLD(), target, jax.random.key(0), step_size=0.1, num_steps=10_000, num_chains=4)

Streams: chain c has the key `fold_in(key, c)`; its `init` takes `fold_in(chain_key, 0)` and its step t = 1, 2, ...
takes `fold_in(chain_key, t)`. So the random numbers of a chain depend neither on the other chains, nor on blocks,
nor on where a run was interrupted, nor on the number of devices that chains are shared out to: as many of the process's
as share them evenly, with two chains each at least.
"""

import functools
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from samplers.estimators.basic import Exact
from samplers.interface.sampler import Estimator, Position, Sampler
from samplers.runner import checkpoint as checkpoints
from samplers.runner.engine import HostEngine, JaxEngine, Setup, draw_weights, is_key, step_sizes
from samplers.runner.schedules import Schedule, constant
from samplers.validation import require
from targets.target import Target

OnNonfinite = Literal["warn", "raise", "ignore"]
Keep = Literal["samples", "average"]

MAX_STEPS = 2**32 - 2
"""Step numbers are folded into keys as 32-bit integers, and 0 is taken by `init`."""


class NonFiniteError(FloatingPointError):
    """A chain left the finite numbers."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a run returns.

    Attributes:
        samples: pytree of `collect(position)`, axes (chain, draw, ...); None for `keep="average"`. Draws to which the
            schedule gives no weight (the exploration stage of a cyclical one) are left out.
        weights: (draws,), the step size of the step that leaves each draw [teh2016consistency, equation (3)], or what
            the schedule says; all equal for a constant step size.
        average: pytree, axes (chain, ...): the average of `collect(position)` over the draws with these weights.
            For `keep="samples"` computed from the samples on first use.
        state: the sampler's state after the last step, with a leading chain axis (a list of states for a host
            sampler).
        position: the positions after the last step, axes (chain, ...).
        nonfinite: (chains,), True for chains whose position is not finite at the end of the run or at the end of
            one of its segments.
        steps: steps taken by each chain, burn-in included.
    """

    samples: Any
    weights: np.ndarray
    state: Any
    position: Position
    nonfinite: np.ndarray
    steps: int
    averages: Any = None

    @functools.cached_property
    def average(self) -> Any:
        """The weighted average of the draws, axes (chain, ...)."""
        return self.averages if self.samples is None else self.expectation(lambda x: x)

    def expectation(self, function: Callable[[Any], Any]) -> Any:
        """Weighted averages over the draws of each chain, axes (chain, ...).

            sum_k w_k f(x_k) / sum_k w_k

        Args:
            function: one collected value -> pytree of arrays.

        Raises:
            ValueError: if the run kept no samples.
        """
        if self.samples is None:
            raise ValueError("expectation: the run kept no samples; pass keep='samples', or the function as `collect`")
        weights = self.weights / self.weights.sum()
        values = jax.vmap(jax.vmap(function))(self.samples)
        return jax.tree.map(lambda v: jnp.tensordot(jnp.asarray(weights, v.dtype), v, (0, 1)), values)


def run(
    sampler: Sampler,
    problem: Target | Estimator,
    key: jax.Array,
    *,
    step_size: float | Schedule,
    num_steps: int,
    num_chains: int | None = None,
    first_chain: int = 0,
    position: Position | None = None,
    positions: Position | None = None,
    burn_in: int = 0,
    thin: int = 1,
    collect: Callable[[Position], Any] | None = None,
    keep: Keep = "samples",
    block_size: int | None = None,
    hoisted: bool = True,
    progress: bool = False,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: int | None = None,
    on_nonfinite: OnNonfinite = "warn",
) -> Run:
    """Run a sampler.

    Args:
        sampler: a `Sampler`; for `backend == "host"` the chains run one after the other in Python, each with a
            `numpy.random.Generator` of its own.
        problem: an estimator, or a target, which stands for its exact gradient.
        key: a typed key, `jax.random.key(seed)`.
        step_size: epsilon, SDE time; or a schedule of `samplers.runner.schedules`.
        num_steps: steps after the burn-in; every `thin`-th is kept, so there are `num_steps // thin` draws, and
            the run ends with the last of them.
        num_chains: number of chains; by default that of `positions`, or 1.
        first_chain: the number of the first chain: chains with these numbers are those of a larger run, with the same
            random numbers (`samplers.runner.multiprocess`).
        position: where all chains start; by default the example of the target.
        positions: where each chain starts, a pytree with a leading chain axis; instead of `position`.
        burn_in: steps taken, and counted by the schedule, before the first that can be kept.
        thin: steps from one draw to the next.
        collect: position -> pytree of arrays, what is kept of a draw; by default the position.
        keep: `"samples"`, or `"average"` to keep only their weighted average, in memory independent of `num_steps`.
        block_size: number of steps whose random numbers are drawn at once (`samplers.runner.presample`); by default as
            many as fit `engine.BLOCK_BYTES`; at least 2. It changes speed and memory, not the samples.
        hoisted: False leaves the random numbers inside the loop over steps.
        progress: show a progress bar.
        checkpoint: a file to write the state of the run to and, if it exists, to resume from. The resumed run
            returns the same numbers, bit for bit. The file stays after the end, and then gives the result.
        checkpoint_every: steps between two checkpoints; by default a twentieth of the run.
        on_nonfinite: what to do if chains end outside the finite numbers.

    Returns:
        A `Run`.

    Raises:
        ValueError: if an argument does not fit; `CheckpointError` (a ValueError) if the checkpoint does not.
        NonFiniteError: if a chain left the finite numbers and `on_nonfinite="raise"`.
    """
    schedule = step_size if callable(step_size) else constant(step_size)
    estimator = Exact(problem) if isinstance(problem, Target) else problem
    _validate(key, num_steps, burn_in, thin, block_size, keep, on_nonfinite, checkpoint_every)
    starts, chains = _starts(estimator, position, positions, num_chains)
    whole = isinstance(first_chain, int | np.integer) and not isinstance(first_chain, bool)
    require(whole and 0 <= first_chain <= 2**32 - chains, "first_chain: must be an integer of at least 0", first_chain)
    draws = num_steps // thin
    total = burn_in + draws * thin
    _validate_schedule(schedule, total)
    weights = draw_weights(schedule, burn_in + thin * np.arange(1, draws + 1))
    weighted = weights > 0
    require(bool(weighted.any()), "num_steps: the schedule gives no draw a weight; the number of steps is", num_steps)
    if checkpoint is not None:
        _validate_path(checkpoint)
    setup = Setup(
        sampler=sampler,
        estimator=estimator,
        key=key,
        positions=starts,
        chains=chains,
        first_chain=first_chain,
        schedule=schedule,
        thin=thin,
        collect=collect or _identity,
        averaged=keep == "average",
        block_size=block_size,
        hoisted=hoisted,
    )
    engine = HostEngine(setup) if sampler.backend == "host" else JaxEngine(setup)
    piece = total
    if checkpoint is not None:
        piece = checkpoint_every or max(1, total // 20)
    elif progress:
        piece = max(1, total // 100)
    plan = _plan(burn_in, draws, thin, piece)
    steps_of = lambda part: part[1] * (thin if part[0] else 1)

    done, chunks, nonfinite = 0, [], np.zeros(chains, bool)
    fingerprint = {}
    if checkpoint is not None:
        shape = {
            "num_chains": chains,
            "first_chain": first_chain,
            "burn_in": burn_in,
            "draws": draws,
            "thin": thin,
            "keep": keep,
            "every": piece,
        }
        fingerprint = {
            **engine.identity(),
            **shape,
            "step_size": repr(schedule),
        }
        if os.path.exists(checkpoint):
            done, arrays = checkpoints.load(checkpoint, fingerprint)
            engine.restore(arrays)
            nonfinite = arrays.pop(0)
            chunks = [jax.tree.unflatten(engine.structure, arrays)] if arrays else []
    taken = sum(map(steps_of, plan[:done]))
    with tqdm(total=total, initial=taken, unit="step", disable=not progress) as bar:
        for number, (kept, count) in enumerate(plan[done:], done + 1):
            if kept:
                samples = engine.draw(taken, count)
                if keep == "samples":
                    chunks.append(samples if checkpoint is None else jax.tree.map(np.asarray, samples))
            else:
                engine.advance(taken, count)
            taken += steps_of((kept, count))
            nonfinite = nonfinite | ~engine.finite()
            if checkpoint is not None:
                chunks = [_join(chunks)] if chunks else []
                arrays = [*engine.dump(), nonfinite, *jax.tree.leaves(chunks)]
                checkpoints.save(checkpoint, fingerprint, number, arrays)
            bar.update(steps_of((kept, count)))
            if on_nonfinite == "raise":
                _report(nonfinite, taken, on_nonfinite)
    _report(nonfinite, taken, on_nonfinite)
    samples = jax.tree.map(jnp.asarray, _join(chunks)) if chunks else None
    if not weighted.all():
        samples, weights = jax.tree.map(lambda a: a[:, weighted], samples), weights[weighted]
    return Run(
        samples=samples,
        weights=weights,
        state=engine.state(),
        position=engine.position(),
        nonfinite=nonfinite,
        steps=total,
        averages=engine.averages() if keep == "average" else None,
    )


def _identity(position: Position) -> Position:
    return position


def _plan(burn_in: int, draws: int, thin: int, piece: int) -> list[tuple[bool, int]]:
    """Cut a run into parts (kept, count): `count` burn-in steps, or draws; about `piece` steps each."""
    per_part = max(1, piece // thin)
    cut = lambda kept, total, size: [(kept, min(size, total - i)) for i in range(0, total, size)]
    return cut(False, burn_in, piece) + cut(True, draws, per_part)


def _join(chunks: list) -> Any:
    """Concatenate parts of the samples along the axis of draws."""
    if len(chunks) == 1:
        return chunks[0]
    join = np.concatenate if isinstance(jax.tree.leaves(chunks)[0], np.ndarray) else jnp.concatenate
    return jax.tree.map(lambda *a: join(a, axis=1), *chunks)


def _report(nonfinite: np.ndarray, steps: int, on_nonfinite: OnNonfinite) -> None:
    """Say that chains have left the finite numbers."""
    if on_nonfinite == "ignore" or not nonfinite.any():
        return
    message = f"{int(nonfinite.sum())} of {nonfinite.size} chains are not finite after {steps} steps; reduce step_size"
    if on_nonfinite == "raise":
        raise NonFiniteError(message)
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def _validate(key, num_steps, burn_in, thin, block_size, keep, on_nonfinite, checkpoint_every) -> None:
    require(is_key(key) and key.ndim == 0, "key: must be one typed key, as jax.random.key(seed) gives", key)
    integers = {"num_steps": (num_steps, 1), "thin": (thin, 1), "burn_in": (burn_in, 0)}
    if block_size is not None:
        integers["block_size"] = (block_size, 1)
    if checkpoint_every is not None:
        integers["checkpoint_every"] = (checkpoint_every, 1)
    for name, (value, least) in integers.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        require(whole and bool(value >= least), f"{name}: must be an integer of at least {least}", value)
    require(thin <= num_steps, f"thin: must not exceed num_steps = {num_steps}, else no draw is kept", thin)
    require(burn_in + num_steps <= MAX_STEPS, f"num_steps: at most {MAX_STEPS} with the burn-in", num_steps)
    require(keep in ("samples", "average"), "keep: must be 'samples' or 'average'", keep)
    known = on_nonfinite in ("warn", "raise", "ignore")
    require(known, "on_nonfinite: must be 'warn', 'raise' or 'ignore'", on_nonfinite)


def _validate_schedule(schedule: Schedule, total: int) -> None:
    """Look at the first and last step sizes and some in between."""
    sizes = step_sizes(schedule, np.unique(np.linspace(0, total, 1000).astype(np.int64)))
    bad = sizes[~(np.isfinite(sizes) & (sizes > 0))]
    if bad.size:
        raise ValueError(f"step_size: the schedule must give positive finite step sizes, got {bad[0]!r}")


def _validate_path(path: str | os.PathLike) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise ValueError(f"checkpoint: the folder {folder!r} does not exist; create it first")


def _starts(estimator: Any, position: Any, positions: Any, num_chains: int | None) -> tuple[Any, int]:
    """Initial positions with a leading chain axis, and the number of chains."""
    if position is not None and positions is not None:
        raise ValueError("positions: give either `position`, for all chains, or `positions`, one a chain")
    if num_chains is not None:
        whole = isinstance(num_chains, int | np.integer) and not isinstance(num_chains, bool)
        require(whole and bool(num_chains >= 1), "num_chains: must be an integer of at least 1", num_chains)
    target = getattr(estimator, "target", None)
    example = target.example if isinstance(target, Target) else None
    if position is None and positions is None:
        if example is None:
            raise ValueError("position: the estimator has no example position; give `position` or `positions`")
        position = example
    if positions is None:
        name, chains = "position", num_chains or 1
        _check_position(name, position, example, 0)
        positions = jax.tree.map(lambda a: jnp.broadcast_to(jnp.asarray(a), (chains, *jnp.shape(a))), position)
    else:
        name = "positions"
        _check_position(name, positions, example, 1)
        sizes = {jnp.shape(leaf)[0] for leaf in jax.tree.leaves(positions)}
        require(len(sizes) == 1, "positions: all leaves need the same leading chain axis", sorted(sizes))
        chains = sizes.pop()
        require(chains >= 1, "positions: needs at least one chain", chains)
        if num_chains not in (None, chains):
            raise ValueError(f"num_chains: is {num_chains}, but `positions` has a leading chain axis of {chains}")
        positions = jax.tree.map(jnp.asarray, positions)
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(positions)):
        raise ValueError(f"{name}: holds a number that is not finite; start every chain at a finite position")
    return positions, chains


def _check_position(name: str, value: Any, example: Any, extra: int) -> None:
    """Structure, dtype and shape of a position, with `extra` leading axes."""
    leaves = jax.tree.leaves(value)
    if not leaves:
        raise ValueError(f"{name}: has no numbers; give a pytree of float arrays")
    for leaf in leaves:
        floating = hasattr(leaf, "dtype") or isinstance(leaf, float)
        if not floating or not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise ValueError(f"{name}: must be a pytree of float arrays, got a leaf {leaf!r}")
        if jnp.ndim(leaf) < extra:
            raise ValueError(f"{name}: every leaf needs a leading chain axis, got shape {jnp.shape(leaf)}")
    if example is None:
        return
    if jax.tree.structure(value) != jax.tree.structure(example):
        expected = jax.tree.structure(example)
        raise ValueError(f"{name}: must have the structure {expected}, got {jax.tree.structure(value)}")
    for leaf, like in zip(leaves, jax.tree.leaves(example), strict=True):
        if jnp.shape(leaf)[extra:] != jnp.shape(like):
            chain = "a leading chain axis and " if extra else ""
            raise ValueError(f"{name}: must have {chain}the shape {jnp.shape(like)}, got {jnp.shape(leaf)}")
