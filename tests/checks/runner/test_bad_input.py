"""Every mistake of a caller is one line that names the argument, before any work starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.lookup import find_row, resolve
from sgmcmc_verification.checks.runner.expected_failures import read
from sgmcmc_verification.checks.runner.plan import make_plan, parse_options, parse_tiers

ROOT = Path(__file__).resolve().parents[3]
ENTRY = '[[expected_failure]]\nsampler = "sgld"\nstatement = "movement"\nreason = "r"\nissue = "i"\n'
GOOD = """
import jax, jax.numpy as jnp

class Walk:
    def step(self, key, state, step_size, estimator):
        gradient = estimator.estimate(key, (), state)[0].gradient
        noise = jax.random.normal(key, state.shape, state.dtype)
        return state - step_size * gradient + jnp.sqrt(2 * step_size) * noise

sampler = Walk()
stepless = object()
number = 3
bad_build = lambda target: 1 / 0

class Wrong(Walk):
    def step(self, key, state, step_size, estimator):
        return jnp.concatenate([state, state])

class NotFinite(Walk):
    def step(self, key, state, step_size, estimator):
        return state + jnp.nan

class Exits(Walk):
    def step(self, key, state, step_size, estimator):
        raise SystemExit(3)

class Raises(Walk):
    def step(self, key, state, step_size, estimator):
        raise ValueError("no")

wrong, not_finite, exits, raises = Wrong(), NotFinite(), Exits(), Raises()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(GOOD, encoding="utf-8")
    return path


def message(error) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("", "empty"),
        ("sgdl", "'sgld'"),
        ("nothing-like-it", "known: sgld"),
        ("no_such_module_at_all:thing", "no module named 'no_such_module_at_all'"),
        ("nowhere/missing.py:thing", "there is no file"),
        ("mine.py", "say which object"),
        ("sgmcmc_verification.samplers.overdamped.sgld:SGLDD", "has no attribute 'SGLDD'; did you mean 'SGLD'"),
    ],
)
def test_unknown_sampler_is_named(reference, words):
    with pytest.raises(BadInput) as error:
        find_row(reference)
    assert reference in message(error)
    assert words in message(error)


@pytest.mark.parametrize(
    ("name", "words"),
    [("stepless", "no method `step`"), ("number", "is a int"), ("bad_build", "ZeroDivisionError")],
)
def test_object_that_is_no_sampler_is_refused(file, name, words):
    with pytest.raises(BadInput) as error:
        resolve(f"{file}:{name}")
    assert words in message(error)


def test_error_in_the_sampler_names_its_own_line(file):
    with pytest.raises(BadInput) as error:
        resolve(f"{file}:bad_build")
    assert "mine.py:" in message(error)


def test_broken_file_names_the_line(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ny = = 2\n", encoding="utf-8")
    with pytest.raises(BadInput) as error:
        resolve(f"{path}:y")
    assert "broken.py:2" in message(error)


def test_unknown_target_and_tier_have_suggestions():
    with pytest.raises(BadInput) as error:
        find_target("anharmonics")
    assert "'anharmonic'" in message(error)
    with pytest.raises(BadInput) as error:
        parse_tiers(["contrct"])
    assert "'contract'" in message(error)


@pytest.mark.parametrize(("name", "tier"), [("sgld", "workload"), ("lda/gibbs", "law")])
def test_a_tier_that_a_row_cannot_have_says_so(name, tier):
    with pytest.raises(BadInput) as error:
        make_plan([name], tiers=[tier])
    assert f"--sampler {name}: no check of the tiers {tier} applies" in message(error)


@pytest.mark.parametrize("pair", ["friction", "=2", "friction=two", "2x=1", "friction="])
def test_malformed_option_is_refused(pair):
    with pytest.raises(BadInput) as error:
        parse_options([pair])
    assert pair in message(error)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"step_size": "0"}, "must be positive"),
        ({"step_size": "-1.5"}, "must be positive"),
        ({"step_size": "nan"}, "must be finite"),
        ({"step_size": "small"}, "must be a number"),
        ({"seed": "1.5"}, "must be an integer"),
        ({"chains": "0"}, "at most 1"),
        ({"chains": "1.5"}, "at most 1"),
        ({"chains": "few"}, "must be a number"),
        ({"options": ["temperature=-1.0"]}, "temperature: must be positive"),
        ({"options": ["frictoin=1.0"]}, "frictoin"),
        ({"targets": ["gamma"]}, "no selected check"),
    ],
)
def test_bad_value_is_refused(arguments, words):
    with pytest.raises(BadInput) as error:
        make_plan(["sgld"], **arguments)
    assert words in message(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = [", "is not TOML"),
        ("[[known]]\na = 1\n", "[[expected_failure]]"),
        ('[[expected_failure]]\nsampler = "sgld"\n', "entry 1: needs a text for 'statement'"),
        (ENTRY + 'extra = "e"', "unknown field 'extra'"),
        (ENTRY.replace('"r"', '" "'), "entry 1: needs a text for 'reason'"),
        (ENTRY.replace("movement", "movment"), "entry 1: no statement 'movment'; did you mean 'movement'"),
    ],
)
def test_malformed_expected_failures_are_refused(tmp_path, text, words):
    path = tmp_path / "known.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as error:
        read(path)
    assert words in message(error)


def test_an_expected_failure_that_matches_nothing_is_refused(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(ENTRY.replace("movement", "gaussian_flow"), encoding="utf-8")  # it is about particles
    with pytest.raises(BadInput) as error:
        make_plan(["sgld"], expected_failures=str(path))
    assert "matches no statement; remove it" in message(error)


@pytest.mark.parametrize(("name", "words"), [("exits", "SystemExit: 3"), ("raises", "ValueError: no")])
def test_a_step_that_raises_or_exits_is_one_line_with_its_place(file, name, words):
    plan = make_plan([f"{file}:{name}"])
    with pytest.raises(BadInput) as error:
        plan.preflight()
    assert f"{words} at {file}" in message(error)


@pytest.mark.parametrize("name", ["sgld", "file"])
def test_an_unstable_step_size_is_refused_with_the_largest_that_will_do(file, name):
    """SGLD is stable for h curvature < 2, and the checks take three times the usual step size."""
    sampler = f"{file}:sampler" if name == "file" else name
    with pytest.raises(BadInput) as error:
        make_plan([sampler], step_size="1").preflight()
    assert "unstable on gaussian-1d-scaled beyond 2" in message(error)
    assert "at most 0.667" in message(error)
    make_plan([sampler], step_size="0.6").preflight()


@pytest.mark.parametrize(("name", "words"), [("wrong", "shape (1,), has (2,)"), ("not_finite", "not finite")])
def test_broken_step_is_one_usage_error(file, name, words):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "checks", "-p", "no:cacheprovider", "--sampler", f"{file}:{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    assert run.returncode == 4, run.stdout + run.stderr
    assert words in lines[0]
    assert len(lines) == 1
