"""The experiments with particles: their reference rule, a cell of each method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

from sgmcmc_verification.reports.experiments.common.grid import load
from sgmcmc_verification.reports.experiments.liu2018 import figure1 as logistic
from sgmcmc_verification.reports.experiments.liu2018 import minibatch
from sgmcmc_verification.reports.experiments.liu2019 import banana, robustness
from sgmcmc_verification.targets.datasets.table import Table
from sgmcmc_verification.targets.regression.logistic import logistic_regression


def test_the_rule_of_the_banana_has_its_moments_and_satisfies_integration_by_parts():
    """E y^2 by adaptive quadrature in the plane, E z_i d_j U = delta_ij."""
    nodes, weights = banana.rule()
    slopes = np.asarray(jax.vmap(jax.grad(banana.energy))(jnp.asarray(nodes)))
    np.testing.assert_allclose((weights[:, None] * nodes).T @ slopes, np.eye(2), rtol=0, atol=1e-9)
    energy = lambda x, y: 0.01 * (0.5 * (x * x + y * y) + 0.4 * (25 * x + y * y) ** 2)
    ridge = lambda y: -(y**2) / 25  # x is within 5 of it but for a mass of exp(-60)
    over = lambda f: integrate.dblquad(
        lambda x, y: f(x, y) * np.exp(-energy(x, y)), -30, 30, lambda y: ridge(y) - 5, lambda y: ridge(y) + 6
    )[0]
    expected = over(lambda x, y: y * y) / over(lambda x, y: 1.0)
    assert weights @ nodes[:, 1] ** 2 == pytest.approx(expected, rel=1e-4)  # y beyond 30: exp(-U) < 2e-5 of its peak


@pytest.mark.parametrize("method", ["SGHMC", "pSGHMC-fGH"])
def test_particles_start_where_they_should_and_come_nearer_to_the_law(method):
    shots = banana.moved(banana.Cell(method, (0, 150)))["snapshots"]
    start = np.array(shots[0]["points"])
    assert np.all(np.abs(start.mean(axis=0) - banana.START) < 5 * banana.SPREAD / np.sqrt(banana.PARTICLES))
    assert shots[1]["KSD"] < shots[0]["KSD"]


@pytest.fixture
def rows(monkeypatch):
    """A small logistic regression in place of the data files."""
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.normal(size=(90, 3)), np.ones(90)])
    y = (generator.random(90) < special.expit(X @ [2.0, -1.0, 0.0, 0.5])).astype(float)
    tables = Table(X[:60], y[:60]), Table(X[60:], y[60:])
    law = logistic_regression(X[:60], y[:60], logistic.VARIANCE, "small")
    for module in (logistic, minibatch):
        monkeypatch.setattr(module, "problem", lambda data: logistic.Problem(law, *tables))
    monkeypatch.setattr(logistic, "PARTICLES", 20)


def test_the_quick_run_of_logistic_regression_leaves_a_page_and_a_figure_and_is_not_computed_again(
    rows, tmp_path, monkeypatch
):
    assert logistic.main(["--quick", "--out", str(tmp_path)]) == 0
    lines = load(tmp_path / f"{logistic.NAME}.jsonl")
    found = logistic.curves(lines, True)
    assert {m for _, m in found} == set(logistic.METHODS)
    limit = logistic.posterior(lines, "splice")["log_likelihood"]
    for curve in found.values():
        assert np.all(np.diff(curve["seconds"]) > 0)
        gaps = np.abs(curve["log_likelihood"][0] - limit)
        assert gaps[-1] < gaps[0]
    assert (tmp_path / f"{logistic.NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert "Reduced" in (tmp_path / f"{logistic.NAME}.md").read_text(encoding="utf-8")
    monkeypatch.setattr(logistic, "measured", None)
    assert logistic.main(["--quick", "--resume", "--out", str(tmp_path)]) == 0


def test_a_curve_has_reached_its_limit_where_it_stays():
    curve = {"log_likelihood": np.array([[-0.7, -0.5, -0.6, -0.505, -0.5]])}
    assert logistic.reached(curve, -0.5) == 3
    assert logistic.reached(curve, -0.3) is None
    assert logistic.reached({"log_likelihood": np.array([[-0.5]])}, -0.5) == 0


def test_the_recursions_have_the_known_stationary_laws():
    """SGLD: (1 + h V / 2) / (1 - h / 2); semi-implicit SGHMC with s = 1 + h V / (2 C), u = C h / 2, q = h^2 / 4:
    variances s (1 - u) / (1 - u - q) and s / (1 - u - q); without friction E H grows by h^2 V / 2 / (1 - h^2 / 4).
    """
    h, V, C = 0.05, 40.0, robustness.FRICTION
    found = {}
    for method in robustness.KINDS["chains"]:
        step = robustness.affine(robustness.Cell("chains", method, V, 1.0), h)
        found[method] = robustness.recursion(step, np.zeros(len(step.A)), np.zeros_like(step.A), 4000)[1]
    assert found["SGLD"][-1, 0, 0] == pytest.approx((1 + h * V / 2) / (1 - h / 2), rel=1e-9)
    s, u, q = 1 + h * V / (2 * C), C * h / 2, h * h / 4
    expected = [s * (1 - u) / (1 - u - q), s / (1 - u - q)]
    np.testing.assert_allclose(np.diag(found["SGHMC"][-1]), expected, rtol=1e-9)
    energy = 0.5 * np.trace(found["SGHMC without friction"], axis1=1, axis2=2)
    # it oscillates by the gain of a period: the mean slope has a relative error of a period over the steps
    assert energy[-1] / 4000 == pytest.approx(h * h * V / 2 / (1 - h * h / 4), rel=2 * 2 * np.pi / h / 4000)


@pytest.mark.parametrize(("kind", "method"), [("chains", "SGHMC"), ("particles", "pSGHMC-fGH")])
def test_chains_and_centres_of_particles_follow_the_recursion_and_not_that_of_another_noise(monkeypatch, kind, method):
    monkeypatch.setattr(robustness, "CHAINS", 1000)
    monkeypatch.setattr(robustness, "PARTICLES", 8)
    monkeypatch.setattr(robustness, "REPLICATES", 300)
    cell = robustness.Cell(kind, method, 40.0, 6.0)
    result = robustness.measured(cell)
    # 21 records at 1e-6 together: a normal quantile of 5.5; mean squares have heavier tails: 3 sigma for 300 of them
    assert robustness.deviation(cell, result) < 5.5 + 3
    assert robustness.deviation(robustness.Cell(kind, method, 10.0, 6.0), result) > 9
    if kind == "particles":
        assert result["largest difference between shapes of replicates"] < 1e-9


@pytest.mark.parametrize(("method", "slope"), [("SVGD", 1.0), ("RSVGD", 1 / minibatch.BANDWIDTH)])
def test_the_derived_fluctuation_of_one_particle_is_that_of_stochastic_gradient_descent(method, slope):
    """x' = x - e (x + eta) has the variance e V / (2 - e), e the step size times k(x, x) or -k''(x, x)."""
    e, V = 0.1 * slope, 3.0
    found = minibatch.derived(minibatch.flat(method), 0.1, V, 1)
    assert found.centre == pytest.approx(e * V / (2 - e), rel=1e-9)
    assert found.spread == pytest.approx(0, abs=1e-9)


