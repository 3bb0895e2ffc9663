"""Files of results: JSON lines that a run appends to and that the same command continues."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, overload

import msgspec
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def commit() -> str:
    """Commit of the checkout, with `+` if the code that decides has changed since; `unknown` outside of one."""
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", "targets", "samplers", "checks"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


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
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(msgspec.convert(json.loads(line), kind))
        except json.JSONDecodeError:
            if number != len(lines):
                raise ValueError(f"{path}: line {number} is not JSON; remove it, or give another --out") from None
        except msgspec.ValidationError as error:
            raise ValueError(f"{path}: line {number}: {error}; remove it, or give another file") from None
    return found


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
    """Shorten an open file to the end of its last whole line."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 4096)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    file.truncate(end)
