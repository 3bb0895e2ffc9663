"""Collapsed Gibbs sampling of LDA: the exact reference, every word of the corpus in every sweep."""

from typing import NamedTuple

import numpy as np
from numba import njit

from sgmcmc_verification.samplers.positive.cir_transition import draw_uniform, streams
from sgmcmc_verification.targets.datasets.corpus import Corpus
from sgmcmc_verification.targets.topic_models.lda.model import LDA


class CollapsedState(NamedTuple):
    """Topics of all words (T,), and their counts n_dk (D, K), n_wk (V, K), n_k (K,); a sweep changes them in place."""

    topics: np.ndarray
    in_documents: np.ndarray
    in_words: np.ndarray
    totals: np.ndarray


def collapsed_state(corpus: Corpus, model: LDA, topics: np.ndarray) -> CollapsedState:
    """The state of given topics of all words (T,)."""
    of = np.repeat(np.arange(len(corpus)), corpus.lengths)
    in_documents, in_words = np.zeros((len(corpus), model.topics)), np.zeros((model.words, model.topics))
    np.add.at(in_documents, (of, topics), 1)
    np.add.at(in_words, (np.asarray(corpus.tokens), topics), 1)
    return CollapsedState(np.array(topics, np.int64), in_documents, in_words, in_words.sum(axis=0))


def collapsed_sweep(generator: np.random.Generator, corpus: Corpus, model: LDA, state: CollapsedState) -> None:
    """Draw the topic of every word in turn, given all others.

        P(z_i = k | z without i, w) proportional to (alpha + n_dk) (beta + n_wk) / (V beta + n_k),  counts without i

    Source: griffiths2004finding, equation (5). It leaves p(z | w), theta and phi integrated out, invariant.

    Args:
        generator: NumPy's.
        corpus: all documents.
        model: LDA.
        state: changed in place.
    """
    sweep_corpus(
        streams(generator, 1)[0],
        np.asarray(corpus.tokens, np.int64),
        corpus.offsets,
        state,
        float(model.alpha),
        float(model.beta),
    )


@njit(cache=True, nogil=True)
def sweep_corpus(
    source: np.ndarray,
    words: np.ndarray,
    offsets: np.ndarray,
    state: CollapsedState,
    alpha: float,
    beta: float,
) -> None:
    """One sweep over all words; the counts are kept up to date."""
    z, in_documents, in_words, totals = state
    topics, mass = len(totals), beta * len(in_words)
    partial = np.empty(topics)
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            word, k = words[i], z[i]
            in_documents[d, k] -= 1.0
            in_words[word, k] -= 1.0
            totals[k] -= 1.0
            total = 0.0
            for k in range(topics):
                total += (alpha + in_documents[d, k]) * (beta + in_words[word, k]) / (mass + totals[k])
                partial[k] = total
            at = draw_uniform(source) * total
            k = 0
            while partial[k] < at:
                k += 1
            z[i] = k
            in_documents[d, k] += 1.0
            in_words[word, k] += 1.0
            totals[k] += 1.0
