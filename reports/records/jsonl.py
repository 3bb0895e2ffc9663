"""Files of results: JSON lines that a run appends to and that the same command continues."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, overload

import msgspec
from filelock import FileLock

from sgmcmc_verification.checks.core.revision import commit as commit

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


@overload
def read(path: Path) -> list[dict[str, Any]]: ...
@overload
def read(path: Path, kind: type[T]) -> list[T]: ...
def read(path: Path, kind: Any = dict[str, Any]) -> list[Any]:
    """Lines of a file of results; a last line that was cut off by an interruption is dropped.

    Args:
        path: the file; one that is missing has no lines.
        kind: type of a line, against which it is validated.

    Raises:
        ValueError: a line is not JSON, or not of this type; the message names file and line.
    """
    return whole_lines(path, kind)[0]


def whole_lines(path: Path, kind: Any = dict[str, Any]) -> tuple[list[Any], bool]:
    """As `read`, and True if a last line was dropped: the run that wrote the file did not end."""
    if not path.is_file():
        return [], False
    lines = path.read_bytes().splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(msgspec.convert(json.loads(line), kind))
        except (json.JSONDecodeError, UnicodeDecodeError):
            if number == len(lines):
                return found, True
            raise ValueError(f"{path}: line {number} is not JSON; remove it, or give another --out") from None
        except msgspec.ValidationError as error:
            raise ValueError(f"{path}: line {number}: {error}; remove it, or give another file") from None
    return found, False


@contextmanager
def appended(path: Path, key: Callable[[dict[str, Any]], Any] | None = None) -> Iterator[Callable[[str], bool]]:
    """Function that appends a line of JSON to a file at once, and returns True if it did.

    Several processes may append to one file: a lock file beside it orders them. What an interrupted one left of a
    line is cut off before the next line is written.

    Args:
        path: the file.
        key: identifies a line; one whose key is in the file already is not written again. None writes all.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{path}.lock")
    known: set[Any] = set()
    size = -1

    def append(line: str) -> bool:
        nonlocal known, size
        with lock, path.open("ab+") as file:
            drop_cut_line(file)
            if key is not None:
                if file.seek(0, os.SEEK_END) != size:  # another process has written to it
                    known = {key(old) for old in read(path)}
                new = key(json.loads(line))
                if new in known:
                    return False
                known.add(new)
            file.write(line.encode() + b"\n")
            size = file.seek(0, os.SEEK_END)
        return True

    with lock, path.open("ab+") as file:
        drop_cut_line(file)
    yield append


def drop_cut_line(file: BinaryIO) -> None:
    """Shorten an open file to the end of its last whole line; a line of JSON that lacks its end alone is given it."""
    size = end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 4096)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    file.seek(end)
    if end < size and _is_json(file.read()):
        file.write(b"\n")
    else:
        file.truncate(end)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
