"""Plain text from a folder, a file of JSON lines, or a tar archive: (name, text) pairs, one at a time."""

import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from sgmcmc_verification.targets.datasets.files import DataError

Pair = tuple[str, str]


def decode(content: bytes, name: str, encoding: str = "utf-8") -> str:
    """The text of a file.

    Raises:
        DataError: naming file and line, where the bytes are not of that encoding.
    """
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}: line {line} is not {encoding} ({error.reason}); give its encoding") from None


def read_folder(folder: str | os.PathLike, suffix: str = ".txt", encoding: str = "utf-8") -> Iterator[Pair]:
    """The text files below a folder, a document each, in the order of their paths.

    Raises:
        DataError: if there is no such file, or one cannot be read.
    """
    paths = sorted(path for path in Path(folder).rglob(f"*{suffix}") if path.is_file())
    if not paths:
        raise DataError(f"{os.fspath(folder)}: no file *{suffix} below it; give the folder of the documents")
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error})") from error
        yield str(path), decode(content, str(path), encoding)


def read_json_lines(path: str | os.PathLike, field: str = "text") -> Iterator[Pair]:
    """A file of JSON lines, a document each, read line by line.

    Raises:
        DataError: naming file and line, where a line is not an object with a string under `field`.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    text = json.loads(line)[field]
                except (ValueError, KeyError, TypeError) as error:
                    problem = f"{type(error).__name__}: {error}"
                    raise DataError(
                        f"{name}: line {number} is not a JSON object with a field {field!r} ({problem}); "
                        "mend the line, or name the field that has the text"
                    ) from None
                if not isinstance(text, str):
                    raise DataError(f"{name}: line {number}: {field!r} is {type(text).__name__}, not a string")
                yield f"{name}:{number}", text
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error})") from error


def read_archive(path: str | os.PathLike, inside: str = "", encoding: str = "utf-8") -> Iterator[Pair]:
    """The files of a tar archive (plain, gzip, bzip2 or xz) whose path begins with `inside`, one pass over it.

    Raises:
        DataError: if the archive is truncated or not one, naming the last file that was whole.
    """
    last = "its beginning"
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if not member.isfile() or not name.startswith(inside):
                    continue
                file = archive.extractfile(member)
                assert file is not None
                content = file.read()
                if len(content) != member.size:
                    raise EOFError(f"{name} has {len(content)} of {member.size} bytes")
                yield name, decode(content, f"{os.fspath(path)}: {name}", encoding)
                last = name
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(
            f"{os.fspath(path)}: cannot be read after {last} ({error}); truncated, or no tar archive: fetch it again"
        ) from error
