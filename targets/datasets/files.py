"""Access to data files: looked up in a directory, else fetched from a pinned public source and checked.

Directories, in the order of search:
    1. `SGMCMC_DATA_DIR`, if set: read only, never written to.
    2. the cache: `SGMCMC_CACHE_DIR` if set, else the user's cache directory. Downloads go here.

A file may lie there as published or compressed with xz under its name plus `.xz`. Checksums are of the published
bytes in both cases, and are compared each time that a file is read: a damaged file never reaches a sampler.
"""

import hashlib
import lzma
import os
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_dir

DATA_VARIABLE = "SGMCMC_DATA_DIR"
CACHE_VARIABLE = "SGMCMC_CACHE_DIR"


class DataError(RuntimeError):
    """A data file is missing, damaged or malformed; the message names the file and the remedy."""


@dataclass(frozen=True)
class DataFile:
    """A published file.

    Args:
        name: path below the data directory, with forward slashes.
        url: the public source at a pinned version, or None where none can be fetched.
        sha256: checksum of the published bytes, or None where no full original was at hand; then only the shape
            and counts that its loader asserts protect it.
        origin: who made the data, and its licence as far as it is stated.
        crlf: a text file whose published lines end in CR LF; a copy whose lines end in LF alone is the same file.
    """

    name: str
    url: str | None
    sha256: str | None
    origin: str
    crlf: bool = False


def cache_directory() -> Path:
    """Folder of downloads."""
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_dir("sgmcmc-verification"))


def directories() -> tuple[Path, ...]:
    """Folders in which data files are looked for, in order."""
    given = os.environ.get(DATA_VARIABLE)
    return (Path(given), cache_directory()) if given else (cache_directory(),)


def locate(file: DataFile) -> Path | None:
    """The path of a file that is already on this machine, or None. Nothing is fetched."""
    for directory in directories():
        for name in (file.name, file.name + ".xz"):
            if (directory / name).is_file():
                return directory / name
    return None


def available(*files: DataFile) -> bool:
    """True if all files are on this machine. Nothing is fetched or checked."""
    return all(locate(file) is not None for file in files)


def fetch(file: DataFile) -> Path:
    """Download a file into the cache and check it; a failed download leaves nothing behind.

    Raises:
        DataError: if there is no public source, the source cannot be reached, or the bytes are not the expected ones.
    """
    remedy = (
        f"Set {DATA_VARIABLE} to a directory that holds {file.name} (plain, or with .xz), "
        f"or allow access to the source. Origin of the data: {file.origin}"
    )
    if file.url is None:
        raise DataError(f"{file.name}: not found in {_searched()} and without a source to fetch it from. {remedy}")
    try:
        import pooch  # here, so that listing targets does not load a network library
    except ImportError:
        raise DataError(f"{file.name}: fetching needs pooch: pip install 'sgmcmc-verification[data]'") from None
    path = cache_directory() / file.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # pooch writes to a temporary file, compares the checksum, and only then moves it into place
        pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}" if file.sha256 else None,
            fname=path.name,
            path=path.parent,
            downloader=pooch.HTTPDownloader(timeout=60),  # pyright: ignore[reportArgumentType]
        )
    except ValueError as error:
        raise DataError(
            f"{file.name}: the bytes of {file.url} are not those of the pinned version (sha256 expected "
            f"{file.sha256}); nothing was kept. {remedy}"
        ) from error
    except OSError as error:
        raise DataError(
            f"{file.name}: not found in {_searched()}, and fetching {file.url} failed ({error}). {remedy}"
        ) from error
    return path


def read(file: DataFile) -> bytes:
    """The published bytes of a file, fetched if need be, with the checksum compared.

    Raises:
        DataError: if the file cannot be had, is truncated, or has other bytes than the published ones.
    """
    path = locate(file) or fetch(file)
    try:
        content = path.read_bytes()
        if path.suffix == ".xz" and not file.name.endswith(".xz"):
            content = lzma.decompress(content)
    except (OSError, lzma.LZMAError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Delete it and run again, or fetch {file.url}") from error
    found = hashlib.sha256(content).hexdigest()
    if file.crlf and found != file.sha256:
        # version control changes line ends: put the published ones back before the content is called another one
        restored = hashlib.sha256(content.replace(b"\n", b"\r\n")).hexdigest()
        found = restored if restored == file.sha256 else found
    if file.sha256 is not None and found != file.sha256:
        raise DataError(
            f"{path}: damaged or another version: sha256 of the content is {found}, expected {file.sha256}. "
            f"Delete it and run again, or put the file of {file.url} there"
        )
    return content


def _searched() -> str:
    return " or ".join(str(directory) for directory in directories())
