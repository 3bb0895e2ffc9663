"""Documents on the sphere: tf-idf, the parser of the released data, and what is refused."""

import itertools

import numpy as np
import pytest

from sgmcmc_verification.targets.datasets import newsgroups_different as released
from sgmcmc_verification.targets.datasets.corpus import from_documents
from sgmcmc_verification.targets.datasets.files import DataError, available
from sgmcmc_verification.targets.datasets.newsgroups import Posts
from sgmcmc_verification.targets.datasets.tfidf import UnitDocuments, counted, document_frequency, tfidf
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.numerics.ragged import SparseRows

WORDS = Vocabulary(("ball", "orbit", "faith"))
EPS = np.finfo(np.float64).eps


def corpus(*documents):
    return from_documents([np.array(d) for d in documents], WORDS)


def test_tfidf_matches_values_worked_out_by_hand():
    documents = tfidf(counted(corpus([0, 0, 1], [1], [2], [2, 2, 0])), WORDS)
    # df = (2, 2, 2), D = 4: one weight for all, so a document is its counts over their length
    expected = [[2 / 5**0.5, 1 / 5**0.5, 0], [0, 1, 0], [0, 0, 1], [1 / 5**0.5, 0, 2 / 5**0.5]]
    np.testing.assert_allclose(documents.rows.dense(), expected, rtol=8 * EPS)
    joint = tfidf(counted(corpus([0, 1])), WORDS, np.array([1, 3, 0]), 8)
    unscaled = np.array([np.log(8 / 2), np.log(8 / 4), 0])
    np.testing.assert_allclose(joint.rows.dense()[0], unscaled / np.linalg.norm(unscaled), rtol=8 * EPS)


