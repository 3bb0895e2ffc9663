"""Mutation operators: the small changes of a function that are tried, generated from its syntax tree.

Every operator is a class of mistakes that samplers are known for. It looks at one function (a method with everything
nested in it) and yields edits; it knows nothing of any sampler.
"""

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

FACTOR = 0.9
"""Factor of the operator `scale`."""
NOISE_NAMES = frozenset({"n", "m", "k", "noise", "white", "kick", "own_noise", "momentum_noise"})
DECAY_NAMES = frozenset({"decay", "exp"})
INTEGER_CALLS = frozenset({"split", "range", "randint", "choice"})
"""Calls whose arguments are counts: no term there is scaled or flipped."""
STATES = ("state", "here")
"""Names of the state that a step was given, whose first field is the position."""

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
    """

    function: Function
    options: Mapping[str, Any]
    parameters: Mapping[str, Any]


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


def edits(scope: Scope) -> Iterator[Edit]:
    """All edits of a function, operator by operator, without repetitions."""
    seen = set()
    for operator in OPERATORS.values():
        for edit in operator(scope):
            found = (edit.operator, edit.after, *sorted(edit.swaps))
            if edit.before != edit.after and found not in seen:
                seen.add(found)
                yield edit


def _replace(operator: str, old: ast.expr, new: ast.expr) -> Edit:
    return Edit(operator, old.lineno, ast.unparse(old), ast.unparse(new), {id(old): new})


# Reading a function -------------------------------------------------------------------------------------------------


def _walk(node: ast.AST, parents: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Every node that runs with the ancestors of it, outermost first; annotations, defaults and raises are left out."""
    yield node, parents
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults"):
            # the defaults `t=t` of a lambda only bind a loop variable
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.Raise):
                yield from _walk(child, (*parents, node))


def _expressions(scope: Scope) -> Iterator[tuple[ast.expr, tuple[ast.AST, ...]]]:
    for node, parents in _walk(scope.function):
        if isinstance(node, ast.expr) and not _is_require(parents):
            yield node, parents


def _is_require(parents: tuple[ast.AST, ...]) -> bool:
    """True inside of an argument check."""
    return any(isinstance(p, ast.Call) and _called(p) == "require" for p in parents)


def _called(call: ast.Call) -> str:
    """The last name of what is called: `jnp.sqrt(x)` -> `sqrt`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _counts(parents: tuple[ast.AST, ...]) -> bool:
    """True in an index or in an argument that is a count."""
    return any(
        (isinstance(p, ast.Call) and _called(p) in INTEGER_CALLS)
        or (isinstance(p, ast.Subscript) and i + 1 < len(parents) and parents[i + 1] is p.slice)
        for i, p in enumerate(parents)
    )


def _names(node: ast.AST, context: type = ast.Load) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _blocks(scope: Scope) -> Iterator[tuple[list[ast.stmt], set[str]]]:
    """Every list of statements with the names that are bound before it."""

    def inside(statements: list[ast.stmt], bound: set[str]) -> Iterator[tuple[list[ast.stmt], set[str]]]:
        yield statements, set(bound)
        known = set(bound)
        for statement in statements:
            inner = set(known)
            if isinstance(statement, ast.For):
                inner |= _names(statement.target, ast.Store)
            if isinstance(statement, ast.FunctionDef):
                inner |= _arguments(statement)
            for name in ("body", "orelse"):
                block = getattr(statement, name, None)
                if isinstance(block, list):
                    yield from inside(block, inner)
            known |= _names(statement, ast.Store)
            if isinstance(statement, ast.FunctionDef):
                known.add(statement.name)

    yield from inside(scope.function.body, _arguments(scope.function))


def _arguments(function: Function) -> set[str]:
    a = function.args
    return {arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)}


def _is_step(statement: ast.stmt) -> bool:
    """A statement that computes something, other than a docstring or the splitting of keys."""
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        return False
    return not any(isinstance(n, ast.Call) and _called(n) == "split" for n in ast.walk(statement))


# Arithmetic ---------------------------------------------------------------------------------------------------------

ARITHMETIC = (ast.Mult, ast.Div, ast.MatMult, ast.Pow)


def _terms(node: ast.expr, sign: int = 1) -> list[tuple[int, ast.expr]]:
    """The terms of a sum with their signs; a single term for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        right = sign if isinstance(node.op, ast.Add) else -sign
        return [*_terms(node.left, sign), *_terms(node.right, right)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        return _terms(node.operand, -sign)
    return [(sign, node)]


def _sum(terms: Iterable[tuple[int, ast.expr]]) -> ast.expr:
    found: ast.expr | None = None
    for sign, term in terms:
        if found is None:
            found = term if sign > 0 else ast.UnaryOp(ast.USub(), term)
        else:
            found = ast.BinOp(found, ast.Add() if sign > 0 else ast.Sub(), term)
    assert found is not None
    return found


def _is_sum(node: ast.AST) -> bool:
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    )


