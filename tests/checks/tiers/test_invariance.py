"""The invariance tier: null laws against hand-solved recursions, correct samplers pass, planted bugs do not.

Oracles: the variance recursion of Euler's method and of BAOAB's linear map worked out by hand; closed-form moments;
scipy's quadrature. The number of chains is reduced here, and the promises with it.
"""

import dataclasses
import math

import jax
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import adapter_rows, workload_rows
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.end_points.error_rates import (
    ALPHA,
    CHAINS,
    FAMILY,
    HOST_CHAINS,
    POWER,
    STAGES,
    chains_for,
    fraction_of_chains,
    promise,
)
from sgmcmc_verification.checks.end_points.step_size_limit import limit_test
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions, draw_variables, line_grid
from sgmcmc_verification.checks.exact_laws.null_law import NUM_STEPS, null_law
from sgmcmc_verification.checks.faults.registry import DEFECTS
from sgmcmc_verification.checks.registry import STATEMENTS, find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.statistics.distribution import ks_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.sequential import decide_sequentially, detectable
from sgmcmc_verification.checks.tiers.invariance import end_points
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.entry import STATISTICAL_TIERS
from sgmcmc_verification.samplers.finite.entries import ENTRIES as FINITE
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.targets.registry import target


@pytest.fixture
def few_chains():
    """A fortieth of the chains: effects six times larger are promised."""
    with fraction_of_chains(1 / 40):
        yield


def run(check: str, subject: Subject, on: str, seed: int = 3):
    return execute(find_statement(check), subject, on, seed)


def reference(name: str, **options) -> Subject:
    return Subject(sampler_row(name), options)


def planted(name: str) -> Subject:
    return next(d for d in DEFECTS if d.name == name).subject


def test_null_law_of_euler_is_the_recursion_of_its_variance_and_mean():
    """s_n = a^(2n) / k + 2 h (1 - a^(2n)) / (1 - a^2) with a = 1 - h k, for x' = x - h k (x - m) + sqrt(2 h) xi."""
    h, n, k = 0.3, 9, 2.5
    law = null_law(step_map(reference("sgld"), target("gaussian-1d-scaled")), h, n)
    a = 1 - h * k
    s = a ** (2 * n) / k + 2 * h * (1 - a ** (2 * n)) / (1 - a * a)
    assert law.expectations[0] == pytest.approx(0.0, abs=1e-12)
    # the law of the SDE, to which the recursion tends as h -> 0 at fixed n h, is the target: nothing else is removed
    assert law.expectations[1] == pytest.approx(s * k, rel=1e-4)
    assert law.granted >= abs(s * k - 1) * 0.999


def test_null_law_of_an_exact_kernel_is_the_target_on_a_line():
    law = null_law(step_map(reference("hmc"), target("anharmonic")), 0.1)
    x, weights = target("anharmonic").quadrature(80)
    centre = weights @ x[:, 0]
    square = weights @ (x[:, 0] - centre) ** 2
    fourth = weights @ (x[:, 0] - centre) ** 4
    assert law.expectations[3] == pytest.approx(fourth / square**2, rel=1e-6)
    cdf = law.cdf(np.ones(1))
    assert cdf is not None
    assert cdf(np.zeros(1))[0] == pytest.approx(0.5, abs=1e-6)


def test_grid_law_of_euler_is_its_gaussian_law_when_the_target_hides_that_it_is_gaussian():
    plain = target("gaussian-1d-scaled")
    hidden = dataclasses.replace(plain, gaussian=None)
    exact = null_law(step_map(reference("sgld"), plain), 0.1, 12)
    grid = null_law(step_map(reference("sgld"), hidden), 0.1, 12)
    assert np.abs(grid.expectations - exact.expectations).max() <= max(grid.error, 1e-6)
    t = np.linspace(-3, 3, 13)
    ours, theirs = grid.cdf(np.ones(1)), exact.cdf(np.ones(1))
    assert ours is not None
    assert theirs is not None
    assert np.abs(ours(t) - theirs(t)).max() <= max(grid.cdf_error, 1e-6)
    omega = np.array([[0.3], [1.7]])
    assert np.abs(grid.characteristic(omega) - exact.characteristic(omega)).max() <= max(grid.error, 1e-6)


def test_fourth_moments_are_found_among_the_expectations():
    law = null_law(step_map(reference("baoab"), target("gaussian-correlated-2d")), 0.02)
    assert law.expectations[end_points.fourth_moments(law)] == pytest.approx(3.0, abs=law.granted)
    assert law.granted < 0.02
    assert law.size == 4


