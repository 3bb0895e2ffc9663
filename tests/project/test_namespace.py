"""The suite in other people's repositories: one name, a plugin that waits to be asked, nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = ROOT / "docs" / "namespace"
FOLDERS = ("checks", "samplers", "targets", "reports")
FEW = ("--tier", "contract", "-k", "shapes_and_dtypes")
"""Checks that take a second."""
BARE = f"[name for name in sys.modules if name.partition('.')[0] in {FOLDERS}]"
MINE = """
import jax

from sgmcmc_verification.samplers.simple import simple_sampler


def step(key, position, step_size, estimator):
    gradient_key, noise_key = jax.random.split(key)
    gradient = estimator.estimate(gradient_key, (), position)[0].gradient
    return position - step_size * gradient + (2 * step_size) ** 0.5 * jax.random.normal(noise_key, position.shape)


mine = simple_sampler(step)
"""
EARLIER = (
    MINE.replace("sgmcmc_verification.samplers", "samplers")
    + """
import samplers.interface.claims
import sgmcmc_verification.samplers.interface.claims as claims

assert samplers.interface.claims is claims
assert claims.__spec__.name == "sgmcmc_verification.samplers.interface.claims"
"""
)
OWN = """
import sys

import checks
import samplers


def test_theirs():
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert checks.OURS and samplers.OURS
    assert not loaded & {"jax", "numpy", "scipy"}
    assert "sgmcmc_verification.samplers" not in sys.modules
"""
OPTIONS = """
def pytest_addoption(parser):
    for name in ("seed", "target", "json", "list", "report", "option"):
        parser.addoption(f"--{name}", default=None)
"""


@pytest.fixture
def theirs(tmp_path):
    """A repository with folders of the same names as ours, and a sampler."""
    for name in (*FOLDERS, "tests", "their_package"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OURS = True\n")
    (tmp_path / "their_package" / "module.py").write_text(MINE)
    (tmp_path / "tests" / "test_own.py").write_text(OWN)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:jaxtyping\ntestpaths = tests\n")
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A module of Python in a folder, with the suite of this clone."""
    environment = os.environ | {"PYTHONPATH": str(NAMESPACE)}
    environment.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_other_tests_pay_nothing_and_may_have_any_option(theirs):
    (theirs / "conftest.py").write_text(OPTIONS)
    done = run(theirs, "-m", "pytest", "-p", "no:cacheprovider", "--seed", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_one_option_checks_a_sampler_beside_folders_of_the_same_names_and_leaves_no_float64(theirs):
    code = (
        "import sys, pytest, jax; sys.path.append('.')\n"
        f"code = pytest.main(['-p', 'no:cacheprovider', '--sampler', 'their_package.module:mine', *{FEW}])\n"
        "assert jax.numpy.zeros(1).dtype == 'float32'\n"
        "import sgmcmc_verification as sv\n"
        "from their_package.module import mine\n"
        "sv.run_check(mine, 'shapes_and_dtypes', 'gaussian-1d-scaled')\n"
        "assert jax.numpy.zeros(1).dtype == 'float32'\n"
        f"assert {BARE} == []\n"
        "sys.exit(code)"
    )
    done = run(theirs, "-c", code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PART  their_package.module:mine" in done.stdout
    assert "test_own" not in done.stdout


def test_the_command_needs_nothing_of_the_pytest_of_the_folder(theirs):
    (theirs / "conftest.py").write_text(OPTIONS)
    sampler = "their_package.module:mine"
    done = run(theirs, "-m", "pytest", "-p", "no:cacheprovider", "--sampler", sampler, *FEW)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.count("\n") < 3
    assert "run `sgmcmc-verify SAMPLER`" in done.stderr
    done = run(theirs, "-m", "sgmcmc_verification.checks.pytest_plugin.command_line", sampler, *FEW, "--json", "-")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"command": "sgmcmc-verify --sampler their_package.module:mine' in done.stdout


def test_no_module_of_the_suite_has_a_second_name(tmp_path):
    (tmp_path / "probe.py").write_text(f"import sys\n\n\ndef pytest_unconfigure():\n    print('BARE', {BARE})\n")
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    options = ["checks", "-p", "probe", "-p", "no:cacheprovider", "--sampler", "sgld", *FEW]
    done = run(ROOT, "-c", code, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BARE []" in done.stdout


@pytest.mark.parametrize("folder", [ROOT, None], ids=["in the clone", "elsewhere"])
def test_a_sampler_that_was_written_for_the_earlier_names_has_the_modules_of_the_new_ones(tmp_path, folder):
    (tmp_path / "earlier.py").write_text(EARLIER)
    paths = ["checks"] if folder else []
    options = ["-p", "no:cacheprovider", "--sampler", f"{tmp_path / 'earlier.py'}:mine", *FEW]
    done = run(folder or tmp_path, "-m", "pytest", *paths, *options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_package_of_the_author_comes_before_an_earlier_name(theirs):
    text = MINE + "\nimport samplers\nassert samplers.OURS\n"
    (theirs / "their_package" / "module.py").write_text(text)
    done = run(theirs, "-m", "pytest", "-p", "no:cacheprovider", "--sampler", "their_package.module:mine", *FEW)
    assert done.returncode == 0, done.stdout + done.stderr
