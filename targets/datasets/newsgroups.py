"""20 Newsgroups, the version sorted by date: 11,314 training and 7,532 test posts of 20 groups."""

from collections.abc import Iterator
from dataclasses import dataclass

from sgmcmc_verification.targets.datasets.corpus import Corpus, from_documents
from sgmcmc_verification.targets.datasets.documents import Pair, read_archive
from sgmcmc_verification.targets.datasets.files import DataError, DataFile, fetch, locate
from sgmcmc_verification.targets.datasets.table import expect
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary, build_vocabulary

ARCHIVE = DataFile(
    "20newsgroups/20news-bydate.tar",
    None,
    "f99f198e90aad63e2b129e88a6d3889df240964881087c3066adb7bcb11b6919",
    "Ken Lang, 20 Newsgroups, sorted by date; the posts are of Usenet and state no licence",
)
FILES = (ARCHIVE,)
COUNTS = {"train": 11_314, "test": 7_532}
GROUPS = 20


@dataclass(frozen=True, eq=False)
class Posts:
    """Training and test posts with one vocabulary, and the group of each as `group/number`."""

    train: Corpus
    test: Corpus
    train_names: tuple[str, ...]
    test_names: tuple[str, ...]


def body(text: str) -> str:
    """A post without its header, which ends with the first empty line; the whole text where there is none."""
    return text.partition("\n\n")[2] or text


def read_posts(part: str) -> Iterator[Pair]:
    """(group/number, text without its header) of the posts of a part, `train` or `test`; latin-1.

    Raises:
        DataError: if the archive cannot be had or is damaged.
        ValueError: if `part` is unknown.
    """
    if part not in COUNTS:
        raise ValueError(f"part: must be 'train' or 'test', got {part!r}")
    inside = f"20news-bydate-{part}/"
    for name, text in read_archive(locate(ARCHIVE) or fetch(ARCHIVE), inside, "latin-1"):
        group, _, number = name.removeprefix(inside).partition("/")
        if not group or not number:
            raise DataError(f"{ARCHIVE.name}: {name} is not group/number below {inside}")
        yield f"{group}/{number}", body(text)


def load_newsgroups(vocabulary: Vocabulary | None = None, size: int = 8000) -> Posts:
    """The posts as words of a vocabulary.

    Args:
        vocabulary: the words; None builds one of the `size` most frequent words of the training posts
            (`build_vocabulary` with its usual limits).
        size: of a vocabulary that is built.

    Raises:
        DataError: if the archive cannot be had, is damaged or has other posts than the published one.
    """
    parts = {part: dict(read_posts(part)) for part in COUNTS}
    for part, posts in parts.items():
        expect(f"{ARCHIVE.name} ({part})", "(posts, groups)", (len(posts), len(groups(posts))), (COUNTS[part], GROUPS))
    if vocabulary is None:
        vocabulary = build_vocabulary(parts["train"].values(), size)
    train, test = (from_documents([vocabulary.encode(t) for t in parts[p].values()], vocabulary) for p in COUNTS)
    return Posts(train, test, tuple(parts["train"]), tuple(parts["test"]))


def groups(names) -> set[str]:
    """The groups of posts named `group/number`."""
    return {name.partition("/")[0] for name in names}
