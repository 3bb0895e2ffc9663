"""Mistakes of what is read before it is used: a guard that never binds in the bulk, digits that are lost."""

import ast
from collections.abc import Iterator

from sgmcmc_verification.checks.mutation.operators.tree import Edit, Scope, called, expressions, parsed, replace


def _used(scope: Scope, *fields: str) -> Iterator[ast.Attribute]:
    """`x.field` where something is computed from it: in a sum or product, or by a call that makes no named tuple."""
    for node, parents in expressions(scope):
        if isinstance(node, ast.Attribute) and node.attr in fields and isinstance(node.ctx, ast.Load) and parents:
            parent = parents[-1]
            if isinstance(parent, ast.BinOp) or (isinstance(parent, ast.Call) and called(parent)[:1].islower()):
                yield node


def _of_leaves(operator: str, node: ast.expr, text: str) -> Edit:
    function = parsed(f"lambda a: {text}")
    return replace(operator, node, ast.Call(parsed("jax.tree.map"), [function, node], []))


def guarded_gradient(scope: Scope) -> Iterator[Edit]:
    """g -> clip(g, -50, 50)."""
    for node in _used(scope, "gradient"):
        yield _of_leaves("guarded-gradient", node, "jax.numpy.clip(a, -50.0, 50.0)")


def lost_digits(scope: Scope) -> Iterator[Edit]:
    """A gradient or a position with the eight digits (binary) of bfloat16."""
    for node in _used(scope, "gradient", "position"):
        yield _of_leaves("lost-digits", node, "jax.lax.reduce_precision(a, 8, 7)")
