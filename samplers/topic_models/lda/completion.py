"""Document completion: how well topics predict held-out words of held-out documents. One estimator for all systems."""

from dataclasses import dataclass, field

import numpy as np

from sgmcmc_verification.samplers.topic_models.lda.estimator import word_weights
from sgmcmc_verification.samplers.topic_models.lda.gibbs import sample_topics
from sgmcmc_verification.targets.datasets.corpus import Corpus, completion_split


@dataclass(eq=False)
class Completion:
    """Running perplexity of the words 0, 10, 20, .. of held-out documents, given their other words.

        p_t(w | d) = sum_k (A_dk + alpha) / (A_d. + K alpha) phi_wk^(t),   A_d from Gibbs sweeps on the seen words
        perplexity = exp(-sum_dw c_dw log mean_{s <= t} p_s(w | d) / sum_dw c_dw)

    Source: patterson2013stochastic, section 5, with the split of its released program.

    Args:
        documents: held out; those without a word to predict count nothing.
        alpha: of the prior of the weights of the topics in a document.
        sweeps: of the Gibbs sampler on the seen words; the first half is discarded.
        threads: for it.
    """

    documents: Corpus
    alpha: float
    sweeps: int = 200
    threads: int = 1
    evaluations: int = field(default=0, init=False)

    def __post_init__(self):
        self.seen, self.predicted = completion_split(self.documents)
        if not len(self.predicted.tokens):
            raise ValueError("documents: none of them has a word; give longer ones")
        self.total = np.zeros(len(self.predicted.tokens))
        self._of = np.repeat(np.arange(len(self.documents)), self.predicted.lengths)
        self._used, self._local = np.unique(self.seen.tokens, return_inverse=True)

    def probabilities(self, generator: np.random.Generator, phi: np.ndarray) -> np.ndarray:
        """p(w | d) of every word to predict, for topics phi (V, K), columns that sum to 1."""
        counts = sample_topics(
            generator,
            self._local,
            self.seen.offsets,
            word_weights(phi, self._used),
            self.alpha,
            self.sweeps,
            threads=self.threads,
        ).documents
        counts += self.alpha
        counts /= counts.sum(axis=1, keepdims=True)
        return np.einsum("ik,ik->i", counts[self._of], phi[self.predicted.tokens])

    def add(self, generator: np.random.Generator, phi: np.ndarray) -> float:
        """Take topics into the running mean; returns the perplexity of the mean."""
        self.total += self.probabilities(generator, phi)
        self.evaluations += 1
        return self.perplexity

    @property
    def perplexity(self) -> float:
        """exp of minus the mean log of the mean probabilities."""
        return perplexity(self.total / self.evaluations)


def perplexity(probabilities: np.ndarray) -> float:
    """exp(-mean log p), of the probabilities of all words."""
    return float(np.exp(-np.mean(np.log(probabilities))))
