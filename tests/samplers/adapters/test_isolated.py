"""The bridge to other environments: its protocol, its errors, and that the noise-free checks see through it.

The far side is a tiny library that this very Python runs, through the same worker as any other.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.end_points.chains import end_points
from sgmcmc_verification.checks.tiers.generator.drift_and_diffusion import generator_of_code
from sgmcmc_verification.checks.tiers.law.gaussian import gaussian_limit, gradient_noise_limit
from sgmcmc_verification.checks.tracing.noisy_step import HostNoise
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.adapters.isolated import build as building
from sgmcmc_verification.samplers.adapters.isolated import environments
from sgmcmc_verification.samplers.adapters.isolated.__main__ import main
from sgmcmc_verification.samplers.adapters.isolated.client import Client
from sgmcmc_verification.samplers.adapters.isolated.environments import ENVIRONMENTS, Environment
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeCrash, BridgeError, BridgeMissing, BridgeTimeout
from sgmcmc_verification.samplers.adapters.isolated.sampler import Bridged
from sgmcmc_verification.samplers.adapters.registry import ADAPTERS
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.registry import target

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

FAR = Path(__file__).parents[2] / "helpers" / "fake_remote.py"
EPS = np.finfo(float).eps
PLANE, WELL = target("gaussian-correlated-2d"), target("double-well")


@pytest.fixture(scope="module")
def worker():
    with Client(sys.executable, FAR, name="fake") as client:
        yield client


def euler(worker, law, **options):
    return Bridged(worker, "euler", law, SGLD().claims, options)


def subject(worker, **options):
    return Subject(Row("fake/euler", lambda law: euler(worker, law, **options)))


def run(check, subject, law):
    return check(Case(subject, law))


def mapped(sampler, z, noise, h, eta=None):
    rows = len(z)
    eta = np.zeros_like(z) if eta is None else eta
    return sampler.one_step(z, noise, np.zeros((rows, 0)), np.zeros((rows, 0), int), eta, h)


def test_the_one_step_map_is_the_closed_form_with_the_given_noise(worker):
    rng = np.random.default_rng(0)
    z, noise, eta = rng.normal(size=(3, 50, 1))
    h = 0.07
    gradient = np.asarray(jax.vmap(jax.grad(WELL.potential))(z))
    expected = z - h * (gradient + eta) + np.sqrt(2 * h) * noise
    found = mapped(euler(worker, WELL), z, noise, h, eta)
    np.testing.assert_allclose(found, expected, rtol=0, atol=16 * EPS * (1 + np.abs(gradient).max()))


def test_a_draw_in_a_loop_and_in_a_compiled_function_is_a_new_one_each_time(worker):
    """Two steps of size h at once equal two maps, each with its own half of the noise."""
    rng = np.random.default_rng(1)
    z, h = rng.normal(size=(7, 2)), 0.01
    noise = rng.normal(size=(7, 4))
    once, twice = euler(worker, PLANE), euler(worker, PLANE, loops=2)
    assert (once.loaded.normals, twice.loaded.normals) == (2, 4)
    middle = mapped(once, z, noise[:, :2], h)
    expected = mapped(once, middle, noise[:, 2:], h)
    np.testing.assert_allclose(mapped(twice, z, noise, h), expected, rtol=0, atol=64 * EPS * np.abs(expected).max())


def test_moments_over_the_bridge_are_those_of_the_same_sampler_in_this_process(worker):
    points = np.array([[-1.1], [0.2], [0.9]])
    there = step_map(subject(worker), WELL).moments(points, 0.05)
    here = step_map(Subject(next(r for r in SAMPLERS if r.name == "sgld")), WELL).moments(points, 0.05)
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e3 * EPS, atol=1e3 * EPS)


def test_the_right_scheme_passes_and_the_wrong_noise_scale_is_caught(worker):
    """Planted: noise of variance h in place of 2 h halves the limit of the covariance."""
    right, wrong = subject(worker), subject(worker, scale=0.5**0.5)
    assert run(generator_of_code, right, WELL).verdict == "pass"
    assert run(gaussian_limit, right, PLANE).verdict == "pass"
    assert run(generator_of_code, wrong, WELL).verdict == "fail"
    failed = run(gaussian_limit, wrong, PLANE)
    assert failed.verdict == "fail"
    # the limit is half of the target's covariance: off by 1/2 in its units
    assert failed.effect == pytest.approx(0.5, abs=10 * failed.tolerance.value)


def test_gradient_noise_enters_as_data(worker):
    result = run(gradient_noise_limit, subject(worker), PLANE)
    assert (result.verdict, "changes the law by" in result.reason) == ("pass", True)


def test_noise_on_top_of_the_exact_gradient_is_not_taken_for_the_exact_gradient(worker):
    """An estimator of a host sampler that inherits from the exact one and adds noise to it."""
    exact, noisy = (step_map(subject(worker), PLANE, e) for e in (HostExact(PLANE), HostNoise(PLANE, np.eye(2))))
    assert (exact.program.count("normal"), noisy.program.count("normal")) == (2, 4)
    ends = [end_points(step, np.zeros((5, 2)), 0.01, 3, seed=4).position for step in (exact, noisy)]
    assert not np.array_equal(*ends)


def test_a_draw_that_the_tape_cannot_give_is_named(worker):
    assert euler(worker, WELL, draw="gamma").loaded.escaped == ("gamma", "a draw of the library")


def test_the_chains_have_the_exact_variance_of_the_scheme_after_as_many_steps(worker):
    """N(0, P^-1) scaled: var_{n+1} = (1 - h k)^2 var_n + 2 h; a 1e-6 quantile of chi^2."""
    law = target("gaussian-1d-scaled")
    curvature, mean = float(law.gaussian.precision[0, 0]), float(law.gaussian.mean[0])
    h, steps, count = 0.4 / curvature, 5, 4000
    variance = 0.0
    for _ in range(steps):
        variance = (1 - h * curvature) ** 2 * variance + 2 * h
    starts = np.full((count, 1), mean)
    ends = euler(worker, law).chains(np.random.default_rng(2), starts, h, steps, Exact(law))
    square = float(np.sum((ends - mean) ** 2)) / variance
    assert stats.chi2.ppf(5e-7, count) < square < stats.chi2.ppf(1 - 5e-7, count)


def test_the_end_points_of_the_statistical_checks_come_from_the_chains(worker):
    step = step_map(subject(worker), PLANE, KnownNoise(PLANE, np.eye(2)))
    ends = end_points(step, np.zeros((300, 2)), 0.01, 3, seed=4)
    again = end_points(step, np.zeros((300, 2)), 0.01, 3, seed=4)
    assert ends.position.shape == (300, 2)
    assert np.array_equal(ends.position, again.position)
    assert len(np.unique(ends.position[:, 0])) == 300


def test_an_error_of_the_library_is_one_line_and_the_worker_lives_on(worker):
    with pytest.raises(BridgeError, match=r"^fake: load failed in the other environment \(RuntimeError: the library"):
        _ = Bridged(worker, "broken", WELL, SGLD().claims, {}).loaded
    with pytest.raises(BridgeError, match="no such kernel: nothing"):
        _ = Bridged(worker, "nothing", WELL, SGLD().claims, {}).loaded
    assert worker.alive
    assert euler(worker, WELL).loaded.normals == 1


def test_a_target_that_the_other_environment_lacks_is_refused(worker):
    odd = Bridged(worker, "euler", target("banana"), SGLD().claims, {})
    assert odd.loaded.normals == 2
    with pytest.raises(BridgeError, match="target mine: only the suite's own"):
        _ = Bridged(worker, "euler", replace(target("banana"), name="mine"), SGLD().claims, {}).loaded


def test_a_gaussian_that_is_in_no_registry_crosses_as_data(worker):
    law = gaussian(np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]), "mine")
    z = np.array([[0.3, 0.4]])
    found = mapped(euler(worker, law), z, np.zeros((1, 2)), 0.1)
    np.testing.assert_allclose(found, z - 0.1 * (z - law.gaussian.mean) @ law.gaussian.precision, rtol=8 * EPS)


def test_a_worker_that_ends_says_with_which_code():
    with Client(sys.executable, FAR, name="fake") as client:
        with pytest.raises(BridgeCrash, match="ended with code 7 while load"):
            client.request("load", {}, target={"name": "double-well"}, kernel="exit", options={})
        assert not client.alive
        with pytest.raises(BridgeCrash, match="start another one"):
            client.request("load")


def test_a_worker_that_takes_too_long_is_ended():
    with Client(sys.executable, FAR, name="fake") as client:
        with pytest.raises(BridgeTimeout, match=r"load took longer than 0\.5 s"):
            client.request("load", {}, seconds=0.5, target={"name": "double-well"}, kernel="sleep", options={})
        assert not client.alive


def test_a_library_that_cannot_be_imported_is_an_error_at_the_start(tmp_path):
    far = tmp_path / "far.py"
    far.write_text("import a_library_that_is_not_there\n", encoding="utf-8")
    with pytest.raises(BridgeError, match="ModuleNotFoundError: No module named 'a_library_that_is_not_there'"):
        Client(sys.executable, far, name="fake")


def test_a_missing_environment_is_one_line_with_the_command_that_builds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SGMCMC_CACHE_DIR", str(tmp_path))
    with pytest.raises(
        BridgeMissing,
        match=r"not built yet: python -m sgmcmc_verification\.samplers\.adapters\.isolated build sgmcmcjax$",
    ):
        environments.python_of("sgmcmcjax")


def test_building_is_idempotent_follows_the_pins_and_leaves_nothing_behind_when_it_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("SGMCMC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(building.shutil, "which", lambda name: None)
    pins = Environment("fake", ("nothing==1.0",), FAR, alone=("lonely==2.0",))
    monkeypatch.setattr(environments, "environment", lambda name: pins)
    done, said = [], []

    def commands(name, arguments):
        done.append(arguments)
        if "venv" in arguments:  # an environment whose Python is this one
            python = environments.interpreter(environments.home("fake"))
            python.parent.mkdir(parents=True)
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
            python.chmod(0o755)

    monkeypatch.setattr(building, "_run", commands)
    folder = building.build("fake", said.append)
    assert done[-2][-1] == "nothing==1.0"
    assert done[-1][-2:] == ["--no-deps", "lonely==2.0"]
    assert json.loads((folder / environments.STAMP).read_text())["versions"]["fake"] == "1.0"
    assert environments.python_of("fake").exists()
    before = len(done)
    building.build("fake", said.append)
    assert (len(done), said[-1]) == (before, f"fake: already built in {folder}")
    pins = Environment("fake", ("nothing==1.0",), FAR, alone=("lonely==2.1",))
    assert not environments.is_built("fake")
    pins = Environment("fake", ("nothing==1.1",), FAR, alone=("lonely==2.0",))
    assert not environments.is_built("fake")

    def failing(name, arguments):
        raise BridgeError("fake: `pip install ...` failed: no such package")

    monkeypatch.setattr(building, "_run", failing)
    with pytest.raises(BridgeError, match="no such package"):
        building.build("fake", said.append)
    assert not folder.exists()


def test_the_command_line_lists_environments_and_refuses_others(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SGMCMC_CACHE_DIR", str(tmp_path))
    assert main(["list"]) == 0
    assert capsys.readouterr().out.count("not built") == len(ENVIRONMENTS)
    assert main(["build", "nothing"]) == 1
    assert "environment nothing: there is none of that name; known: sgmcmcjax, jax-sgmc" in capsys.readouterr().err


def test_every_requirement_is_pinned():
    assert all(pin.count("==") == 1 for env in ENVIRONMENTS for pin in (*env.requirements, *env.alone))


def test_every_environment_has_rows_and_their_samplers_can_be_described_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SGMCMC_CACHE_DIR", str(tmp_path))
    for env in ENVIRONMENTS:
        rows = [row for row in ADAPTERS if row.name.startswith(f"{env.name}/")]
        assert rows
        for row in rows:
            for options in ({}, *row.variants):
                assert row.build(PLANE, **options).claims.source.key
