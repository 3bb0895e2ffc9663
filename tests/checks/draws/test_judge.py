"""Verdicts on draws: levels by simulation on autocorrelated chains, power by planted errors, what is not decided."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks import BadInput, check_draws, check_draws_folder, write_problems
from sgmcmc_verification.checks.draws import check_draws as module
from sgmcmc_verification.checks.draws import judge
from tests.checks.draws.autoregressions import autoregression, euler_chains, euler_runs, gaussian_chains
from tests.helpers.statistics_tools import RATE

ROOT = Path(__file__).resolve().parents[3]
LINE = "gaussian-1d-scaled"


def words(report):
    """Statement -> verdict."""
    return {result.statement: result.verdict for result in report.results}


def of(report, statement):
    """The result of a statement."""
    return next(result for result in report.results if result.statement == statement)


# Levels.


@pytest.mark.parametrize(("memory", "draws"), [(0.0, 500), (0.5, 1_500)])
def test_violations_that_are_none_are_as_rare_as_stated(monkeypatch, memory, draws):
    """A call at level 0.05 on chains of the exact law, 100 times: no more failures than Binomial(100, 0.05) has."""
    monkeypatch.setattr(module, "LEVEL", 0.05)
    generator, runs = np.random.default_rng(11), 100
    reports = [check_draws(LINE, {"exact": gaussian_chains(LINE, generator, draws, memory)}) for _ in range(runs)]
    failures = sum(report.word == "fail" for report in reports)
    decided = sum(any(result.verdict in ("pass", "fail") for result in report.results) for report in reports)
    assert decided > runs / 2
    assert stats.binom.sf(failures - 1, runs, 0.05) > RATE, f"{failures} of {runs}"


def test_a_bias_that_vanishes_with_the_step_size_is_no_violation_at_the_stated_rate(monkeypatch):
    """Euler steps have a variance that is too large by a quarter at h P = 0.4; at level 0.05, 40 times."""
    monkeypatch.setattr(module, "LEVEL", 0.05)
    generator, runs = np.random.default_rng(12), 40
    reports = [check_draws(LINE, euler_runs(generator, 0.16, 20_000)) for _ in range(runs)]
    assert sum(report.results[0].p_value is not None for report in reports) > runs / 2
    failures = sum(report.word == "fail" for report in reports)
    assert stats.binom.sf(failures - 1, runs, 0.05) > RATE, f"{failures} of {runs}"


def test_one_step_size_alone_would_show_that_bias_as_a_violation():
    draws = euler_chains(np.random.default_rng(13), 0.16, 60_000)
    assert check_draws(LINE, {"exact": draws}).word == "fail"


@pytest.mark.parametrize("memory", [0.5, 0.9])
def test_batch_means_have_the_standard_error_of_the_mean(memory):
    """The z values of 300 means have the variance 1, up to the 5% of the derivation and the tails of a chi-square."""
    from sgmcmc_verification.checks.draws.independent import batches

    generator, runs = np.random.default_rng(14), 300
    z = []
    for _ in range(runs):
        means = batches([autoregression(generator, 4, 8_000, memory, 0.0, 1.0)])[0]
        z.append(means.mean() / (means.std(ddof=1) / np.sqrt(means.size)))
    low, high = stats.chi2.ppf([RATE, 1 - RATE], runs) / runs
    assert low <= np.mean(np.square(z)) / 1.05 <= high


def test_thinned_draws_are_nearly_independent():
    """The correlation of neighbours is below e^-4, up to the error of a correlation at the stated rate."""
    from sgmcmc_verification.checks.draws.independent import thinned

    chains = autoregression(np.random.default_rng(31), 4, 60_000, 0.9, 0.0, 1.0)
    kept = thinned(chains).reshape(4, -1)
    pairs = kept[:, 1:].size
    assert pairs > 2_000
    correlation = np.mean(kept[:, 1:] * kept[:, :-1])
    assert abs(correlation) < np.exp(-4) + stats.norm.isf(RATE / 2) / np.sqrt(pairs)


# Power: planted errors.


@pytest.mark.parametrize("noise", [1.0, 4.0])
def test_a_factor_2_in_the_noise_is_a_temperature_of_that_factor(noise):
    report = check_draws(LINE, euler_runs(np.random.default_rng(15), 0.16, 60_000, noise))
    assert report.word == "fail"
    found = of(report, "configurational_temperature")
    assert found.verdict == "fail"
    assert f"expected {1:g}" in found.reason
    assert abs(float(found.reason.split(" is ")[1].split(",")[0]) - noise / 2) < 0.1


def test_the_right_noise_passes():
    report = check_draws(LINE, euler_runs(np.random.default_rng(15), 0.16, 100_000))
    assert report.word == "pass", str(report)
    assert "h1" not in report.unanswered


def test_one_coordinate_of_ten_that_is_too_hot_is_named():
    name = "gaussian-anisotropic"
    draws = gaussian_chains(name, np.random.default_rng(16), 10_000)
    assert check_draws(name, {"exact": draws}).word == "pass"
    draws[..., 6] *= np.sqrt(1.3)
    found = of(check_draws(name, {"exact": draws}), "configurational_temperature")
    assert found.verdict == "fail"
    assert "of x_7 is 1." in found.reason


def test_one_momentum_that_is_too_cold_is_a_violation_of_equipartition():
    name, generator = "gaussian-correlated-2d", np.random.default_rng(17)
    x = gaussian_chains(name, generator, 10_000)
    p = np.stack([autoregression(generator, 4, 10_000, 0.6, 0.0, 1.0) for _ in range(2)], axis=-1)
    assert check_draws(name, {"exact": {"x": x, "p": p}}).word == "pass"
    p[..., 1] *= np.sqrt(0.8)
    found = of(check_draws(name, {"exact": {"x": x, "p": p}}), "kinetic_temperature")
    assert found.verdict == "fail"
    assert "p_2" in found.reason


def test_momenta_that_depend_on_the_position_are_a_violation():
    generator = np.random.default_rng(18)
    x = gaussian_chains(LINE, generator, 10_000)
    p = (x - 0.7) * np.sqrt(2.5) * 0.3 + np.sqrt(1 - 0.09) * generator.standard_normal(x.shape)
    report = check_draws(LINE, {"exact": {"x": x, "p": p}})
    assert words(report)["moments"] == "pass"
    assert of(report, "kinetic_temperature").verdict == "fail"
    assert "x_1 p_1" in of(report, "kinetic_temperature").reason


def test_two_temperatures_have_the_slope_of_their_difference():
    """Both runs 1.4 times too hot: each alone is wrong, and the slope is 1/1.4 of the claimed one."""
    generator = np.random.default_rng(19)
    right, wrong = (
        {
            "exact": gaussian_chains(LINE, generator, 20_000, temperature=f),
            "hot_exact": gaussian_chains(LINE, generator, 20_000, temperature=2 * f),
        }
        for f in (1.0, 1.4)
    )
    assert check_draws(LINE, right).word == "pass"
    found = of(check_draws(LINE, wrong), "energy_ratio")
    assert found.verdict == "fail"
    assert found.effect > 0.2


def test_the_energy_ratio_needs_no_density_of_states():
    """Draws whose law is exp(-U / T) times a factor of U that is the same at both temperatures keep the slope."""
    generator = np.random.default_rng(20)

    def draws(temperature):
        """|x - m|^2 P ~ T chi^2 with 5 degrees of freedom, where the law on the line has 1: the same factor E^2."""
        normals = [autoregression(generator, 4, 20_000, 0.5, 0.0, 1.0) for _ in range(5)]
        radius = np.sqrt(temperature * np.sum(np.square(normals), axis=0) / 2.5)
        return (0.7 + radius * np.sign(normals[0]))[..., None]

    report = check_draws(LINE, {"exact": draws(1.0), "hot_exact": draws(2.0)})
    assert of(report, "moments").verdict == "fail"
    assert of(report, "energy_ratio").verdict == "pass", str(report)


@pytest.mark.parametrize(("leak", "verdict"), [(0.0, "pass"), (0.5, "fail")])
def test_shadow_work_that_does_not_vanish_with_the_step_size_is_a_violation(leak, verdict):
    """Per unit of time h^2 (1 + noise) for a right integrator, and a constant for a force that is no gradient."""
    generator = np.random.default_rng(21)
    runs = {}
    for k in (1, 2, 4):
        h = 0.16 / k
        x = euler_chains(generator, h, 60_000)
        rate = h**2 * (1 + generator.standard_normal(x.shape[:2])) + leak * 0.16**2
        runs[f"h{k}"] = {"x": x, "work": h * rate}
    assert of(check_draws(LINE, runs), "shadow_work").verdict == verdict


# What is not decided.


@pytest.mark.parametrize(
    ("draws", "reason"),
    [
        (lambda g: gaussian_chains(LINE, g, 5_000, chains=2), "2 chains cannot show"),
        (lambda g: gaussian_chains(LINE, g, 200), "effective draws"),
        (lambda g: gaussian_chains(LINE, g, 5_000, memory=0.99), "effective draws|chains disagree"),
        (lambda g: gaussian_chains(LINE, g, 5_000) + np.arange(4)[:, None, None], "chains disagree"),
        (lambda g: np.full((4, 5_000, 1), 0.7), "x_1 does not move"),
        (lambda g: gaussian_chains(LINE, g, 20_000) + np.linspace(0.2, 0, 20_000)[:, None], "drifts"),
    ],
)
def test_draws_that_decide_nothing_are_inconclusive_with_the_reason(draws, reason):
    report = check_draws(LINE, {"exact": draws(np.random.default_rng(22))})
    assert report.word == "inconclusive"
    for result in report.results:
        assert any(part in result.reason for part in reason.split("|")), result.reason


def test_few_draws_decide_a_large_error_and_promise_no_small_one():
    right = check_draws(LINE, {"exact": gaussian_chains(LINE, np.random.default_rng(23), 1_000)})
    assert right.word == "inconclusive"
    assert "only effects above" in str(right)
    assert "inf " not in str(right)
    wrong = check_draws(LINE, {"exact": gaussian_chains(LINE, np.random.default_rng(23), 1_000, temperature=4.0)})
    assert wrong.word == "fail"


def test_step_sizes_that_are_too_large_to_extrapolate_are_inconclusive():
    """At h P = 1.6 the variance is 5 times that of the target, and the last correction larger than what is promised."""
    report = check_draws(LINE, euler_runs(np.random.default_rng(24), 0.64, 100_000))
    assert words(report)["moments"] == "inconclusive", str(report)


# The extrapolation.


@pytest.mark.parametrize("sizes", [2, 3])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_what_is_granted_is_more_than_what_is_left_of_an_error_of_one_order(sizes, order):
    weights, fewer = judge.WEIGHTS[sizes]
    errors = np.array([2.0 ** (-order * k) for k in range(sizes)])
    left, granted = abs(np.dot(weights, errors)), abs(np.dot(np.subtract(weights, fewer), errors))
    roundoff = 8 * np.finfo(float).eps
    assert left <= granted + roundoff
    assert abs(sum(weights) - 1) <= roundoff
    if order < sizes:
        assert left <= roundoff


# Folders and the command line.


def save(folder, runs):
    for run, draws in runs.items():
        np.savez(folder / f"{run}.npz", x=draws)


@pytest.fixture
def pair(tmp_path):
    """A folder with a right and a wrong sampler on two problems, and one problem without draws."""
    write_problems(tmp_path, [LINE, "gaussian-correlated-2d", "banana"])
    generator = np.random.default_rng(25)
    save(tmp_path / LINE, {"exact": gaussian_chains(LINE, generator, 5_000)})
    name = "gaussian-correlated-2d"
    save(tmp_path / name, {"exact": gaussian_chains(name, generator, 5_000, temperature=2.0)})
    return tmp_path


def test_a_folder_of_problems_has_a_report_of_each_that_was_answered(pair):
    reports = check_draws_folder(pair)
    assert [(Path(r.name).name, r.word) for r in reports] == [(LINE, "pass"), ("gaussian-correlated-2d", "fail")]
    document = json.loads(reports[0].to_json())
    assert document["good"]
    assert document["results"][0]["verdict"] == "pass"


def test_code_of_a_folder_is_not_run(pair):
    for name in ("density.py", "conftest.py", "__init__.py", "test_mine.py"):
        (pair / LINE / name).write_text(f"open({str(pair / 'ran')!r}, 'w')")
    subprocess.run([sys.executable, "-m", "pytest", str(ROOT / "checks"), "--draws", str(pair)], cwd=ROOT, check=False)
    assert not (pair / "ran").exists()


def test_exit_codes_and_documents_of_the_command(pair, tmp_path, capsys):
    run = lambda *arguments: int(pytest.main([str(ROOT / "checks"), "-p", "no:cacheprovider", *map(str, arguments)]))
    assert run("--draws", pair / LINE, "--json", tmp_path / "out.json") == 0
    assert capsys.readouterr().out.startswith(f"PASS  {pair / LINE}")
    assert json.loads((tmp_path / "out.json").read_text())["conclusions"][0]["word"] == "pass"
    assert run("--draws", pair) == 1
    assert run("--draws", pair, "--json", "-") == 1
    text = capsys.readouterr().out
    assert [c["word"] for c in json.loads(text[text.index("{\n") :])["conclusions"]] == ["pass", "fail"]
    assert run("--draws", pair / "banana") == 4
    assert "ERROR: --draws" in capsys.readouterr().err
    assert run("--problems", tmp_path / "new") == 0
    assert (tmp_path / "new" / "banana" / "density.stan").is_file()


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({"h1": 0}, "give two or three, each half"),
        ({"exact": 0, "h1": 0, "h4": 0}, "give two or three, each half"),
        ({"nonsense": 0}, "no run 'nonsense'"),
        ({}, "there are none"),
    ],
)
def test_runs_that_do_not_go_together_are_one_error(runs, message):
    draws = gaussian_chains(LINE, np.random.default_rng(26), 100)
    with pytest.raises(BadInput, match=message):
        check_draws(LINE, dict.fromkeys(runs, draws))


def test_runs_of_different_sizes_are_one_error():
    generator = np.random.default_rng(27)
    runs = {"h1": gaussian_chains(LINE, generator, 100), "h2": gaussian_chains(LINE, generator, 101)}
    for names in (("h1", "h2"), ("exact", "hot_exact")):
        with pytest.raises(BadInput, match="give as many chains and draws of each"):
            check_draws(LINE, dict(zip(names, runs.values(), strict=True)))


def test_without_arviz_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    with pytest.raises(BadInput, match=r"pip install 'sgmcmc-verification\[draws\]'"):
        check_draws(LINE, {"exact": gaussian_chains(LINE, np.random.default_rng(28), 100)})


def test_step_sizes_of_a_users_own_unit():
    generator = np.random.default_rng(29)
    runs = [("coarse", 2.0, 1.0), ("fine", 1.0, 1.0)]
    draws = {"coarse": euler_chains(generator, 0.08, 60_000), "fine": euler_chains(generator, 0.04, 60_000)}
    report = check_draws(LINE, draws, runs=runs)
    assert report.word == "pass", str(report)


def test_a_hot_run_is_held_to_its_own_temperature():
    hot = gaussian_chains(LINE, np.random.default_rng(30), 5_000, temperature=2.0)
    assert check_draws(LINE, {"hot_exact": hot}).word == "pass"
    assert check_draws(LINE, {"exact": hot}).word == "fail"