def _is_product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC)


def _sums(scope: Scope) -> Iterator[tuple[ast.expr, list[tuple[int, ast.expr]]]]:
    """Every maximal sum, and every product that is no part of a larger expression, with its terms."""
    for node, parents in _expressions(scope):
        parent = parents[-1] if parents else None
        if _counts(parents) or isinstance(node, ast.Constant):
            continue
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            continue
        if _is_sum(node) and not _is_sum(parent):  # type: ignore[arg-type]
            yield node, _terms(node)
        elif _is_product(node) and not (_is_sum(parent) or _is_product(parent)):  # type: ignore[arg-type]
            yield node, [(1, node)]


def drop_term(scope: Scope) -> Iterator[Edit]:
    """a + b -> a."""
    for node, terms in _sums(scope):
        for i in range(len(terms)):
            if len(terms) > 1:
                yield _replace("drop-term", node, _sum([t for j, t in enumerate(terms) if j != i]))


def flip_term(scope: Scope) -> Iterator[Edit]:
    """a + b -> a - b."""
    for node, terms in _sums(scope):
        for i in range(len(terms)):
            yield _replace("flip-term", node, _sum([(-s if j == i else s, t) for j, (s, t) in enumerate(terms)]))


def scale_term(scope: Scope) -> Iterator[Edit]:
    """a + b -> a + 0.9 b."""
    for node, terms in _sums(scope):
        for i in range(len(terms)):
            scaled = lambda t: ast.BinOp(ast.Constant(FACTOR), ast.Mult(), t)
            yield _replace(
                "scale-term", node, _sum([(s, scaled(t) if j == i else t) for j, (s, t) in enumerate(terms)])
            )


def drop_factor(scope: Scope) -> Iterator[Edit]:
    """2 a -> a, a / 2 -> a, and A b -> b for a matrix."""
    for node, parents in _expressions(scope):
        if not isinstance(node, ast.BinOp) or _counts(parents):
            continue
        left, right = node.left, node.right
        if isinstance(node.op, ast.Mult) and isinstance(left, ast.Constant):
            yield _replace("drop-factor", node, right)
        if isinstance(node.op, ast.Mult | ast.Div) and isinstance(right, ast.Constant):
            yield _replace("drop-factor", node, left)
        if isinstance(node.op, ast.MatMult):
            yield _replace("drop-factor", node, right)


def missing_root(scope: Scope) -> Iterator[Edit]:
    """sqrt(a) -> a."""
    for node, _ in _expressions(scope):
        if isinstance(node, ast.Call) and _called(node) in ("sqrt", "positive_root") and len(node.args) == 1:
            yield _replace("missing-root", node, node.args[0])


# Randomness ---------------------------------------------------------------------------------------------------------


