"""A mutated sampler: copies of the modules that a change of one of them concerns, loaded beside the real ones."""

import ast
import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from sgmcmc_verification.checks.mutation.operators.tree import Swaps, substitute
from sgmcmc_verification.checks.mutation.source import file_of, tree
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.targets.target import Target

REGISTRY = "sgmcmc_verification.samplers.registry"


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of `samplers` that a module imports."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sgmcmc_verification.samplers."):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in inner if file_of(name).is_file()}
            found |= modules if modules == inner else modules | {node.module}
    return frozenset(found)


@cache
def order(module: str) -> tuple[str, ...]:
    """The module and everything on the way from it to the registry, importers last."""
    concerned = {module}
    done: list[str] = []
    visiting: dict[str, bool] = {}

    def visit(name: str) -> bool:
        """Return True if `name` is concerned; append it after what it imports."""
        if name in visiting:
            return visiting[name]
        visiting[name] = name == module
        inner = [visit(other) for other in sorted(imports(name))]
        visiting[name] = name == module or any(inner)
        if visiting[name]:
            concerned.add(name)
            done.append(name)
        return visiting[name]

    visit(REGISTRY)
    return tuple(done) if module in done else (module, *done)


@cache
def _code(module: str):
    return compile(tree(module), str(file_of(module)), "exec")


def load(module: str, swaps: Swaps) -> dict[str, ModuleType]:
    """Copies of a module with nodes of its tree replaced, and of all modules that import it, up to the registry.

    The real modules are untouched: code that holds them goes on with them. A name that a module imports
    (`from PACKAGE.a import f`) is that of the copy; a module that it imports (`from PACKAGE import a`) is the real one.
    """
    changed = ast.fix_missing_locations(substitute(tree(module), swaps))
    names = order(module)
    kept = {name: sys.modules.get(name) for name in names}
    copies: dict[str, ModuleType] = {}
    try:
        for name in names:
            copy = ModuleType(name)
            copy.__file__ = str(file_of(name))
            copy.__package__ = name.rpartition(".")[0]
            sys.modules[name] = copies[name] = copy
            code = compile(changed, str(file_of(name)), "exec") if name == module else _code(name)
            exec(code, copy.__dict__)
    finally:
        for name, real in kept.items():
            if real is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = real
    return copies


def mutated_row(row: Row, module: str, swaps: Swaps) -> Row:
    """The row of the same name whose sampler is built from the changed module.

    Raises:
        Exception: whatever the changed module raises when it is imported.
    """
    copies = load(module, swaps)
    if module.startswith("sgmcmc_verification.targets."):
        return dataclasses.replace(row, build=_on_changed_manifold(row.build, copies[module]))
    return copies[REGISTRY].sampler_row(row.name)


def _on_changed_manifold(build: Callable[..., Any], copy: ModuleType) -> Callable[..., Any]:
    """`build` for a target whose manifold is of the changed class; what the checks know of the target stays."""

    def changed(target: Target, **options: Any) -> Any:
        real = target.manifold
        twin = getattr(copy, type(real).__name__)(*(getattr(real, f.name) for f in dataclasses.fields(real)))  # type: ignore[arg-type]
        return build(dataclasses.replace(target, manifold=twin), **options)

    return changed
