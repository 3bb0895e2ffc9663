"""Runs of any sampler on an LDA model: schedule, perplexity on the way, progress, checkpoint, resume bit for bit."""

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from samplers.interface.sampler import Estimate, Sampler
from samplers.runner import checkpoint as checkpoints
from samplers.runner.engine import digest, digest_arrays
from samplers.runner.schedules import Schedule, constant
from samplers.topic_models.lda.completion import Completion
from samplers.topic_models.lda.estimator import DocumentGibbs
from samplers.topic_models.lda.stored_assignments import StoredGibbs
from samplers.validation import require
from targets.topic_models.lda.model import normalised

_STEP, _EVALUATION, _INIT = 0, 1, 2
"""Tags of the random numbers of a step, of an evaluation and of the start."""


class Point(NamedTuple):
    """Perplexity on the way.

    Attributes:
        step: steps so far.
        documents: that they used.
        seconds: that they took, evaluations left out.
        perplexity: of the average so far.
    """

    step: int
    documents: int
    seconds: float
    perplexity: float


@dataclass(frozen=True, eq=False)
class LDARun:
    """What a run returns: theta (V, K) after the last step, and the perplexities on the way."""

    theta: np.ndarray
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Given:
    """An estimator that returns an estimate made before, at the position of the state alone.

    Args:
        estimate_: what to return.
        position: where it was made, the very object of the state that the step starts from.
    """

    estimate_: Estimate
    position: Any

    def init(self, key, position):
        del key, position
        return ()

    def estimate(self, key, estate, position):
        del key
        if position is not self.position:
            raise ValueError(
                "sampler: asks for the gradient elsewhere than at its position; such a scheme cannot be run"
            )
        return self.estimate_, estate