def reused_key(scope: Scope) -> Iterator[Edit]:
    """Another key of the same function in place of the right one."""
    everywhere = _arguments(scope.function)
    everywhere |= {name for node, _ in _walk(scope.function) for name in _names(node, ast.Store)}
    keys = sorted(name for name in everywhere if name.endswith("key"))
    each = {
        generator.target.id if isinstance(generator.target, ast.Name) else generator.target.elts[0].id  # type: ignore
        for node, _ in _walk(scope.function)
        for generator in getattr(node, "generators", [])
        if "keys" in _names(generator.iter)
    }
    for node, parents in _expressions(scope):
        if not parents or not isinstance(parents[-1], ast.Call):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in {*keys, *each}:
            if _called(parents[-1]) == "split":
                continue
            for other in keys:
                yield _replace("reused-key", node, ast.Name(other, ast.Load()))
        if isinstance(node, ast.Call) and _called(node) == "next" and "keys" in _names(node):
            for other in keys:
                yield _replace("reused-key", node, ast.Name(other, ast.Load()))


def moved_noise(scope: Scope) -> Iterator[Edit]:
    """c (a + n) -> c a + n and c a + n -> c (a + n): noise after or before a refresh."""
    noisy = lambda node: bool(_names(node) & NOISE_NAMES)
    decaying = lambda node: any(
        (isinstance(n, ast.Name) and n.id in DECAY_NAMES) or (isinstance(n, ast.Call) and _called(n) in DECAY_NAMES)
        for n in ast.walk(node)
    )
    for node, parents in _expressions(scope):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _is_sum(node.right):
            terms = _terms(node.right)
            for i, (sign, term) in enumerate(terms):
                if noisy(term) and len(terms) > 1 and not noisy(node.left):
                    rest = ast.BinOp(node.left, ast.Mult(), _sum([t for j, t in enumerate(terms) if j != i]))
                    yield _replace("moved-noise", node, _sum([(1, rest), (sign, term)]))
        if _is_sum(node) and not (parents and _is_sum(parents[-1])):
            terms = _terms(node)
            for i, (sign, term) in enumerate(terms):
                product = isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult) and decaying(term.left)
                for j, (other, noise) in enumerate(terms):
                    if product and i != j and noisy(noise) and not noisy(term):
                        inner = _sum([(sign, term.right), (other, noise)])  # type: ignore[attr-defined]
                        joined = ast.BinOp(term.left, ast.Mult(), inner)  # type: ignore[attr-defined]
                        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
                        yield _replace("moved-noise", node, _sum([(1, joined), *rest]))


# Stages -------------------------------------------------------------------------------------------------------------


def swapped_stages(scope: Scope) -> Iterator[Edit]:
    """Two adjacent statements that depend on each other, or two adjacent letters of a splitting, change places."""
    for statements, bound in _blocks(scope):
        known = set(bound)
        for first, second in itertools.pairwise(statements):
            if _is_step(first) and _is_step(second):
                writes, reads = _names(first, ast.Store), _names(first)
                needs, makes = _names(second), _names(second, ast.Store)
                if (writes & (needs | makes) or reads & makes) and not (needs & writes) - known:
                    before = f"{ast.unparse(first)}; {ast.unparse(second)}"
                    after = f"{ast.unparse(second)}; {ast.unparse(first)}"
                    swaps = {id(first): second, id(second): first}
                    yield Edit("swapped-stages", first.lineno, before, after, swaps)
            known |= _names(first, ast.Store)
    for node, _ in _walk(scope.function):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id.lower() == "word":
            for i in range(6):
                w = node.iter.id
                text = f"{w}[:{i}] + {w}[{i + 1}:{i + 2}] + {w}[{i}:{i + 1}] + {w}[{i + 2}:]"
                yield _replace("swapped-stages", node.iter, ast.parse(text, mode="eval").body)


def dropped_stage(scope: Scope) -> Iterator[Edit]:
    """A statement that gives a new value to names that have one already is left out."""
    for statements, bound in _blocks(scope):
        known = set(bound)
        for statement in statements:
            writes = _names(statement, ast.Store)
            if _is_step(statement) and writes and writes <= known and len(statements) > 1:
                yield Edit("dropped-stage", statement.lineno, ast.unparse(statement), "", {id(statement): []})
            elif _is_step(statement) and writes and writes <= known:
                swaps = {id(statement): [ast.copy_location(ast.Pass(), statement)]}
                yield Edit("dropped-stage", statement.lineno, ast.unparse(statement), "", swaps)
            known |= writes


