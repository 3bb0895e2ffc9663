"""Mistakes of keys and of the place of the noise."""

import ast
from collections.abc import Iterator

from sgmcmc_verification.checks.mutation.operators.arithmetic import is_sum, sum_of, terms_of
from sgmcmc_verification.checks.mutation.operators.tree import (
    Edit,
    Scope,
    arguments,
    called,
    expressions,
    names,
    parsed,
    replace,
    walk,
)

NOISE_NAMES = frozenset({"n", "m", "k", "noise", "white", "kick", "own_noise", "momentum_noise"})
DECAY_NAMES = frozenset({"decay", "exp"})


def reused_key(scope: Scope) -> Iterator[Edit]:
    """Another key of the same function in place of the right one."""
    keys = _key_names(scope)
    for node in _keys(scope):
        for other in keys:
            yield replace("reused-key", node, ast.Name(other, ast.Load()))
        if isinstance(node, ast.Subscript):
            yield replace("reused-key", node, ast.Subscript(node.value, ast.Constant(0), ast.Load()))


def constant_key(scope: Scope) -> Iterator[Edit]:
    """The same key in every step."""
    for node in _keys(scope):
        yield replace("constant-key", node, parsed("jax.random.key(0)"))


def _key_names(scope: Scope) -> list[str]:
    """Names of single keys that a function is given or makes."""
    everywhere = arguments(scope.function)
    everywhere |= {name for node, _ in walk(scope.function) for name in names(node, ast.Store)}
    return sorted(name for name in everywhere if name.endswith("key"))


def _keys(scope: Scope) -> Iterator[ast.expr]:
    """Keys that are handed on: a name, the next of an iterator or one of several; one that is split is left out."""
    each = {
        generator.target.id if isinstance(generator.target, ast.Name) else generator.target.elts[0].id  # type: ignore
        for node, _ in walk(scope.function)
        for generator in getattr(node, "generators", [])
        if "keys" in names(generator.iter)
    }
    known = {*_key_names(scope), *each}
    for node, parents in expressions(scope):
        if not parents or not isinstance(parents[-1], ast.Call):
            continue
        single = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in known
        if single and called(parents[-1]) != "split":
            yield node
        if isinstance(node, ast.Call) and called(node) == "next" and "keys" in names(node):
            yield node
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "keys":
            yield node


def moved_noise(scope: Scope) -> Iterator[Edit]:
    """c (a + n) -> c a + n and c a + n -> c (a + n): noise after or before a refresh."""
    noisy = lambda node: bool(names(node) & NOISE_NAMES)
    decaying = lambda node: any(
        (isinstance(n, ast.Name) and n.id in DECAY_NAMES) or (isinstance(n, ast.Call) and called(n) in DECAY_NAMES)
        for n in ast.walk(node)
    )
    for node, parents in expressions(scope):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and is_sum(node.right):
            terms = terms_of(node.right)
            for i, (sign, term) in enumerate(terms):
                if noisy(term) and len(terms) > 1 and not noisy(node.left):
                    rest = ast.BinOp(node.left, ast.Mult(), sum_of([t for j, t in enumerate(terms) if j != i]))
                    yield replace("moved-noise", node, sum_of([(1, rest), (sign, term)]))
        if is_sum(node) and not (parents and is_sum(parents[-1])):
            terms = terms_of(node)
            for i, (sign, term) in enumerate(terms):
                product = isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult) and decaying(term.left)
                for j, (other, noise) in enumerate(terms):
                    if product and i != j and noisy(noise) and not noisy(term):
                        inner = sum_of([(sign, term.right), (other, noise)])  # type: ignore[attr-defined]
                        joined = ast.BinOp(term.left, ast.Mult(), inner)  # type: ignore[attr-defined]
                        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
                        yield replace("moved-noise", node, sum_of([(1, joined), *rest]))
