"""File of lines that a page is made of, and the page beside it: the ends of every command that publishes one."""

import argparse
import json
import sys
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
from tqdm import tqdm

from sgmcmc_verification.reports.records.jsonl import appended, commit, read

Item = TypeVar("Item")


def require_lines(parser: argparse.ArgumentParser, out: Path) -> None:
    """End the command with one line unless `out` is named as a file of lines."""
    if out.suffix != ".jsonl":
        parser.error(f"--out {out}: the name must end in .jsonl; the page is written beside it")


def complete(
    path: Path,
    wanted: Mapping[Hashable, Item],
    key: Callable[[dict[str, Any]], Hashable],
    decide: Callable[[Item, str], Mapping[str, Any]],
    unit: str,
) -> None:
    """Append the lines that a file lacks, one by one with a progress bar, so that a stopped command goes on from there.

    Args:
        path: the file of lines.
        wanted: key -> what a line is to be made of.
        key: line -> its key.
        decide: (item, commit) -> its line.
        unit: one item, in the progress bar.
    """
    done, revision = {key(line) for line in read(path)}, commit()
    left = [item for name, item in wanted.items() if name not in done]
    with appended(path) as append:
        for item in tqdm(left, unit=unit, disable=not sys.stderr.isatty()):
            append(json.dumps(decide(item, revision), sort_keys=True))
            jax.clear_caches()  # programs of one item are of no use to the next, and hundreds of them fill the memory


def publish(text: str, out: Path) -> int:
    """Write a page beside its lines, print it, and return the exit code 0."""
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0
