"""Documents as points of a sphere: tf-idf with unit length, sparse."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.targets.datasets.corpus import Corpus
from sgmcmc_verification.targets.datasets.files import DataError
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.numerics.ragged import SparseRows

NORM_ERROR = 1e-9
"""Largest | |v| - 1 | of a document: values printed with ten decimals, some hundred of them."""


@dataclass(frozen=True, eq=False)
class UnitDocuments:
    """Unit vectors v_d with non-negative entries, a document a row.

    Args:
        rows: D rows of tf-idf values, V wide.
        vocabulary: V words.
        labels: (D,) integers, or None.
        name: of the documents, for messages.

    Raises:
        DataError: if there is no document, the vocabulary has another size, a value is negative or not finite, an
            identifier is out of range, or a document is zero or not of unit length.
    """

    rows: SparseRows
    vocabulary: Vocabulary
    labels: np.ndarray | None = None
    name: str = "documents"

    def __post_init__(self):
        rows, size = self.rows, len(self.vocabulary)
        if rows.width != size:
            raise DataError(
                f"{self.name}: of {rows.width} words, the vocabulary has {size}; give the one they were made with"
            )
        if rows.size == 0:
            raise DataError(f"{self.name}: no document; give at least one")
        if self.labels is not None and len(self.labels) != rows.size:
            raise DataError(f"{self.name}: {len(self.labels)} labels for {rows.size} documents; give one each")
        outside = (rows.columns < 0) | (rows.columns >= size)
        self._refuse(outside, lambda d, k: f"has word {rows.columns[k]}, the vocabulary has {size}; check identifiers")
        refused = ~(np.isfinite(rows.counts) & (rows.counts >= 0))
        self._refuse(refused, lambda d, k: f"has tf-idf {rows.counts[k]}; it must be finite and not negative")
        norms = lengths(rows)
        for d in np.flatnonzero(norms == 0)[:1]:
            raise DataError(f"{self.name}: document {d} is zero and has no direction; leave it out")
        for d in np.flatnonzero(np.abs(norms - 1) > NORM_ERROR)[:1]:
            raise DataError(f"{self.name}: document {d} has length {norms[d]:.12g}, not 1; divide it by its length")

    def _refuse(self, bad: np.ndarray, problem) -> None:
        for k in np.flatnonzero(bad)[:1]:
            d = int(np.searchsorted(self.rows.starts, k, side="right")) - 1
            raise DataError(f"{self.name}: document {d} {problem(d, k)}")

    def __len__(self) -> int:
        return self.rows.size

    @property
    def mean(self) -> np.ndarray:
        """The normalised sum of the documents (V,)."""
        total = np.bincount(self.rows.columns, self.rows.counts, self.rows.width)
        return total / np.sqrt(total @ total)

    def take(self, numbers) -> "UnitDocuments":
        """The documents of these numbers, in that order."""
        labels = None if self.labels is None else self.labels[np.asarray(numbers)]
        return UnitDocuments(self.rows.take(np.asarray(numbers)), self.vocabulary, labels, self.name)


def lengths(rows: SparseRows) -> np.ndarray:
    """Euclidean length of each row (D,)."""
    return np.sqrt(np.bincount(_rows(rows), rows.counts**2, rows.size))


def counted(corpus: Corpus) -> SparseRows:
    """tf: how often each word occurs in each document; the words of a row ascend."""
    size, count = len(corpus.vocabulary), len(corpus)
    owner = np.repeat(np.arange(count), corpus.lengths)
    flat, times = np.unique(owner * size + np.asarray(corpus.tokens, np.int64), return_counts=True)
    starts = np.searchsorted(flat, np.arange(count + 1) * size)
    return SparseRows(starts, (flat % size).astype(np.int32), times.astype(np.float64), size)


def document_frequency(tf: SparseRows) -> np.ndarray:
    """df: the number of documents (V,) that a word occurs in."""
    return np.bincount(tf.columns[tf.counts > 0], minlength=tf.width)


def tfidf(
    tf: SparseRows,
    vocabulary: Vocabulary,
    frequency: np.ndarray | None = None,
    total: int | None = None,
    labels: np.ndarray | None = None,
    name: str = "documents",
) -> UnitDocuments:
    """tf-idf on the unit sphere.

        v_dw = tf_dw log(D / (1 + df_w)) / |.|

    Source: liu2016stochastic, section 5.3, as its released data describe it; they take df and D of the training and
    of the test documents separately, which is what `frequency=None` does in two calls.

    Args:
        tf: counts of the words of each document (`counted`).
        vocabulary: its words.
        frequency: df (V,); None for that of these documents. A model that is used on single documents needs that of
            the training documents.
        total: D that `frequency` was counted over; must come with it.
        labels: (D,) of the documents, kept.
        name: of the documents, for messages.

    Raises:
        DataError: if a word has a negative tf-idf (one that occurs in all of the documents), or a document is zero.
        ValueError: if `frequency` and `total` do not fit.
    """
    if (frequency is None) != (total is None):
        raise ValueError("total: give the number of documents that `frequency` was counted over, or neither")
    if tf.width != len(vocabulary):
        raise DataError(
            f"{name}: counts of {tf.width} words, the vocabulary has {len(vocabulary)}; give the same words"
        )
    df = document_frequency(tf) if frequency is None else np.asarray(frequency)
    if df.shape != (tf.width,):
        raise DataError(f"{name}: frequencies of shape {df.shape} for a vocabulary of {tf.width} words; one each")
    number = tf.size if total is None else total
    weight = np.log(number / (1 + df))
    present = np.bincount(tf.columns, minlength=tf.width) > 0
    for word in np.flatnonzero(present & (weight < 0))[:1]:
        raise DataError(
            f"{name}: {vocabulary.words[word]!r} occurs in {df[word]} of {number} documents, so that its tf-idf is "
            "negative; leave it out of the vocabulary"
        )
    values = tf.counts * weight[tf.columns]
    keep = values != 0  # a word that occurs in all documents but one has the weight 0
    starts = np.concatenate([[0], np.cumsum(keep)])[tf.starts]
    rows = SparseRows(starts, tf.columns[keep], values[keep], tf.width)
    norms = lengths(rows)
    for d in np.flatnonzero(norms == 0)[:1]:
        raise DataError(f"{name}: document {d} has no word of a positive weight, so no direction; leave it out")
    return UnitDocuments(rows._replace(counts=rows.counts / norms[_rows(rows)]), vocabulary, labels, name)


def _rows(rows: SparseRows) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(rows.size), rows.lengths)
