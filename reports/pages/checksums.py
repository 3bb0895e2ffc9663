"""Checksums of the published results, so that an archived copy of them can be told from a changed one.

    python -m sgmcmc_verification.reports.pages.checksums [--write]

`SHA256SUMS` has the form of `sha256sum`, which checks it without the suite: `cd reports/published && sha256sum -c
SHA256SUMS`. Without --write the differences are printed, and the exit code is 1 if there are some.
"""

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

from sgmcmc_verification.reports.site.build import PUBLISHED

NAME = "SHA256SUMS"


def listing(folder: Path) -> str:
    """A line `digest  path` for each file of a folder and the folders in it, in the order of the paths."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != NAME)
    named = ((hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(folder).as_posix()) for path in files)
    return "".join(f"{digest}  {name}\n" for digest, name in named)


def differences(folder: Path) -> list[str]:
    """Files that were changed, added or removed since their checksums were written, one a line; none if all fit."""
    file = folder / NAME
    written = dict(_reversed(file.read_text(encoding="utf-8"))) if file.is_file() else {}
    found = dict(_reversed(listing(folder)))
    lines = [f"{name}: is not there" for name in written if name not in found]
    lines += [f"{name}: has no checksum" for name in found if name not in written]
    return sorted(lines + [f"{name}: was changed" for name in found if written.get(name, found[name]) != found[name]])


def _reversed(text: str) -> list[tuple[str, str]]:
    pairs = (line.split("  ", 1) for line in text.splitlines())
    return [(name, digest) for digest, name in pairs]


def main(arguments: Sequence[str] | None = None, folder: Path = PUBLISHED) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m sgmcmc_verification.reports.pages.checksums", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {NAME} anew")
    if parser.parse_args(arguments).write:
        (folder / NAME).write_text(listing(folder), encoding="utf-8")
    found = differences(folder)
    print("\n".join(found or [f"{folder / NAME}: all files fit"]))
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
