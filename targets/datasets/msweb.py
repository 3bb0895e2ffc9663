"""Anonymous Microsoft web data: which of 294 areas of a site each of 32,711 and 5,000 users visited."""

from typing import NamedTuple

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError, DataFile, read
from sgmcmc_verification.targets.datasets.table import expect
from sgmcmc_verification.targets.numerics.ragged import SparseRows

_ORIGIN = (
    "UCI Anonymous Microsoft Web Data, J. Breese, D. Heckerman and C. Kadie, 1998, "
    "https://archive.ics.uci.edu/dataset/4 (anonymous-msweb.data, anonymous-msweb.test)"
)
# UCI serves these files without a version; a repository that holds copies of them can be pinned.
_ROOT = "https://raw.githubusercontent.com/JeffreyWa/ms-data-rse/99f94e20adfdd911fe72d93a175473ad5e515691/data/"
TRAIN = DataFile(
    "msweb/anonymous-msweb.data",
    _ROOT + "anonymous-msweb.data",
    "2a1300e9e0962dd6eb4d5982ab06cf04461f942f3faed82451661740a13dcd72",
    _ORIGIN,
    crlf=True,
)
TEST = DataFile(
    "msweb/anonymous-msweb.test",
    _ROOT + "anonymous-msweb.test",
    "a1dc9f9d73c7957bb14048b4040d5cd4f8f0abbcd0dbc6195ab781e45894b75b",
    _ORIGIN,
    crlf=True,
)
FILES = (TRAIN, TEST)
AREAS = 294
# users, visits
COUNTS = {TRAIN.name: (32_711, 98_654), TEST.name: (5_000, 15_191)}


class Visits(NamedTuple):
    """Contents of one file.

    Attributes:
        users: one row a user with a visit, a count of 1 for each area visited, columns in the order of `areas`.
        areas: (d,) the numbers of the areas, ascending.
        titles: (d,) their titles.
        dropped: number of users without a visit, who have no row.
    """

    users: SparseRows
    areas: np.ndarray
    titles: tuple[str, ...]
    dropped: int


class MSWeb(NamedTuple):
    """Training and test users over the same areas."""

    train: Visits
    test: Visits


def parse(content: bytes, name: str) -> Visits:
    """One file -> visits, without counts being checked.

    Lines are `A,<area>,1,"title","url"`, `C,"<case>",<case>`, which starts a user, and `V,<area>,1`, a visit of this
    user; lines of the types I, T and N describe the format and are skipped.

    Args:
        content: the bytes of the file.
        name: its name, for messages.

    Raises:
        DataError: naming file and line, if a line is malformed, a visit has no user or no known area, or a user, an
            area or a visit of a user is there twice.
    """
    titles: dict[int, str] = {}
    cases: set[int] = set()
    visits: list[list[int]] = []
    seen: set[int] = set()
    for number, line in enumerate(content.decode("latin-1").splitlines(), start=1):
        kind, _, rest = line.partition(",")
        try:
            if kind == "V":
                area, weight = rest.split(",")
                if weight != "1" or not visits:
                    raise ValueError("a visit with another weight than 1, or before the first user")
                _once(int(area), seen, "area visited twice")
                if int(area) not in titles:
                    raise ValueError(f"area {area} is on no A line before")
                visits[-1].append(int(area))
            elif kind == "C":
                quoted, case = rest.split(",")
                if quoted != f'"{case}"':
                    raise ValueError("the two numbers of the user differ")
                _once(int(case), cases, "user")
                visits.append([])
                seen = set()
            elif kind == "A":
                area, weight, title = rest.split(",", 2)
                if weight != "1" or int(area) in titles:
                    raise ValueError("an area that is there twice, or with another weight than 1")
                title, separator, url = title.rpartition('","')
                if not (separator and title.startswith('"') and url.endswith('"')):
                    raise ValueError("title and url in quotation marks are missing")
                titles[int(area)] = title[1:]
            elif kind not in ("I", "T", "N"):
                raise ValueError("unknown type")
        except ValueError as error:
            raise DataError(f"{name}: line {number} is no line of the types A, C, V, I, T, N: {error}") from error
    areas = np.array(sorted(titles), np.int64)
    rows = [row for row in visits if row]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    columns = np.searchsorted(areas, np.array([area for row in rows for area in row], np.int64)).astype(np.int32)
    users = SparseRows(starts, columns, np.ones(len(columns)), len(areas))
    return Visits(users, areas, tuple(titles[int(area)] for area in areas), len(visits) - len(rows))


def load_msweb() -> MSWeb:
    """The users of both files, those without a visit dropped.

    Source: the data of baker2018large, section 4.2. Differs from the source in:
        1. its script that reads the files was not published; areas are in the order of their numbers.

    Raises:
        DataError: if a file cannot be had, is damaged or is not the published one.
    """
    parts = []
    for file in FILES:
        visits = parse(read(file), file.name)
        found = visits.users.size + visits.dropped, len(visits.users.columns)
        expect(file.name, "(users, visits)", found, COUNTS[file.name])
        expect(file.name, "the number of areas", visits.users.width, AREAS)
        parts.append(visits)
    train, test = parts
    expect(TEST.name, "the list of areas", test.areas.tolist(), train.areas.tolist())
    return MSWeb(train, test)


def _once(number: int, seen: set[int], what: str) -> None:
    if number in seen:
        raise ValueError(f"{what}: {number}")
    seen.add(number)
