"""Sets of topics of an LDA model that move together: particle methods, and parallel chains beside them."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from samplers.interface.sampler import Estimate
from samplers.topic_models.lda.completion import Completion
from samplers.topic_models.lda.estimator import DocumentGibbs, as_generator
from samplers.topic_models.lda.run import Given
from samplers.topic_models.sam.methods import NoEstimator
from samplers.validation import require
from targets.datasets.minibatch_stream import Independent, Shuffled
from targets.topic_models.lda.softmax import SoftmaxLDA

_STEP, _EVALUATION, _INIT = 0, 1, 2
"""Tags of the random numbers of a step, of an evaluation and of the start."""


class SetEstimator(Protocol):
    """What `run_particles` asks for: grad U of M sets of topics theta (M, V, K), a function of the number of the step.

    Attributes:
        model: its topics.
        documents: that a step uses.
    """

    @property
    def model(self) -> SoftmaxLDA: ...

    @property
    def documents(self) -> int: ...

    def estimate(self, key: Any, estate: Any, position: np.ndarray) -> tuple[Estimate, Any]: ...


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

    def init(self, key, position):
        return self._single.init(key, position)

    def estimate(self, key, estate, position):
        generator = as_generator(key)
        each = [self._single.estimate(generator, estate, theta)[0] for theta in np.asarray(position, np.float64)]
        return Estimate(
            np.stack([e.gradient for e in each]), statistics=np.stack([e.statistics for e in each])
        ), estate + 1


class SetPoint(NamedTuple):
    """What is known on the way.

    Attributes:
        step: steps so far.
        documents: that they used.
        seconds: that they took, evaluations left out.
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
    """What a run returns: theta (M, V, K) after the last step, and what was measured on the way."""

    theta: np.ndarray
    points: tuple[SetPoint, ...]


def run_particles(
    sampler: Any,
    estimator: SetEstimator,
    seed: int,
    theta: np.ndarray,
    *,
    step_size: float,
    num_steps: int,
    completion: Callable[[], Completion] | None = None,
    evaluate_every: int = 10,
    dtype: Any = np.float64,
) -> ParticleRun:
    """Move M sets of topics, by a particle method or as M chains of a sampler of single chains.

    Step t draws from `SeedSequence(seed, spawn_key=(0, t))`. Chains share the minibatches as the particles do, and have
    noise of their own.

    Args:
        sampler: of the suite, `backend == "jax"`, which asks for the gradient at its position.
        estimator: of the gradients of all sets.
        seed: of everything but the order of the documents.
        theta: start (M, V, K).
        step_size: epsilon, SDE time.
        num_steps: steps.
        completion: makes the estimator of the perplexity, anew for every evaluation; None for none.
        evaluate_every: steps from one evaluation to the next; there is one at the start.
        dtype: of the steps; gradients are made in float64.

    Returns:
        A `ParticleRun`.

    Raises:
        ValueError: if an argument does not fit.
        FloatingPointError: if the topics leave the finite numbers.
    """
    model = estimator.model
    for name, count in (("num_steps", num_steps), ("evaluate_every", evaluate_every)):
        require(count >= 1, f"{name}: must be at least 1", count)
    require(step_size > 0, "step_size: must be positive", step_size)
    require(sampler.backend == "jax", "sampler: must run in JAX", sampler.backend)
    shape = np.shape(theta)
    require(len(shape) == 3 and shape[0] >= 2, "theta: must be (M, V, K), M at least 2", shape)
    require(shape[1:] == (model.words, model.topics), "theta: must be (M, V, K) of the model", shape)
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_INIT,)))
    key = jax.random.key(int(generator.integers(2**63)))
    state = _init(sampler, key, jnp.asarray(theta, dtype))
    estate, points, spent = np.zeros((), np.int64), [], 0.0
    h = jnp.asarray(step_size, dtype)

    def sets(done):
        current = np.asarray(sampler.position(state), np.float64)
        if not np.all(np.isfinite(current)):
            raise FloatingPointError(f"the topics are not finite after {done} steps; reduce step_size")
        return current

    def evaluate(done):
        current = sets(done)
        value = float("nan")
        if completion is not None:
            draw = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_EVALUATION, done)))
            mean = completion()
            for phi in model.phi(current):
                value = mean.add(draw, phi)
        spread = float(np.mean(np.var(current, axis=0, ddof=1)))
        points.append(SetPoint(done, done * estimator.documents, spent, value, spread))

    evaluate(0)
    for number in range(num_steps):
        began = time.perf_counter()
        draw = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(_STEP, number))))
        estimate, estate = estimator.estimate(draw, estate, sets(number))
        key = jax.random.key(int(draw.integers(2**63)))
        state = jax.block_until_ready(_moved(sampler, key, state, h, jnp.asarray(estimate.gradient, dtype)))
        spent += time.perf_counter() - began
        if (number + 1) % evaluate_every == 0 or number + 1 == num_steps:
            evaluate(number + 1)
    return ParticleRun(np.asarray(sampler.position(state), np.float64), tuple(points))


class _Carried:
    """An estimator whose state is the gradient that it returns: one for each particle."""

    def estimate(self, key, estate, position):
        del key, position
        return Estimate(estate), estate


def _init(sampler, key, theta):
    """The state of all sets."""
    if sampler.claims.kind == "particle":
        return sampler.init(key, theta, NoEstimator())
    keys = jax.random.split(key, theta.shape[0])
    return jax.vmap(lambda key, x: sampler.init(key, x, NoEstimator()))(keys, theta)


@functools.partial(jax.jit, static_argnums=0)
def _moved(sampler, key, state, step_size, gradients):
    """One step of all sets with gradients (M, V, K) that were made at their positions."""
    if sampler.claims.kind == "particle":
        return sampler.step(key, state._replace(estate=gradients), step_size, _Carried())._replace(estate=())

    def one(key, state, gradient):
        return sampler.step(key, state, step_size, Given(Estimate(gradient), state.position))

    return jax.vmap(one)(jax.random.split(key, gradients.shape[0]), state, gradients)
