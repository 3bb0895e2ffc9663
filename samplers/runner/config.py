"""The configuration of a run, validated before any work starts."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import jax
import numpy as np

from sgmcmc_verification.samplers.interface.aliases import Tree
from sgmcmc_verification.samplers.interface.sampler import Estimator, Position, Sampler
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.runner.schedules import Schedule, constant, draw_weights, step_sizes
from sgmcmc_verification.samplers.validation import require

OnNonfinite = Literal["warn", "raise", "ignore"]
Keep = Literal["samples", "average"]

MAX_STEPS = 2**32 - 2
"""Step numbers are folded into keys as 32-bit integers, and 0 is taken by `init`."""


def identity(position: Position) -> Position:
    """Collect the position itself."""
    return position


@dataclass(frozen=True, kw_only=True, eq=False)
class RunConfig:
    """Configuration of `samplers.run.run`, which takes these fields as keywords.

    Args:
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
            many as fit `samplers.runner.compiled.BLOCK_BYTES`; at least 2. It changes speed and memory, not the
            samples.
        hoisted: False leaves the random numbers inside the loop over steps.
        progress: show a progress bar.
        checkpoint: a file to write the state of the run to and, if it exists, to resume from. The resumed run
            returns the same numbers, bit for bit. The file stays after the end, and then gives the result.
        checkpoint_every: steps between two checkpoints; by default a twentieth of the run.
        on_nonfinite: what to do if chains end outside the finite numbers.

    Raises:
        ValueError: if a value does not fit.
    """

    step_size: float | Schedule
    num_steps: int
    num_chains: int | None = None
    first_chain: int = 0
    position: Position | None = None
    positions: Position | None = None
    burn_in: int = 0
    thin: int = 1
    collect: Callable[[Position], Tree] | None = None
    keep: Keep = "samples"
    block_size: int | None = None
    hoisted: bool = True
    progress: bool = False
    checkpoint: str | os.PathLike | None = None
    checkpoint_every: int | None = None
    on_nonfinite: OnNonfinite = "warn"

    def __post_init__(self) -> None:
        least = {"num_steps": 1, "thin": 1, "burn_in": 0, "first_chain": 0}
        optional = ("num_chains", "block_size", "checkpoint_every")
        least |= {name: 1 for name in optional if getattr(self, name) is not None}
        for name, bound in least.items():
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            require(whole and bool(value >= bound), f"{name}: must be an integer of at least {bound}", value)
        steps = self.num_steps
        require(self.thin <= steps, f"thin: must not exceed num_steps = {steps}, else no draw is kept", self.thin)
        require(self.burn_in + steps <= MAX_STEPS, f"num_steps: at most {MAX_STEPS} with the burn-in", steps)
        require(self.keep in ("samples", "average"), "keep: must be 'samples' or 'average'", self.keep)
        known = self.on_nonfinite in ("warn", "raise", "ignore")
        require(known, "on_nonfinite: must be 'warn', 'raise' or 'ignore'", self.on_nonfinite)
        self._validate_schedule()
        _ = self.loop  # validates the checkpoint's path

    def _validate_schedule(self) -> None:
        """Look at the first and last step sizes and some in between."""
        sizes = step_sizes(self.schedule, np.unique(np.linspace(0, self.total, 1000).astype(np.int64)))
        bad = sizes[~(np.isfinite(sizes) & (sizes > 0))]
        if bad.size:
            raise ValueError(f"step_size: the schedule must give positive finite step sizes, got {bad[0]!r}")
        weighted = bool(np.any(self.weights > 0))
        require(weighted, "num_steps: the schedule gives no draw a weight; the number of steps is", self.num_steps)

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule of step sizes."""
        return self.step_size if callable(self.step_size) else constant(self.step_size)

    @property
    def draws(self) -> int:
        """Number of draws of each chain."""
        return self.num_steps // self.thin

    @property
    def total(self) -> int:
        """Number of steps of each chain, burn-in included."""
        return self.burn_in + self.draws * self.thin

    @property
    def averaged(self) -> bool:
        """True if only the average of the draws is kept."""
        return self.keep == "average"

    @property
    def collected(self) -> Callable[[Position], Tree]:
        """The function whose values are kept."""
        return self.collect or identity

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights (draws,) of the draws, 0 for those to leave out."""
        return draw_weights(self.schedule, self.burn_in + self.thin * np.arange(1, self.draws + 1))

    @property
    def piece(self) -> int:
        """Steps, about, of a compiled piece: from one checkpoint, or move of the progress bar, to the next."""
        if self.checkpoint is not None:
            return self.checkpoint_every or max(1, self.total // 20)
        return max(1, self.total // 100) if self.progress else self.total

    @property
    def stops(self) -> list[int]:
        """Numbers of steps at which the compiled loop returns: pieces of the burn-in, then of whole draws."""
        whole_draws = max(1, self.piece // self.thin) * self.thin
        return _cut(0, self.burn_in, self.piece) + _cut(self.burn_in, self.total, whole_draws)

    @cached_property
    def loop(self) -> Loop:
        """The run loop: every piece is looked at and, if a checkpoint is given, written."""
        return Loop(evaluate_every=1, checkpoint=self.checkpoint, checkpoint_every=1, progress=self.progress)


def _cut(start: int, end: int, size: int) -> list[int]:
    """Ends of the pieces of at most `size` from `start` to `end`."""
    return [min(start + size * (i + 1), end) for i in range(math.ceil((end - start) / size))]


class Setup(NamedTuple):
    """Input of an engine: `positions` has a leading chain axis."""

    sampler: Sampler
    estimator: Estimator
    key: jax.Array
    positions: Position
    config: RunConfig

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(jax.tree.leaves(self.positions)[0])
