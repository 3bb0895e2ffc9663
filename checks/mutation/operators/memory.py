"""Mistakes of what a state keeps: a count that decides, and caches that do not go with an accepted or rejected move."""

import ast
from collections.abc import Iterator

from sgmcmc_verification.checks.mutation.clock import stopping
from sgmcmc_verification.checks.mutation.operators.tree import Edit, Scope, called, expressions, replace


def hidden_clock(scope: Scope) -> Iterator[Edit]:
    """A count that the state keeps stops the chain after 500 steps."""
    owner = scope.owner
    if owner is None or scope.function.name != "step":
        return
    marked = ast.ClassDef(
        **{field: value for field, value in ast.iter_fields(owner) if field != "decorator_list"},
        decorator_list=[ast.Name(stopping.__name__, ast.Load()), *owner.decorator_list],
    )
    needed = ast.parse(f"from {stopping.__module__} import {stopping.__name__}").body
    swaps = {id(owner): [ast.copy_location(node, owner) for node in (*needed, marked)]}
    yield Edit("hidden-clock", owner.lineno, f"class {owner.name}", f"@stopping class {owner.name}", swaps)


def kept_cache(scope: Scope) -> Iterator[Edit]:
    """One field of the state is that of the proposal, or that of before, whether it is accepted or not."""
    fields = [field for field in next(iter(scope.states.values()), ()) if field != "estate"]  # goes on in either case
    for node, _ in expressions(scope):
        if isinstance(node, ast.Call) and called(node) == "accept" and len(node.args) == 4:
            for owner in filter(None, map(_owner, node.args[2:])):
                for field in fields:
                    kept = ast.keyword(field, ast.Attribute(owner, field, ast.Load()))
                    yield replace("kept-cache", node, ast.Call(ast.Attribute(node, "_replace", ast.Load()), [], [kept]))


def _owner(argument: ast.expr) -> ast.Name | None:
    """`state` of `state` and of `state._replace(...)`."""
    if isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and called(argument) == "_replace":
        argument = argument.func.value
    return argument if isinstance(argument, ast.Name) else None