def run_lda(
    sampler: Sampler,
    estimator: DocumentGibbs | StoredGibbs,
    seed: int,
    *,
    step_size: float | Schedule,
    num_steps: int,
    theta: np.ndarray | None = None,
    completion: Callable[[], Completion] | None = None,
    evaluate_every: int = 10,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: int = 50,
    progress: bool = False,
    seconds: float | None = None,
) -> LDARun:
    """Run a sampler on the topics of an LDA model.

    Step t draws from `SeedSequence(seed, spawn_key=(0, t))` and the minibatch of a step is a function of its number, so
    that a run that is resumed goes on with the same numbers. The step is the sampler's own: for `backend == "jax"`
    compiled, with the estimate, which is made on the host, as an argument.

    Args:
        sampler: of the suite; it must ask for the gradient at its position (`Given`).
        estimator: of the counts, and of the gradient if the sampler needs it.
        seed: of everything but the order of the documents.
        step_size: epsilon, SDE time, or a schedule.
        num_steps: steps.
        theta: start (V, K); by default from Gamma(1, 1).
        completion: makes the running perplexity; None for none.
        evaluate_every: steps from one evaluation to the next.
        checkpoint: a file to write the run to and, if it exists, to resume from.
        checkpoint_every: steps between two checkpoints.
        progress: show a progress bar.
        seconds: stop after so many seconds of steps, evaluations left out; where a run ends then depends on the clock.

    Returns:
        An `LDARun`.

    Raises:
        ValueError: if an argument does not fit; `CheckpointError` (a ValueError) if the checkpoint does not.
        FloatingPointError: if the topics leave the finite numbers.
    """
    for name, count in (("num_steps", num_steps), ("evaluate_every", evaluate_every), ("every", checkpoint_every)):
        require(count >= 1, f"{name}: must be at least 1", count)
    require("gradient" not in sampler.needs or estimator.gradient, "estimator: needs gradient=True", estimator.gradient)
    schedule = step_size if callable(step_size) else constant(step_size)
    model, batches = estimator.model, estimator.batches
    start = model.start(np.random.default_rng([seed, _INIT])) if theta is None else np.asarray(theta, np.float64)
    require(start.shape == (model.words, model.topics), "theta: must be (V, K) of the model", start.shape)
    state = _Chain(sampler, estimator, seed, start)
    running = completion() if completion is not None else None
    fingerprint = {
        "sampler": digest((type(sampler).__qualname__, sampler)),
        "model": repr((type(estimator).__name__, model, estimator.sweeps, evaluate_every, running is None)),
        "batches": repr((type(batches).__name__, batches.batch_size, batches.seed, len(batches.corpus))),
        "step_size": repr(schedule),
        "seed": seed,
        "start": digest_arrays(start),
    }
    done, points = 0, []
    if checkpoint is not None and os.path.exists(checkpoint):
        done, arrays = checkpoints.load(checkpoint, fingerprint)
        table = arrays.pop(0)
        points = [Point(int(a), int(b), float(c), float(d)) for a, b, c, d in table]
        if running is not None:
            running.total, running.evaluations = arrays.pop(0), len(points)
        state.restore(arrays)

    def save():
        if checkpoint is not None:
            table = np.array(points, np.float64).reshape(-1, 4)
            parts = [table] + ([] if running is None else [running.total]) + state.dump()
            checkpoints.save(checkpoint, fingerprint, done, parts)

    spent = points[-1].seconds if points else 0.0
    with tqdm(total=num_steps, initial=min(done, num_steps), unit="step", disable=not progress) as bar:
        while done < num_steps and (seconds is None or spent < seconds):
            began = time.perf_counter()
            state.step(done, float(schedule(np.asarray(done))))
            spent += time.perf_counter() - began
            done += 1
            bar.update()
            if running is not None and done % evaluate_every == 0:
                current = state.theta()
                if not np.all(np.isfinite(current)):
                    raise FloatingPointError(f"the topics are not finite after {done} steps; reduce step_size")
                generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_EVALUATION, done)))
                value = running.add(generator, normalised(model.weights(current)))
                points.append(Point(done, done * batches.batch_size, spent, value))
                bar.set_postfix(perplexity=f"{value:.1f}")
            if done % checkpoint_every == 0 or done == num_steps:
                save()
    return LDARun(state.theta(), tuple(points))


class _Chain:
    """The state of a sampler of either backend, with random numbers that are a function of the number of the step."""

    def __init__(self, sampler: Any, estimator: DocumentGibbs | StoredGibbs, seed: int, start: np.ndarray):
        self.sampler, self.estimator, self.seed = sampler, estimator, seed
        self.host = sampler.backend == "host"
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_INIT,)))
        key = generator if self.host else jax.random.key(int(generator.integers(2**63)))
        self.state = sampler.init(key, start if self.host else jnp.asarray(start), estimator)

    def step(self, number: int, step_size: float) -> None:
        """Step number 0, 1, .."""
        generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=(_STEP, number))))
        if self.host:
            self.state = self.sampler.step(generator, self.state, step_size, self.estimator)
            return
        estimate, estate = self.estimator.estimate(generator, self.state.estate, self.state.position)
        key = jax.random.key(int(generator.integers(2**63)))
        moved = _moved(self.sampler, key, self.state._replace(estate=()), step_size, estimate.gradient)
        self.state = moved._replace(estate=estate)

    def theta(self) -> np.ndarray:
        """The position (V, K), float64."""
        return np.asarray(self.sampler.position(self.state), np.float64)

    def dump(self) -> list[np.ndarray]:
        """The state as arrays."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.state)]

    def restore(self, arrays: list[np.ndarray]) -> None:
        """Inverse of `dump`."""
        self.state = checkpoints.refilled(self.state, arrays)


@functools.partial(jax.jit, static_argnums=0)
def _moved(sampler, key, state, step_size, gradient):
    """The sampler's step with a gradient that was made at the position of `state`, compiled."""
    return sampler.step(key, state, step_size, Given(Estimate(gradient), state.position))