def test_null_law_of_a_wrong_sampler_that_slows_down_with_the_step_size_is_not_its_own():
    """Drift and noise variance of order h^2: at fixed time n h the chain stands still as h -> 0, and keeps its start.

    x' = a x + h xi with a = 1 - h^2 k has, in units of the target's 1 / k, the stationary variance v = 1 / (2 - h^2 k).
    Its limit, a half, moves to v + a^(2n) (1/2 - v) in n steps: only the difference of these two is granted.
    """
    h, k = 0.2, 2.5
    v = 1 / (2 - h * h * k)
    moved = v + (1 - h * h * k) ** (2 * NUM_STEPS) * (0.5 - v)

    def step(key, position, step_size, estimator):
        gradient = estimator.estimate(key, (), position)[0].gradient
        return position - step_size**2 * gradient + step_size * jax.random.normal(key, position.shape, position.dtype)

    row = dataclasses.replace(sampler_row("sgld"), name="slow", build=lambda target, **options: simple_sampler(step))
    law = null_law(step_map(Subject(row), target("gaussian-1d-scaled")), h)
    assert law.limit > 0.4
    assert law.expectations[1] == pytest.approx(1 + moved - 0.5, rel=1e-8)
    with fraction_of_chains(1 / 40):
        assert run("end_point_moments", Subject(row), "gaussian-1d-scaled").verdict == "fail"


def test_null_law_grants_no_bias_that_does_not_vanish():
    """Half of the noise: the code's own variance tends to a quarter, the null law stays at one."""
    step = step_map(planted("sgld-noise-halved"), target("double-well"))
    law = null_law(step, 0.004)
    assert law.limit > 0.05
    assert abs(law.expectations[1] - 1) < 0.02


@pytest.mark.parametrize(("name", "temperature"), [("gamma", 1.0), ("anharmonic", 2.0), ("vmf-s2", 0.5)])
def test_starts_have_the_moments_of_the_tempered_law(name, temperature):
    on, n = target(name), 200_000
    x = draw_positions(on, temperature, np.random.default_rng(5), n)
    if name == "vmf-s2":
        kappa = float(np.linalg.norm(jax.grad(on.potential)(on.example))) / temperature
        direction = -np.asarray(jax.grad(on.potential)(on.example)) * temperature**-1 / kappa
        values, exact = x @ direction, 1 / math.tanh(kappa) - 1 / kappa
    else:
        grid, mass = line_grid(on, temperature)
        values, exact = x[:, 0], float(np.diff(mass) @ (grid[1:] + grid[:-1]) / 2)
    assert not mean_test(values, exact).rejects(1e-6)
    assert mean_test(values, exact + 0.02 * values.std()).rejects(1e-6)


def test_starts_of_the_whole_variable_follow_the_declared_hamiltonian():
    """SGNHT in two dimensions: r ~ N(0, T), xi ~ N(A, T / mu) with mu = d."""
    step = step_map(reference("sgnht", diffusion=2.0, temperature=0.5), target("gaussian-correlated-2d"))
    z = draw_variables(step, np.random.default_rng(2), 100_000)
    xi = z[:, -1]
    assert not mean_test(xi, 2.0).rejects(1e-6)
    assert not mean_test((xi - 2.0) ** 2, 0.25).rejects(1e-6)
    assert not mean_test(z[:, 2] ** 2, 0.5).rejects(1e-6)


def test_no_exact_start_is_said_and_not_replaced():
    hot = dataclasses.replace(target("banana"), tempered=None)
    with pytest.raises(OutOfReach, match="temperature 1 only"):
        draw_positions(hot, 2.0, np.random.default_rng(0), 10)


@pytest.mark.parametrize(
    ("check", "name", "on"),
    [
        ("end_point_moments", "sgld", "gaussian-correlated-2d"),
        ("end_point_ks", "baoab", "double-well"),
        ("end_point_anderson_darling", "mala", "anharmonic"),
        ("end_point_mmd", "leimkuhler-matthews", "gaussian-correlated-2d"),
        ("step_size_limit", "sgnht", "gaussian-1d-scaled"),
        ("chains_move", "baoab", "double-well"),
    ],
)
def test_correct_sampler_passes_and_what_would_have_been_seen_is_stated(few_chains, check, name, on):
    result = run(check, reference(name), on)
    assert result.verdict == "pass", result.reason
    assert result.alpha == ALPHA
    assert result.power == POWER
    assert 0 < result.detectable < 1.1
    assert result.n >= 1500


@pytest.mark.parametrize(
    ("check", "defect"),
    [
        ("end_point_moments", "sgld-noise-mean-one"),
        ("end_point_moments", "obabo-noise-shared"),
        ("end_point_ks", "sgld-noise-halved"),
        ("end_point_ks", "mala-gradient-flipped-in-density"),
        ("end_point_anderson_darling", "sgld-noise-in-loss"),
        ("end_point_anderson_darling", "hmc-without-kinetic-energy"),
        ("end_point_mmd", "sgld-noise-of-one-coordinate"),
        ("end_point_mmd", "sghmc-friction-without-noise"),
        ("step_size_limit", "sgnht-noise-times-diffusion"),
        ("step_size_limit", "sgnht-unit-temperature"),
        ("chains_move", "sghmc-frozen"),
    ],
)
def test_planted_bug_is_rejected(check, defect):
    row = next(d for d in DEFECTS if d.name == defect)
    on = "gaussian-correlated-2d" if row.killed_by.target == "gaussian-pytree" else row.killed_by.target
    with fraction_of_chains(0.3 if check == "step_size_limit" else 1 / 40):
        result = run(check, row.subject, on)
    assert result.verdict == "fail", result.reason


