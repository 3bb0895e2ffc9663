"""Counts of the topics of all words at the price of a minibatch: a word keeps its topic between its visits."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import numpy as np
from numba import njit

from sgmcmc_verification.samplers.interface.sampler import Estimate, Position
from sgmcmc_verification.samplers.topic_models.lda.estimator import (
    as_generator,
    require_words,
    word_weights,
    words_used,
)
from sgmcmc_verification.samplers.topic_models.lda.gibbs import move_topics
from sgmcmc_verification.targets.datasets.corpus import token_type
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent, Shuffled
from sgmcmc_verification.targets.topic_models.lda.model import LDA


class StoredTopics(NamedTuple):
    """State of the estimator, the estimator changes the arrays in place: an earlier state is lost.

    Attributes:
        number: of the next minibatch, ().
        topics: z of all words of the corpus (T,), K where a word was not visited yet; a byte a word for K < 256.
        counts: n_wk of the words that have a topic (V, K).
        visited: documents that have topics, ().
    """

    number: np.ndarray
    topics: np.ndarray
    counts: np.ndarray
    visited: np.ndarray


@dataclass(frozen=True, eq=False)
class StoredGibbs:
    """n_wk of one draw z of the topics of all words; a step draws those of a minibatch anew, given the others' alone.

        z_d ~ Gibbs sweeps for p(z_d | w_d, phi) from the z_d of the last visit, d in S
        n_wk = sum_di 1[w_di = w, z_di = k]

    Given phi the documents are independent, so that the step leaves p(z | w, phi) invariant whatever S is, which is
    drawn without regard to z. Followed by a draw that leaves p(phi | z) invariant
    (`samplers.topic_models.lda.scir.TopicSCIR`) this is a Gibbs sampler with a random scan: the posterior of (phi, z)
    is kept exactly, with minibatches, at every step size and number of sweeps. The counts are no estimate of E[n | w,
    phi]: they have its mean in the stationary law only, and no noise of minibatches.

    Until every document was visited the counts are those of the visited ones times D / visited, as of a minibatch that
    grows: topics drawn before anything was learnt would otherwise stay in the counts for a whole pass.

    Source: derived here, from the conditionals of griffiths2004finding's model; the memory of the last visit is that of
    SAGA (dubey2016variance), of topics instead of gradients.

    Args:
        model: LDA.
        batches: which documents a step visits, a function of the number of the step.
        sweeps: of a visit.
        threads: for the Gibbs sampler; results do not depend on it.
        gradient: also return grad U given z (SCIR does not need it).

    Error: none in the stationary law once all documents were visited.
    """

    model: LDA
    batches: Independent | Shuffled
    sweeps: int = 1
    threads: int = 1
    gradient: bool = False

    backend = "host"

    def __post_init__(self):
        require_words(self.model, self.batches.corpus)

    @cached_property
    def _documents(self) -> int:
        """Those that have words."""
        return int(np.count_nonzero(self.batches.corpus.lengths))

    def init(self, key: np.random.Generator | jax.Array, position: Position) -> StoredTopics:
        """Return the state before any visit: no word has a topic."""
        del key, position
        size, topics = len(self.batches.corpus.tokens), self.model.topics
        none, counts = np.full(size, topics, token_type(topics + 1)), np.zeros((self.model.words, topics))
        return StoredTopics(np.zeros((), np.int64), none, counts, np.zeros((), np.int64))

    def estimate(
        self, key: np.random.Generator | jax.Array, estate: StoredTopics, position: Position
    ) -> tuple[Estimate, StoredTopics]:
        """Counts, and the gradient, after a visit to the next minibatch; the state after it."""
        theta = np.asarray(position, np.float64)
        corpus, number = self.batches.corpus, int(estate.number)
        visited = np.unique(self.batches.numbers(number))
        places, offsets = places_of(corpus.offsets, visited)
        words = np.asarray(corpus.tokens[places], np.int64)
        used, local = words_used(words, self.model.words)
        before = estate.topics[places]
        # a document without words never has topics; it adds nothing, whether it counts as visited or not
        first = np.diff(offsets) > 0
        first[first] = before[offsets[:-1][first]] == self.model.topics
        after = move_topics(
            as_generator(key),
            local,
            offsets,
            word_weights(theta, used),
            self.model.alpha,
            self.sweeps,
            before,
            self.threads,
        )
        recount(words, before, after, estate.counts)
        estate.topics[places] = after
        seen = estate.visited + np.sum(first)
        counts = estate.counts * (self._documents / max(int(seen), 1))
        gradient = self.model.gradient(theta, counts) if self.gradient else None
        return Estimate(gradient, statistics=counts), estate._replace(number=estate.number + 1, visited=seen)


def places_of(offsets: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the words of some documents among all words (T',), and begin and end of each document in it."""
    lengths = offsets[documents + 1] - offsets[documents]
    own = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(offsets[documents] - own[:-1], lengths) + np.arange(own[-1]), own


@njit(cache=True, nogil=True)
def recount(words: np.ndarray, before: np.ndarray, after: np.ndarray, counts: np.ndarray) -> None:
    """Move words from their topics `before`, if they have any, to those after, in counts (V, K)."""
    for i in range(len(words)):
        if before[i] < counts.shape[1]:
            counts[words[i], before[i]] -= 1.0
        counts[words[i], after[i]] += 1.0
