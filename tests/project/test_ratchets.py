"""Numbers that may only go one way: annotations, `Any`, formatting by hand, strict folders, exceptions to lint."""

import ast
import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
ENVIRONMENTS = TOOL["pyright"]["executionEnvironments"]
_spec = importlib.util.spec_from_file_location("skips", ROOT / ".ci" / "skips.py")
assert _spec is not None
assert _spec.loader is not None
skips = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(skips)
STRICT = {
    "samplers/numerics",
    "samplers/dynamics",
    "targets/manifolds",
    "targets/numerics",
    "checks/statistics",
    "checks/core",
}
"""Folders under pyright's strict rules; this set may only grow."""
NOT_STRICT = {f"reportUnknown{what}Type" for what in ("Argument", "Lambda", "Member", "Variable")}
"""The rules of the strict mode about expressions, which the libraries leave untyped."""
RULES = {
    *("reportConstantRedefinition", "reportDeprecated", "reportInconsistentConstructor", "reportMatchNotExhaustive"),
    *("reportMissingParameterType", "reportMissingTypeArgument", "reportPrivateUsage", "reportTypeCommentUsage"),
    *("reportUnknownParameterType", "reportUnnecessaryCast", "reportUnnecessaryComparison"),
    *("reportUnnecessaryContains", "reportUnnecessaryIsInstance", "reportUntypedBaseClass"),
    *("reportUntypedClassDecorator", "reportUntypedFunctionDecorator", "reportUntypedNamedTuple", "reportUnusedClass"),
    *("reportUnusedFunction", "reportUnusedImport", "reportUnusedVariable"),
}
INTERROGATIVES = {"What", "How", "Where", "Whether", "Why", "Which", "Who"}
MOST_ANY, MOST_SKIPS, LEAST_ANNOTATED = 100, 10, 0.95
IGNORED = {"C901": 0, "PLR0913": 0}
"""Files or folders that lint lets off from the limits of complexity and of arguments."""


def trees(*folders: str) -> Iterator[ast.Module]:
    """Syntax trees of all modules of some folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"))


def parameters(tree: ast.Module) -> Iterator[ast.arg]:
    """Parameters of the public functions and methods of a module, without self and cls."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for node in [*tree.body, *(child for kind in classes for child in kind.body)]:
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
            given = node.args
            for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                if arg.arg not in ("self", "cls"):
                    yield arg


def test_parameters_of_public_functions_of_samplers_are_annotated():
    found = [arg.annotation is not None for tree in trees("samplers") for arg in parameters(tree)]
    assert len(found) > 500
    assert sum(found) / len(found) >= LEAST_ANNOTATED


def test_any_is_rare_in_samplers():
    names = [node for tree in trees("samplers") for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert sum(name.id == "Any" for name in names) < MOST_ANY


def test_formatting_by_hand_is_rare():
    folders = ("targets", "samplers", "checks", "reports", "benchmarks", "tests")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    skips = sum(len(re.findall(r"# fmt: (?:skip|off)$", path.read_text(encoding="utf-8"), re.M)) for path in files)
    assert skips < MOST_SKIPS


def test_the_list_of_strict_folders_only_grows():
    strict = {
        e["root"].partition("sgmcmc_verification/")[2]: e
        for e in ENVIRONMENTS
        if all(e.get(rule) == "error" for rule in RULES)
    }
    assert set(strict) >= STRICT
    assert not {rule for e in strict.values() for rule, level in e.items() if level in (False, "none", "warning")}
    assert TOOL["pyright"]["typeCheckingMode"] == "standard"
    assert not RULES & NOT_STRICT


@pytest.mark.parametrize("rule", sorted(IGNORED))
def test_limits_of_lint_hold_everywhere(rule):
    ignores = TOOL["ruff"]["lint"]["per-file-ignores"]
    assert sum(rule in rules for rules in ignores.values()) <= IGNORED[rule]
    assert rule in TOOL["ruff"]["lint"]["select"]
    assert TOOL["ruff"]["lint"]["mccabe"]["max-complexity"] <= 12
    assert TOOL["ruff"]["lint"]["pylint"]["max-args"] <= 8


def test_docstrings_begin_with_a_noun_or_an_imperative():
    folders = ("targets", "samplers", "checks", "reports", "benchmarks", "docs")
    nodes = (node for tree in trees(*folders) for node in ast.walk(tree))
    documented = (node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    found = [text for node in documented if (text := ast.get_docstring(node)) and text.split()[0] in INTERROGATIVES]
    assert found == []


def test_a_parameter_without_annotation_is_seen():
    tree = ast.parse("def f(a, *, b: int): ...\nclass C:\n    def g(self, c): ...\n    def _h(self, d): ...")
    assert [(arg.arg, arg.annotation is None) for arg in parameters(tree)] == [("a", True), ("b", False), ("c", True)]


MOST_SKIPPED = 25
"""Tests that CI may skip, over all entries of `.ci/skips.txt`."""


def test_ci_may_skip_no_more_tests_and_fails_where_more_are_skipped(tmp_path):
    assert sum(skips.allowed().values()) <= MOST_SKIPPED
    case = '<testcase classname="{}" name="test_x"><skipped type="pytest.skip" message="needs torch"/></testcase>'
    file = tmp_path / "tests.xml"
    file.write_text(f"<testsuite>{case.format('tests.reports.test_site')}</testsuite>", encoding="utf-8")
    assert skips.main(str(file)) == 0
    file.write_text(f"<testsuite>{case.format('tests.reports.test_site') * 2}</testsuite>", encoding="utf-8")
    assert skips.main(str(file)) == 1
    file.write_text(f"<testsuite>{case.format('tests.samplers.test_claims')}</testsuite>", encoding="utf-8")
    assert skips.main(str(file)) == 1
    file.write_text('<testsuite><testcase classname="tests.x" name="test_y"/></testsuite>', encoding="utf-8")
    assert skips.main(str(file)) == 0
