"""Labelled tables, and the parsers of the two text formats that they come in."""

from typing import NamedTuple

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError


class Table(NamedTuple):
    """Features (n, d), float64, and labels (n,), float64 in {0, 1}."""

    features: np.ndarray
    labels: np.ndarray


class Split(NamedTuple):
    """A training and a test table with the same columns."""

    train: Table
    test: Table


def with_constant(features: np.ndarray) -> np.ndarray:
    """Features (n, d) with a column of ones appended, (n, d + 1)."""
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


def parse_libsvm(content: bytes, columns: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Lines `label index:value ...` (indices from 1, ascending; an absent one is 0) -> features and labels as given.

    Args:
        content: the bytes of the file.
        columns: d, the number of features.
        name: the file's name, for messages.

    Raises:
        DataError: naming file and line, if a line is malformed.
    """
    rows, labels = [], []
    for number, line in enumerate(content.decode("ascii", "replace").splitlines(), start=1):
        row = np.zeros(columns)
        try:
            label, *fields = line.split()
            labels.append(float(label))
            last = 0
            for field in fields:
                index, value = field.split(":")
                if not last < int(index) <= columns:
                    raise ValueError(f"index {index} after {last}, of {columns}")
                last = int(index)
                row[last - 1] = float(value)
            if not np.all(np.isfinite(row)):
                raise ValueError("a value that is not finite")
        except ValueError as error:
            raise DataError(f"{name}: line {number} is not `label index:value ...`: {error}") from error
        rows.append(row)
    return np.array(rows).reshape(-1, columns), np.array(labels)


def parse_csv(content: bytes, columns: int, name: str, header: bool) -> np.ndarray:
    """Comma separated numbers -> (n, columns) float64.

    Args:
        content: the bytes of the file.
        columns: the number of fields of every line.
        name: the file's name, for messages.
        header: whether line 1 is a header.

    Raises:
        DataError: naming file and line, if a line is malformed.
    """
    lines = content.decode("ascii", "replace").splitlines()
    body = lines[1:] if header else lines
    try:
        table = np.loadtxt(body, delimiter=",", ndmin=2, comments=None) if body else np.zeros((0, columns))
        if table.shape == (len(body), columns) and np.all(np.isfinite(table)):
            return table
    except ValueError:
        pass
    # the fast parser does not say which line of the file it stopped at: find the first bad one
    for number, line in enumerate(body, start=2 if header else 1):
        fields = line.split(",")
        try:
            good = len(fields) == columns and all(np.isfinite([float(field) for field in fields]))
        except ValueError:
            good = False
        if not good:
            raise DataError(f"{name}: line {number} does not hold {columns} finite numbers separated by commas")
    raise DataError(f"{name}: not a table of {columns} numbers a line")


def expect(name: str, what: str, found: object, expected: object) -> None:
    """Raise DataError unless a count or shape is the published one."""
    if found != expected:
        raise DataError(f"{name}: {what} is {found}, expected {expected}: another version of the data?")