def test_particles_fluctuate_as_derived_and_not_as_for_another_noise(monkeypatch):
    monkeypatch.setattr(minibatch, "PARTICLES", 3)
    monkeypatch.setattr(minibatch, "BURN_IN", 200)
    found = minibatch.measured(minibatch.Cell("gaussian", "SVGD", 0.05, 500))
    (centre, error), right = found["centre"], found["derived centre"]
    # to the first order in V; the next one is of relative size V h, 0.005 here
    assert abs(centre - right) < 4.9 * error + 0.02 * right
    assert abs(centre - 2 * right) > 4.9 * error + 0.02 * right
    assert abs(found["spread"][0] - found["derived spread"]) < 4.9 * found["spread"][1] + 0.02 * right


def test_a_metric_of_the_batch_biases_the_velocity_and_one_of_all_rows_does_not(monkeypatch):
    """All fifteen batches of two of six rows."""
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(6, 2)), np.array([1.0, 0, 1, 1, 0, 1])
    law = logistic_regression(X, y, minibatch.VARIANCE, "tiny")
    monkeypatch.setattr(minibatch, "problem", lambda data: logistic.Problem(law, Table(X, y), Table(X, y)))
    monkeypatch.setattr(minibatch, "VARIANCE", 1.0)
    monkeypatch.setattr(minibatch, "KERNELS", (1.0,))
    x, weights = jnp.asarray(generator.normal(size=(3, 2))), jnp.full(3, 1 / 3)
    batches = jnp.asarray([(i, j) for i in range(6) for j in range(i)])

    def velocity(method, chosen):
        sampler, rows = minibatch.of_rows(method, chosen)
        return sampler.velocity(x, jax.vmap(lambda w: rows.estimate(None, (), w)[0].gradient)(x), weights)

    gaps = {}
    for method in minibatch.ITERATIONS:
        run = jax.jit(lambda chosen, method=method: velocity(method, chosen))
        right = run(jnp.arange(6))
        gaps[method] = float(jnp.abs(jax.vmap(run)(batches).mean(axis=0) - right).max() / jnp.abs(right).max())
    assert max(gaps["SVGD"], gaps[minibatch.WHOLE]) < 1e-13
    assert gaps[minibatch.NAIVE] > 0.01
    inverse = lambda chosen: minibatch.of_rows(minibatch.NAIVE, chosen)[0].metric.inverse(x[0])
    right, found = np.asarray(inverse(jnp.arange(6))), np.asarray(jax.vmap(inverse)(batches))
    np.testing.assert_allclose(np.linalg.inv(found).mean(axis=0), np.linalg.inv(right), rtol=1e-12)
    assert np.linalg.eigvalsh(found.mean(axis=0) - right).min() > 0  # Jensen's inequality


def test_the_quick_run_with_minibatches_leaves_a_page_and_a_figure(rows, tmp_path, monkeypatch):
    for name, value in {"SPLICE_PARTICLES": 6, "REPLICATES": 3, "BURN_IN": 5, "BATCHES": (60, 20), "EVERY": 5}.items():
        monkeypatch.setattr(minibatch, name, value)
    monkeypatch.setattr(minibatch, "KERNELS", (0.1, 1.0))
    monkeypatch.setattr(minibatch, "STYLES", {60: "-", 20: "--"})
    assert minibatch.main(["--quick", "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"{minibatch.NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert "Reduced" in (tmp_path / f"{minibatch.NAME}.md").read_text(encoding="utf-8")