def test_an_extrapolated_limit_is_accepted_when_the_bias_vanishes_and_rejected_when_it_does_not():
    rng, n = np.random.default_rng(11), 60_000
    h = 0.4 / 2.0 ** np.arange(3)
    noise = rng.standard_normal((3, n))
    right = noise + (0.3 * h + 0.5 * h**2)[:, None]
    assert not limit_test(right, 1, 0.0, "f").rejects(1e-6)
    assert limit_test(right + 0.3, 1, 0.0, "f").rejects(1e-6)
    # order one where order two is claimed leaves a bias after the extrapolation, which the correction bounds
    assert not limit_test(noise + 0.3 * (h**2)[:, None], 2, 0.0, "f").rejects(1e-6)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("order", [1, 2])
def test_a_limit_from_two_step_sizes_grants_any_power_from_the_order_on_and_no_lower_one(order, power):
    h = np.array([0.4, 0.1])
    noise = 1e-6 * np.random.default_rng(14).standard_normal((2, 400))
    found = limit_test(noise + 0.3 * (h**power)[:, None], order, 0.0, "f")
    assert found.rejects(1e-6) == (power < order)
    assert limit_test(noise + 0.3 * (h**power)[:, None] + 0.2, order, 0.0, "f").rejects(1e-6)


@pytest.mark.parametrize("sizes", [2, 3])
def test_limit_test_holds_its_level_and_sees_what_it_says(sizes):
    rng, n, runs = np.random.default_rng(12), 400, 1500
    h = np.array({2: [0.4, 0.1], 3: [0.4, 0.2, 0.1]}[sizes])
    bias = (0.1 * h)[:, None]
    null = [limit_test(rng.standard_normal((sizes, n)) + bias, 1, 0.0, "f") for _ in range(runs)]
    rejected = sum(o.rejects(0.05) for o in null)
    assert stats.binom.sf(rejected - 1, runs, 0.05) > 1e-6
    shift = null[0].detectable(0.05, 0.9)
    seen = sum(
        limit_test(rng.standard_normal((sizes, n)) + bias + shift, 1, 0.0, "f").rejects(0.05) for _ in range(300)
    )
    assert stats.binom.cdf(seen, 300, 0.9) > 1e-6


def test_a_hundredth_of_a_variance_and_a_ks_distance_of_0_005_are_seen_at_the_level_of_the_whole_run():
    """At power 0.99 and the family-wise level 1e-6, for 24 moments and 7 directions tested at once."""
    y = np.random.default_rng(13).standard_normal(CHAINS)
    square = mean_test(y * y, 1.0, unit="standardised", name="y^2")
    assert detectable([square] * 24, ALPHA, POWER, STAGES) <= end_points.VARIANCE
    distance = ks_test(stats.norm.cdf(y))
    assert detectable([distance] * 7, ALPHA, POWER, STAGES) <= end_points.DISTANCE


def test_verdicts_do_not_flip_over_fifty_seeds_outside_the_detectable_band():
    """A variance that is right, and one that is wrong by 1.5 times the detectable effect: never the other verdict."""
    n, seeds = 20_000, 50

    def rejected(scale, seed):
        def run(stage, count):
            y = scale * np.random.default_rng([seed, stage]).standard_normal(count)
            return [mean_test(y * y, 1.0, name="y^2")]

        return decide_sequentially(run, ALPHA, n, STAGES).rejected

    seen = detectable([mean_test(np.random.default_rng(0).standard_normal(n) ** 2, 1.0)], ALPHA, POWER, STAGES)
    assert not any(rejected(1.0, seed) for seed in range(seeds))
    assert all(rejected(math.sqrt(1 + 1.5 * seen), seed) for seed in range(seeds))


def test_the_level_of_a_case_covers_every_statistical_case_of_the_full_registry():
    cases = 0
    for row in (*SAMPLERS, *adapter_rows(), *workload_rows()):
        for check in STATEMENTS:
            apart = check.finite is not None and check.finite != (row in FINITE)  # spaces of which it says nothing
            if check.tier in STATISTICAL_TIERS and check.tier in row.tiers and not apart:
                cases += (1 if check.once else 1 + len(row.variants)) * (len(row.targets) + 1)
    assert cases <= FAMILY


def test_a_host_sampler_promises_what_its_few_chains_can_see():
    step = step_map(reference("host-sgld"), target("gaussian-correlated-2d"))
    assert chains_for(step) == HOST_CHAINS
    assert promise(0.01, HOST_CHAINS) == pytest.approx(0.01 * math.sqrt(CHAINS / HOST_CHAINS))


def test_end_points_that_are_not_finite_fail(few_chains):
    blows_up = Subject(dataclasses.replace(sampler_row("sgld"), step_size=1e3))
    result = run("step_size_limit", blows_up, "double-well")
    assert result.verdict == "fail"
    assert "not finite" in result.reason
