"""Cells of experiments, which identify a result, and the file with which an interrupted run continues."""

import argparse
import dataclasses
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import jax
from tqdm import tqdm

from sgmcmc_verification.reports.records.jsonl import appended, read

PUBLISHED = Path(__file__).resolve().parents[2] / "published" / "experiments"
OUT = Path("build") / "experiments"
"""Default folder of results, below the folder of the command."""


class Line(TypedDict):
    """Line of a file of an experiment: a cell, its result, and the circumstances of its computation."""

    cell: dict[str, Any]
    result: dict[str, Any]
    seconds: float
    commit: str
    versions: dict[str, str]


Lines = dict[str, Line]


class Keyed:
    """A dataclass whose fields, `seed` among them, identify a line of results."""

    seed: int
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def key(self) -> str:
        """Identifier of its line in a file of results."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @property
    def random(self) -> jax.Array:
        """Key of its random numbers, another one for every cell."""
        return jax.random.fold_in(jax.random.key(self.seed), zlib.crc32(self.key.encode()))


def load(file: Path) -> Lines:
    """Lines of a file by the keys of their cells. Raises ValueError for a line that is not of an experiment."""
    return {json.dumps(line["cell"], sort_keys=True): line for line in read(file, Line)}


def append(
    cells: Iterable[Any],
    file: Path,
    evaluate: Callable[[Any], dict[str, Any]],
    revision: str,
    packages: dict[str, str],
) -> None:
    """Compute the cells that the file lacks and append them.

    Args:
        cells: `Keyed` dataclasses.
        file: of JSON lines; a last line that was cut off is removed.
        evaluate: cell -> result.
        revision: commit of the checkout.
        packages: versions to note.
    """
    kept, everything = load(file), list(cells)
    queue = [cell for cell in everything if cell.key not in kept]
    if queue:
        print(announcement(queue, len(everything), file.stem), file=sys.stderr)
    with appended(file) as write:
        for cell in tqdm(queue, unit="cell", disable=not sys.stderr.isatty(), mininterval=1.0):
            began = time.perf_counter()
            line: Line = {
                "cell": json.loads(cell.key),
                "result": evaluate(cell),
                "seconds": round(time.perf_counter() - began, 2),
                "commit": revision,
                "versions": packages,
            }
            write(json.dumps(line, sort_keys=True))


def announcement(queue: Sequence[Keyed], number: int, name: str) -> str:
    """Line that says how many cells there are to compute, and how long they took in the run that is published."""
    took = {key: line["seconds"] for key, line in load(PUBLISHED / f"{name}.jsonl").items()}
    known = [took[cell.key] for cell in queue if cell.key in took]
    text = f"{name}: {len(queue)} of {number} cells to compute"
    if not known:
        return text
    # those that the published run lacks are taken to last as long as the others
    minutes = sum(known) / len(known) * len(queue) / 60
    return f"{text}, which took {minutes:.0f} min where they were published" if minutes >= 1 else text


def command_line(arguments: Sequence[str] | None, file: str, name: str, duration: str) -> tuple[bool, Path]:
    """(quick, folder) from the command line of the experiment in this file.

    Without `--resume` the file of results NAME.jsonl of an earlier run is set aside, as NAME.jsonl.earlier.
    """
    module = ".".join(Path(file).resolve().with_suffix("").parts[-2:])
    parser = argparse.ArgumentParser(prog=f"python -m sgmcmc_verification.reports.experiments.{module}")
    parser.add_argument("--quick", action="store_true", help=f"a small version in under {duration}")
    parser.add_argument("--resume", action="store_true", help="keep the lines that the folder has; default: anew")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"default: {OUT}, with --quick {OUT / 'quick'}")
    given = parser.parse_args(arguments)
    folder = given.out or (OUT / "quick" if given.quick else OUT)
    if folder.suffix == ".jsonl" or folder.is_file():
        parser.error(f"--out {folder}: name a folder; {name}.jsonl, the figure and the page are written into it")
    lines = folder / f"{name}.jsonl"
    if lines.is_file() and not given.resume:
        lines.replace(lines.with_name(f"{lines.name}.earlier"))
    return given.quick, folder
