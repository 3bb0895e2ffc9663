"""Source of a step: the functions that it runs, and their syntax trees."""

import ast
import dataclasses
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from sgmcmc_verification.checks.mutation.operators.tree import Scope
from sgmcmc_verification.checks.mutation.program import settings, trace
from sgmcmc_verification.samplers.entry import Row

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "samplers/numerics",
    "samplers/dynamics",
    "samplers/interface",
    "samplers/estimators",
    "samplers/overdamped",
    "samplers/underdamped",
    "samplers/thermostats",
    "samplers/riemannian",
    "samplers/geodesic",
    "samplers/positive",
    "samplers/particles",
    "targets/manifolds",
)
APART = frozenset(
    {
        "sgmcmc_verification.samplers.estimators.basic",
        "sgmcmc_verification.samplers.estimators.host",
        "sgmcmc_verification.samplers.interface.from_step",
    }
    | {"sgmcmc_verification.samplers.interface.sampler"}
)
"""Not the step: estimators of others than the sampler, argument checks, glue."""
ENTRANCES = frozenset({"step", "position"})
NOT_STEP = frozenset(
    {"__post_init__", "claims", "init", "pack", "unpack", "needs", "name", "dynamics"}
    | {"langevin_dynamics", "thermostat_dynamics", "elementwise_thermostat_dynamics", "overdamped_dynamics"}
    | {"irreversible", "hamiltonian", "volume_energy"}
)
"""No part of a step: its start, what is claimed of it (H, D and Q, which a `Recipe` is given), estimators of rows."""
NEUTRAL = {"friction": 1.0, "temperature": 1.0, "diffusion": 1.0}
"""Options that free functions take as arguments, with the default that all samplers give them."""


class Place(NamedTuple):
    """A function: `samplers.overdamped.sgld`, `SGLD.step`."""

    module: str
    qualname: str


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module of the suite, parsed once: edits refer to its nodes."""
    path = file_of(module)
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def file_of(module: str) -> Path:
    """The file of a module or package of the suite."""
    path = ROOT / module.removeprefix("sgmcmc_verification.").replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def definition(place: Place) -> ast.FunctionDef:
    """The tree of a function or of a method."""
    body: list[Any] = tree(place.module).body
    *classes, name = place.qualname.split(".")
    for part in classes:
        body = _class(body, part).body
    return next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == name)


def _class(body: list[ast.stmt], name: str) -> ast.ClassDef:
    return next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name)


def scope(place: Place) -> Scope:
    """A function with the options that it can see."""
    module = owner = importlib.import_module(place.module)
    *classes, _ = place.qualname.split(".")
    for part in classes:
        owner = getattr(owner, part)
    options = {}
    if classes and dataclasses.is_dataclass(owner):
        options = {f.name: f.default for f in dataclasses.fields(owner) if f.default is not dataclasses.MISSING}
    function = definition(place)
    arguments = {a.arg for a in function.args.args}
    free = {} if classes else {name: value for name, value in NEUTRAL.items() if name in arguments}
    states = {a.arg: _fields(module, a.annotation) for a in function.args.args if _fields(module, a.annotation)}
    whole = _class(tree(place.module).body, classes[0]) if len(classes) == 1 else None
    return Scope(function, options, free, whole, states)


def _fields(module: ModuleType, annotation: ast.expr | None) -> tuple[str, ...]:
    """Fields of an argument that is annotated as a named tuple; none for others."""
    kind = getattr(module, annotation.id, None) if isinstance(annotation, ast.Name) else None
    return getattr(kind, "_fields", ())


@cache
def places(row: Row) -> tuple[Place, ...]:
    """The functions that the step of a row and the reading of its position run, without and with gradient noise."""
    found: set[Place] = set()
    every = settings(row)
    for setting in every[:1] + every[1:][-1:]:
        with called(found):
            trace(row, setting)
    return tuple(sorted(found))


@contextmanager
def called(found: set[Place]) -> Iterator[None]:
    """Note the functions of the suite's step code that run between a `step` or `position` and its return."""
    folders = {str(ROOT / folder): f"sgmcmc_verification.{folder.replace('/', '.')}" for folder in FOLDERS}
    known: dict[Any, Place | None] = {}
    depth = 0

    def place(code: CodeType) -> Place | None:
        path = Path(code.co_filename)
        folder = folders.get(str(path.parent))
        name = code.co_qualname.split(".<locals>")[0]
        if folder is None or f"{folder}.{path.stem}" in APART or "<" in name or name.split(".")[-1] in NOT_STEP:
            return None
        return Place(f"{folder}.{path.stem}", name)

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code not in known:
            known[code] = place(code)
        where = known[code]
        if where is None:
            return
        entrance = where.qualname.split(".")[-1] in ENTRANCES
        depth += (1 if event == "call" else -1) if entrance else 0
        if event == "call" and depth > 0:
            found.add(where)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
