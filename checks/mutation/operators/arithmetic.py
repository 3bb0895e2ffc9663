"""Mistakes of terms and factors."""

import ast
from collections.abc import Iterable, Iterator

from sgmcmc_verification.checks.mutation.operators.tree import Edit, Scope, called, counts, expressions, replace

FACTOR = 0.9
"""Factor of the operator `scale`."""
ARITHMETIC = (ast.Mult, ast.Div, ast.MatMult, ast.Pow)


def terms_of(node: ast.expr, sign: int = 1) -> list[tuple[int, ast.expr]]:
    """The terms of a sum with their signs; a single term for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        right = sign if isinstance(node.op, ast.Add) else -sign
        return [*terms_of(node.left, sign), *terms_of(node.right, right)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        return terms_of(node.operand, -sign)
    return [(sign, node)]


def sum_of(terms: Iterable[tuple[int, ast.expr]]) -> ast.expr:
    """A sum of terms with their signs."""
    found: ast.expr | None = None
    for sign, term in terms:
        if found is None:
            found = term if sign > 0 else ast.UnaryOp(ast.USub(), term)
        else:
            found = ast.BinOp(found, ast.Add() if sign > 0 else ast.Sub(), term)
    assert found is not None
    return found


def is_sum(node: ast.AST) -> bool:
    """True for a sum, a difference or a minus sign."""
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    )


def _is_product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC)


def sums(scope: Scope) -> Iterator[tuple[ast.expr, list[tuple[int, ast.expr]]]]:
    """Every maximal sum, and every product that is no part of a larger expression, with its terms."""
    for node, parents in expressions(scope):
        parent = parents[-1] if parents else None
        if counts(parents) or isinstance(node, ast.Constant):
            continue
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            continue
        if is_sum(node) and not is_sum(parent):  # type: ignore[arg-type]
            yield node, terms_of(node)
        elif _is_product(node) and not (is_sum(parent) or _is_product(parent)):  # type: ignore[arg-type]
            yield node, [(1, node)]


def drop_term(scope: Scope) -> Iterator[Edit]:
    """a + b -> a."""
    for node, terms in sums(scope):
        for i in range(len(terms)):
            if len(terms) > 1:
                yield replace("drop-term", node, sum_of([t for j, t in enumerate(terms) if j != i]))


def flip_term(scope: Scope) -> Iterator[Edit]:
    """a + b -> a - b."""
    for node, terms in sums(scope):
        for i in range(len(terms)):
            yield replace("flip-term", node, sum_of([(-s if j == i else s, t) for j, (s, t) in enumerate(terms)]))


def scale_term(scope: Scope) -> Iterator[Edit]:
    """a + b -> a + 0.9 b."""
    for node, terms in sums(scope):
        for i in range(len(terms)):
            scaled = lambda t: ast.BinOp(ast.Constant(FACTOR), ast.Mult(), t)
            yield replace(
                "scale-term", node, sum_of([(s, scaled(t) if j == i else t) for j, (s, t) in enumerate(terms)])
            )


def drop_factor(scope: Scope) -> Iterator[Edit]:
    """2 a -> a, a / 2 -> a, and A b -> b for a matrix."""
    for node, parents in expressions(scope):
        if not isinstance(node, ast.BinOp) or counts(parents):
            continue
        left, right = node.left, node.right
        if isinstance(node.op, ast.Mult) and isinstance(left, ast.Constant):
            yield replace("drop-factor", node, right)
        if isinstance(node.op, ast.Mult | ast.Div) and isinstance(right, ast.Constant):
            yield replace("drop-factor", node, left)
        if isinstance(node.op, ast.MatMult):
            yield replace("drop-factor", node, right)


def missing_root(scope: Scope) -> Iterator[Edit]:
    """sqrt(a) -> a."""
    for node, _ in expressions(scope):
        if isinstance(node, ast.Call) and called(node) in ("sqrt", "positive_root") and len(node.args) == 1:
            yield replace("missing-root", node, node.args[0])
