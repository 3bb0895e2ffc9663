"""Fits of orders, adjusted p-values and power against closed forms and the suite's own tests."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.end_points.error_rates import ALPHA, POWER, STAGES
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.sequential import detectable, stage_levels
from sgmcmc_verification.reports.records.frames import frame
from sgmcmc_verification.reports.site.orders import fitted
from sgmcmc_verification.reports.statistics.multiple_tests import METHODS, adjusted, main
from sgmcmc_verification.reports.statistics.order_fits import LEVEL, fit_order
from sgmcmc_verification.reports.statistics.power import minimum_detectable_mean, power_table
from tests.helpers.result_lines import result

SIZES = (0.2, 0.1, 0.05, 0.025)


def p_values_of(*p_values: float | None) -> list[Result]:
    return [result(sampler=f"s{i}", p_value=p) for i, p in enumerate(p_values)]


def test_a_power_law_has_its_exponent_and_no_error():
    fit = fit_order(SIZES, [3 * h**2 for h in SIZES])
    assert fit is not None
    assert fit.order == pytest.approx(2, abs=1e-12)
    assert fit.standard_error < 1e-12


def test_the_interval_covers_the_order_as_often_as_it_says():
    # log errors with normal noise: the model of least squares, where Student's t is exact
    rng, runs = np.random.default_rng(0), 2000
    covered = 0
    for noise in rng.normal(0.0, 0.3, (runs, len(SIZES))):
        fit = fit_order(SIZES, np.array(SIZES) ** 1.5 * np.exp(noise))
        assert fit is not None
        covered += fit.low <= 1.5 <= fit.high
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], runs, LEVEL)
    assert low <= covered <= high


def test_standard_error_is_that_of_the_closed_form():
    errors = [0.3, 0.11, 0.06, 0.022]
    found = stats.linregress(np.log(SIZES), np.log(errors))
    fit = fit_order(SIZES, errors)
    assert fit is not None
    assert (fit.order, fit.standard_error) == pytest.approx((found.slope, found.stderr), rel=1e-10)
    assert str(fit) == f"{found.slope:.2f} ± {found.stderr:.2f}"


def test_two_points_have_no_standard_error():
    assert fit_order(SIZES[:2], [0.2, 0.1]) is None


@pytest.mark.parametrize("errors", [[0.1, 0.0, 0.1], [0.1, math.nan, 0.1], [0.1, 0.1]])
def test_an_order_needs_positive_numbers_one_per_step_size(errors):
    with pytest.raises(ValueError, match="errors"):
        fit_order(SIZES[:3], errors)


@pytest.mark.parametrize(
    ("statement", "detail", "power"), [("gaussian_limit", "bias", 2), ("local_weak_order", "errors", 3)]
)
def test_fitted_orders_are_those_of_the_scheme(statement, detail, power):
    numbers = {detail: [h**power for h in SIZES], "step_sizes": list(SIZES), "measured_order": 2.0}
    found = fitted(result(statement=statement, detail=numbers))
    assert found is not None
    assert found.fit.order == pytest.approx(2)
    assert fitted(result(statement=statement, detail=numbers | {"measured_order": None})) is None


def test_holm_by_hand():
    table = adjusted(frame(p_values_of(0.04, None, 0.01, 0.03)), "holm", 0.05)
    assert list(table.adjusted) == pytest.approx([0.03, 0.06, 0.06])  # 3 p1, max(3 p1, 2 p2), max(.., p3)
    assert list(table.rejected) == [True, False, False]


def test_adjusted_p_values_are_at_least_the_raw_ones():
    p = np.random.default_rng(1).uniform(size=40)
    for method in METHODS:
        table = adjusted(frame(p_values_of(*p)), method)
        assert np.all(np.asarray(table.adjusted, float) >= np.asarray(table.p_value, float) - 1e-12), method


@pytest.mark.parametrize(("options", "word"), [({"method": "none"}, "method"), ({"alpha": 0.0}, "alpha")])
def test_bad_options_are_named(options, word):
    with pytest.raises(ValueError, match=word):
        adjusted(frame(p_values_of(0.5)), **options)


def test_the_command_writes_a_table_and_says_whether_something_is_rejected(tmp_path, capsys):
    file = tmp_path / "lib-1.jsonl"
    file.write_text("".join(r.to_json() + "\n" for r in p_values_of(1e-9, 0.5)))
    assert main([str(file), "--csv", str(tmp_path / "all.csv")]) == 1
    assert "2 p-values, 1 rejected" in capsys.readouterr().out
    assert (tmp_path / "all.csv").read_text().startswith("sampler,statement,target")
    assert main([str(tmp_path / "nothing.jsonl")]) == 4
    file.write_text(p_values_of(None)[0].to_json() + "\n")
    assert json.loads(file.read_text())["p_value"] is None
    assert main([str(file)]) == 4


@pytest.mark.parametrize("chains", [8_000, 200_000])
def test_power_is_that_of_the_closed_form_and_of_the_suite(chains):
    _, level = stage_levels(ALPHA, STAGES)
    closed = (stats.norm.isf(level / 2) + stats.norm.isf((1 - POWER) / STAGES)) / math.sqrt(chains)
    assert minimum_detectable_mean(chains) == pytest.approx(closed, rel=1e-9)
    x = np.random.default_rng(2).standard_normal(chains)
    own = detectable([mean_test(x, 0.0)], ALPHA, POWER, STAGES)
    # the standard error is of the sample (relative error 1/sqrt(2 n), six of them); Student's tail is wider by O(z^2/n)
    assert own == pytest.approx(closed, rel=6 / math.sqrt(2 * chains) + 8**2 / chains)


def test_more_chains_see_smaller_errors():
    table = power_table()
    assert len(table) == 2 + 6
    assert minimum_detectable_mean(10_000, 10) > minimum_detectable_mean(10_000) > minimum_detectable_mean(20_000)
