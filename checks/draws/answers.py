"""Reading of draws that a stranger sends: plain numbers of the right shape, or one error.

Nothing is executed: CSV is parsed as numbers, .npz without pickles, and sizes are looked at before anything is read.
"""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.bad_input import BadInput

MOST_BYTES = 1 << 30
"""Of the files of one run, packed and unpacked."""
FEWEST = 10
"""Draws of a chain."""
PARTS = ("x", "p", "work")


class Draws(NamedTuple):
    """Draws of one run.

    Attributes:
        x: positions (chains, draws, d).
        p: momenta (chains, draws, d), or None.
        work: energy error (chains, draws) of the step that led to each draw, or None.
    """

    x: np.ndarray
    p: np.ndarray | None = None
    work: np.ndarray | None = None


def read_run(folder: Path, stem: str, size: int) -> Draws | None:
    """The draws of a run; None if the folder has no file of it.

    Args:
        folder: of the problem.
        stem: of the file.
        size: d.

    Raises:
        BadInput: if there are several, or they do not hold finite numbers of the right shape.
    """
    packed = [path for path in [folder / f"{stem}.npz"] if path.is_file()]
    chains = [p for p in folder.glob(f"{stem}-*.csv") if re.fullmatch(rf"{stem}-\d+\.csv", p.name)]
    chains.sort(key=lambda path: int(path.stem.rpartition("-")[2]))
    tables = [path for path in [folder / f"{stem}.csv"] if path.is_file()]
    kinds = [kind for kind in (packed, tables, chains) if kind]
    if not kinds:
        return None
    if len(kinds) > 1:
        raise BadInput(f"{folder / stem}: draws as {' and as '.join(kind[0].name for kind in kinds)}; keep one")
    (paths,) = kinds
    if sum(path.stat().st_size for path in paths) > MOST_BYTES:
        raise BadInput(f"{paths[0]}: has more than {MOST_BYTES >> 20} MiB; keep every k-th draw")
    name = str(paths[0])
    return checked(name, _npz(paths[0]) if packed else _csv(paths, size), size)


def given_run(name: str, value: Any, size: int) -> Draws:
    """Draws of a run that are in memory.

    Args:
        name: of the run.
        value: an array (chains, draws, d), a mapping with `x` and maybe `p` and `work`, or an InferenceData of ArviZ,
            whose group `posterior` has the variables of these names.
        size: d.

    Raises:
        BadInput: as `read_run`.
    """
    posterior = getattr(value, "posterior", None)
    source = value if posterior is None else posterior
    if isinstance(source, Draws):
        return checked(name, {k: v for k, v in source._asdict().items() if v is not None}, size)
    if posterior is not None or isinstance(source, Mapping):
        return checked(name, {k: np.asarray(source[k]) for k in PARTS if k in source}, size)
    return checked(name, {"x": np.asarray(value)}, size)


def checked(name: str, parts: Mapping[str, np.ndarray], size: int) -> Draws:
    """Draws of arrays of the right shape with finite numbers. Raises BadInput."""
    if "x" not in parts:
        raise BadInput(f"{name}: has no positions x")
    arrays = {part: _numbers(f"{name}, {part}", array) for part, array in parts.items()}
    x = arrays["x"]
    if size == 1 and x.ndim == 2:
        arrays = {part: a[..., None] if part != "work" and a.ndim == 2 else a for part, a in arrays.items()}
        x = arrays["x"]
    if x.ndim != 3 or x.shape[2] != size:
        raise BadInput(f"{name}, x: has shape {x.shape}; give (chains, draws, {size})")
    if x.shape[0] < 1 or x.shape[1] < FEWEST:
        raise BadInput(f"{name}, x: has {x.shape[0]} chains of {x.shape[1]} draws; give at least {FEWEST} draws")
    for part, due in (("p", x.shape), ("work", x.shape[:2])):
        if part in arrays and arrays[part].shape != due:
            raise BadInput(f"{name}, {part}: has shape {arrays[part].shape} where x has {x.shape}; give {due}")
    return Draws(x, arrays.get("p"), arrays.get("work"))


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "fiu":
        raise BadInput(f"{name}: holds {array.dtype}; give real numbers")
    array = array.astype(np.float64)
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise BadInput(f"{name}: has {bad} values that are not finite, the first at {first} (chain, draw, ...)")
    return array


def _npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {m.filename: m.file_size for m in archive.infolist()}
        if sum(members.values()) > MOST_BYTES:
            raise BadInput(f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB; keep every k-th draw")
        with np.load(path, allow_pickle=False) as file:
            return {part: file[part] for part in PARTS if part in file.files}
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path}: is no archive of plain arrays ({' '.join(str(error).split())[:200]})") from None


def _csv(paths: list[Path], size: int) -> dict[str, np.ndarray]:
    """Columns of files; a file is a chain unless it has a column that numbers them."""
    tables: list[dict[str, np.ndarray]] = []
    for path in paths:
        tables += _chains(path, _table(path, size))
    if len({(len(t["x"]), *sorted(t)) for t in tables}) > 1:
        raise BadInput(f"{paths[0]}: chains differ in their length or columns; give the same number of draws of each")
    return {part: np.stack([t[part] for t in tables]) for part in tables[0]}


def _chains(path: Path, table: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    chain = table.pop("chain", None)
    if chain is None:
        return [table]
    labels, counts = np.unique(chain, return_counts=True)
    if len(set(counts.tolist())) > 1:
        raise BadInput(f"{path}: its chains have {counts.min()} to {counts.max()} draws; give the same number of each")
    return [{part: values[chain == label] for part, values in table.items()} for label in labels]


def _table(path: Path, size: int) -> dict[str, np.ndarray]:
    """Arrays x (n, d), p (n, d), work (n,) and chain (n,), as far as there are columns for them."""
    try:
        with path.open(encoding="utf-8") as file:
            header = next((line for line in file if line.strip() and not line.startswith("#")), "")
            columns = [name.strip().strip('"') for name in header.split(",")]
            wanted = _columns(path, columns, size)
            used = [i for indices in wanted.values() for i in indices]
            lines = [line for line in file if line.strip() and not line.startswith("#")]
        if not lines:
            raise BadInput(f"{path}: has no draws")
        numbers = np.loadtxt(lines, delimiter=",", comments="#", usecols=used, ndmin=2)
    except BadInput:
        raise
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: is no table of numbers ({' '.join(str(error).split())[:200]})") from None
    blocks, start = {}, 0
    for part, indices in wanted.items():
        block = numbers[:, start : start + len(indices)]
        blocks[part] = block if part in ("x", "p") else block[:, 0]
        start += len(indices)
    return blocks


def _columns(path: Path, columns: list[str], size: int) -> dict[str, list[int]]:
    wanted = {"x": [f"x.{i + 1}" for i in range(size)], "p": [f"p.{i + 1}" for i in range(size)]}
    wanted |= {"work": ["work"], "chain": ["chain"]}
    if len(set(columns)) < len(columns):
        raise BadInput(f"{path}: two columns have one name")
    found = {part: [columns.index(n) for n in names if n in columns] for part, names in wanted.items()}
    short = [part for part, names in wanted.items() if part == "x" or found[part] if len(found[part]) < len(names)]
    if short:
        raise BadInput(f"{path}: needs the columns {', '.join(wanted[short[0]])}; got {', '.join(columns)[:200]}")
    return {part: indices for part, indices in found.items() if indices}
