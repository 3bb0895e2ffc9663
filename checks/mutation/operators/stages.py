"""Mistakes of the order of stages, and values of before the last update."""

import ast
import itertools
from collections.abc import Iterator

from sgmcmc_verification.checks.mutation.operators.tree import (
    Edit,
    Scope,
    arguments,
    blocks,
    called,
    expressions,
    is_step,
    names,
    parsed,
    replace,
    substitute,
    walk,
)

STATES = ("state", "here")
"""Names of the state that a step was given, whose first field is the position."""


def swapped_stages(scope: Scope) -> Iterator[Edit]:
    """Two adjacent statements that depend on each other, or two adjacent letters of a splitting, change places."""
    for statements, bound in blocks(scope):
        known = set(bound)
        for first, second in itertools.pairwise(statements):
            if is_step(first) and is_step(second):
                writes, reads = names(first, ast.Store), names(first)
                needs, makes = names(second), names(second, ast.Store)
                if (writes & (needs | makes) or reads & makes) and not (needs & writes) - known:
                    before = f"{ast.unparse(first)}; {ast.unparse(second)}"
                    after = f"{ast.unparse(second)}; {ast.unparse(first)}"
                    swaps = {id(first): second, id(second): first}
                    yield Edit("swapped-stages", first.lineno, before, after, swaps)
            known |= names(first, ast.Store)
    for node, _ in walk(scope.function):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id.lower() == "word":
            for i in range(6):
                w = node.iter.id
                text = f"{w}[:{i}] + {w}[{i + 1}:{i + 2}] + {w}[{i}:{i + 1}] + {w}[{i + 2}:]"
                yield replace("swapped-stages", node.iter, parsed(text))


def dropped_stage(scope: Scope) -> Iterator[Edit]:
    """A statement that gives a new value to names that have one already is left out."""
    for statements, bound in blocks(scope):
        known = set(bound)
        for statement in statements:
            writes = names(statement, ast.Store)
            if is_step(statement) and writes and writes <= known and len(statements) > 1:
                yield Edit("dropped-stage", statement.lineno, ast.unparse(statement), "", {id(statement): []})
            elif is_step(statement) and writes and writes <= known:
                swaps = {id(statement): [ast.copy_location(ast.Pass(), statement)]}
                yield Edit("dropped-stage", statement.lineno, ast.unparse(statement), "", swaps)
            known |= writes


def stale_value(scope: Scope) -> Iterator[Edit]:
    """A value of before the last update: the gradient at an earlier position, the momentum before its kick."""
    yield from _stale_gradient(scope)
    yield from _stale_attribute(scope)
    yield from _stale_variable(scope)


def _stale_gradient(scope: Scope) -> Iterator[Edit]:
    for node, parents in expressions(scope):
        if isinstance(node, ast.Call) and called(node) == "estimate" and len(node.args) == 3:
            functions = [scope.function, *(p for p in parents if isinstance(p, ast.FunctionDef))]
            inner = functions[-1]
            bound = arguments(inner) | names(inner, ast.Store)
            for name in STATES:
                if name in bound:
                    earlier = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(0), ast.Load())
                    if ast.unparse(node.args[2]) != f"{name}.position":
                        yield replace("stale-value", node.args[2], earlier)


def _stale_attribute(scope: Scope) -> Iterator[Edit]:
    """`end.gradient` -> `state.gradient`: the same field of another object."""
    owners: dict[str, set[str]] = {}
    for node, _ in expressions(scope):
        named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if named and node.value.id not in ("self", "jnp", "np", "jax"):  # type: ignore[attr-defined]
            owners.setdefault(node.attr, set()).add(node.value.id)  # type: ignore[attr-defined]
    for node, parents in expressions(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if parents and isinstance(parents[-1], ast.Call) and parents[-1].func is node:
                continue
            for other in sorted(owners.get(node.attr, set()) - {node.value.id}):
                yield replace("stale-value", node, ast.Attribute(ast.Name(other, ast.Load()), node.attr, ast.Load()))


def _stale_variable(scope: Scope) -> Iterator[Edit]:
    stored = {name for node, _ in walk(scope.function) for name in names(node, ast.Store)}
    for node, _ in expressions(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id.startswith("new_"):
            older = node.id.removeprefix("new_")
            if older in stored | arguments(scope.function):
                yield replace("stale-value", node, ast.Name(older, ast.Load()))
    for statements, bound in blocks(scope):
        known = set(bound)
        for i, statement in enumerate(statements):
            if is_step(statement):
                for name in sorted(names(statement, ast.Store) & known):
                    yield from _earlier(statements, i, name)
            known |= names(statement, ast.Store)


def _earlier(statements: list[ast.stmt], i: int, name: str) -> Iterator[Edit]:
    """Statements after the i-th that read `name` read the value of before the i-th."""
    saved = f"{name}_before"
    save = ast.copy_location(ast.parse(f"{saved} = {name}").body[0], statements[i])
    for later in statements[i + 1 :]:
        loads = [n for n in ast.walk(later) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
        if loads:
            old = substitute(later, {id(n): ast.Name(saved, ast.Load()) for n in loads})
            swaps = {id(statements[i]): [save, statements[i]], id(later): old}
            yield Edit("stale-value", later.lineno, ast.unparse(later), ast.unparse(old), swaps)
        if name in names(later, ast.Store):
            return
