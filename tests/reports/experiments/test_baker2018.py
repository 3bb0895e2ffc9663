"""Figures 1 and 2 of the SCIR paper: the distance, the estimators, the quick version, the published lines."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.reports.experiments.baker2018 import figures1_2 as figures
from sgmcmc_verification.reports.experiments.common.grid import PUBLISHED, load

RATE = 1e-6


def test_the_distance_is_that_of_scipy_and_small_for_exact_draws():
    shape = np.array([0.3, 4.0, 1.2])
    rng = np.random.default_rng(1)
    theta = rng.standard_gamma(shape, (500, 2, 3))
    found = figures.distances(np.log(theta), shape)
    omega = theta / theta.sum(axis=-1, keepdims=True)
    for chain in range(2):
        w = omega[:, chain]
        first = stats.kstest(w[:, 0], stats.beta(0.3, 5.2).cdf)
        second = stats.kstest(w[:, 1] / (w[:, 1] + w[:, 2]), stats.beta(4.0, 1.2).cdf)
        assert found[chain] == pytest.approx((first.statistic + second.statistic) / 2, rel=1e-9)
        # Massart: P(sqrt(n) KS > t) <= 2 exp(-2 t^2)
        assert found[chain] < np.sqrt(np.log(4 / RATE) / 1000)
    assert figures.distances(np.log(theta), shape[::-1])[0] > 0.2


def test_both_estimators_see_minibatches_of_the_same_counts():
    counts, n = figures.observed("sparse"), 5
    host = figures.Multinomial(counts, n)
    drawn = host.estimate(np.random.default_rng(0), (), np.ones((4000, 10)))[0].statistics
    estimator, theta = figures.ExpandedMean(counts, n), jnp.full(10, 2.0)
    keys = jax.random.split(jax.random.key(0), 4000)
    gradients = jax.vmap(lambda k: estimator.estimate(k, (), theta)[0].gradient)(keys)
    # -gradient = (alpha - 1 + n^) / theta - N / theta_. - 1, solved for n^
    seen = 2.0 * (-np.asarray(gradients) + 1 + figures.TOTAL / 20.0) + 1 - figures.ALPHA
    p = counts / figures.TOTAL
    level = stats.norm.isf(RATE / 60)
    error = level * np.sqrt(figures.TOTAL**2 / n * p * (1 - p) / 4000)
    for values in (drawn, seen):
        assert np.all(np.abs(values.mean(axis=0) - counts) <= error + 1e-9)
        assert np.allclose(values.sum(axis=1), figures.TOTAL)


def test_scir_is_nearer_than_its_discretisation_on_sparse_counts_in_a_short_run():
    score = lambda method: min(
        float(np.mean(row)) for row in figures.measured(figures.Cell("sparse", method, 100, 200))["scores"]
    )
    assert score("exact") < score("SCIR") < score("CIR-Euler") / 2


def test_the_quick_version_writes_lines_page_and_figure_and_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "METHODS", ("exact", "SCIR", "CIR-Euler"))
    monkeypatch.setattr(figures, "REPLICATED", ())
    assert figures.main(["--quick", "--out", str(tmp_path)]) == 0
    lines = (tmp_path / f"{figures.NAME}.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(figures.plan(True)) == 12
    assert "(reduced)" in (tmp_path / f"{figures.NAME}.md").read_text(encoding="utf-8")
    assert (tmp_path / f"{figures.NAME}.png").stat().st_size > 10_000
    (tmp_path / f"{figures.NAME}.jsonl").write_text("\n".join(lines[:5]) + "\n", encoding="utf-8")
    again = figures.measured(figures.plan(True)[7])
    assert load(tmp_path / f"{figures.NAME}.jsonl").keys() == {c.key for c in figures.plan(True)[:5]}
    assert again == json.loads(lines[7])["result"]


def test_the_published_lines_say_what_the_paper_does():
    lines = load(PUBLISHED / f"{figures.NAME}.jsonl")
    cells = {(c.data, c.method, c.batch): c for c in figures.plan(False)}
    for n in figures.BATCHES:
        _, scir, spread = figures.best(lines, cells["sparse", "SCIR", n])
        for method in ("SGRLD", "SGRLD, rescaled start", "CIR-Euler", "SGRLD, published"):
            _, other, also = figures.best(lines, cells["sparse", method, n])
            assert scir + 3 * (spread + also) < other, (method, n)
