"""English Wikipedia of 2014: 261,409 articles, as text (34,341 of them) and as words of a vocabulary (all)."""

import re
from collections.abc import Iterable, Iterator
from html import unescape

import numpy as np

from sgmcmc_verification.targets.datasets.corpus import Corpus
from sgmcmc_verification.targets.datasets.documents import Pair
from sgmcmc_verification.targets.datasets.files import DataError, DataFile, read
from sgmcmc_verification.targets.datasets.table import expect
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary, parse_vocabulary

_ORIGIN = (
    "English Wikipedia, May 2014, WikiExtractor output in ZhouYii/PatchedDistro on GitHub at 961716d8; "
    "CC BY-SA 3.0 and GFDL, Wikipedia contributors"
)
WORDS = DataFile(
    "wikipedia/wiki.vocab",
    "https://raw.githubusercontent.com/BigBayes/SGRLD/8864f4b3f60e2abc932b4f948d8431a647032319/wiki.vocab",
    "cfb6389ebc486d1d681f3a4facb7f558414566dfd94f81253dcd3f842eb4dcde",
    "the released program of patterson2013stochastic (GPL); any file with one word a line serves instead",
)
TOKENS = DataFile(
    "wikipedia/enwiki2014_tokens.u16le",
    None,
    "7fbac241ef14b4b22eb734b429577e563c953c3fe779256eb0a2d9a888d08a3c",
    _ORIGIN,
)
DOCUMENTS = DataFile(
    "wikipedia/enwiki2014_docs.tsv",
    None,
    "b81980828e5a59f0ecabfdf6a3bfb4dc88eeff6e8a403f5efe1398606ec1a57d",
    _ORIGIN,
)
TEXT = DataFile(
    "wikipedia/enwiki2014_text_AA.tar",
    None,
    "3ff24e5f74956c2c7d074e005a7618bfaa253df4610423ffe8d8f0d46027dbbb",
    _ORIGIN,
)
FILES = (WORDS, TOKENS, DOCUMENTS)
ARTICLES, ALL_TOKENS = 261_409, 20_555_418
_OPENING = re.compile(r'<doc id="(\d+)" url="[^"]*" title="([^"]*)">')


def parse_counts(content: bytes, name: str) -> np.ndarray:
    """The column `n_vocab_tokens` of lines `curid n_words n_vocab_tokens title`, tab separated, with a header.

    Raises:
        DataError: naming file and line, if a line is malformed.
    """
    lines = content.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines or lines[0] != "curid\tn_words\tn_vocab_tokens\ttitle":
        raise DataError(f"{name}: line 1 is not the header `curid n_words n_vocab_tokens title`: truncated?")
    counts = np.zeros(len(lines) - 1, np.int64)
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != 4 or not all(field.isdecimal() for field in fields[:3]) or int(fields[2]) > int(fields[1]):
            raise DataError(f"{name}: line {number} is not `curid n_words n_vocab_tokens title`: {line[:60]!r}")
        counts[number - 2] = int(fields[2])
    return counts


def assemble(tokens: bytes, counts: np.ndarray, vocabulary: Vocabulary, name: str) -> Corpus:
    """Little-endian 16-bit identifiers and the length of each article -> corpus.

    Raises:
        DataError: if the two do not fit, or an identifier is not in the vocabulary.
    """
    total = int(counts.sum())
    if len(tokens) != 2 * total:
        raise DataError(f"{name}: {len(tokens)} bytes, the table of articles asks for {2 * total}: truncated?")
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return Corpus(np.frombuffer(tokens, "<u2"), offsets, vocabulary).checked(name)


def load_wikipedia() -> Corpus:
    """All articles, in the order in which they were created, as words of the vocabulary of 7,702.

    Articles next to each other are alike (runs of stubs made by programs): shuffle before streaming. It is the kind
    of text, but not the stream of random articles, of patterson2013stochastic.

    Raises:
        DataError: if a file cannot be had, is damaged or is not the published one.
    """
    vocabulary = parse_vocabulary(read(WORDS), WORDS.name)
    counts = parse_counts(read(DOCUMENTS), DOCUMENTS.name)
    expect(DOCUMENTS.name, "(articles, words)", (len(counts), int(counts.sum())), (ARTICLES, ALL_TOKENS))
    return assemble(read(TOKENS), counts, vocabulary, TOKENS.name)


def parse_articles(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """(file, text) of files of `<doc id=.. url=.. title=..>`, title, text, `</doc>` -> (curid, text of the article).

    The line of the title is left out and entities are replaced, as in the converted words.

    Raises:
        DataError: naming file and line, where an article does not begin or end as it should.
    """
    for name, text in pairs:
        body: list[str] | None = None
        number, curid = 0, ""
        for number, line in enumerate(text.split("\n"), start=1):
            opening = _OPENING.match(line)
            if body is None:
                if opening:
                    curid, body = opening[1], []
                elif line.strip():
                    raise DataError(f"{name}: line {number} is outside of an article: {line[:60]!r}")
            elif line == "</doc>":
                yield curid, unescape("\n".join(body[1:]))
                body = None
            elif opening:
                raise DataError(f"{name}: line {number} begins an article before </doc> of article {curid}")
            else:
                body.append(line)
        if body is not None:
            raise DataError(f"{name}: line {number} ends article {curid} without </doc>: truncated?")
