"""The run loop that all drivers share: pieces, clock, thinning, progress, checkpoints, resuming.

A driver knows how to take steps, how to look at its state, and how to write itself as arrays; `drive` decides when.
Drivers: `samplers.runner.run` (compiled chains), `samplers.topic_models.lda.run` and `.lda.particles`,
`samplers.topic_models.sam.run`, `samplers.topic_models.dp.run`.
"""

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, get_type_hints

import numpy as np
from tqdm import tqdm

from sgmcmc_verification.samplers.runner import checkpoint as checkpoints
from sgmcmc_verification.samplers.validation import require

Point = TypeVar("Point", bound=tuple)


@dataclass(frozen=True)
class Loop:
    """Thinning, checkpoints and limits of a run.

    Args:
        evaluate_every: steps from one evaluation to the next.
        checkpoint: a file to write the run to and, if it exists, to resume from, to the same samples bit for bit.
        checkpoint_every: steps between two checkpoints; one is written after the last step in any case.
        seconds: stop after so many seconds of steps, evaluations left out, but not before the first evaluation; where
            a run ends then depends on the clock.
        progress: show a progress bar; None shows it where stderr is a terminal.

    Raises:
        ValueError: if a number is below 1, or the folder of the checkpoint does not exist.
    """

    evaluate_every: int = 10
    checkpoint: str | os.PathLike | None = None
    checkpoint_every: int = 50
    seconds: float | None = None
    progress: bool | None = False

    def __post_init__(self) -> None:
        for name, count in (("evaluate_every", self.evaluate_every), ("checkpoint_every", self.checkpoint_every)):
            require(count >= 1, f"{name}: must be at least 1", count)
        if self.checkpoint is not None:
            folder = os.path.dirname(os.path.abspath(self.checkpoint))
            if not os.path.isdir(folder):
                raise ValueError(f"checkpoint: the folder {folder!r} does not exist; create it first")

    def spent(self, done: int, seconds: float) -> bool:
        """Decide if the time is used up after `done` steps that took so many seconds."""
        return self.seconds is not None and seconds >= self.seconds and done >= self.evaluate_every


class Driver(Protocol):
    """A run in progress, at its start when `drive` receives it."""

    def advance(self, start: int, count: int) -> None:
        """Take the steps number start, ..., start + count - 1; return when they are done."""
        ...

    def evaluate(self, done: int, seconds: float) -> Mapping[str, str]:
        """Collect from the state after `done` steps, which took so many seconds.

        Returns:
            What the progress bar shows, by name.
        """
        ...

    def identity(self) -> dict[str, object]:
        """Values, JSON-serialisable, that a checkpoint of this run must have been written with."""
        ...

    def dump(self) -> list[np.ndarray]:
        """The state and all that was collected, as arrays."""
        ...

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Inverse of `dump`."""
        ...


def drive(driver: Driver, stops: Sequence[int], loop: Loop, unit: str = "step", ends: bool = False) -> None:
    """Take a driver to the last of `stops`, from its start or from a checkpoint.

    Args:
        driver: what moves.
        stops: numbers of steps, increasing, at which the loop pauses: to look at the clock, evaluate where a multiple
            of `evaluate_every` is reached, and write a checkpoint where one of `checkpoint_every` is.
        loop: when to do what.
        unit: of the progress bar.
        ends: evaluate before the first and after the last step too.

    Raises:
        samplers.runner.checkpoint.CheckpointError: if the checkpoint is damaged or of another run.
    """
    total = stops[-1] if stops else 0
    fingerprint = {**driver.identity(), "evaluate_every": loop.evaluate_every} if loop.checkpoint is not None else {}
    done, seconds = _resume(driver, loop, fingerprint)
    if ends and not done:
        driver.evaluate(0, 0.0)
    written = done
    hidden = None if loop.progress is None else not loop.progress  # None: tqdm looks for a terminal
    with tqdm(total=total, initial=min(done, total), unit=unit, disable=hidden, mininterval=0.5) as bar:
        for stop in stops[bisect_right(stops, done) :]:
            if loop.spent(done, seconds):
                break
            began = time.perf_counter()
            driver.advance(done, stop - done)
            seconds += time.perf_counter() - began
            bar.update(stop - done)
            done = stop
            if done % loop.evaluate_every == 0 or (ends and done == total):
                bar.set_postfix(driver.evaluate(done, seconds), refresh=False)
            if done % loop.checkpoint_every == 0:
                written = _save(driver, loop, fingerprint, done, seconds)
    if written != done:
        _save(driver, loop, fingerprint, done, seconds)


def _resume(driver: Driver, loop: Loop, fingerprint: dict[str, object]) -> tuple[int, float]:
    """Restore the driver from the checkpoint, if there is one; steps and seconds so far."""
    if loop.checkpoint is None or not os.path.exists(loop.checkpoint):
        return 0, 0.0
    done, arrays = checkpoints.load(loop.checkpoint, fingerprint)
    seconds = float(arrays.pop(0))
    driver.restore(arrays)
    return done, seconds


def _save(driver: Driver, loop: Loop, fingerprint: dict[str, object], done: int, seconds: float) -> int:
    """Write a checkpoint, if one is wanted; returns `done`."""
    if loop.checkpoint is not None:
        checkpoints.save(loop.checkpoint, fingerprint, done, [np.asarray(seconds), *driver.dump()])
    return done


def table_of(points: Sequence[tuple], kind: type[NamedTuple]) -> np.ndarray:
    """Named tuples of numbers as the rows of a float64 array, for a checkpoint."""
    return np.array(points, np.float64).reshape(-1, len(kind._fields))


def points_of(table: np.ndarray, kind: Callable[..., Point]) -> list[Point]:
    """Inverse of `table_of`: the numbers get the types of the fields back."""
    types = get_type_hints(kind).values()
    return [kind(*(convert(x) for convert, x in zip(types, row, strict=True))) for row in table]


def stream(seed: int, *tags: int) -> np.random.Generator:
    """The random numbers that belong to a seed and these tags, whatever was drawn before.

    A driver that draws step t from `stream(seed, tag, t)` resumes to the same samples without a saved generator.
    """
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=tags)))
