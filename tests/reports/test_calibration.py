"""The calibration report: complete, resumable, not blind to a wrong test, and its published numbers are calibrated."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.registry import STATEMENTS
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.reports.pages import calibration

PUBLISHED = calibration.read(calibration.PUBLISHED)
STATISTICAL = [s.name for s in STATEMENTS if s.samples]


def test_every_statistical_statement_is_calibrated_on_some_sampler():
    planned = {name for _, _, names, _ in calibration.SUBJECTS for name in names}
    assert set(STATISTICAL) <= planned


@pytest.mark.release
def test_published_calibration_has_every_test_tail_and_statement():
    done = {(line["kind"], line["case"]) for line in PUBLISHED}
    assert {("primitive", name) for name in calibration.PRIMITIVES} <= done
    assert {("tail", name) for name in calibration.TAILS} <= done
    assert set(STATISTICAL) <= {line["statement"] for line in PUBLISHED if line["kind"] == "check" and "runs" in line}
    assert not any(line["quick"] for line in PUBLISHED)


def test_published_p_values_are_calibrated():
    components = [c for line in PUBLISHED for c in line.get("components", ())]
    assert min(c["seeds"] for c in components) >= 2000
    assert min(c["p_value"] for c in components) > 1e-6 / len(components)


def test_published_runs_of_whole_statements_raised_no_false_alarm():
    lines = [line for line in PUBLISHED if line["kind"] == "check"]
    assert all(line["runs"] >= 200 for line in lines)
    assert sum(line["false_alarms"] for line in lines) == 0
    for line in lines:  # Bonferroni: no more p-values below a level than a binomial law of that rate gives
        for level, count in line["below"].items():
            assert stats.binom.sf(count - 1, line["runs"], float(level)) > 1e-6


def test_published_tails_are_no_larger_than_claimed():
    # What the expansions leave is largest for the Student law at n = 1e4: exp(kappa z^4/(4 n)), kappa = 6, z = 6.5.
    next_order = math.exp(6 * 6.5**4 / 4e4)
    for line in PUBLISHED:
        if line["kind"] == "tail":
            assert line["ratio"] <= next_order + 4.9 * line["error"] / line["nominal"], line["case"]


def test_published_page_is_that_of_the_lines():
    page = calibration.PUBLISHED.with_suffix(".md")
    assert page.read_text(encoding="utf-8") == calibration.page(PUBLISHED, page.with_suffix(".png").name)
    assert page.with_suffix(".png").is_file()


def test_a_p_value_that_is_too_small_would_be_seen():
    """The planted error: a z test that takes the standard error for 10% less than it is."""
    components = calibration.Components({}, set())
    rng = np.random.default_rng(1)
    for _ in range(2000):
        right = mean_test(rng.normal(size=50), 0.0, name="z", skewness=0.0)
        wrong = math.log(2) + float(stats.t.logsf(right.effect / (0.9 * (right.standard_error or 1.0)), 49))
        components.add(Outcome(**{**vars(right), "log_p": min(0.0, wrong)}))
    assert calibration.summary(components)[0]["p_value"] < 1e-6


@pytest.mark.parametrize(("count", "runs", "exact"), [(0, 200, 1 - 0.05 ** (1 / 200)), (200, 200, 1.0)])
def test_upper_bound_is_that_of_clopper_and_pearson(count, runs, exact):
    assert calibration.upper_bound(count, runs) == pytest.approx(exact, rel=1e-9)


def test_a_run_resumes_and_draws_its_page(tmp_path):
    path = tmp_path / "some.jsonl"
    arguments = ["--quick", "--only", "ks_test", "--only", "end_point_moments sgld gaussian", "--out", str(path)]
    assert calibration.main(arguments) == 0
    lines = path.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["primitive", "check"]
    assert json.loads(lines[1])["runs"] == calibration.QUICK_SEEDS
    path.write_text(lines[0] + "\n" + lines[1][:50])  # interrupted while it wrote
    assert calibration.main([*arguments[:3], *arguments[5:]]) == 0
    assert path.read_text().splitlines() == lines[:1]
    assert "A quick run" in path.with_suffix(".md").read_text()
    assert path.with_suffix(".png").stat().st_size > 0


@pytest.mark.parametrize("arguments", [["--quick"], ["--out", "some.txt"]])
def test_bad_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        calibration.main(arguments)
    assert "--out" in capsys.readouterr().err
