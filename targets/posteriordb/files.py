"""The files of posteriordb: posterior, data, reference draws and what is recorded of them, checked as they are read."""

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from sgmcmc_verification.targets.datasets.files import DataError, DataFile, read
from sgmcmc_verification.targets.posteriordb.expectations import rank_rhat
from sgmcmc_verification.targets.reference import THRESHOLDS

Kind = Literal["posterior", "data", "data_info", "draws", "draws_info"]

DATABASE: Mapping[Kind, str] = {
    "posterior": "posteriors/{}.json",
    "data": "data/data/{}.json.zip",
    "data_info": "data/info/{}.info.json",
    "draws": "reference_posteriors/draws/draws/{}.json.zip",
    "draws_info": "reference_posteriors/draws/info/{}.info.json",
}
"""The layout of posteriordb."""

FLAT: Mapping[Kind, str] = {
    "posterior": "posteriors/{}.json",
    "data": "data/{}.json.zip",
    "data_info": "data_info/{}.info.json",
    "draws": "draws/{}.json.zip",
    "draws_info": "draws_info/{}.info.json",
}
"""The same with one folder for each kind of file."""

ENTRY = re.compile(r"([A-Za-z]\w*)(?:\[(\d+(?:,\d+)*)\])?")
"""A column of the draws: `sigma`, `beta[2]`, `L[2,1]`."""


class Content(NamedTuple):
    """The bytes of a file, and the name that errors call it by."""

    where: str
    content: bytes


class Source(Protocol):
    """Source of the files."""

    def read(self, kind: Kind, name: str) -> Content:
        """The file of a kind. Raises DataError, naming the file and the remedy."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder on this machine: posteriordb itself, its `posterior_database`, or the flat layout.

    Args:
        path: the folder.
    """

    path: Path

    def read(self, kind: Kind, name: str) -> Content:
        """Contents of a file of a kind and name."""
        root = self._root()
        layout = DATABASE if (root / "reference_posteriors").is_dir() else FLAT
        path = root / layout[kind].format(name)
        try:
            return Content(str(path), path.read_bytes())
        except FileNotFoundError:
            there = sorted(p.name.removesuffix(layout[kind].format("")[1:]) for p in path.parent.glob("*.json*"))
            known = ", ".join(there[:12]) + (", .." if len(there) > 12 else "") if there else "none"
            raise DataError(f"{path}: there is no such file; put it there, or name one of: {known}") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error})") from error

    def _root(self) -> Path:
        for root in (self.path, self.path / "posterior_database"):
            if (root / "posteriors").is_dir():
                return root
        raise DataError(
            f"{self.path}: not a folder in the layout of posteriordb; name one that holds posteriors/, or a clone of it"
        )


@dataclass(frozen=True)
class Pinned:
    """Published files with checksums: looked up on this machine, else fetched, see `targets.datasets.files`.

    Args:
        folder: name of their folder below the data directory, where they lie in the flat layout.
        root: URL of the layout of posteriordb at a pinned version.
        sha256: checksums by kind and name.
        origin: who made the data, and the licence.
    """

    folder: str
    root: str
    sha256: Mapping[Kind, Mapping[str, str]]
    origin: str

    def file(self, kind: Kind, name: str) -> DataFile:
        """The published file of a kind."""
        path, url = f"{self.folder}/{FLAT[kind].format(name)}", f"{self.root}/{DATABASE[kind].format(name)}"
        return DataFile(path, url, self.sha256[kind][name], self.origin)

    def read(self, kind: Kind, name: str) -> Content:
        """Contents of a file of a kind and name."""
        file = self.file(kind, name)
        return Content(file.name, read(file))


