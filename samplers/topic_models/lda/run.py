"""Runs of any sampler on an LDA model, with the perplexity of held-out documents on the way."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.sampler import Estimate, Position, Sampler, State, Stateless
from sgmcmc_verification.samplers.runner import checkpoint as checkpoints
from sgmcmc_verification.samplers.runner.digests import digest, digest_arrays
from sgmcmc_verification.samplers.runner.loop import Loop, drive, points_of, stream, table_of
from sgmcmc_verification.samplers.runner.schedules import Schedule, constant
from sgmcmc_verification.samplers.topic_models.common import finite_topics
from sgmcmc_verification.samplers.topic_models.lda.completion import Completion
from sgmcmc_verification.samplers.topic_models.lda.estimator import DocumentGibbs
from sgmcmc_verification.samplers.topic_models.lda.stored_assignments import StoredGibbs
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.topic_models.lda.model import normalised

_STEP, _EVALUATION, _INIT = 0, 1, 2
"""Tags of the random numbers of a step, of an evaluation and of the start."""
USUAL = Loop()
"""An evaluation every 10 steps, a checkpoint, if a file is given, every 50."""


class Point(NamedTuple):
    """Perplexity after some steps.

    Attributes:
        step: number of steps so far.
        documents: number of documents that they used.
        seconds: duration of the steps, evaluations left out.
        perplexity: of the average of the predictions so far.
    """

    step: int
    documents: int
    seconds: float
    perplexity: float


@dataclass(frozen=True, eq=False)
class LDARun:
    """The topics theta (V, K) after the last step, and the perplexities on the way."""

    theta: np.ndarray
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Given(Stateless):
    """An estimator that returns an estimate made before, at the position of the state alone.

    Args:
        estimate_: the estimate to return.
        position: where it was made, the very object of the state that the step starts from.
    """

    estimate_: Estimate
    position: Position

    def estimate(self, key: jax.Array, estate: State, position: Position) -> tuple[Estimate, State]:
        """Return the estimate given, and the state unchanged.

        Raises:
            ValueError: at any position but the one where the estimate was made.
        """
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
    loop: Loop = USUAL,
) -> LDARun:
    """Run a sampler on the topics of an LDA model.

    Step t draws from `SeedSequence(seed, spawn_key=(0, t))` and the minibatch of a step is a function of its number, so
    that a resumed run continues with the same numbers. The step is the sampler's own: for `backend == "jax"`
    compiled, with the estimate, which is made on the host, as an argument.

    Args:
        sampler: of the suite; it must ask for the gradient at its position (`Given`).
        estimator: of the counts, and of the gradient if the sampler needs it.
        seed: of everything but the order of the documents.
        step_size: epsilon, SDE time, or a schedule.
        num_steps: steps.
        theta: start (V, K); by default from Gamma(1, 1).
        completion: makes the running perplexity; None for none.
        loop: evaluations, checkpoints, limit of time, progress.

    Raises:
        ValueError: if an argument does not fit; `CheckpointError` (a ValueError) if the checkpoint does not.
        FloatingPointError: if the topics are not finite at an evaluation.
    """
    require(num_steps >= 1, "num_steps: must be at least 1", num_steps)
    require("gradient" not in sampler.needs or estimator.gradient, "estimator: needs gradient=True", estimator.gradient)
    model = estimator.model
    start = model.start(np.random.default_rng([seed, _INIT])) if theta is None else np.asarray(theta, np.float64)
    require(start.shape == (model.words, model.topics), "theta: must be (V, K) of the model", start.shape)
    schedule = step_size if callable(step_size) else constant(step_size)
    chain = TopicChain(sampler, estimator, seed, start)
    driver = _Driver(chain, schedule, None if completion is None else completion())
    drive(driver, range(1, num_steps + 1), loop)
    return LDARun(chain.theta(), tuple(driver.points))


class TopicChain:
    """The state of a sampler of either backend, with random numbers that are a function of the number of the step.

    Args:
        sampler, estimator, seed: see `run_lda`.
        start: theta (V, K).
    """

    def __init__(self, sampler: Sampler, estimator: DocumentGibbs | StoredGibbs, seed: int, start: np.ndarray):
        self.sampler, self.estimator, self.seed = sampler, estimator, seed
        self.host = sampler.backend == "host"
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_INIT,)))
        key = generator if self.host else jax.random.key(int(generator.integers(2**63)))
        self.state = sampler.init(key, start if self.host else jnp.asarray(start), estimator)

    def step(self, number: int, step_size: float) -> None:
        """Take step number 0, 1, ..."""
        generator = stream(self.seed, _STEP, number)
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


@dataclass(eq=False)
class _Driver:
    """A chain with its schedule and its running perplexity."""

    chain: TopicChain
    schedule: Schedule
    completion: Completion | None
    points: list[Point] = field(default_factory=list)

    def advance(self, start: int, count: int) -> None:
        for number in range(start, start + count):
            self.chain.step(number, float(self.schedule(np.asarray(number))))

    def evaluate(self, done: int, seconds: float) -> dict[str, str]:
        chain = self.chain
        theta = finite_topics(chain.theta(), f"{done} steps")
        if self.completion is None:
            return {}
        phi = normalised(chain.estimator.model.weights(theta))
        generator = np.random.default_rng(np.random.SeedSequence(chain.seed, spawn_key=(_EVALUATION, done)))
        value = self.completion.add(generator, phi)
        self.points.append(Point(done, done * chain.estimator.batches.batch_size, seconds, value))
        return {"perplexity": f"{value:.1f}"}

    def identity(self) -> dict[str, object]:
        sampler, estimator = self.chain.sampler, self.chain.estimator
        model, batches = estimator.model, estimator.batches
        return {
            "sampler": digest((type(sampler).__qualname__, sampler)),
            "model": repr((type(estimator).__name__, model, estimator.sweeps, self.completion is None)),
            "batches": repr((type(batches).__name__, batches.batch_size, batches.seed, len(batches.corpus))),
            "step_size": repr(self.schedule),
            "seed": self.chain.seed,
            "start": digest_arrays(self.chain.theta()),
        }

    def dump(self) -> list[np.ndarray]:
        inside = [] if self.completion is None else [self.completion.total]
        return [table_of(self.points, Point), *inside, *map(np.asarray, jax.tree.leaves(self.chain.state))]

    def restore(self, arrays: list[np.ndarray]) -> None:
        self.points = points_of(arrays.pop(0), Point)
        if self.completion is not None:
            self.completion.total, self.completion.evaluations = arrays.pop(0), len(self.points)
        self.chain.state = checkpoints.refilled(self.chain.state, arrays)


@functools.partial(jax.jit, static_argnums=0)
def _moved(sampler: Sampler, key: jax.Array, state: State, step_size: float, gradient: jax.Array) -> State:
    """The sampler's step with a gradient that was made at the position of `state`, compiled."""
    return sampler.step(key, state, step_size, Given(Estimate(gradient), state.position))
