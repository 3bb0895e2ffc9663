"""20News-different: tf-idf of three distant groups of 20 Newsgroups, as the authors of SGGMC released it."""

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError, DataFile, read
from sgmcmc_verification.targets.datasets.newsgroups import Posts, load_newsgroups
from sgmcmc_verification.targets.datasets.table import expect
from sgmcmc_verification.targets.datasets.tfidf import UnitDocuments, counted, document_frequency, tfidf
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.numerics.ragged import SparseRows

_URL = "https://raw.githubusercontent.com/changliu00/Riem-SVGD/1177ae229abe70591c4e71a81c77a4ffc14fbafe/SAM/data/20News-diff/"
_ORIGIN = "Chang Liu, from 20 Newsgroups (Ken Lang); the repository states no licence"
TRAIN = DataFile(
    "20newsgroups/20News-diff/diff.train.tfidf1.data",
    _URL + "diff.train.tfidf1.data",
    "015d4bb6e0f156ed070fe07d58e21b9c89231aad736fec71fa4d6b10525df0ea",
    _ORIGIN,
)
TEST = DataFile(
    "20newsgroups/20News-diff/diff.test.tfidf1.data",
    _URL + "diff.test.tfidf1.data",
    "13f0d78314add887de57c10589c1e54440897c19b4e8417d212decc223ffc0cb",
    _ORIGIN,
)
WORDS = DataFile(
    "20newsgroups/20News-diff/diff.voc",
    _URL + "diff.voc",
    "5ec801e6fd5f4478fecefb691031e63da6a28fba00ba0ef4a32243778811af81",
    _ORIGIN,
)
FILES = (TRAIN, TEST, WORDS)
GROUPS = ("rec.sport.baseball", "sci.space", "alt.atheism")
"""Of the labels 1, 2 and 3."""
COUNTS = {TRAIN.name: (1666, 117_442, (593, 593, 480)), TEST.name: (1107, 79_379, (397, 392, 318))}
"""Documents, values and documents by label."""
TOTALS = {TRAIN.name: 1667, TEST.name: 1107}
"""D in log(D / (1 + df)) that the values were made with, as they show: one training document more than there are."""


def parse_documents(content: bytes, vocabulary: Vocabulary, name: str) -> UnitDocuments:
    """Line 1 `V D`; D lines `n label w:t w:t ...` n pairs of word (from 0) and tf-idf; a last line: number of labels.

    Args:
        content: the bytes of the file.
        vocabulary: V words.
        name: the file's name, for messages.

    Raises:
        DataError: naming file and line, if a line is malformed, a word is out of range or twice in a document, a value
            is negative or not finite; naming the document, if its length is not 1.
    """
    lines = content.decode("ascii", "replace").splitlines()
    try:
        width, count = (int(field) for field in lines[0].split())
    except (ValueError, IndexError) as error:
        raise DataError(f"{name}: line 1 is not `V D`, the numbers of words and documents ({error})") from None
    if width != len(vocabulary):
        raise DataError(f"{name}: of {width} words, the vocabulary has {len(vocabulary)}; give the one of the file")
    if len(lines) != count + 2:
        raise DataError(f"{name}: {len(lines)} lines, expected {count + 2} for {count} documents; truncated?")
    starts, words, values, labels = [0], [], [], []
    for number, line in enumerate(lines[1:-1], start=2):
        try:
            entries, label, *pairs = line.split()
            if len(pairs) != int(entries):
                raise ValueError(f"{len(pairs)} pairs, {entries} announced")
            split = [pair.split(":") for pair in pairs]
            found = np.array([int(w) for w, _ in split], np.int64)
            value = np.array([float(t) for _, t in split])
            if found.size and not (found.min() >= 0 and found.max() < width):
                raise ValueError(f"a word outside of 0..{width - 1}")
            if len(np.unique(found)) < len(found):
                raise ValueError("a word twice")
            if not np.all(np.isfinite(value) & (value >= 0)):
                raise ValueError("a tf-idf that is negative or not finite")
            labels.append(int(label))
        except ValueError as error:
            raise DataError(f"{name}: line {number} is not `n label word:tfidf ...` ({error})") from None
        words.append(found)
        values.append(value)
        starts.append(starts[-1] + len(found))
    kinds = np.array(labels)
    if not lines[-1].strip().isdigit() or np.any((kinds < 1) | (kinds > int(lines[-1]))):
        raise DataError(f"{name}: line {len(lines)} is not the number of labels, or a label is above it")
    rows = SparseRows(np.array(starts), np.concatenate(words).astype(np.int32), np.concatenate(values), width)
    return UnitDocuments(rows, vocabulary, kinds, name)


def load_newsgroups_different() -> tuple[UnitDocuments, UnitDocuments]:
    """(train, test): 1,666 and 1,107 documents of 5,000 words, labels 1 to 3 (`GROUPS`), as released.

    Raises:
        DataError: if a file cannot be had, is damaged or is not the published one.
    """
    words = read(WORDS).decode("ascii", "replace").split("\n")
    vocabulary = Vocabulary(tuple(words[:-1] if words[-1] == "" else words))
    parts = []
    for file in (TRAIN, TEST):
        documents = parse_documents(read(file), vocabulary, file.name)
        assert documents.labels is not None
        found = (len(documents), len(documents.rows.counts), tuple(np.bincount(documents.labels)[1:].tolist()))
        expect(file.name, "(documents, values, documents by label)", found, COUNTS[file.name])
        parts.append(documents)
    return parts[0], parts[1]


def from_posts(
    posts: Posts | None = None,
    groups: tuple[str, ...] = GROUPS,
    vocabulary: Vocabulary | None = None,
    joint: bool = False,
) -> tuple[UnitDocuments, UnitDocuments]:
    """(train, test) made from the raw posts; documents without a word of the vocabulary are left out.

    Differs from the released data in the tokens (`targets.datasets.tokenise`) and in the posts, of which they lack a
    few.

    Args:
        posts: None loads them.
        groups: label k + 1 is that of `groups[k]`.
        vocabulary: the words, where `posts` is None.
        joint: take df and D of the training documents for the test documents, else their own, as released.

    Raises:
        DataError: as `load_newsgroups` and `tfidf`.
    """
    posts = load_newsgroups(vocabulary) if posts is None else posts
    parts, frequency, total = [], None, None
    for corpus, names in ((posts.train, posts.train_names), (posts.test, posts.test_names)):
        kinds = np.array([groups.index(g) + 1 if g in groups else 0 for g in (n.partition("/")[0] for n in names)])
        chosen = np.flatnonzero((kinds > 0) & (corpus.lengths > 0))
        if chosen.size == 0:
            raise DataError(f"groups: no post of {groups} has a word of the vocabulary; check their names")
        tf = counted(corpus.take(chosen))
        given = (frequency, total) if joint and parts else (None, None)
        parts.append(tfidf(tf, corpus.vocabulary, *given, labels=kinds[chosen], name="posts"))
        frequency, total = document_frequency(tf), tf.size
    return parts[0], parts[1]
