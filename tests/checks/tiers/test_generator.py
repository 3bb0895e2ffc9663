"""The generator tier reads drift and diffusion off the code. Oracles: both written by hand for each equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.generator.drift_and_diffusion import generator_of_code
from sgmcmc_verification.checks.tracing.code_generator import code_generator
from sgmcmc_verification.checks.tracing.one_step_moments import step_sizes
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.dynamics.published import LANGEVIN, PublishedDiffusion
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.registry import target

CHECK = generator_of_code
SOURCE = Source("chen2014stochastic", "equation (13)")
WELL = target("anharmonic")
C, T = 0.8, 0.6
LINE = np.array([[-1.2], [0.3], [1.1]])
PHASE = np.array([[-1.2, 0.4], [0.3, -1.5], [1.1, 0.9]])
THERMO = np.array([[-1.2, 0.4, 1.3], [0.3, -1.5, 0.2], [1.1, 0.9, 2.0]])


def slope_of(x):
    """U' on U = x^4 / 4 + x^2 / 2."""
    return x**3 + x


def overdamped(z):
    return -slope_of(z), np.full((len(z), 1, 1), T)


def underdamped(z):
    x, r = z.T
    diffusion = np.zeros((len(z), 2, 2))
    diffusion[:, 1, 1] = C * T
    return np.stack([r, -slope_of(x) - C * r], axis=1), diffusion


def thermostat(z):
    """dr = -U' - xi r + sqrt(2 A T) dW, dxi = (r^2 - T) / d."""
    x, r, xi = z.T
    diffusion = np.zeros((len(z), 3, 3))
    diffusion[:, 1, 1] = C * T
    return np.stack([r, -slope_of(x) - xi * r, r**2 - T], axis=1), diffusion


FRICTION, DIFFUSION = {"friction": C, "temperature": T}, {"diffusion": C, "temperature": T}
EQUATIONS = {
    "sgld": ({"temperature": T}, LINE, overdamped),
    "host-sgld": ({"temperature": T}, LINE, overdamped),
    "leimkuhler-matthews": ({"temperature": T}, LINE, overdamped),
    "sghmc": (FRICTION, PHASE, underdamped),
    "sghmc-symmetric": (FRICTION, PHASE, underdamped),
    "obabo": (FRICTION, PHASE, underdamped),
    "ubu": (FRICTION, PHASE, underdamped),
    "sgnht": (DIFFUSION, THERMO, thermostat),
    "badodab": (DIFFUSION, THERMO, thermostat),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_drift_and_diffusion_of_the_code_are_those_of_the_equation(name):
    options, points, equation = EQUATIONS[name]
    subject = Subject(sampler_row(name), options)
    drift, drift_error, diffusion, diffusion_error, jump = code_generator(subject, WELL, points)
    assert not jump.any()
    expected_drift, expected_diffusion = equation(points)
    for found, error, expected in (
        (drift, drift_error, expected_drift),
        (diffusion, diffusion_error, expected_diffusion),
    ):
        assert found.shape == expected.shape
        # the extrapolation's own estimate, and round-off eps / h at the smallest step size
        assert np.all(np.abs(found - expected) <= 10 * error + 1e-10)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_step_sizes_are_the_usual_one_and_its_halvings():
    on = target("gaussian-1d-scaled")  # of curvature 2.5
    np.testing.assert_allclose(step_sizes(Subject(sampler_row("sgld")), on, 3), 0.1 / 2.5 * np.array([1, 0.5, 0.25]))
    np.testing.assert_allclose(
        step_sizes(Subject(sampler_row("baoab")), on, 2), 0.1 / np.sqrt(2.5) * np.array([1, 0.5])
    )


# --- verdicts -------------------------------------------------------------------------------------------------------


def langevin(damp=1.0, noise=1.0, force=1.0, move=1.0, leak=0.0, half=0.0, keep=1.0):
    """Semi-implicit SGHMC of friction 1 with planted factors, held to the dynamics of the right one."""

    def step(key, state, h, estimator):
        x, r = state
        gradient = estimator.estimate(key, (), x)[0].gradient
        xi = jax.random.normal(key, x.shape)
        new = r - force * h * gradient - damp * h * r + noise * jnp.sqrt(2 * h) * xi + half * h**1.5
        return PhasePoint(keep * x + move * h * new + leak * jnp.sqrt(h) * xi, new)

    claims = Claims(
        SOURCE,
        StationaryLaw(),
        Diffusion(SGHMC().dynamics, weak_order=1),
    )
    sampler = simple_sampler(
        step,
        claims=claims,
        init=lambda key, x, estimator: PhasePoint(x, jax.random.normal(key, x.shape)),
        position=lambda state: state.position,
        unpack=lambda state: state,
        pack=lambda key, z, estimator: z,
    )
    return Subject(Row("local", lambda _: sampler, step_size=0.1))


def test_the_right_step_passes():
    result = generator_of_code(Case(langevin(), WELL))
    assert result.verdict == "pass", result.reason
    assert result.effect is not None
    assert result.effect < 1e-8


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"damp": 1.001}, r"drift of r[0]"),
        ({"force": -1.0}, r"drift of r[0]"),
        ({"force": 0.5}, r"drift of r[0]"),
        ({"move": 1.01}, r"drift of theta[0]"),
        ({"noise": np.sqrt(0.5)}, r"diffusion D[r[0], r[0]]"),
        ({"leak": 0.1}, r"diffusion D["),
        ({"keep": 0.9}, r"a step of size 0 moves theta[0]"),
        ({"keep": 0.0}, r"a step of size 0 moves theta[0]"),
    ],
    ids=str,
)
def test_a_wrong_step_fails_and_the_coordinate_is_named(wrong, named):
    result = generator_of_code(Case(langevin(**wrong), WELL))
    assert result.verdict == "fail", result.reason
    assert named in result.reason


