"""Runs on a spherical admixture model, with the log-perplexity on the way."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import jax
import numpy as np

from sgmcmc_verification.samplers.interface.sampler import State
from sgmcmc_verification.samplers.runner import checkpoint as checkpoints
from sgmcmc_verification.samplers.runner.digests import digest_arrays
from sgmcmc_verification.samplers.runner.loop import Loop, drive, points_of, stream, table_of
from sgmcmc_verification.samplers.topic_models.common import finite_topics
from sgmcmc_verification.samplers.topic_models.sam.methods import Method
from sgmcmc_verification.samplers.topic_models.sam.particles import ParticleTopics
from sgmcmc_verification.samplers.topic_models.sam.variational import MeanField, StochasticMeanField, Variational
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.topic_models.sam.perplexity import LogPerplexity

_STEP, _INIT = 0, 1
"""Tags of the random numbers of a sample and of the start."""
USUAL = Loop()
"""An evaluation every 10 samples, a checkpoint, if a file is given, every 50."""


class Chain(Protocol):
    """A method with a start, samples and topics; states are pytrees of arrays."""

    def start(self, generator: np.random.Generator) -> State:
        """First state of a chain."""
        ...

    def sample(self, generator: np.random.Generator, state: State, number: int) -> State:
        """Next state of a chain."""
        ...

    def topics(self, state: State) -> np.ndarray:
        """Topics (K, V) of a state."""
        ...


class VariationalChain:
    """Sweeps of variational inference as samples: its topics are the normalised means of q."""

    def __init__(self, inference: MeanField | StochasticMeanField):
        self.inference = inference

    def start(self, generator: np.random.Generator) -> Variational:
        """The start of the inference."""
        return self.inference.start(generator)

    def sample(self, generator: np.random.Generator, state: Variational, number: int) -> Variational:
        """One sweep."""
        if isinstance(self.inference, MeanField):
            return self.inference.sweep(state)
        return self.inference.sweep(generator, state, number)

    def topics(self, state: Variational) -> np.ndarray:
        """(1, K, V)."""
        return state.topics[None]


class Point(NamedTuple):
    """Log-perplexity after some samples.

    Attributes:
        sample: number of samples so far.
        seconds: duration of the samples, evaluations left out.
        value, standard_error, draws: see `targets.topic_models.sam.perplexity.Perplexity`.
        current: log-perplexity of the last topics alone.
    """

    sample: int
    seconds: float
    value: float
    standard_error: float
    draws: float
    current: float


class SAMRun(NamedTuple):
    """Topics (C, K, V) after the last sample, and the points on the way."""

    topics: np.ndarray
    points: tuple[Point, ...]


def run_sam(
    chain: Chain,
    seed: int,
    *,
    num_samples: int,
    perplexity: LogPerplexity | None = None,
    averaged: bool = True,
    loop: Loop = USUAL,
) -> SAMRun:
    """Run a method; sample t draws from `SeedSequence(seed, spawn_key=(0, t))`, so that a resumed run is the same.

    Args:
        chain: a `Method` or a `VariationalChain`.
        seed: of everything.
        num_samples: samples (sweeps).
        perplexity: takes in the topics of chain 0 at every evaluation; None for none.
        averaged: the perplexity is of the mean density over the samples taken in; else of the last topics alone, over
            all chains or particles.
        loop: evaluations, checkpoints, limit of time, progress; its steps are samples.

    Raises:
        ValueError: if an argument does not fit; `CheckpointError` (a ValueError) if the checkpoint does not.
        FloatingPointError: if the topics are not finite at an evaluation.
    """
    require(num_samples >= 1, "num_samples: must be at least 1", num_samples)
    driver = _Driver(chain, seed, chain.start(stream(seed, _INIT)), perplexity, averaged)
    drive(driver, range(1, num_samples + 1), loop, unit="sample")
    return SAMRun(chain.topics(driver.state), tuple(driver.points))


@dataclass(eq=False)
class _Driver:
    """A chain with its state and its perplexity."""

    chain: Chain
    seed: int
    state: State
    perplexity: LogPerplexity | None
    averaged: bool
    points: list[Point] = field(default_factory=list)

    def advance(self, start: int, count: int) -> None:
        for number in range(start, start + count):
            self.state = self.chain.sample(stream(self.seed, _STEP, number), self.state, number)
        jax.block_until_ready(self.state)

    def evaluate(self, done: int, seconds: float) -> dict[str, str]:
        topics = finite_topics(self.chain.topics(self.state), f"{done} samples")
        if self.perplexity is None:
            return {}
        last = self.perplexity.alone(topics[:1] if self.averaged else topics)
        if self.averaged:
            self.perplexity.add(topics[0])
        value = self.perplexity.value() if self.averaged else last
        self.points.append(Point(done, seconds, *value, last.value))
        return {"log_perplexity": f"{value.value:.1f}"}

    def identity(self) -> dict[str, object]:
        return {
            "method": describe(self.chain),
            "seed": self.seed,
            "start": digest_arrays(self.state),
            "weights": None if self.perplexity is None else digest_arrays(self.perplexity.weights),
        }

    def dump(self) -> list[np.ndarray]:
        inside = [] if self.perplexity is None else self.perplexity.dump()
        return [table_of(self.points, Point), *inside, *map(np.asarray, jax.tree.leaves(self.state))]

    def restore(self, arrays: list[np.ndarray]) -> None:
        self.points = points_of(arrays.pop(0), Point)
        if self.perplexity is not None:
            self.perplexity.restore([arrays.pop(0), arrays.pop(0)])
        self.state = checkpoints.refilled(self.state, arrays)


def describe(chain: Chain) -> str:
    """Identity of a method in a checkpoint: its settings, and the digest of its model."""
    if isinstance(chain, VariationalChain):
        inner = chain.inference
        rest = (getattr(inner, "batch_size", None), getattr(inner, "delay", None), getattr(inner, "decay", None))
    else:
        assert isinstance(chain, Method)
        inner, sampler = chain, chain.sampler
        options = {k: v for k, v in vars(sampler).items() if isinstance(v, (int, float, bool, str))}
        if isinstance(chain, ParticleTopics):
            options |= {"particles": chain.particles, "decay": chain.decay}
        rest = (
            type(sampler).__name__,
            options,
            inner.batch_size,
            inner.step_size,
            inner.num_steps,
            inner.weights,
            np.dtype(inner.dtype).name,
        )
    m = inner.model
    law = (m.prior_concentration, m.topic_concentration, m.concentration)
    return repr((type(inner).__name__, rest, law, digest_arrays((m.direction, m.alpha))))
