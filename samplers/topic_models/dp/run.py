"""Runs of a slice sampler: scores as it goes, progress, checkpoints, and the same chain bit for bit after a stop."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from samplers.runner import checkpoint as files
from samplers.topic_models.dp.slice import DPSlice, DPState, Users
from samplers.validation import require


class DPRun(NamedTuple):
    """What a run leaves behind.

    Attributes:
        state: at the end.
        scores: (iterations // every + 1, k), from the start on.
        seconds: of the steps up to each score, without the time of scoring; restarts keep counting.
    """

    state: DPState
    scores: np.ndarray
    seconds: np.ndarray


def run_dp(
    sampler: DPSlice,
    users: Users,
    step_size: Any,
    *,
    iterations: int,
    seed: int,
    score: Callable[[DPState], tuple[float, ...]],
    every: int = 10,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: int = 200,
    fingerprint: dict[str, Any] | None = None,
    progress: bool | None = None,
) -> DPRun:
    """A chain from `sampler.init`, scored at the start and after every `every` iterations.

    Args:
        sampler: the sampler.
        users: the data.
        step_size: of the sampler.
        iterations: of the whole run.
        seed: of NumPy's generator.
        score: state -> numbers; must draw nothing.
        every: iterations from one score to the next.
        checkpoint: a file; a run that finds it there goes on from it, to the same samples bit for bit.
        checkpoint_every: iterations from one checkpoint to the next, a multiple of `every`.
        fingerprint: what the checkpoint must belong to, besides seed, step size, batch and data.
        progress: a bar; by default where stderr is a terminal.

    Raises:
        ValueError: for iterations that are no multiple of `every`, or data that do not fit the model.
        samplers.runner.checkpoint.CheckpointError: if the checkpoint is damaged or of another run.
    """
    require(every >= 1 and iterations >= 0, "every: must be at least 1, and iterations at least 0", (every, iterations))
    require(iterations % every == 0, f"iterations: must be a multiple of every = {every}", iterations)
    require(checkpoint_every % every == 0, f"checkpoint_every: must be a multiple of every = {every}", checkpoint_every)
    sampler.check(users)
    belongs = {
        "seed": seed, "step_size": json.loads(json.dumps(step_size)), "every": every, "batch": users.batch_size,
        "users": [users.rows.size, int(users.rows.counts.sum()), users.rows.width],
        "model": [sampler.model.width, sampler.model.base, sampler.model.concentration],
        "sampler": [type(sampler).__name__, type(sampler.update).__name__, sampler.components], **(fingerprint or {}),
    }  # fmt: skip
    generator = np.random.default_rng(seed)
    if checkpoint is not None and Path(checkpoint).exists():
        done, arrays = files.load(checkpoint, belongs)
        state = DPState(arrays[0], arrays[1], arrays[2], float(arrays[3]))
        scores, seconds = arrays[4].tolist(), arrays[5].tolist()
        generator.bit_generator.state = json.loads(arrays[6].tobytes())
    else:
        done, state = 0, sampler.init(generator, users)
        scores, seconds = [score(state)], [0.0]
    hidden = not sys.stderr.isatty() if progress is None else not progress
    with tqdm(total=iterations, initial=done, unit="it", disable=hidden, mininterval=0.5) as bar:
        for t in range(done, iterations, every):
            began = time.perf_counter()
            for _ in range(every):
                state = sampler.step(generator, state, step_size, users)
            seconds.append(seconds[-1] + time.perf_counter() - began)
            scores.append(score(state))
            bar.update(every)
            bar.set_postfix(score=f"{scores[-1][0]:.4f}", components=len(state.log_sticks), refresh=False)
            if checkpoint is not None and (t + every) % checkpoint_every == 0:
                bits = np.frombuffer(json.dumps(generator.bit_generator.state).encode(), np.uint8)
                arrays = [*map(np.asarray, state), np.array(scores), np.array(seconds), bits]
                files.save(checkpoint, belongs, t + every, arrays)
    return DPRun(state, np.array(scores), np.array(seconds))
