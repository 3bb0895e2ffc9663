"""The direction of imports: targets <- samplers <- checks <- reports; benchmarks and tests may import all."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("targets", "samplers", "checks", "reports")
FOLDERS = (*LAYERS, "benchmarks", "tests")


def imported(source: str, path: str = "<text>") -> set[str]:
    """Top-level packages of the suite that a module imports, wherever in it, relative imports refused."""
    found = set()
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} has a relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    bare = {name for name in found if name.split(".")[0] in LAYERS}
    assert not bare, f"{path}: {bare} has a second name in the clone, and none elsewhere"
    return {name.removeprefix("sgmcmc_verification.").split(".")[0] for name in found} & set(FOLDERS)


def forbidden(folder: str, names: set[str]) -> set[str]:
    """Those of `names` that a module of `folder` must not import."""
    if folder not in LAYERS:
        return set()
    return names - set(LAYERS[: LAYERS.index(folder) + 1])


@pytest.mark.parametrize("folder", LAYERS)
def test_no_module_imports_from_a_later_layer(folder):
    wrong = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        bad = forbidden(folder, imported(path.read_text(encoding="utf-8"), str(path)))
        if bad:
            wrong[str(path.relative_to(ROOT))] = sorted(bad)
    assert wrong == {}


def test_an_import_against_the_direction_is_seen():
    assert forbidden(
        "targets", imported("def f():\n    from sgmcmc_verification.samplers.overdamped.sgld import SGLD\n")
    ) == {"samplers"}
    assert forbidden("samplers", imported("import sgmcmc_verification.checks.core.result")) == {"checks"}
    assert forbidden("checks", imported("import tests.conftest, sgmcmc_verification.reports")) == {"tests", "reports"}
    downwards = "from sgmcmc_verification import samplers, targets\nimport sgmcmc_verification.checks.core, numpy"
    assert forbidden("checks", imported(downwards)) == set()


SLOW = ("numba", "sympy", "scipy.interpolate", "scipy.stats", "statsmodels", "pandas", "matplotlib")
"""Each takes a tenth to one and a half seconds to load: loaded by what uses them, not by every run."""


def test_the_checks_load_no_slow_library():
    code = (
        f"import sgmcmc_verification.checks.runner.plan, sys; print([name for name in {SLOW} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert run.stdout.strip() == "[]"
