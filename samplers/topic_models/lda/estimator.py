"""Expected counts of an LDA model from a minibatch of documents, by Gibbs sampling in each of them."""

from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers.interface.sampler import Estimate, Position
from sgmcmc_verification.samplers.topic_models.lda.gibbs import sample_topics
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.datasets.corpus import Corpus
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent, Shuffled
from sgmcmc_verification.targets.topic_models.lda.model import LDA
from sgmcmc_verification.targets.topic_models.lda.softmax import SoftmaxLDA


@dataclass(frozen=True, eq=False)
class DocumentGibbs:
    """Counts N_wk = (D / n) sum_{d in S} B_dwk and the gradient that they give, for a minibatch S of n documents.

    B_dwk is the average over Gibbs sweeps of the occurrences of word w in topic k (`samplers.topic_models.lda.gibbs`).
    The estimate is unbiased up to the sweeps that the sampler of z needs to forget its uniform start, and that an
    average of the second half of `sweeps` leaves.

    The estimator's own state is the number of the next minibatch.

    Source: patterson2013stochastic, section 5; baker2018large, section 5.1.

    Args:
        model: LDA.
        batches: which documents a step uses.
        sweeps: of the Gibbs sampler; the first half is discarded.
        threads: for the Gibbs sampler; results do not depend on it.
        gradient: also return grad U (SCIR does not need it).
    """

    model: LDA | SoftmaxLDA
    batches: Independent | Shuffled
    sweeps: int = 200
    threads: int = 1
    gradient: bool = True

    backend = "host"

    def __post_init__(self) -> None:
        require_words(self.model, self.batches.corpus)

    def init(self, key: np.random.Generator | jax.Array, position: Position) -> np.ndarray:
        """Return the number of the first minibatch."""
        del key, position
        return np.zeros((), np.int64)

    def estimate(
        self, key: np.random.Generator | jax.Array, estate: np.ndarray, position: Position
    ) -> tuple[Estimate, np.ndarray]:
        """Counts, and the gradient, from the next minibatch; the number of the one after it."""
        theta = np.asarray(position, np.float64)
        generator = as_generator(key)
        batch = self.batches.corpus.take(self.batches.numbers(int(estate)))
        used, local = words_used(batch.tokens, self.model.words)
        found = sample_topics(
            generator,
            local,
            batch.offsets,
            word_weights(self.model.weights(theta), used),
            self.model.alpha,
            self.sweeps,
            threads=self.threads,
        )
        counts = np.zeros(theta.shape)
        counts[used] = len(self.batches.corpus) / len(batch) * found.words
        gradient = self.model.gradient(theta, counts) if self.gradient else None
        return Estimate(gradient, statistics=counts), estate + 1


def require_words(model: LDA | SoftmaxLDA, corpus: Corpus) -> None:
    """Raise ValueError unless the model has as many words as the vocabulary."""
    words = len(corpus.vocabulary)
    require(words == model.words, f"model: has {model.words} words, the corpus", words)


def words_used(tokens: np.ndarray, words: int) -> tuple[np.ndarray, np.ndarray]:
    """The words that occur, in order, and for each token the place of its word among them; without sorting."""
    used = np.flatnonzero(np.bincount(tokens, minlength=words))
    place = np.empty(words, np.int64)
    place[used] = np.arange(len(used))
    return used, place[tokens]


def word_weights(theta: np.ndarray, used: np.ndarray) -> np.ndarray:
    """phi_wk of the words `used`, each row divided by its largest entry, so that none underflows in float32.

    Raises:
        ValueError: if a word has theta = 0 in all topics.
    """
    totals = theta.sum(axis=0)
    if not np.all(np.isfinite(totals) & (totals > 0)):
        raise ValueError("position: a topic is not finite, or zero for all words; reduce step_size")
    weights = theta[used] / totals
    largest = weights.max(axis=1, initial=0)
    if not np.all(largest > 0):
        word = int(used[int(np.argmin(largest))])
        raise ValueError(f"position: word {word} has theta = 0 in all topics (underflow); take a larger beta")
    return weights / largest[:, None]


def as_generator(key: np.random.Generator | jax.Array) -> np.random.Generator:
    """NumPy's generator from a generator or from a typed JAX key."""
    if isinstance(key, np.random.Generator):
        return key
    return np.random.Generator(np.random.SFC64([int(x) for x in np.asarray(jax.random.key_data(key)).ravel()]))
