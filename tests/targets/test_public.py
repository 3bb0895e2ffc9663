"""The names that a user may import from `targets`."""

import ast
import importlib
import inspect
import subprocess
import sys

import pytest

import targets


def test_every_public_name_is_loaded_and_known_to_type_checkers():
    tree = ast.parse(inspect.getsource(targets))
    typed = [
        (str(node.module), str(alias.asname))
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(name for _, name in typed) == targets.__all__
    for module, name in typed:
        assert getattr(targets, name) is getattr(importlib.import_module(module), name)


def test_target_is_the_function_though_a_submodule_has_its_name():
    from targets import Target, target
    from targets.target import Target as same

    assert Target is same
    assert target("banana").name == "banana"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tragets'"):
        vars(targets)["__getattr__"]("tragets")


def test_the_package_alone_loads_no_numerical_library():
    code = "import sys, targets; sys.exit(any(name in sys.modules for name in ('jax', 'numpy', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
