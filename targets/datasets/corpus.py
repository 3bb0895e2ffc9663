"""Ragged collections of documents: two flat arrays, in memory or mapped from files, without padding."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary, parse_vocabulary

FORMAT = 1
TOKENS, OFFSETS, WORDS, HEADER = "tokens.npy", "offsets.npy", "vocabulary.txt", "corpus.json"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents as the identifiers of their words, in the order of the text.

    Document d is `tokens[offsets[d] : offsets[d + 1]]`. Both arrays may be mapped from files (`load_corpus`): then only
    what is looked at is in memory.

    Args:
        tokens: (T,), integers in 0..V-1.
        offsets: (D + 1,), int64, from 0 to T, not decreasing.
        vocabulary: V words.

    Raises:
        ValueError: if the arrays do not fit. That tokens are in range is asked of `checked`, which reads them all.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    vocabulary: Vocabulary

    def __post_init__(self):
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) < 1 or offsets[0] != 0 or np.any(np.diff(offsets) < 0):
            raise ValueError("offsets: must start at 0 and not decrease, one more than there are documents")
        if self.tokens.ndim != 1 or len(self.tokens) != offsets[-1]:
            raise ValueError(f"tokens: {self.tokens.shape} does not fit offsets that end at {offsets[-1]}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of words of each document (D,)."""
        return np.diff(self.offsets)

    def document(self, number: int) -> np.ndarray:
        """The words of a document (n,)."""
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    def take(self, numbers: Sequence[int] | np.ndarray) -> "Corpus":
        """The documents of these numbers, in that order, in memory."""
        return from_documents([self.document(int(i)) for i in numbers], self.vocabulary)

    def checked(self, name: str = "tokens") -> "Corpus":
        """The same, once every token was found to be in the vocabulary.

        Raises:
            DataError: if one is not; `name` says of what.
        """
        for start in range(0, len(self.tokens), 1 << 24):
            part = np.asarray(self.tokens[start : start + (1 << 24)])
            bad = np.flatnonzero((part < 0) | (part >= len(self.vocabulary)))
            if bad.size:
                at = start + int(bad[0])
                document = int(np.searchsorted(self.offsets, at, side="right")) - 1
                raise DataError(
                    f"{name}: word {at - int(self.offsets[document])} of document {document} is {part[bad[0]]}, "
                    f"the vocabulary has {len(self.vocabulary)} words"
                )
        return self


def token_type(size: int) -> type[np.unsignedinteger]:
    """The smallest unsigned type for the identifiers of `size` words."""
    return np.uint16 if size <= 1 << 16 else np.uint32


def from_documents(documents: Sequence[np.ndarray], vocabulary: Vocabulary) -> Corpus:
    """A corpus in memory from arrays of identifiers."""
    offsets = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(d) for d in documents], out=offsets[1:])
    kind = token_type(len(vocabulary))
    parts = [np.asarray(d, kind) for d in documents]
    return Corpus(np.concatenate(parts) if parts else np.zeros(0, kind), offsets, vocabulary)


def completion_split(corpus: Corpus, every: int = 10) -> tuple[Corpus, Corpus]:
    """Split each document into what is seen and what is to be predicted: the words 0, `every`, 2 `every`, ...

    Source: patterson2013stochastic, section 5 (document completion), as its released program splits.

    Returns:
        (seen, predicted), of as many documents each.
    """
    lengths = corpus.lengths
    within = np.arange(len(corpus.tokens)) - np.repeat(corpus.offsets[:-1], lengths)
    predicted = within % every == 0

    def part(mask, counts):
        offsets = np.zeros(len(corpus) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return Corpus(np.asarray(corpus.tokens)[mask], offsets, corpus.vocabulary)

    counts = (lengths + every - 1) // every
    return part(~predicted, lengths - counts), part(predicted, counts)


# Files -------------------------------------------------------------------------------------------------------------


def write_corpus(documents: Iterable[np.ndarray], vocabulary: Vocabulary, folder: str | os.PathLike) -> Corpus:
    """Write documents to a folder as they come, so that they never are in memory together.

    The folder appears whole or not at all: files are written to a temporary one beside it, which is then renamed.

    Args:
        documents: arrays of identifiers; read once. An error in it leaves nothing behind.
        vocabulary: the words.
        folder: must not exist yet.

    Returns:
        The corpus, mapped from the files.

    Raises:
        ValueError: if the folder exists.
    """
    folder = Path(folder)
    if folder.exists():
        raise ValueError(f"folder: {folder} exists; give another one, or delete it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=folder.name, suffix=".tmp"))
    try:
        kind = np.dtype(token_type(len(vocabulary)))
        ends = [0]
        with (temporary / "raw").open("wb") as file:
            for document in documents:
                file.write(np.asarray(document, kind).tobytes())
                ends.append(ends[-1] + len(document))
        tokens = np.lib.format.open_memmap(temporary / TOKENS, mode="w+", dtype=kind, shape=(ends[-1],))
        if ends[-1]:
            raw = np.memmap(temporary / "raw", kind, "r")
            for start in range(0, ends[-1], 1 << 22):
                tokens[start : start + (1 << 22)] = raw[start : start + (1 << 22)]
            del raw
        tokens.flush()
        del tokens
        (temporary / "raw").unlink()
        np.save(temporary / OFFSETS, np.array(ends, np.int64))
        (temporary / WORDS).write_text("\n".join(vocabulary.words) + "\n", encoding="utf-8")
        counts = {"documents": len(ends) - 1, "tokens": ends[-1], "words": len(vocabulary)}
        (temporary / HEADER).write_text(json.dumps({"format": FORMAT, **counts}), encoding="utf-8")
        for path in temporary.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return load_corpus(folder)


def load_corpus(folder: str | os.PathLike) -> Corpus:
    """The corpus that `write_corpus` left in a folder, mapped from its files.

    Raises:
        DataError: if a file is missing, truncated, or not of the same corpus.
    """
    folder = Path(folder)
    remedy = f"delete {folder} and make it again"
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        if header["format"] != FORMAT:
            raise DataError(f"{folder / HEADER}: format {header['format']}, this version reads {FORMAT}; {remedy}")
        tokens = np.load(folder / TOKENS, mmap_mode="r", allow_pickle=False) if header["tokens"] else np.zeros(0, "u2")
        offsets = np.load(folder / OFFSETS, allow_pickle=False)
        vocabulary = parse_vocabulary((folder / WORDS).read_bytes(), str(folder / WORDS))
        corpus = Corpus(tokens, offsets, vocabulary)
        found = {"documents": len(corpus), "tokens": len(tokens), "words": len(vocabulary)}
        if found != {name: header[name] for name in found}:
            raise ValueError(f"counts are {found}, {HEADER} says {header}")
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise DataError(f"{folder}: not a whole corpus ({error}); {remedy}") from error
    return corpus