def stale_value(scope: Scope) -> Iterator[Edit]:
    """A value of before the last update: the gradient at an earlier position, the momentum before its kick."""
    yield from _stale_gradient(scope)
    yield from _stale_attribute(scope)
    yield from _stale_variable(scope)


def _stale_gradient(scope: Scope) -> Iterator[Edit]:
    for node, parents in _expressions(scope):
        if isinstance(node, ast.Call) and _called(node) == "estimate" and len(node.args) == 3:
            functions = [scope.function, *(p for p in parents if isinstance(p, ast.FunctionDef))]
            inner = functions[-1]
            bound = _arguments(inner) | _names(inner, ast.Store)
            for name in STATES:
                if name in bound:
                    earlier = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(0), ast.Load())
                    if ast.unparse(node.args[2]) != f"{name}.position":
                        yield _replace("stale-value", node.args[2], earlier)


def _stale_attribute(scope: Scope) -> Iterator[Edit]:
    """`end.gradient` -> `state.gradient`: the same field of another object."""
    owners: dict[str, set[str]] = {}
    for node, _ in _expressions(scope):
        named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if named and node.value.id not in ("self", "jnp", "np", "jax"):  # type: ignore[attr-defined]
            owners.setdefault(node.attr, set()).add(node.value.id)  # type: ignore[attr-defined]
    for node, parents in _expressions(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if parents and isinstance(parents[-1], ast.Call) and parents[-1].func is node:
                continue
            for other in sorted(owners.get(node.attr, set()) - {node.value.id}):
                yield _replace("stale-value", node, ast.Attribute(ast.Name(other, ast.Load()), node.attr, ast.Load()))


def _stale_variable(scope: Scope) -> Iterator[Edit]:
    stored = {name for node, _ in _walk(scope.function) for name in _names(node, ast.Store)}
    for node, _ in _expressions(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id.startswith("new_"):
            older = node.id.removeprefix("new_")
            if older in stored | _arguments(scope.function):
                yield _replace("stale-value", node, ast.Name(older, ast.Load()))
    for statements, bound in _blocks(scope):
        known = set(bound)
        for i, statement in enumerate(statements):
            if _is_step(statement):
                for name in sorted(_names(statement, ast.Store) & known):
                    yield from _earlier(statements, i, name)
            known |= _names(statement, ast.Store)


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
        if name in _names(later, ast.Store):
            return


# Options and sizes --------------------------------------------------------------------------------------------------


def ignored_option(scope: Scope) -> Iterator[Edit]:
    """An option is replaced by its default."""
    for node, parents in _expressions(scope):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            called = bool(parents) and isinstance(parents[-1], ast.Call) and parents[-1].func is node
            if node.attr in scope.options and not called:
                yield _replace("ignored-option", node, ast.Constant(scope.options[node.attr]))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in scope.parameters:
            yield _replace("ignored-option", node, ast.Constant(scope.parameters[node.id]))


def wrong_size(scope: Scope) -> Iterator[Edit]:
    """A count or a dimension is off by one."""
    for node, parents in _expressions(scope):
        if not _is_size(node) or (parents and isinstance(parents[-1], ast.Call) and parents[-1].func is node):
            continue
        for op in (ast.Add(), ast.Sub()):
            yield _replace("wrong-size", node, ast.BinOp(node, op, ast.Constant(1)))


def _is_size(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _called(node) in ("count", "len")
    if isinstance(node, ast.Attribute):
        return node.attr in ("size", "num_steps", "batch_size")
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"


OPERATORS: dict[str, Callable[[Scope], Iterator[Edit]]] = {
    "drop-term": drop_term,
    "flip-term": flip_term,
    "scale-term": scale_term,
    "drop-factor": drop_factor,
    "missing-root": missing_root,
    "stale-value": stale_value,
    "swapped-stages": swapped_stages,
    "dropped-stage": dropped_stage,
    "moved-noise": moved_noise,
    "reused-key": reused_key,
    "wrong-size": wrong_size,
    "ignored-option": ignored_option,
}
"""The classes of mistakes, each a generator of edits."""
