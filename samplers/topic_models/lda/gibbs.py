"""Gibbs sampling of the topics of the words of a document, for given topics: the kernel of all LDA samplers."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit

from sgmcmc_verification.samplers.positive.cir_transition import draw_uniform, streams
from sgmcmc_verification.samplers.validation import require


class Counts(NamedTuple):
    """Averages over the sweeps that are kept.

    Attributes:
        documents: A_dk (D, K), words of document d in topic k.
        words: B_wk (U, K), occurrences of the u-th row of weights in topic k, over all documents.
    """

    documents: np.ndarray
    words: np.ndarray


class Words(NamedTuple):
    """Words of documents.

    Attributes:
        rows: (T,) rows of the weights, document after document.
        offsets: (D + 1,), document d is `rows[offsets[d] : offsets[d + 1]]`.
    """

    rows: np.ndarray
    offsets: np.ndarray


class Weights(NamedTuple):
    """phi (U, K), float32, and its cumulative sums over the topics (U, K), float64."""

    values: np.ndarray
    cumulative: np.ndarray


class Sweeps(NamedTuple):
    """The Dirichlet parameter alpha, the number of sweeps, and how many of them are left out first."""

    alpha: float
    number: int
    burn_in: int


def sample_topics(
    generator: np.random.Generator,
    words: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    alpha: float,
    sweeps: int,
    burn_in: int | None = None,
    threads: int = 1,
) -> Counts:
    """Average counts of a Gibbs sampler of the topic z_i of every word, for each document by itself.

        P(z_i = k | all other z of the document d) proportional to (alpha + n_dk without word i) phi_k,w_i

    from topics drawn uniformly, all words in turn, `sweeps` times. The stationary law is p(z | w, phi) with
    theta_d ~ Dirichlet(alpha, .., alpha) integrated out; sweeps that are left out shorten the way there.

    The sum over topics is over two parts: alpha phi_kw, whose cumulative sum does not change during a call, and
    n_dk phi_kw, which only runs over the topics that the document has at the moment.

    Source: patterson2013stochastic, section 5; the two parts are those of yao2009efficient, without its
    third one. The law does not depend on them.

    Args:
        generator: NumPy's. Every document has a stream of its own, which it seeds: the result does not depend on
            `threads`.
        words: (T,) rows of `weights`, document after document.
        offsets: (D + 1,), document d is `words[offsets[d] : offsets[d + 1]]`.
        weights: phi (U, K), times any positive number in each row; float32 in memory, summed in float64.
        alpha: > 0, of the symmetric Dirichlet prior of the weights of the topics in a document.
        sweeps: of the sampler, at least 1.
        burn_in: sweeps that are left out; by default half of them, rounded down.
        threads: that documents are shared out to.

    Returns:
        Average counts of the sweeps that are kept.

    Raises:
        ValueError: if a number is out of its range, the arrays do not fit, or a row of weights is not finite, negative
            or zero throughout.
    """
    burn_in = sweeps // 2 if burn_in is None else burn_in
    _check(words, offsets, alpha, sweeps, threads)
    require(0 <= burn_in < sweeps, f"burn_in: must lie between 0 and {sweeps - 1}, the sweeps less one", burn_in)
    weights = np.ascontiguousarray(weights, np.float32)
    topics = weights.shape[1]
    z = np.full(len(words), topics, np.uint32)
    visits = np.zeros((len(words), topics), np.uint16)
    corpus = _words(words, offsets, weights)
    _swept(generator, corpus, weights, Sweeps(float(alpha), sweeps, burn_in), z, visits, threads)
    in_documents, in_words = np.zeros((len(offsets) - 1, topics)), np.zeros(weights.shape)
    _collect(corpus, visits, 1.0 / (sweeps - burn_in), in_documents, in_words)
    return Counts(in_documents, in_words)


def move_topics(
    generator: np.random.Generator,
    words: np.ndarray,
    offsets: np.ndarray,
    weights: np.ndarray,
    alpha: float,
    sweeps: int,
    topics: np.ndarray,
    threads: int = 1,
) -> np.ndarray:
    """Topics (T,) after sweeps of the Gibbs sampler of `sample_topics` from given topics (T,).

    A topic of K, which there is not, stands for a word that has none yet: its start is drawn uniformly.

    Args and errors: as `sample_topics`.
    """
    _check(words, offsets, alpha, sweeps, threads)
    require(len(topics) == len(words), f"topics: must be of {len(words)} words", len(topics))
    z = np.array(topics, np.uint32)
    weights = np.ascontiguousarray(weights, np.float32)
    corpus, none = _words(words, offsets, weights), np.zeros((len(z), 0), np.uint16)
    _swept(generator, corpus, weights, Sweeps(float(alpha), sweeps, sweeps), z, none, threads)
    return z


def _check(words, offsets, alpha, sweeps, threads):
    require(alpha > 0, "alpha: must be positive", alpha)
    require(1 <= sweeps <= 65_535, "sweeps: must lie between 1 and 65,535", sweeps)
    require(threads >= 1, "threads: must be at least 1", threads)
    require(len(words) == offsets[-1], f"offsets: end at {offsets[-1]}, not at the number of words", len(words))


def _words(words, offsets, weights) -> Words:
    """The words in the types of the compiled kernels. Raises ValueError for a word that is no row of the weights."""
    words, offsets = np.asarray(words, np.int64), np.asarray(offsets, np.int64)
    if len(words) and not 0 <= words.min() <= words.max() < len(weights):
        raise ValueError(f"words: must be rows of weights, 0..{len(weights) - 1}")
    return Words(words, offsets)


def _swept(generator, corpus: Words, weights, sweeps: Sweeps, z, visits, threads) -> None:
    """Move z and increase visits, in place. Raises ValueError for weights that cannot be normalised."""
    offsets = corpus.offsets
    cumulative = np.cumsum(weights, axis=1, dtype=np.float64)
    totals = cumulative[:, -1]
    if not np.all((totals > 0) & np.isfinite(totals)) or weights.min(initial=0) < 0:
        bad = int(np.argmin((totals > 0) & np.isfinite(totals)))
        raise ValueError(f"weights: row {bad} must be finite and positive somewhere, its sum is {totals[bad]}")
    documents = len(offsets) - 1
    states = streams(generator, documents)
    scratch = (corpus, Weights(weights, cumulative), sweeps, z, visits)
    if threads == 1:
        _documents(states, 0, documents, *scratch)
    else:
        cuts = np.searchsorted(offsets, np.linspace(0, len(corpus.rows), min(threads, os.cpu_count() or 1) + 1))
        cuts[0], cuts[-1] = 0, documents
        with ThreadPoolExecutor(len(cuts) - 1) as pool:
            parts = [pool.submit(_documents, states, *cut, *scratch) for cut in itertools.pairwise(cuts)]
            for part in parts:
                part.result()


@njit(cache=True, nogil=True)
def _documents(states, first, last, corpus, weights, sweeps, z, visits):
    """Documents `first` to `last`, each with its own stream; words without a topic start from uniform ones."""
    words, offsets = corpus
    topics = weights.values.shape[1]
    for d in range(first, last):
        begin, end = offsets[d], offsets[d + 1]
        for i in range(begin, end):
            if z[i] >= topics:
                z[i] = min(int(draw_uniform(states[d]) * topics), topics - 1)
        sweep_document(states[d], words[begin:end], z[begin:end], weights, sweeps, visits[begin:end])


@njit(cache=True, nogil=True)
def _enter(z, count, active, place):
    """Count the topics z of a document and list those that it has; returns how many they are."""
    m = 0
    for i in range(len(z)):
        k = z[i]
        if count[k] == 0.0:
            active[m], place[k] = k, m
            m += 1
        count[k] += 1.0
    return m


@njit(cache=True, nogil=True)
def sweep_document(
    source: np.ndarray,
    words: np.ndarray,
    z: np.ndarray,
    given: Weights,
    sweeps: Sweeps,
    visits: np.ndarray,
) -> None:
    """Sweeps of one document from topics z (n,), which it moves; `visits` (n, K) is increased in sweeps that are kept.

    `active[:m]` are the topics that the document has, in any order, `place` says where each of them is.
    """
    weights, cumulative = given
    alpha, number, burn_in = sweeps
    size, topics = len(words), weights.shape[1]
    count = np.zeros(topics)
    # unsigned: no test for indices that count from the end
    active, place = np.empty(topics, np.uint32), np.zeros(topics, np.uint32)
    partial = np.empty(topics)
    m = _enter(z, count, active, place)
    for sweep in range(number):
        for i in range(size):
            row, k = words[i], z[i]
            count[k] -= 1.0
            if count[k] == 0.0:
                m -= 1
                other = active[m]
                active[place[k]], place[other] = other, place[k]
            total = 0.0
            for j in range(m):
                k = active[j]
                total += count[k] * weights[row, k]
                partial[j] = total
            at = draw_uniform(source) * (total + alpha * cumulative[row, topics - 1])
            if at < total:
                j = 0
                while partial[j] < at:
                    j += 1
                k = active[j]
            else:
                at = (at - total) / alpha
                k, high = 0, topics - 1
                while k < high:
                    middle = (k + high) // 2
                    if cumulative[row, middle] < at:
                        k = middle + 1
                    else:
                        high = middle
            z[i] = k
            if count[k] == 0.0:
                active[m], place[k] = k, m
                m += 1
            count[k] += 1.0
            if sweep >= burn_in:
                visits[i, k] += 1


@njit(cache=True, nogil=True)
def _collect(corpus, visits, scale, documents, rows):
    """Visits, summed over the words of each document and over the occurrences of each row, times `scale`."""
    words, offsets = corpus
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            for k in range(visits.shape[1]):
                seen = scale * visits[i, k]
                documents[d, k] += seen
                rows[words[i], k] += seen
