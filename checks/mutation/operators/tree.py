"""An edit of a function, and reading a function: its expressions, names and blocks."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

INTEGER_CALLS = frozenset({"split", "range", "randint", "choice"})
"""Calls whose arguments are counts: no term there is scaled or flipped."""

Function = ast.FunctionDef
Swaps = Mapping[int, Any]


class Edit(NamedTuple):
    """One change of a function.

    Attributes:
        operator: name among `OPERATORS`.
        line: of the source.
        before: the source that is replaced.
        after: what it becomes.
        swaps: id of a node of the tree -> what stands there afterwards (for a statement: a list of statements).
    """

    operator: str
    line: int
    before: str
    after: str
    swaps: Swaps


@dataclass(frozen=True)
class Scope:
    """A function with what the operators need to know about it.

    Attributes:
        function: its tree.
        options: name of an option -> its default, for `self.name` in a method.
        parameters: names of options that free functions take as arguments -> a neutral value.
        owner: the tree of the class of a method, None for a free function.
        states: names of arguments that are named tuples -> their fields.
    """

    function: Function
    options: Mapping[str, Any]
    parameters: Mapping[str, Any]
    owner: ast.ClassDef | None = None
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def parsed(text: str) -> ast.expr:
    """The tree of an expression."""
    return ast.parse(text, mode="eval").body


def substitute(node: Any, swaps: Swaps) -> Any:
    """The tree with nodes replaced; the given tree is left as it is."""
    if id(node) in swaps:
        return swaps[id(node)]
    if not isinstance(node, ast.AST):
        return node
    fields = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            items: list[Any] = []
            for item in value:
                new = substitute(item, swaps)
                items += new if isinstance(new, list) else [new]
            fields[name] = items
        else:
            fields[name] = substitute(value, swaps)
    return ast.copy_location(type(node)(**fields), node)


def replace(operator: str, old: ast.expr, new: ast.expr) -> Edit:
    """An edit that puts one expression in the place of another."""
    return Edit(operator, old.lineno, ast.unparse(old), ast.unparse(new), {id(old): new})


def walk(node: ast.AST, parents: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Every node that runs with the ancestors of it, outermost first; annotations, defaults and raises are left out."""
    yield node, parents
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults"):
            # the defaults `t=t` of a lambda only bind a loop variable
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.Raise):
                yield from walk(child, (*parents, node))


def expressions(scope: Scope) -> Iterator[tuple[ast.expr, tuple[ast.AST, ...]]]:
    """Every expression that runs, but for argument checks, with the ancestors of it."""
    for node, parents in walk(scope.function):
        if isinstance(node, ast.expr) and not _is_require(parents):
            yield node, parents


def _is_require(parents: tuple[ast.AST, ...]) -> bool:
    """True inside of an argument check."""
    return any(isinstance(p, ast.Call) and called(p) == "require" for p in parents)


def called(call: ast.Call) -> str:
    """The last name of what is called: `jnp.sqrt(x)` -> `sqrt`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def counts(parents: tuple[ast.AST, ...]) -> bool:
    """True in an index or in an argument that is a count."""
    return any(
        (isinstance(p, ast.Call) and called(p) in INTEGER_CALLS)
        or (isinstance(p, ast.Subscript) and i + 1 < len(parents) and parents[i + 1] is p.slice)
        for i, p in enumerate(parents)
    )


def names(node: ast.AST, context: type = ast.Load) -> set[str]:
    """Names that a piece of code reads, or binds."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def blocks(scope: Scope) -> Iterator[tuple[list[ast.stmt], set[str]]]:
    """Every list of statements with the names that are bound before it."""

    def inside(statements: list[ast.stmt], bound: set[str]) -> Iterator[tuple[list[ast.stmt], set[str]]]:
        yield statements, set(bound)
        known = set(bound)
        for statement in statements:
            inner = set(known)
            if isinstance(statement, ast.For):
                inner |= names(statement.target, ast.Store)
            if isinstance(statement, ast.FunctionDef):
                inner |= arguments(statement)
            for name in ("body", "orelse"):
                block = getattr(statement, name, None)
                if isinstance(block, list):
                    yield from inside(block, inner)
            known |= names(statement, ast.Store)
            if isinstance(statement, ast.FunctionDef):
                known.add(statement.name)

    yield from inside(scope.function.body, arguments(scope.function))


def arguments(function: Function) -> set[str]:
    """Names of the arguments of a function."""
    a = function.args
    return {arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)}


def is_step(statement: ast.stmt) -> bool:
    """A statement that computes something, other than a docstring or the splitting of keys."""
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        return False
    return not any(isinstance(n, ast.Call) and called(n) == "split" for n in ast.walk(statement))
