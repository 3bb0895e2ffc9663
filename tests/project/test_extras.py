"""Core dependencies serve the reference samplers; what a missing extra costs is one line that names it."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.samplers.adapters.registry import ADAPTERS
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.targets.datasets.files import DataError, DataFile, fetch

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
MODULES = {
    "blackjax": "blackjax",
    "numpyro": "numpyro",
    "optax": "optax",
    "tfp": "tensorflow_probability",
    "geoopt": "geoopt",
    "posteriors": "posteriors",
    "devinterp": "devinterp",
    "ase": "ase",
}
"""First part of the names of a library's rows -> its module."""
OF_EXTRAS = (
    *MODULES.values(),
    *("torch", "tensordict", "gensim", "sklearn", "tomotopy", "pooch", "requests", "filelock", "jinja2", "markdown_it"),
    *("msgspec", "pandas", "statsmodels", "dask", "distributed", "arviz_stats", "hypothesis", "matplotlib", "pymanopt"),
)
"""Modules that the core dependencies do not bring."""
WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Absent())
import pytest
raise SystemExit(pytest.main({arguments!r}))
"""


def checks_without(modules: tuple[str, ...], *arguments: str, what=("checks",)) -> subprocess.CompletedProcess[str]:
    """`pytest checks`, or a few statements of it, in a process that cannot import the modules."""
    script = WITHOUT.format(modules=modules, arguments=[*what, "-p", "no:cacheprovider", "-q", *arguments])
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_core_dependencies_serve_the_plan_of_all_reference_samplers_and_run_one():
    few = [f"checks/test_{tier}.py::test_{tier}[sgld-{tier}-double-well]" for tier in ("recipe", "generator")]
    done = checks_without(OF_EXTRAS, "--tier", "all", what=few)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "PART  sgld " in done.stdout
    assert [row.name for row in SAMPLERS if f"PART  {row.name} " not in done.stdout] == []


def test_a_missing_library_is_one_line_on_the_terminal():
    done = checks_without(("blackjax",), "--sampler", "blackjax/sgld")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    line = "ERROR: --sampler blackjax/sgld: needs blackjax: pip install 'sgmcmc-verification[blackjax]'"
    assert done.stderr.strip() == line


@pytest.mark.parametrize("library", MODULES)
def test_a_missing_library_names_an_extra_that_exists(library, monkeypatch):
    for module in [m for m in sys.modules if m.split(".")[0] == MODULES[library]]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, MODULES[library], None)
    row = next(row for row in ADAPTERS if row.name.startswith(f"{library}/"))
    with pytest.raises(BadInput) as error:
        resolve(row.name)
    text = str(error.value)
    found = re.fullmatch(rf"--sampler {row.name}: needs [\w-]+: pip install 'sgmcmc-verification\[([\w-]+)\]'.*", text)
    assert found
    assert found.group(1) in EXTRAS


def test_a_file_that_cannot_be_fetched_for_want_of_pooch_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=r"needs pooch: pip install 'sgmcmc-verification\[data\]'"):
        fetch(DataFile("nothing.csv", "https://example.org/nothing.csv", None, "nobody"))


def test_extras_refer_to_extras_that_exist():
    referred = {
        name
        for requirements in EXTRAS.values()
        for requirement in requirements
        if requirement.startswith("sgmcmc-verification[")
        for name in requirement.partition("[")[2].rstrip("]").split(",")
    }
    assert referred <= set(EXTRAS)
    assert referred


def test_reports_without_their_extra_name_it():
    script = "import sys; sys.modules['jinja2'] = None; from sgmcmc_verification import reports"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ImportError: needs jinja2: pip install 'sgmcmc-verification[reports]'"
