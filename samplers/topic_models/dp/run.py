"""Runs of a slice sampler, scored on the way."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers.runner.loop import Loop, drive
from sgmcmc_verification.samplers.topic_models.dp.slice import DPSlice, DPState, StepSizes, Users
from sgmcmc_verification.samplers.validation import require

USUAL = Loop(checkpoint_every=200, progress=None)
"""A score every 10 iterations, a checkpoint, if a file is given, every 200, and a bar where stderr is a terminal."""


class DPRun(NamedTuple):
    """The end of a run, and its scores.

    Attributes:
        state: after the last iteration.
        scores: (iterations // evaluate_every + 1, k), from the start on.
        seconds: of the steps up to each score, without the time of scoring; restarts keep counting.
    """

    state: DPState
    scores: np.ndarray
    seconds: np.ndarray


def run_dp(
    sampler: DPSlice,
    users: Users,
    step_size: float | StepSizes,
    *,
    iterations: int,
    seed: int,
    score: Callable[[DPState], tuple[float, ...]],
    fingerprint: dict[str, object] | None = None,
    loop: Loop = USUAL,
) -> DPRun:
    """Run a chain from `sampler.init`, scored at the start and at every evaluation.

    Args:
        sampler: the sampler.
        users: the data.
        step_size: of the sampler.
        iterations: of the whole run.
        seed: of NumPy's generator, whose state a checkpoint keeps.
        score: state -> numbers; must draw nothing.
        fingerprint: what the checkpoint must belong to, besides seed, step size, batch and data.
        loop: scores, checkpoints, limit of time, progress.

    Raises:
        ValueError: for iterations that are no multiple of `loop.evaluate_every`, or data that do not fit the model.
        samplers.runner.checkpoint.CheckpointError: if the checkpoint is damaged or of another run.
    """
    every, saving = loop.evaluate_every, loop.checkpoint_every
    require(iterations >= 0, "iterations: must be at least 0", iterations)
    require(iterations % every == 0, f"iterations: must be a multiple of evaluate_every = {every}", iterations)
    require(saving % every == 0, f"checkpoint_every: must be a multiple of evaluate_every = {every}", saving)
    sampler.check(users)
    belongs = {"seed": seed, **_settings(sampler, users, step_size), **(fingerprint or {})}
    generator = np.random.default_rng(seed)
    driver = _Driver(sampler, users, step_size, score, belongs, generator, sampler.init(generator, users))
    drive(driver, range(every, iterations + 1, every), loop, unit="iteration", ends=True)
    return DPRun(driver.state, np.array(driver.scores), np.array(driver.seconds))


def _settings(sampler: DPSlice, users: Users, step_size: float | StepSizes) -> dict[str, object]:
    """Identity of the sampler and the data in a checkpoint."""
    return {
        "step_size": json.loads(json.dumps(step_size)),
        "batch": users.batch_size,
        "users": [users.rows.size, int(users.rows.counts.sum()), users.rows.width],
        "model": [sampler.model.width, sampler.model.base, sampler.model.concentration],
        "sampler": [type(sampler).__name__, type(sampler.update).__name__, sampler.components],
    }


@dataclass(eq=False)
class _Driver:
    """A chain with its generator, its state and its scores; `belongs` is the identity of the run."""

    sampler: DPSlice
    users: Users
    step_size: float | StepSizes
    score: Callable[[DPState], tuple[float, ...]]
    belongs: dict[str, object]
    generator: np.random.Generator
    state: DPState
    scores: list[tuple[float, ...]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def advance(self, start: int, count: int) -> None:
        del start
        for _ in range(count):
            self.state = self.sampler.step(self.generator, self.state, self.step_size, self.users)

    def evaluate(self, done: int, seconds: float) -> dict[str, str]:
        del done
        self.scores.append(self.score(self.state))
        self.seconds.append(seconds)
        return {"score": f"{self.scores[-1][0]:.4f}", "components": str(len(self.state.log_sticks))}

    def identity(self) -> dict[str, object]:
        return self.belongs

    def dump(self) -> list[np.ndarray]:
        bits = np.frombuffer(json.dumps(self.generator.bit_generator.state).encode(), np.uint8)
        return [*map(np.asarray, self.state), np.array(self.scores), np.array(self.seconds), bits]

    def restore(self, arrays: list[np.ndarray]) -> None:
        labels, log_sticks, log_atoms, concentration, scores, seconds, bits = arrays
        self.state = DPState(labels, log_sticks, log_atoms, float(concentration))
        self.scores, self.seconds = scores.tolist(), seconds.tolist()
        self.generator.bit_generator.state = json.loads(bits.tobytes())
