"""Mistakes of the scale of sums over data."""

import ast
from collections.abc import Iterator
from typing import TypeGuard

from sgmcmc_verification.checks.mutation.operators.arithmetic import sum_of, sums
from sgmcmc_verification.checks.mutation.operators.options import is_size
from sgmcmc_verification.checks.mutation.operators.tree import Edit, Scope, expressions, names, replace, walk


def data_scale(scope: Scope) -> Iterator[Edit]:
    """N / n -> n / N, N / n -> 1, and a + (N / n) b -> (N / n) (a + b): the prior counted N / n times."""
    for node, _ in expressions(scope):
        if _is_ratio(node):
            yield replace("data-scale", node, ast.BinOp(node.right, ast.Div(), node.left))
            yield replace("data-scale", node, ast.Constant(1.0))
    scales = {
        name
        for node, _ in walk(scope.function)
        if isinstance(node, ast.Assign) and any(_is_ratio(part) for part in ast.walk(node.value))
        for name in names(node, ast.Store)
    }
    for node, terms in sums(scope):
        factors = [t.left for _, t in terms if isinstance(t, ast.BinOp) and isinstance(t.left, ast.Name)]
        scale = next((f for f in factors if f.id in scales), None)
        for i, (_, term) in enumerate(terms):
            if scale is not None and scale.id not in names(term):
                scaled = ast.BinOp(scale, ast.Mult(), term)
                new = sum_of([(s, scaled if j == i else t) for j, (s, t) in enumerate(terms)])
                yield replace("data-scale", node, new)


def _is_ratio(node: ast.AST) -> TypeGuard[ast.BinOp]:
    """True for the number of data over that of a minibatch."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and is_size(node.left) and is_size(node.right)
