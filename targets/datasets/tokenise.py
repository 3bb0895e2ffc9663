"""Plain text to words, and words to the identifiers of a vocabulary."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError
from sgmcmc_verification.targets.numerics.validation import require_some

_FOREIGN = re.compile(r"[^a-z]")
_SEPARATORS = b"-\t\n\v\f\r"
_TABLE = bytes(32 if code in _SEPARATORS else code for code in range(256))
_DROPPED = bytes(code for code in range(256) if not (97 <= code <= 122 or code == 32 or code in _SEPARATORS))


def words(text: str) -> list[str]:
    """The words of a text: lower case; white space and hyphens separate, any other character but a to z is dropped.

    Source: patterson2013stochastic, as its released program prepares text. Differs from the source in:
        1. tabs and the like separate words, which the source drops so that it joins the words beside them.

    >>> words("The state-of-the-art isn't\\nnew in 2013.")
    ['the', 'state', 'of', 'the', 'art', 'isnt', 'new', 'in']
    """
    plain = text.lower().encode("ascii", "ignore").translate(_TABLE, _DROPPED)
    return plain.decode("ascii").split()


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Distinct words; the identifier of a word is its place.

    Args:
        words: at least one.

    Raises:
        ValueError: if there is no word, or one occurs twice.
    """

    words: tuple[str, ...]
    _index: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self):
        index = {word: i for i, word in enumerate(self.words)}
        if not index:
            raise ValueError("words: a vocabulary needs at least one word")
        if len(index) < len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise ValueError(f"words: {twice!r} occurs twice; list every word once")
        object.__setattr__(self, "_index", index)

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> np.ndarray:
        """Identifiers of the words of a text that are in the vocabulary, in order, int32."""
        found = [i for i in map(self._index.get, words(text)) if i is not None]
        return np.array(found, np.int32)


def parse_vocabulary(content: bytes, name: str) -> Vocabulary:
    """One word a line -> vocabulary, in lower case.

    Args:
        content: the bytes of the file.
        name: the file's name, for messages.

    Raises:
        DataError: naming file and line, where a line is empty, not a word of a to z, or there already.
    """
    seen: dict[str, int] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
        word = line.strip().lower()
        if not word or _FOREIGN.search(word):
            raise DataError(f"{name}: line {number} is not a word of the letters a to z: {line!r}")
        if word in seen:
            raise DataError(f"{name}: line {number} repeats {word!r} of line {seen[word]}; list every word once")
        seen[word] = number
    if not seen:
        raise DataError(f"{name}: no words; give one word a line")
    return Vocabulary(tuple(seen))


def build_vocabulary(
    texts: Iterable[str], size: int, *, shortest: int = 3, least: int = 2, largest_share: float = 0.2
) -> Vocabulary:
    """The most frequent words of a collection, in alphabetical order.

    Args:
        texts: the documents; read once.
        size: most words that are kept.
        shortest: letters that a word has at least.
        least: documents that a word occurs in at least.
        largest_share: of the documents that a word may occur in; what is more frequent is taken for a word without
            content.

    Raises:
        ValueError: if an argument is out of its range.
        DataError: if no word is left.
    """
    require_some(size=size, shortest=shortest, least=least)
    if not 0 < largest_share <= 1:
        raise ValueError(f"largest_share: must lie in (0, 1], got {largest_share!r}")
    total, documents = Counter(), Counter()
    count = 0
    for text in texts:
        found = words(text)
        total.update(found)
        documents.update(set(found))
        count += 1
    kept = [
        word
        for word in total
        if len(word) >= shortest and least <= documents[word] <= max(least, largest_share * count)
    ]
    if not kept:
        raise DataError(f"texts: no word of {count} documents is left; lower `least` or raise `largest_share`")
    kept.sort(key=lambda word: (-total[word], word))
    return Vocabulary(tuple(sorted(kept[:size])))