@dataclass(frozen=True)
class Fields:
    """An object of JSON, read field by field with its types and shapes checked.

    Args:
        where: name of the file.
        values: the object.
    """

    where: str
    values: Mapping[str, Any]

    def error(self, key: str, problem: str) -> DataError:
        """The error that a field of this file is wrong."""
        return DataError(f"{self.where}: {key}: {problem}; replace the file by the published one, or correct it")

    def get(self, key: str, kind: type | tuple[type, ...]) -> Any:
        """A field of a type."""
        if key not in self.values:
            raise self.error(key, "is missing")
        if not isinstance(self.values[key], kind):
            raise self.error(key, f"must not be {str(self.values[key])[:40]!r}")
        return self.values[key]

    def number(self, key: str) -> float:
        """A finite number."""
        return float(self._array(key, ()))

    def positive(self, key: str) -> float:
        """A finite positive number."""
        if not self.number(key) > 0:
            raise self.error(key, f"must be positive, got {self.number(key)}")
        return self.number(key)

    def count(self, key: str) -> int:
        """A positive integer."""
        if self.number(key) != int(self.number(key)) or self.number(key) < 1:
            raise self.error(key, f"must be a positive integer, got {self.number(key)}")
        return int(self.number(key))

    def vector(self, key: str, size: int) -> np.ndarray:
        """Finite numbers (size,)."""
        return self._array(key, (size,))

    def matrix(self, key: str, rows: int, columns: int) -> np.ndarray:
        """Finite numbers (rows, columns); a list of rows in JSON."""
        return self._array(key, (rows, columns))

    def _array(self, key: str, shape: tuple[int, ...]) -> np.ndarray:
        try:
            array = np.asarray(self.get(key, (list, int, float)), np.float64)
        except (ValueError, TypeError):
            raise self.error(key, "must be numbers") from None
        if array.shape != shape:
            raise self.error(key, f"must have shape {shape}, got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise self.error(key, "must be finite")
        return array


class Quality(NamedTuple):
    """Records of posteriordb on its reference draws, entry by entry of `names`.

    Attributes:
        names: columns of the draws.
        ess_bulk: bulk effective sample sizes.
        ess_tail: tail effective sample sizes.
        rhat: rank-normalised split R-hat.
        divergent: divergent transitions of each chain; () if the method knows none.
        checks: the checks that its authors made, and whether they passed.
        method: how the draws were made.
        arguments: of the method.
    """

    names: tuple[str, ...]
    ess_bulk: tuple[float, ...]
    ess_tail: tuple[float, ...]
    rhat: tuple[float, ...]
    divergent: tuple[int, ...]
    checks: Mapping[str, bool]
    method: str
    arguments: Mapping[str, Any]


class Draws(NamedTuple):
    """Reference draws.

    Attributes:
        where: the file.
        values: by name, (chains, draws, *shape of the quantity).
        quality: what is recorded of them.
    """

    where: str
    values: Mapping[str, np.ndarray]
    quality: Quality


@dataclass(frozen=True, eq=False)
class Posterior:
    """A posterior as posteriordb has it.

    Attributes:
        name: of the posterior.
        model: name of the model.
        data: of the model.
        title: of the data.
        draws: reference draws; those of another posterior where two are the same law.
        where: file of the posterior.
    """

    name: str
    model: str
    data: Fields
    title: str
    draws: Draws
    where: str


def load(source: Source, name: str) -> Posterior:
    """Read a posterior with its data and reference draws.

    Checked, in this order: posterior, data info, data, the record of the draws, the draws. Draws are refused if their
    record says that a check failed or misses the thresholds of `targets.reference`, if they are not those that are
    recorded, are not finite, or their own R-hat misses the threshold.

    Args:
        source: a `Folder` or `Pinned` files.
        name: of the posterior.

    Raises:
        DataError: naming the file, what is wrong, and the remedy.
    """
    posterior = _json(source.read("posterior", name))
    model, data_name = posterior.get("model_name", str), posterior.get("data_name", str)
    dimensions = posterior.get("dimensions", dict)
    for key, size in dimensions.items():
        if not isinstance(size, int) or size < 1:
            raise posterior.error("dimensions", f"{key}: must be a positive integer, got {size!r}")
    if posterior.values.get("reference_posterior_name") is None:
        raise DataError(
            f"{posterior.where}: reference_posterior_name: there are no reference draws, without which no sampler can "
            "be judged; choose another posterior, or add draws with their record"
        )
    title = _json(source.read("data_info", data_name)).get("title", str)
    data = _object(*_zipped(source.read("data", data_name)))
    reference = posterior.get("reference_posterior_name", str)
    record = _json(source.read("draws_info", reference))
    quality, shape = _quality(record)
    draws = _draws(*_zipped(source.read("draws", reference)), dimensions, quality, shape)
    return Posterior(name, model, data, title, draws, posterior.where)


def _json(file: Content) -> Fields:
    try:
        return _object(file.where, json.loads(file.content))
    except ValueError as error:
        raise DataError(f"{file.where}: not JSON ({error}); replace it by the published file") from error


def _object(where: str, values: Any) -> Fields:
    if not isinstance(values, dict):
        raise DataError(f"{where}: must hold an object of JSON; replace it by the published file")
    return Fields(where, values)


def _zipped(file: Content) -> tuple[str, Any]:
    """The name of an archive and the JSON in it."""
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            members = [m for m in archive.namelist() if m.endswith(".json") and not m.startswith("__MACOSX")]
            content = [archive.read(member) for member in members]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{file.where}: damaged archive ({error}); put the published file there") from error
    if len(members) != 1:
        raise DataError(f"{file.where}: must hold one file of JSON, got {members}; put the published file there")
    try:
        return file.where, json.loads(content[0])
    except ValueError as error:
        raise DataError(f"{file.where}: its content is not JSON ({error}); put the published file there") from error


def _quality(record: Fields) -> tuple[Quality, tuple[int, int]]:
    """The record of the draws, refused unless it is good, with the chains and the draws of all chains."""
    inference = Fields(record.where, record.get("inference", dict))
    diagnostics = Fields(record.where, record.get("diagnostics", dict))
    names = Fields(record.where, diagnostics.get("diagnostic_information", dict)).get("names", list)
    bulk, tail = (diagnostics.vector(f"effective_sample_size_{part}", len(names)) for part in ("bulk", "tail"))
    rhat = diagnostics.vector("r_hat", len(names))
    checks = record.get("checks_made", dict)
    remedy = "these draws are no reference; choose another posterior, or make better draws"
    failed = [key for key, passed in checks.items() if passed is not True]
    if failed:
        raise DataError(f"{record.where}: checks_made: {failed[0]} is recorded as {checks[failed[0]]}; {remedy}")
    limits = (
        ("effective_sample_size_bulk", bulk < THRESHOLDS["ess_bulk"], bulk, f"below {THRESHOLDS['ess_bulk']:g}"),
        ("effective_sample_size_tail", tail < THRESHOLDS["ess_tail"], tail, f"below {THRESHOLDS['ess_tail']:g}"),
        ("r_hat", rhat > THRESHOLDS["rhat"], rhat, f"above {THRESHOLDS['rhat']:g}"),
    )
    for key, bad, values, why in limits:
        if np.any(bad):
            worst = int(np.argmax(bad))
            raise DataError(f"{record.where}: {key}: {names[worst]} has {values[worst]:g}, {why}; {remedy}")
    quality = Quality(
        tuple(names),
        tuple(bulk.tolist()),
        tuple(tail.tolist()),
        tuple(rhat.tolist()),
        tuple(diagnostics.values.get("divergent_transitions") or ()),
        checks,
        inference.get("method", str),
        inference.get("method_arguments", dict),
    )
    return quality, (diagnostics.count("nchains"), diagnostics.count("ndraws"))


def _draws(where: str, content: Any, dimensions: Mapping[str, int], quality: Quality, shape: tuple[int, int]) -> Draws:
    chains, total = shape
    remedy = "put the published file there"
    if not isinstance(content, list) or not all(isinstance(chain, dict) for chain in content):
        raise DataError(f"{where}: must hold a list of chains, each an object of columns; {remedy}")
    if len(content) != chains:
        raise DataError(f"{where}: has {len(content)} chains, the record says {chains}; {remedy}")
    if chains < 2 or total % chains or total // chains < 8:
        raise DataError(f"{where}: {chains} chains with {total} draws in all: needs two chains of 8 draws or more")
    columns: dict[str, np.ndarray] = {}
    for name in quality.names:
        fields = (Fields(f"{where}: chain {index}", chain) for index, chain in enumerate(content, 1))
        columns[name] = np.stack([chain.vector(name, total // chains) for chain in fields])
        rhat = rank_rhat(columns[name])
        if rhat > THRESHOLDS["rhat"]:
            raise DataError(
                f"{where}: {name}: the chains disagree, R-hat is {rhat:.4g}, above {THRESHOLDS['rhat']:g} and not what "
                f"is recorded; {remedy}"
            )
    return Draws(where, {name: _assemble(where, name, size, columns) for name, size in dimensions.items()}, quality)


def _assemble(where: str, name: str, size: int, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The columns of a quantity as one array (chains, draws, *shape)."""
    matches = {column: ENTRY.fullmatch(column) for column in columns}
    found = {
        tuple(int(i) - 1 for i in match[2].split(",")) if match[2] else (): columns[column]
        for column, match in matches.items()
        if match and match[1] == name
    }
    depths = {len(index) for index in found}
    shape = tuple(1 + max(column) for column in zip(*found, strict=True)) if len(depths) == 1 else ()
    if len(found) != size or len(depths) != 1 or math.prod(shape) != size:
        raise DataError(
            f"{where}: {name}: there are {len(found)} columns of it, the posterior says {size}; correct one of them, "
            "or put the published file there"
        )
    first = next(iter(found.values()))
    array = np.empty((*first.shape, *shape))
    for index, values in found.items():
        array[(..., *index)] = values
    return array
