"""The door from Python: objects as a user has them, reports, and checks as items of a user's own tests."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification import checks
from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import jax


class Langevin:
    heat = 1.0

    def step(self, key, x, h, estimator):
        draw, batch = jax.random.split(key)
        gradient = estimator.estimate(batch, (), x)[0].gradient
        leaves, tree = jax.tree.flatten(gradient)
        keys = jax.random.split(draw, len(leaves))
        noise = [jax.random.normal(k, g.shape, g.dtype) for k, g in zip(keys, leaves)]
        noise = jax.tree.unflatten(tree, noise)
        return jax.tree.map(lambda x, g, e: x - h * g + (2 * h * self.heat) ** 0.5 * e, x, gradient, noise)


class TooHot(Langevin):
    heat = 1.5
"""
ITEMS = """
import jax.numpy as jnp
from sgmcmc_verification import checks
from mine import Langevin, TooHot

KNOWN = dict.fromkeys(["gaussian_limit", "gradient_noise_limit"], "too hot, by intention")


@checks.parametrize_with_checks(
    [Langevin, TooHot], tiers=["law"], targets=["gaussian-1d-scaled"],
    expected_failures=lambda sampler: KNOWN if sampler is EXPECTED else {},
)
def test_sampler(sampler, check):
    check(sampler)


def test_precision_is_as_it_was():
    assert jnp.ones(2).dtype == jnp.float32
"""
ITEMS_OF_LAW = ("gaussian_law-gaussian-1d-scaled", "gradient_noise-gaussian-1d-scaled", "conclusion")
FAILING = {
    "None": {f"TooHot-{item}" for item in ITEMS_OF_LAW},
    "TooHot": set(),
    "Langevin": {f"{name}-{item}" for name in ("Langevin", "TooHot") for item in ITEMS_OF_LAW},
}
"""Whose failures are expected -> the items that fail: an expected failure that passes is one."""
FEW = {"tiers": ["law"], "targets": ["gaussian-1d-scaled"]}


@pytest.fixture(scope="module")
def theirs():
    space = {"__name__": "mine"}
    exec(compile(CODE, "mine.py", "exec"), space)
    return space["Langevin"], space["TooHot"]


def test_a_right_sampler_is_reported_in_a_few_lines_and_its_law_can_be_relied_on(theirs):
    report = checks.check_sampler(theirs[0]())
    assert report.conclusion.word == "pass", str(report)
    assert report.good
    assert report.sampler == "Langevin"
    assert len(str(report).splitlines()) <= 12
    assert "  bias        at the usual step size" in str(report)
    report.raise_for_law()


def test_a_wrong_sampler_names_its_cause_first_and_its_law_raises(theirs):
    report = checks.check_sampler(theirs[1], tiers=["law"], name="<hot>")
    assert report.conclusion.law == "violated"
    with pytest.raises(checks.LawNotShown, match="hot") as raised:
        report.raise_for_law()
    first, second, *_ = str(raised.value).splitlines()
    assert first.startswith("FAIL  <hot>")
    assert "diagnosis" in second
    assert "&lt;hot&gt;" in report._repr_html_()
    assert "<hot>" not in report._repr_html_()


def test_a_part_of_a_run_shows_no_law(theirs):
    report = checks.check_sampler(theirs[0], **FEW)
    assert report.conclusion.word == "part"
    assert report.good
    with pytest.raises(checks.LawNotShown):
        report.raise_for_law()


def test_claims_that_are_given_decide_what_is_right(theirs):
    """A sampler at temperature 1.5 is right if that is what is claimed, and one at temperature 1 is then wrong."""
    claims = Claims(Source("", "by intention"), StationaryLaw(order=1, temperature=1.5))
    assert checks.check_sampler(theirs[1], claims=claims, **FEW).conclusion.law == "not examined"
    assert checks.check_sampler(theirs[0], claims=claims, **FEW).conclusion.law == "violated"


def test_double_precision_ends_with_the_call(theirs):
    with jax.enable_x64(False):
        result = checks.run_check(theirs[0](), "gaussian_limit", "gaussian-1d-scaled")
        assert jnp.ones(2).dtype == jnp.float32
    assert result.verdict == "pass"
    assert result.dtype == "float64"
    assert "run_check(Langevin, 'gaussian_limit'" in result.reproduction
    assert "--sampler" not in result.reproduction


def test_a_report_is_written_as_a_file_of_results_with_its_plan_first(theirs, tmp_path):
    report = checks.check_sampler(theirs[0], **FEW)
    report.write(tmp_path / "mine.jsonl")
    first, *rest = (tmp_path / "mine.jsonl").read_text().splitlines()
    assert json.loads(first)["plan"]["Langevin"]["part"]
    assert json.loads(first)["command"] == "checks.check_sampler(Langevin)"
    assert rest == [result.to_json() for result in report.results]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"targets": ["gauss"]}, "gauss"),
        ({"tiers": ["laws"]}, "laws"),
        ({"expected_failures": {"gaussian": "?"}}, "expected_failures: no statement 'gaussian'"),
    ],
)
def test_a_mistake_is_one_line_before_work_starts(theirs, given, message):
    with pytest.raises(checks.BadInput, match=message):
        checks.check_sampler(theirs[0], **given)


def test_what_is_no_sampler_is_bad_input():
    with pytest.raises(checks.BadInput, match="no method `step`"):
        checks.check_sampler(object())


@pytest.mark.parametrize("expected", FAILING)
def test_items_of_a_file_of_their_own(tmp_path, expected):
    (tmp_path / "mine.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "test_mine.py").write_text(ITEMS.replace("EXPECTED", expected), encoding="utf-8")
    options = ["-p", "no:cacheprovider", "-q", "-rA", "--rootdir", str(tmp_path), "-c", "/dev/null"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{ROOT}/docs/namespace:{tmp_path}", "PATH": ""},
        cwd=tmp_path,
    )
    lines = [line.split(" - ")[0] for line in done.stdout.splitlines()]
    failed = {line.split("[")[1].split("]")[0] for line in lines if line.startswith("FAILED")}
    assert failed == FAILING[expected], done.stdout + done.stderr
    assert "PASSED test_mine.py::test_precision_is_as_it_was" in lines


def arrays_alone(key, position, step_size, estimator):
    gradient_key, noise_key = jax.random.split(key)
    gradient = estimator.estimate(gradient_key, (), position)[0].gradient
    noise = jax.random.normal(noise_key, position.shape, position.dtype)
    return position - step_size * gradient + (2 * step_size) ** 0.5 * noise


def test_an_object_that_knows_arrays_alone_passes_as_its_name_does_on_the_command_line():
    """No tree of arrays is asked of it, since no registry says that it runs on one."""
    report = checks.check_sampler(simple_sampler(arrays_alone), name="mine")
    assert report.conclusion.word == "pass", str(report)
    assert report.conclusion.law == "holds"
