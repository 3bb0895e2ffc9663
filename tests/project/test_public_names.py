"""The names that a user may import from the packages."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_verification import checks, samplers, targets

PACKAGES = (targets, samplers, checks)


def stub(package) -> list[tuple[str, str]]:
    """(module, name) of the imports of the stub beside the package."""
    tree = ast.parse(Path(inspect.getfile(package)).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return [(f"{package.__name__}.{node.module}", alias.name) for node in imports for alias in node.names]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_loaded_and_known_to_type_checkers(package):
    assert sorted(name for _, name in stub(package)) == sorted(package.__all__)
    for module, name in stub(package):
        found = getattr(package, name)
        assert found is getattr(importlib.import_module(module), name)
        assert inspect.getdoc(found) or not (inspect.isclass(found) or inspect.isroutine(found)), name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="No targets attribute tragets".replace("targets", package.__name__)):
        vars(package)["__getattr__"]("tragets")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_package_alone_loads_no_numerical_library(package):
    code = f"import sys, {package.__name__}; sys.exit(any(name in sys.modules for name in ('jax', 'numpy', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
