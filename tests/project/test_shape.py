"""The shape of the code: no dispatch on a manifold's name, small folders, declared attributes of samplers."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LARGEST_FOLDER = 25
PREFIXES = {"startswith", "endswith", "removeprefix", "removesuffix"}
UNDECLARED = Counter({"claims": 1, "step": 1})
"""Attributes that checks read from a sampler or estimator by a literal name, and how often; the table only shrinks."""


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """(path, syntax tree) of every module of some folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def is_name_of_manifold(node: ast.expr) -> bool:
    """True for the expressions `manifold.name` and `(..).manifold.name`."""
    if not (isinstance(node, ast.Attribute) and node.attr == "name"):
        return False
    owner = node.value
    return getattr(owner, "attr", getattr(owner, "id", "")) == "manifold"


def dispatches(tree: ast.AST) -> list[int]:
    """Lines that compare a manifold's name, look for a prefix of it, match it or look something up by it."""
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left, _, comparators):
                subjects = [left, *comparators]
            case ast.Call(ast.Attribute(subject, method)) if method in PREFIXES:
                subjects = [subject]
            case ast.Match(subject) | ast.Subscript(slice=subject):
                subjects = [subject]
            case _:
                continue
        lines += [node.lineno for subject in subjects if is_name_of_manifold(subject)]
    return lines


def undeclared(tree: ast.AST) -> list[str]:
    """Literal names that `getattr` reads from an expression that holds a sampler or an estimator."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("getattr"), [subject, ast.Constant(str(name)), *_]):
                if any(word in ast.unparse(subject) for word in ("sampler", "estimator")):
                    found.append(name)
    return found


def test_nothing_dispatches_on_the_name_of_a_manifold():
    found = {path: lines for path, tree in modules("targets", "samplers", "checks") if (lines := dispatches(tree))}
    assert found == {}, "use is_linear, is_positive, has_boundary or the class of the manifold"


@pytest.mark.parametrize(
    "line",
    [
        'target.manifold.name.startswith("euclidean")',
        'manifold.name == "sphere(2)"',
        '"simplex" in manifold.name',
        "TABLE[manifold.name]",
        "match self.manifold.name:\n    case _:\n        pass",
    ],
)
def test_a_dispatch_on_the_name_of_a_manifold_is_seen(line):
    assert dispatches(ast.parse(line)) == [1]


def test_a_manifold_may_be_named_in_a_message():
    assert dispatches(ast.parse('raise ValueError(f"{manifold.name}: no chart")')) == []


@pytest.mark.parametrize("package", ["targets", "samplers", "checks", "reports", "tests"])
def test_no_folder_is_large(package):
    sizes = Counter(path.parent for path in (ROOT / package).rglob("*.py"))
    assert {str(folder): size for folder, size in sizes.items() if size > LARGEST_FOLDER} == {}


def test_checks_read_declared_attributes_of_samplers_only():
    found = Counter(name for _, tree in modules("checks") for name in undeclared(tree))
    assert found - UNDECLARED == Counter(), "declare the attribute in the protocol or in a claim"


def test_an_undeclared_attribute_is_seen():
    tree = ast.parse('getattr(step.estimator, "period", 1), getattr(report, "period"), getattr(sampler, name)')
    assert undeclared(tree) == ["period"]