def test_counts_are_those_of_the_words_of_each_document():
    tf = counted(corpus([2, 0, 2, 2], [], [1]))
    np.testing.assert_array_equal(tf.dense(), [[1, 0, 3], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(document_frequency(tf), [1, 1, 1])


def rows(*documents, width=3):
    table = np.array(documents, np.float64)
    return SparseRows(
        np.arange(len(table) + 1) * 3, np.tile(np.arange(3, dtype=np.int32), len(table)), table.ravel(), width
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (rows([1, 0, 0], [0, 0, 0]), "document 1 is zero"),
        (rows([0.8, -0.6, 0]), "document 0 has tf-idf -0.6"),
        (rows([1, 0, 0], [0.6, 0.8, np.nan]), "document 1 has tf-idf nan"),
        (rows([1, 0, 0], [0.6, 0.9, 0]), "document 1 has length 1.08"),
        (rows([1, 0, 0], width=4), "of 4 words, the vocabulary has 3"),
        (SparseRows(np.array([0, 1]), np.array([3], np.int32), np.ones(1), 3), "document 0 has word 3"),
        (SparseRows(np.array([0]), np.zeros(0, np.int32), np.zeros(0), 3), "no document"),
    ],
)
def test_documents_that_are_no_unit_vectors_are_refused(given, message):
    with pytest.raises(DataError, match=message):
        UnitDocuments(given, WORDS, name="file")


def test_a_word_in_all_documents_and_a_document_without_weight_are_refused():
    with pytest.raises(DataError, match="'ball' occurs in 2 of 2 documents, so that its tf-idf is negative"):
        tfidf(counted(corpus([0, 1], [0])), WORDS)
    with pytest.raises(DataError, match="document 2 has no word of a positive weight"):
        tfidf(counted(corpus([0, 1], [0], [2], [0, 2], [2])), WORDS, np.array([1, 1, 4]), 5)
    with pytest.raises(DataError, match="counts of 3 words, the vocabulary has 1"):
        tfidf(counted(corpus([0])), Vocabulary(("ball",)))
    with pytest.raises(ValueError, match="total"):
        tfidf(counted(corpus([0])), WORDS, np.ones(3))


GOOD = b"3 2\n2 1 0:0.6 2:0.8\n1 2 1:1.0\n2\n"


def test_the_released_format_is_read():
    documents = released.parse_documents(GOOD, WORDS, "file")
    np.testing.assert_array_equal(documents.rows.dense(), [[0.6, 0, 0.8], [0, 1, 0]])
    np.testing.assert_array_equal(documents.labels, [1, 2])
    mean = np.array([0.6, 1, 0.8])
    np.testing.assert_allclose(documents.mean, mean / np.linalg.norm(mean), rtol=8 * EPS)
    np.testing.assert_array_equal(documents.take([1]).rows.dense(), [[0, 1, 0]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"3 2", b"4 2", "of 4 words, the vocabulary has 3"),
        (b"3 2", b"three", "line 1"),
        (b"3 2", b"3 3", "4 lines, expected 5 for 3 documents; truncated"),
        (b"2 1 0", b"3 1 0", "line 2 .*2 pairs, 3 announced"),
        (b"0:0.6", b"3:0.6", "line 2 .* outside of 0..2"),
        (b"0:0.6", b"2:0.6", "line 2 .* twice"),
        (b"0:0.6", b"0:-0.6", "line 2 .* negative"),
        (b"1:1.0", b"1:nan", "line 3 .* not finite"),
        (b"1:1.0", b"1=1.0", "line 3"),
        (b"1:1.0", b"1:0.0", "document 1 is zero"),
        (b"1:1.0", b"1:0.9", "document 1 has length 0.9"),
        (b"1 2 1:", b"1 3 1:", "label"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(old, new, message):
    with pytest.raises(DataError, match=message):
        released.parse_documents(GOOD.replace(old, new), WORDS, "file")


def test_posts_become_documents_of_the_chosen_groups():
    train = corpus([0, 0], [1], [2, 0], [2], [])
    names = ("rec.sport.baseball/1", "sci.space/2", "rec.autos/3", "alt.atheism/4", "sci.space/5")
    test = corpus([0, 1], [2], [1], [2, 2])
    posts = Posts(train, test, names, ("rec.sport.baseball/9", "alt.atheism/9", "sci.space/8", "alt.atheism/7"))
    own, given = released.from_posts(posts)
    np.testing.assert_array_equal(own.labels, [1, 2, 3])
    np.testing.assert_array_equal(own.rows.dense(), np.eye(3))
    weight = np.array([np.log(4 / 2), np.log(4 / 3), 0])  # df of the test documents is (1, 2, 2)
    np.testing.assert_allclose(given.rows.dense()[0], weight / np.linalg.norm(weight), rtol=8 * EPS)
    joint = released.from_posts(posts, joint=True)[1]
    np.testing.assert_allclose(joint.rows.dense()[0], [0.5**0.5, 0.5**0.5, 0], rtol=8 * EPS)
    with pytest.raises(DataError, match="groups"):
        released.from_posts(posts, groups=("comp.graphics",))


@pytest.mark.skipif(not available(*released.FILES), reason="set SGMCMC_DATA_DIR to a directory with 20newsgroups")
def test_the_released_documents_are_tfidf_with_frequencies_of_their_own_part():
    """The values over log(D / (1 + df)) are whole multiples of one number, and the multiples give the values again."""
    for documents, total in zip(released.load_newsgroups_different(), released.TOTALS.values(), strict=True):
        df, starts = document_frequency(documents.rows), documents.rows.starts
        quotient = documents.rows.counts / np.log(total / (1 + df))[documents.rows.columns]
        tf = np.zeros_like(quotient)
        for first, last in itertools.pairwise(starts):
            ratio = quotient[first:last] / quotient[first:last].min()
            multiples = np.arange(1, 21)[:, None] * ratio  # of a least count of up to 20
            error = np.abs(multiples - np.rint(multiples)).max(axis=1) / multiples.max(axis=1)
            least = int(np.flatnonzero(error < 1e-8)[0])  # ten digits are printed
            tf[first:last] = np.rint(multiples[least])
        again = tfidf(documents.rows._replace(counts=tf), documents.vocabulary, df, total)
        # the released numbers have 11 digits, and the length of a document sums up to some hundred of them
        assert np.abs(again.rows.counts - documents.rows.counts).max() < 1e-10
