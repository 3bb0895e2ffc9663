"""The experiment on dense and sparse Dirichlet laws: what it predicts, what it measures, and its published lines."""

import math

import pytest

from sgmcmc_verification.reports.experiments.common.grid import PUBLISHED, load
from sgmcmc_verification.reports.experiments.original import dirichlet_faces as faces


@pytest.mark.parametrize(("alpha", "order"), [(2.5, 2), (1.5, 2), (0.75, 0.5), (0.5, 2)])
def test_the_predicted_order(alpha, order):
    assert faces.predicted_order(alpha) == order


def test_a_sparse_law_is_missed_without_a_metropolis_test_and_kept_with_it():
    count = 1 << 12
    cell = faces.Cell("SGGMC", 0.3, 0.1, count)
    critical = 5 / math.sqrt(count)  # Massart: sqrt(n) KS > 5 has a probability below 2 exp(-50)
    assert faces.measured(cell)["KS"] > critical
    exact = faces.measured(faces.Cell("GMC", 0.3, 0.1, count))
    assert exact["KS"] < critical
    assert exact["lost"] == 0


def test_in_the_published_lines_the_sparse_law_is_missed_and_the_dense_one_is_not():
    lines = load(PUBLISHED / f"{faces.NAME}.jsonl")
    result = {(c.method, c.alpha, c.step_size): lines[c.key]["result"] for c in faces.plan(False)}
    finest = faces.STEP_SIZES[-1]
    dense = result["SGGMC", 2.5, finest]["KS"]
    sparse = result["SGGMC", 0.3, finest]["KS"]
    assert dense < faces.CRITICAL / math.sqrt(faces.FULL) < sparse / 10
