"""Sets of topics of an LDA model that move together: particle methods, and parallel chains beside them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Estimate, Position, Sampler, State
from sgmcmc_verification.samplers.runner import checkpoint as checkpoints
from sgmcmc_verification.samplers.runner.digests import digest, digest_arrays
from sgmcmc_verification.samplers.runner.loop import Loop, drive, points_of, stream, table_of
from sgmcmc_verification.samplers.topic_models.common import NoEstimator, finite_topics
from sgmcmc_verification.samplers.topic_models.lda.completion import Completion
from sgmcmc_verification.samplers.topic_models.lda.estimator import DocumentGibbs, as_generator
from sgmcmc_verification.samplers.topic_models.lda.run import Given
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent, Shuffled
from sgmcmc_verification.targets.topic_models.lda.softmax import SoftmaxLDA

_STEP, _EVALUATION, _INIT = 0, 1, 2
"""Tags of the random numbers of a step, of an evaluation and of the start."""
USUAL = Loop()
"""An evaluation every 10 steps, a checkpoint, if a file is given, every 50."""


class SetEstimator(Protocol):
    """Estimator of grad U of M sets of topics theta (M, V, K), a function of the number of the step.

    Attributes:
        model: its topics.
        documents: that a step uses.
    """

    @property
    def model(self) -> SoftmaxLDA:
        """Model of the topics."""
        ...

    @property
    def documents(self) -> int:
        """Number of documents."""
        ...

    def estimate(
        self, key: np.random.Generator, estate: np.ndarray, position: np.ndarray
    ) -> tuple[Estimate, np.ndarray]:
        """Estimate at a position, and the next state of the estimator."""
        ...


@dataclass(frozen=True, eq=False)
class ParticleGibbs:
    """Counts and gradients (M, V, K) of M sets of topics: one minibatch for all, topics of words drawn for each set.

    Its own state is the number of the next minibatch.

    Source: liu2019understanding, the LDA experiment of its released code; the counts are those of
    `samplers.topic_models.lda.estimator.DocumentGibbs`.

    Args:
        model: LDA.
        batches: which documents a step uses.
        sweeps: of the Gibbs sampler in a document; the first half is discarded.
        threads: for it; results do not depend on it.
    """

    model: SoftmaxLDA
    batches: Independent | Shuffled
    sweeps: int = 50
    threads: int = 1

    backend = "host"

    @property
    def documents(self) -> int:
        """Documents that a step uses."""
        return self.batches.batch_size

    @cached_property
    def _single(self) -> DocumentGibbs:
        return DocumentGibbs(self.model, self.batches, self.sweeps, self.threads)

    def init(self, key: np.random.Generator | jax.Array, position: np.ndarray) -> np.ndarray:
        """Return the number of the first minibatch."""
        return self._single.init(key, position)

    def estimate(
        self, key: np.random.Generator | jax.Array, estate: np.ndarray, position: np.ndarray
    ) -> tuple[Estimate, np.ndarray]:
        """Counts and gradients of all sets from the next minibatch; the number of the one after it."""
        generator = as_generator(key)
        each = [self._single.estimate(generator, estate, theta)[0] for theta in np.asarray(position, np.float64)]
        return Estimate(
            np.stack([e.gradient for e in each]), statistics=np.stack([e.statistics for e in each])
        ), estate + 1


class SetPoint(NamedTuple):
    """Perplexity and spread after some steps.

    Attributes:
        step: number of steps so far.
        documents: number of documents that they used.
        seconds: duration of the steps, evaluations left out.
        perplexity: of the mean over the sets of topics of this step.
        spread: variance of theta_wk over the sets, mean over w and k.
    """

    step: int
    documents: int
    seconds: float
    perplexity: float
    spread: float


@dataclass(frozen=True, eq=False)
class ParticleRun:
    """The topics theta (M, V, K) after the last step, and the points on the way."""

    theta: np.ndarray
    points: tuple[SetPoint, ...]


def run_particles(
    sampler: Sampler,
    estimator: SetEstimator,
    seed: int,
    theta: np.ndarray,
    *,
    step_size: float,
    num_steps: int,
    completion: Callable[[], Completion] | None = None,
    loop: Loop = USUAL,
) -> ParticleRun:
    """Move M sets of topics, by a particle method or as M chains of a sampler of single chains.

    Step t draws from `SeedSequence(seed, spawn_key=(0, t))`. Chains share the minibatches as the particles do, and have
    noise of their own.

    Args:
        sampler: of the suite, `backend == "jax"`, which asks for the gradient at its position.
        estimator: of the gradients of all sets, in float64.
        seed: of everything but the order of the documents.
        theta: start (M, V, K); its dtype is that of the steps.
        step_size: epsilon, SDE time.
        num_steps: steps.
        completion: makes the estimator of the perplexity, anew for every evaluation; None for none.
        loop: evaluations (at the start and after the last step too), checkpoints, limit of time, progress.

    Raises:
        ValueError: if an argument does not fit; `CheckpointError` (a ValueError) if the checkpoint does not.
        FloatingPointError: if the topics leave the finite numbers.
    """
    model, theta = estimator.model, np.asarray(theta)
    require(num_steps >= 1, "num_steps: must be at least 1", num_steps)
    require(step_size > 0, "step_size: must be positive", step_size)
    require(sampler.backend == "jax", "sampler: must run in JAX", sampler.backend)
    require(theta.ndim == 3 and theta.shape[0] >= 2, "theta: must be (M, V, K), M at least 2", theta.shape)
    require(np.issubdtype(theta.dtype, np.floating), "theta: must be floating", theta.dtype)
    require(theta.shape[1:] == (model.words, model.topics), "theta: must be (M, V, K) of the model", theta.shape)
    h = jnp.asarray(step_size, theta.dtype)
    driver = _Driver(sampler, estimator, seed, h, completion, _start(sampler, seed, theta))
    drive(driver, range(1, num_steps + 1), loop, ends=True)
    return ParticleRun(np.asarray(sampler.position(driver.state), np.float64), tuple(driver.points))


@dataclass(eq=False)
class _Driver:
    """All sets with the state of the estimator, their perplexities and spreads."""

    sampler: Sampler
    estimator: SetEstimator
    seed: int
    step_size: jax.Array
    completion: Callable[[], Completion] | None
    state: State
    estate: np.ndarray = field(default_factory=lambda: np.zeros((), np.int64))
    points: list[SetPoint] = field(default_factory=list)

    def sets(self, done: int) -> np.ndarray:
        """The topics of all sets (M, V, K), float64."""
        return finite_topics(np.asarray(self.sampler.position(self.state), np.float64), f"{done} steps")

    def advance(self, start: int, count: int) -> None:
        for number in range(start, start + count):
            draw = stream(self.seed, _STEP, number)
            estimate, self.estate = self.estimator.estimate(draw, self.estate, self.sets(number))
            key = jax.random.key(int(draw.integers(2**63)))
            gradients = jnp.asarray(estimate.gradient, self.step_size.dtype)
            self.state = _moved(self.sampler, key, self.state, self.step_size, gradients)
        jax.block_until_ready(self.state)

    def evaluate(self, done: int, seconds: float) -> dict[str, str]:
        current, value = self.sets(done), float("nan")
        if self.completion is not None:
            draw = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(_EVALUATION, done)))
            mean = self.completion()
            for phi in self.estimator.model.phi(current):
                value = mean.add(draw, phi)
        spread = float(np.mean(np.var(current, axis=0, ddof=1)))
        self.points.append(SetPoint(done, done * self.estimator.documents, seconds, value, spread))
        return {"perplexity": f"{value:.1f}", "spread": f"{spread:.3g}"}

    def identity(self) -> dict[str, object]:
        return {
            "sampler": digest((type(self.sampler).__qualname__, self.sampler)),
            "estimator": digest((type(self.estimator).__name__, self.estimator)),
            "step_size": float(self.step_size),
            "seed": self.seed,
            "start": digest_arrays(self.state),
        }

    def dump(self) -> list[np.ndarray]:
        return [table_of(self.points, SetPoint), *map(np.asarray, jax.tree.leaves((self.estate, self.state)))]

    def restore(self, arrays: list[np.ndarray]) -> None:
        self.points = points_of(arrays.pop(0), SetPoint)
        self.estate, self.state = checkpoints.refilled((self.estate, self.state), arrays)


class _Carried(NoEstimator):
    """An estimator whose state is the gradient that it returns: one for each particle."""

    def estimate(self, key: jax.Array, estate: jax.Array, position: Position) -> tuple[Estimate, jax.Array]:
        """Return the state as the gradient."""
        del key, position
        return Estimate(estate), estate


def _start(sampler: Sampler, seed: int, theta: np.ndarray) -> State:
    """The state of all sets at the start."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_INIT,)))
    key, sets = jax.random.key(int(generator.integers(2**63))), jnp.asarray(theta)
    if ParticleLaw in sampler.claims:
        return sampler.init(key, sets, NoEstimator())
    keys = jax.random.split(key, len(sets))
    return jax.vmap(lambda key, x: sampler.init(key, x, NoEstimator()))(keys, sets)


@functools.partial(jax.jit, static_argnums=0)
def _moved(sampler: Sampler, key: jax.Array, state: State, step_size: jax.Array, gradients: jax.Array) -> State:
    """One step of all sets with gradients (M, V, K) that were made at their positions."""
    if ParticleLaw in sampler.claims:
        return sampler.step(key, state._replace(estate=gradients), step_size, _Carried())._replace(estate=())

    def one(key, state, gradient):
        return sampler.step(key, state, step_size, Given(Estimate(gradient), state.position))

    return jax.vmap(one)(jax.random.split(key, gradients.shape[0]), state, gradients)
