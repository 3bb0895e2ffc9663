"""Runs on a spherical admixture model: perplexity on the way, progress, checkpoint, resume bit for bit."""

import os
import time
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from tqdm import tqdm

from samplers.runner import checkpoint as checkpoints
from samplers.runner.engine import digest_arrays
from samplers.topic_models.sam.methods import Method
from samplers.topic_models.sam.particles import ParticleTopics
from samplers.topic_models.sam.variational import MeanField, StochasticMeanField, Variational
from samplers.validation import require
from targets.topic_models.sam.perplexity import LogPerplexity

_STEP, _INIT = 0, 1
"""Tags of the random numbers of a sample and of the start."""


class Chain(Protocol):
    """What can be run; states are pytrees of arrays."""

    def start(self, generator: np.random.Generator) -> Any: ...

    def sample(self, generator: np.random.Generator, state: Any, number: int) -> Any: ...

    def topics(self, state: Any) -> np.ndarray: ...


class VariationalChain:
    """Sweeps of variational inference as samples: its topics are the normalised means of q."""

    def __init__(self, inference: MeanField | StochasticMeanField):
        self.inference = inference

    def start(self, generator: np.random.Generator) -> Variational:
        """That of the inference."""
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
    """Log-perplexity on the way.

    Attributes:
        sample: samples so far.
        seconds: that they took, evaluations left out.
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
    evaluate_every: int = 10,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: int = 50,
    seconds: float | None = None,
    progress: bool = False,
) -> SAMRun:
    """Run a method; sample t draws from `SeedSequence(seed, spawn_key=(0, t))`, so that a resumed run is the same.

    Args:
        chain: a `Method` or a `VariationalChain`.
        seed: of everything.
        num_samples: samples (sweeps).
        perplexity: takes in the topics of chain 0 at every evaluation; None for none.
        averaged: the perplexity is of the mean density over the samples taken in; else of the last topics alone, over
            all chains or particles.
        evaluate_every: samples from one evaluation to the next.
        checkpoint: a file to write the run to and, if it exists, to resume from.
        checkpoint_every: samples between two checkpoints.
        seconds: stop after so many seconds of samples, but not before the first evaluation; where a run ends then
            depends on the clock.
        progress: show a progress bar.

    Raises:
        ValueError: if an argument does not fit; `CheckpointError` (a ValueError) if the checkpoint does not.
        FloatingPointError: if the topics leave the finite numbers.
    """
    for name, count in (("num_samples", num_samples), ("evaluate_every", evaluate_every), ("every", checkpoint_every)):
        require(count >= 1, f"{name}: must be at least 1", count)
    state = chain.start(_generator(seed, _INIT))
    fingerprint = {
        "method": describe(chain),
        "seed": seed,
        "start": digest_arrays(state),
        "evaluate_every": evaluate_every,
        "weights": None if perplexity is None else digest_arrays(perplexity.weights),
    }
    done, spent, points = 0, 0.0, []
    if checkpoint is not None and os.path.exists(checkpoint):
        done, arrays = checkpoints.load(checkpoint, fingerprint)
        points = [Point(int(row[0]), *map(float, row[1:])) for row in arrays[0]]
        spent = float(arrays[1])
        if perplexity is not None:
            perplexity.restore(arrays[2:4])
        state = checkpoints.refilled(state, arrays[4:])

    def save():
        if checkpoint is not None:
            table = np.array(points, np.float64).reshape(-1, len(Point._fields))
            inside = perplexity.dump() if perplexity is not None else [np.zeros(0), np.zeros(0)]
            leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
            checkpoints.save(checkpoint, fingerprint, done, [table, np.asarray(spent), *inside, *leaves])

    with tqdm(total=num_samples, initial=min(done, num_samples), unit="sample", disable=not progress) as bar:
        # the first point of a slow machine is waited for
        while done < num_samples and (seconds is None or spent < seconds or (perplexity is not None and not points)):
            began = time.perf_counter()
            state = jax.block_until_ready(chain.sample(_generator(seed, _STEP, done), state, done))
            spent += time.perf_counter() - began
            done += 1
            bar.update()
            if done % evaluate_every == 0:
                topics = chain.topics(state)
                if not np.all(np.isfinite(topics)):
                    raise FloatingPointError(f"the topics are not finite after {done} samples; reduce step_size")
                if perplexity is not None:
                    last = perplexity.alone(topics[:1] if averaged else topics)
                    if averaged:
                        perplexity.add(topics[0])
                    points.append(Point(done, spent, *(perplexity.value() if averaged else last), last.value))
                    bar.set_postfix(log_perplexity=f"{points[-1].value:.1f}")
            if done % checkpoint_every == 0 and done < num_samples:
                save()
    save()
    return SAMRun(chain.topics(state), tuple(points))


def describe(chain: Any) -> str:
    """What identifies a method in a checkpoint: its settings, and its model by their digest."""
    if isinstance(chain, VariationalChain):
        inner = chain.inference
        rest = (getattr(inner, "batch_size", None), getattr(inner, "delay", None), getattr(inner, "decay", None))
    else:
        assert isinstance(chain, Method)
        inner, sampler = chain, chain.sampler
        options = {k: v for k, v in vars(sampler).items() if isinstance(v, (int, float, bool, str))}
        if isinstance(chain, ParticleTopics):
            options |= {"particles": chain.particles, "decay": chain.decay}
        rest = (type(sampler).__name__, options, inner.batch_size, inner.step_size, inner.num_steps, inner.weights,
                np.dtype(inner.dtype).name)  # fmt: skip
    m = inner.model
    law = (m.prior_concentration, m.topic_concentration, m.concentration)
    return repr((type(inner).__name__, rest, law, digest_arrays((m.direction, m.alpha))))


def _generator(seed: int, *tags: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=tags)))