def test_a_drift_of_fractional_order_does_not_pass():
    """(E z' - z) / h = f + sqrt(h) / 2 has the right limit but is no expansion in h: it is not certified."""
    result = generator_of_code(Case(langevin(half=0.5), WELL))
    assert result.verdict != "pass", result.reason


def test_the_figures_in_the_reason_are_those_of_code_and_equation():
    result = generator_of_code(Case(langevin(noise=0.5), WELL))
    assert "the code has 0.25, the dynamics 1" in result.reason


@pytest.mark.parametrize(("name", "reason"), [("hmc", "claims no StochasticEquation"), ("mala", "uniform")])
def test_steps_without_a_generator_are_not_applicable(name, reason):
    with pytest.raises(NotApplicable, match=reason):
        generator_of_code(Case(Subject(sampler_row(name)), WELL))


def test_without_declared_dynamics_there_is_nothing_to_compare():
    subject = Subject(Row("local", lambda _: simple_sampler(lambda key, x, h, estimator: x)))
    with pytest.raises(NotApplicable, match="claims no StochasticEquation"):
        generator_of_code(Case(subject, WELL))


@pytest.mark.parametrize(
    ("effect", "detectable", "verdict"),
    [
        (0.5e-3, 2e-3, "pass"),
        (2e-3, 2e-3, "fail"),
        (0.5e-3, 0.2, "inconclusive"),
        (0.5, 0.2, "fail"),
        (np.nan, 2e-3, "fail"),
        (np.inf, 2e-3, "fail"),
        (0.5e-3, np.nan, "inconclusive"),
    ],
)
def test_a_verdict_weighs_the_effect_its_allowance_and_what_could_be_seen(effect, detectable, verdict):
    """Allowed 1e-3, promised 0.1: no pass without the promised sight, and what is not a number never passes."""
    result = Finding(
        effect=effect,
        tolerance=Tolerance(1e-3, ""),
        minimum_detectable_effect=detectable,
        required_sensitivity=0.1,
        reason="because",
        statistic="",
        unit="",
    )
    assert result.verdict == verdict
    assert "because" in result.explanation


def test_one_compilation_serves_all_points_and_step_sizes():
    step = step_map(Subject(sampler_row("sgld")), WELL)
    assert isinstance(step, JaxStep)
    compiled = step._compiled
    for h in (0.1, 0.05):
        step.moments(LINE, h)
        step.moments(LINE[:2], h)
    assert compiled._cache_size() == 1


WITHOUT_DIFFUSION = {"csgld-kept", "hmc", "amagold", "makla", "rmhmc", "rmhmc-recipe-metric", "gmc", "chmc"}
"""Its force depends on the learnt weights (`contour_force`), or a step has no generator."""


def test_every_row_with_a_generator_names_its_published_diffusion():
    rows = [row for row in SAMPLERS if "generator" in row.tiers and "generator" not in row.unsupported]
    assert {row.name for row in rows if not row.diffusion} == WITHOUT_DIFFUSION
    assert all(isinstance(row.diffusion, PublishedDiffusion) for row in rows if row.diffusion)


@pytest.mark.parametrize("name", ["recipe-friction-root", "psgld-metric-inside-root"])
def test_another_diffusion_of_the_same_law_passes_what_compares_code_and_claims_alone(name):
    defect = find_defect(name)
    passed = [execute(find_statement(check), defect.subject, defect.killed_by.target, 0).verdict for check in BESIDE]
    assert passed == ["pass"] * len(BESIDE)
    result = execute(find_statement("published_diffusion"), defect.subject, defect.killed_by.target, 0)
    assert result.verdict == "fail", result.reason


BESIDE = ("generator_of_code", "autodiff_recipe")


@pytest.mark.parametrize(("temperature", "verdict"), [(1.0, "pass"), (1.001, "fail")])
def test_a_row_of_ones_own_is_held_to_the_diffusion_that_it_names(temperature, verdict):
    row = Row("mine", lambda target: SGLD(temperature), diffusion=LANGEVIN)
    assert execute(find_statement("published_diffusion"), Subject(row), "anharmonic", 0).verdict == verdict


def test_a_row_that_names_no_diffusion_is_held_to_none():
    check, subject = find_statement("published_diffusion"), Subject(Row("mine", lambda target: SGLD()))
    assert check.targets(subject) == ()
    assert execute(check, subject, "anharmonic", 0).verdict == "not-applicable"


@pytest.mark.parametrize("name", ["mala", "mmala"])
def test_the_published_diffusion_of_a_metropolis_kernel_is_that_of_its_proposal(name):
    check, subject = find_statement("published_diffusion"), Subject(sampler_row(name), {"temperature": 2.0})
    assert execute(check, subject, "gaussian-correlated-2d", 0).verdict == "pass"


def test_round_off_of_a_sum_over_hundreds_of_nodes_is_no_jump():
    subject, matrix = Subject(sampler_row("sgnht")), target("gaussian-matrix")
    *_, jump = code_generator(subject, matrix, generic_points(step_map(subject, matrix)))
    assert jump.max() == 0
