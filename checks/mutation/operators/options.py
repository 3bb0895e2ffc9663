"""Mistakes of options and sizes."""

import ast
from collections.abc import Iterator
from typing import Any

from sgmcmc_verification.checks.mutation.operators.tree import Edit, Scope, called, expressions, replace


def ignored_option(scope: Scope) -> Iterator[Edit]:
    """An option is replaced by its default."""
    for node, value in _options(scope):
        yield replace("ignored-option", node, ast.Constant(value))


def distorted_option(scope: Scope) -> Iterator[Edit]:
    """An option T is taken for T^2, or for 1 / T."""
    for node, value in _options(scope):
        if isinstance(value, float):
            yield replace("distorted-option", node, ast.BinOp(node, ast.Pow(), ast.Constant(2)))
            yield replace("distorted-option", node, ast.BinOp(ast.Constant(1), ast.Div(), node))


def _options(scope: Scope) -> Iterator[tuple[ast.expr, Any]]:
    """The places at which an option is read, with its default."""
    for node, parents in expressions(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            called_method = bool(parents) and isinstance(parents[-1], ast.Call) and parents[-1].func is node
            if node.attr in scope.options and not called_method:
                yield node, scope.options[node.attr]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in scope.parameters:
            yield node, scope.parameters[node.id]


def wrong_size(scope: Scope) -> Iterator[Edit]:
    """A count or a dimension is off by one."""
    for node, parents in expressions(scope):
        if not is_size(node) or (parents and isinstance(parents[-1], ast.Call) and parents[-1].func is node):
            continue
        for op in (ast.Add(), ast.Sub()):
            yield replace("wrong-size", node, ast.BinOp(node, op, ast.Constant(1)))


def is_size(node: ast.AST) -> bool:
    """True for a count, a length or a dimension."""
    if isinstance(node, ast.Call):
        return called(node) in ("count", "len")
    if isinstance(node, ast.Attribute):
        return node.attr in ("size", "num_steps", "batch_size")
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
