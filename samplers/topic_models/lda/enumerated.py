"""Kernels of LDA on a corpus whose topics are enumerated, and their rows: Gibbs samplers and samplers of topics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.aliases import EstimatorState
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.riemannian.metrics import FlatMetric, PositiveMetric
from sgmcmc_verification.samplers.riemannian.sgrhmc import SGRHMC
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.topic_models.common import kernel_row
from sgmcmc_verification.samplers.topic_models.lda.collapsed import CollapsedState, collapsed_sweep
from sgmcmc_verification.samplers.topic_models.lda.estimator import as_generator
from sgmcmc_verification.samplers.topic_models.lda.gibbs import sample_topics, sweep_document
from sgmcmc_verification.samplers.topic_models.lda.scir import TopicSCIR
from sgmcmc_verification.samplers.topic_models.lda.stored_assignments import StoredGibbs
from sgmcmc_verification.targets.datasets.corpus import Corpus
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.topic_models.lda.model import LDA
from sgmcmc_verification.targets.topic_models.lda.tiny import TinyLDA
from sgmcmc_verification.targets.topic_models.registry import Enumerated

Sweep = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """Expected counts of C chains, z summed out."""

    tiny: TinyLDA

    backend = "host"

    def init(self, key: Any, position: Any) -> EstimatorState:
        """First state of the estimator."""
        del key, position
        return ()

    def counts(self, generator: np.random.Generator, theta: np.ndarray) -> np.ndarray:
        """(C, V, K)."""
        del generator
        return self.tiny.expected_counts(theta)

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        theta = np.asarray(position)
        counts = self.counts(as_generator(key), theta)
        return Estimate(self.tiny.model.gradient(theta, counts), statistics=counts), estate


def drawn_topics(tiny: TinyLDA, generator: np.random.Generator, theta: np.ndarray) -> np.ndarray:
    """Indices of assignments drawn from p(z | w, phi), one per chain (C,)."""
    p = tiny.conditional(theta / theta.sum(axis=1, keepdims=True))
    chosen = (np.cumsum(p, axis=1) < generator.random((len(p), 1))).sum(axis=1)
    return np.minimum(chosen, p.shape[1] - 1)


@dataclass(frozen=True, eq=False)
class DrawnCounts(ExactCounts):
    """Counts of one draw of all topics from p(z | w, phi)."""

    def counts(self, generator, theta):
        """Counts of topics of each word (C, V, K)."""
        return self.tiny.topic_counts[drawn_topics(self.tiny, generator, theta)]


@dataclass(frozen=True, eq=False)
class GibbsCounts(ExactCounts):
    """D / n times the counts of a minibatch of n documents of each chain, by the Gibbs kernel of all runs."""

    batch: int = 1
    sweeps: int = 12
    burn_in: int = 6
    scale: float = 1.0

    def counts(self, generator, theta):
        """Counts of topics of each word (C, V, K)."""
        chains, words, topics = theta.shape
        total, longest = len(self.tiny.documents), max(map(len, self.tiny.documents))
        padded = np.array([list(d) + [-1] * (longest - len(d)) for d in self.tiny.documents])
        order = generator.permuted(np.tile(np.arange(total), (chains, 1)), axis=1)[:, : self.batch]
        mine = padded[order] + words * np.arange(chains)[:, None, None]
        real = padded[order] >= 0
        phi = theta / theta.sum(axis=1, keepdims=True)
        found = sample_topics(
            generator,
            mine[real],
            np.concatenate([[0], np.cumsum(real.sum(axis=2).ravel())]),
            phi.reshape(-1, topics),
            self.tiny.model.alpha,
            self.sweeps,
            self.burn_in,
        )
        return self.scale * total / self.batch * found.words.reshape(theta.shape)


@dataclass(frozen=True)
class OneOfEach:
    """Minibatches of one document of each chain, of a corpus that holds the documents of one chain after the other."""

    corpus: Corpus
    chains: int
    seed: int

    def numbers(self, step: int) -> np.ndarray:
        """The documents of a step (C,)."""
        own = len(self.corpus) // self.chains
        chosen = np.random.default_rng([self.seed, step]).integers(own, size=self.chains)
        return own * np.arange(self.chains) + chosen


@dataclass(frozen=True, eq=False)
class StoredCounts(ExactCounts):
    """Counts of `StoredGibbs`, which visits one document of each chain in a step; topics start from p(z | w, phi).

    All chains are one corpus, in which each has words of its own.
    """

    stored: type[StoredGibbs] = StoredGibbs

    def init(self, key, position):
        """First state of the estimator."""
        theta, generator, tiny = np.asarray(position), as_generator(key), self.tiny
        chains, words, topics = theta.shape
        tokens = (tiny.words + words * np.arange(chains)[:, None]).ravel()
        ends = tiny.offsets[1:] + len(tiny.words) * np.arange(chains)[:, None]
        names = Vocabulary(tuple(map(str, range(chains * words))))
        corpus = Corpus(tokens, np.concatenate([[0], ends.ravel()]), names)
        model = LDA(topics, chains * words, tiny.model.alpha, tiny.model.beta)
        batches: Any = OneOfEach(corpus, chains, int(generator.integers(2**31)))
        estimator = self.stored(model, batches)
        z = tiny.assignments[drawn_topics(tiny, generator, theta)].ravel()
        counts = np.bincount(tokens * topics + z, minlength=chains * words * topics).reshape(-1, topics)
        state = estimator.init(generator, None)
        visited = np.full((), len(corpus))
        return estimator, state._replace(topics=z.astype(state.topics.dtype), counts=counts * 1.0, visited=visited)

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        theta = np.asarray(position)
        estimator, state = estate
        # every topic has the same total over the chains, so that all is divided by one number
        phi = (theta / theta.sum(axis=1, keepdims=True)).reshape(-1, theta.shape[2])
        found, state = estimator.estimate(key, state, phi)
        return Estimate(None, statistics=np.asarray(found.statistics).reshape(theta.shape)), (estimator, state)


COUNTS: Mapping[str, Callable[[TinyLDA], ExactCounts]] = {
    "minibatch": GibbsCounts,
    "all": lambda tiny: GibbsCounts(tiny, batch=2, sweeps=12, burn_in=11),
    "expected": ExactCounts,
    "drawn": DrawnCounts,
    "stored": StoredCounts,
}
"""One document by the Gibbs kernel; the last of 12 sweeps over both; z summed out; z drawn exactly; z kept, a sweep of
one document."""


@dataclass(frozen=True, eq=False)
class Topics:
    """A sampler of topics that tends to the posterior as h -> 0.

    Args:
        posterior: the corpus.
        sampler: of the registry, as in the figures.
        counts: a name of `COUNTS`.
        steps: of the largest size.
    """

    posterior: Enumerated
    sampler: Any
    counts: str = "minibatch"
    steps: int = 6

    backend = "jax"

    def estimator(self) -> ExactCounts:
        """Estimator of the counts of topics."""
        return COUNTS[self.counts](self.posterior.law)


@dataclass(frozen=True, eq=False)
class ExactTopics(Topics):
    """A sampler of topics that keeps the posterior at any step size; two sizes, the second 100 times as long."""

    counts: str = "all"

    backend = "host"


@dataclass(frozen=True, eq=False)
class DocumentSweep:
    """The sweeps over a document for given topics.

    Args:
        posterior: not used but for its name; the document is the second one of `STICKY`.
        sweep: as `samplers.topic_models.lda.gibbs.sweep_document`.
        sweeps: of a chain from uniform topics, the first half of which is left out.
        burn_in: of the kernel, where it is another number (a planted error).
    """

    posterior: Enumerated
    sweep: Sweep = sweep_document
    sweeps: int = 4
    burn_in: int = 2

    backend = "host"


def _sweep_words(rng: np.random.Generator, corpus: Corpus, model: LDA, state: CollapsedState) -> None:
    collapsed_sweep(rng, corpus, model, state)


@dataclass(frozen=True, eq=False)
class CollapsedSweep:
    """The sweep over all words with weights and topics integrated out: the exact reference.

    Args:
        posterior: the corpus.
        sweep: (generator, corpus, model, state), which changes the state.
    """

    posterior: Enumerated
    sweep: Callable[[np.random.Generator, Corpus, LDA, CollapsedState], None] = _sweep_words

    backend = "host"


def _topics(name: str, sampler: Any, step_size: float) -> Row:
    """One object a sampler: what is compiled for it is found again."""
    build = lambda posterior, **options: Topics(posterior, sampler, **options)
    return kernel_row(name, build, "lda-tiny", step_size=step_size, variants=({"counts": "expected"},))


def _scir(posterior: Enumerated, **options: Any) -> ExactTopics:
    return ExactTopics(posterior, TopicSCIR(posterior.law.model.beta), **options)


ENTRIES: tuple[Row, ...] = (
    kernel_row("lda/gibbs", DocumentSweep, "lda-tiny"),
    kernel_row("lda/collapsed", CollapsedSweep, "lda-tiny"),
    _topics("lda/sgld", SGRLD(FlatMetric(), reflect=True), 0.1),
    _topics("lda/sghmc", SGRHMC(FlatMetric(), reflect=True), 0.2),
    _topics("lda/sgrld", SGRLD(PositiveMetric(), reflect=True), 0.1),
    _topics("lda/sgrhmc", SGRHMC(PositiveMetric(), reflect=True), 0.2),
    kernel_row("lda/scir", _scir, "lda-tiny", step_size=0.1, variants=({"counts": "drawn"},)),
    kernel_row(
        "lda/scir-stored",
        lambda posterior, **options: _scir(posterior, counts="stored", **options),
        "lda-tiny",
        "lda-tiny-peaked",
        step_size=0.1,
    ),
)
