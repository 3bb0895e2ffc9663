"""The order tier measures the order that a scheme has.

Oracles: L^j phi of the Ornstein-Uhlenbeck process by hand; slopes of known powers; the generator of the geodesic
Langevin equation on the sphere, written in ambient coordinates; small schemes that are wrong at a known order.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, OutOfReach
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.checks.numerics.convergence_rate import slope
from sgmcmc_verification.checks.numerics.observables import observable_names, observables
from sgmcmc_verification.checks.tiers.generator.drift_and_diffusion import generator_of_code
from sgmcmc_verification.checks.tiers.order.weak_order import (
    defect,
    defect_series,
    local_errors,
    local_weak_order,
    taylor_terms,
)
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.dynamics.underdamped import langevin_dynamics
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.targets.registry import target

EPS = np.finfo(np.float64).eps
WEAK = local_weak_order
DEFECT = defect
SOURCE = Source("welling2011bayesian", "equation (4)")


def claimed(row):
    on = target("anharmonic" if "anharmonic" in row.targets else row.targets[0])
    claims = Subject(row).sampler(on).claims
    return on, claims


def one_of_each():
    """The first row of each method with a weak order: options and estimators of a method share the code of its step."""
    found = {}
    for row in SAMPLERS:
        on, claims = claimed(row)
        if StationaryLaw in claims and claims.weak_order is not None:
            found.setdefault((type(Subject(row).sampler(on)).__qualname__, claims.weak_order), row)
    return list(found.values())


COINS = ("sgbd",)
"""Rows whose signs are coins, which have no quadrature; their law is sampled (`test_reference_relative`)."""
FIXED = [row for row in one_of_each() if row.name not in COINS]


@pytest.mark.parametrize("row", FIXED, ids=lambda row: row.name)
def test_the_measured_weak_order_is_the_claimed_one(row):
    on, claims = claimed(row)
    result = local_weak_order(Case(Subject(row), on))
    assert result.verdict == "pass", result.reason
    assert result.measurements["measured_order"] == pytest.approx(claims.weak_order, abs=0.1)


class SphereLangevin:
    """dx = v dt, dv = -|v|^2 x dt - L(x) grad U dt - C v dt + sqrt(2 C) L(x) dW on |x| = 1, L = I - x x^T.

    In ambient coordinates z = (x, v); the noise acts on v alone, through a matrix that depends on x alone, so that
    the Ito and Stratonovich forms agree.
    """

    def __init__(self, on, friction):
        self.U, self.n, self.C = on.potential, on.size, friction

    def drift(self, z):
        x, v = z[: self.n], z[self.n :]
        gradient = jax.grad(self.U)(x)
        force = gradient - x * (x @ gradient)
        return jnp.concatenate([v, -(v @ v) * x - force - self.C * v])

    def D(self, z):
        x = z[: self.n]
        zero = jnp.zeros((self.n, self.n))
        return jnp.block([[zero, zero], [zero, self.C * (jnp.eye(self.n) - jnp.outer(x, x))]])


def test_the_weak_order_of_the_geodesic_integrator_on_the_sphere_is_two():
    sphere = target("vmf-s2")
    step = step_map(Subject(sampler_row("sggmc")), sphere)
    assert step.sampler.claims.weak_order == 2
    x = np.array([[1.0, 2.0, 2.0], [-0.6, 0.0, 0.8]]) / np.array([[3.0], [1.0]])
    w = np.array([[0.3, -1.1, 0.7], [0.9, 0.4, -0.2]])
    points = np.concatenate([x, w - x * np.sum(x * w, axis=1, keepdims=True)], axis=1)
    terms = taylor_terms(SphereLangevin(sphere, 1.0), points, 2)
    hs = 0.1 / 2.0 ** np.arange(8)
    errors = np.array([np.linalg.norm(step.moments(points, h).variable - _series(terms, h)) for h in hs])
    exponent, _ = slope(hs, errors, floor=1e4 * EPS * np.sqrt(terms[0].size))
    assert exponent - 1 == pytest.approx(2, abs=0.1)


def _series(terms, h):
    return terms[0] + h * terms[1] + h * h / 2 * terms[2]


# --- the pieces -----------------------------------------------------------------------------------------------------


def test_iterated_generators_of_the_ornstein_uhlenbeck_process():
    """dx = -a (x - m) dt + sqrt(2) dW: L x = -a y, L^2 x = a^2 y, L x^2 = 2 - 2 a x y, by hand, y = x - m."""
    a, m = 2.5, 0.7
    points = np.array([[-0.4], [1.3]])
    x, y = points[:, 0], points[:, 0] - m
    terms = taylor_terms(SGLD().dynamics(target("gaussian-1d-scaled")), points, 2)
    by_name = [dict(zip(observable_names(("x",)), t.T, strict=True)) for t in terms]
    np.testing.assert_allclose(by_name[0]["x^4"], x**4, rtol=10 * EPS)
    np.testing.assert_allclose(by_name[1]["x"], -a * y, rtol=100 * EPS)
    np.testing.assert_allclose(by_name[1]["x^2"], 2 - 2 * a * x * y, rtol=100 * EPS)
    np.testing.assert_allclose(by_name[1]["x^4"], 12 * x**2 - 4 * a * x**3 * y, rtol=100 * EPS)
    np.testing.assert_allclose(by_name[2]["x"], a * a * y, rtol=100 * EPS)
    # L (2 - 2 a x y) = -a y (-2 a (2 x - m)) - 4 a
    np.testing.assert_allclose(by_name[2]["x^2"], 2 * a * a * y * (2 * x - m) - 4 * a, rtol=100 * EPS)


def test_iterated_generators_of_the_underdamped_equation():
    """L r = -U' - C r, L (x r) = r^2 - x U' - C x r, L r^2 = 2 C - 2 r U' - 2 C r^2; L^2 x = L r."""
    C, points = 0.8, np.array([[0.3, -1.1], [1.7, 0.6]])
    x, r = points.T
    slope_of = x**3 + x
    terms = taylor_terms(langevin_dynamics(target("anharmonic"), C), points, 2)
    first = dict(zip(observable_names(("x", "r")), terms[1].T, strict=True))
    np.testing.assert_allclose(first["x"], r, rtol=100 * EPS)
    np.testing.assert_allclose(first["r"], -slope_of - C * r, rtol=100 * EPS)
    np.testing.assert_allclose(first["x*r"], r**2 - x * slope_of - C * x * r, rtol=100 * EPS)
    np.testing.assert_allclose(first["r^2"], 2 * C - 2 * r * slope_of - 2 * C * r**2, rtol=100 * EPS)
    np.testing.assert_allclose(terms[2][:, 0], first["r"], rtol=100 * EPS)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_the_slope_of_a_power_is_its_exponent(power):
    hs = 0.2 / 2.0 ** np.arange(8)
    value, error = slope(hs, 3 * hs**power * (1 + 4 * hs), floor=1e-12)
    assert value == pytest.approx(power, abs=1e-4)
    assert error < 1e-2


def test_the_slope_ignores_what_is_below_the_floor():
    hs = 0.2 / 2.0 ** np.arange(9)
    value, _ = slope(hs, np.maximum(hs**3, 1e-6), floor=1.1e-6)
    assert value == pytest.approx(3, abs=1e-6)


def test_errors_below_the_floor_have_no_slope():
    assert slope(0.2 / 2.0 ** np.arange(8), np.full(8, 1e-15), floor=1e-12)[0] == np.inf


# --- verdicts -------------------------------------------------------------------------------------------------------


def scheme(increment, order=1):
    """x' = x + increment(x, h, xi, gradient), as a scheme of a claimed weak order for the overdamped equation."""

    def step(key, x, h, estimator):
        gradient = estimator.estimate(key, (), x)[0].gradient
        return x + increment(x, h, jax.random.normal(key, x.shape), gradient)

    claims = Claims(
        SOURCE,
        StationaryLaw(order=1),
        Diffusion(SGLD().dynamics, weak_order=order),
    )
    return Subject(Row("local", lambda _: simple_sampler(step, claims=claims), step_size=0.1))


def euler(x, h, xi, gradient):
    return -h * gradient + jnp.sqrt(2 * h) * xi


WRONG = {
    "no drift": lambda x, h, xi, g: jnp.sqrt(2 * h) * xi,
    "half the noise": lambda x, h, xi, g: -h * g + jnp.sqrt(h) * xi,
    "a drift of order sqrt(h)": lambda x, h, xi, g: euler(x, h, xi, g) + 0.1 * h**1.5,
    "correlated drift and noise": lambda x, h, xi, g: -h * g + jnp.sqrt(2 * h) * xi * (1 + 0.2 * jnp.sqrt(h) * xi),
    "a slightly wrong drift": lambda x, h, xi, g: -1.01 * h * g + jnp.sqrt(2 * h) * xi,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_scheme_that_is_not_of_first_order_fails(name):
    result = local_weak_order(Case(scheme(WRONG[name]), target("anharmonic")))
    assert result.verdict == "fail", result.reason


def test_a_scheme_of_first_order_is_not_of_second():
    assert local_weak_order(Case(scheme(euler), target("anharmonic"))).verdict == "pass"
    result = local_weak_order(Case(scheme(euler, order=2), target("anharmonic")))
    assert result.verdict == "fail"
    assert result.measurements["measured_order"] == pytest.approx(1, abs=0.1)


def test_local_errors_of_euler_are_its_second_order_term():
    """For phi = x alone E x' = x - h U' is exact to h: the error is h^2 L^2 phi / 2 at leading order."""
    subject, on = scheme(euler), target("gaussian-1d-scaled")
    hs, errors = local_errors(subject, on, 1, levels=4)
    np.testing.assert_allclose(errors[:-1] / errors[1:], 4, rtol=0.2)
    assert hs[0] == pytest.approx(0.04)


def test_the_defect_series_of_euler_on_a_gaussian_is_the_closed_form():
    """E x'^2 = (1 - h a)^2 / a + 2 h + .. = 1 / a + h^2 a (mean 0 part): c_1 = 0, c_2 = a for x^2."""
    a, m = 2.5, 0.7
    _, coefficients, quadrature, coarse, _ = defect_series(scheme(euler), target("gaussian-1d-scaled"), 2)
    square = observable_names(("x",)).index("x^2")
    scale = 1 + (1 / a + m * m)
    assert coefficients[0][0][square] == pytest.approx(0, abs=1e-10)
    assert coefficients[1][0][square] == pytest.approx(a / scale, rel=1e-6)
    assert quadrature < 1e-10
    assert not coarse


@pytest.mark.parametrize("on", ["gaussian-1d-scaled", "anharmonic"])
def test_a_scheme_that_leaves_the_target_invariant_to_its_order_passes(on):
    for subject in (scheme(euler), Subject(sampler_row("baoab"))):
        result = defect(Case(subject, target(on)))
        assert result.verdict == "pass", result.reason


@pytest.mark.parametrize("on", ["gaussian-1d-scaled", "anharmonic"])
def test_a_defect_without_a_series_fails(on):
    """Noise of the mean m moves E x by m sqrt(2 h) in a step, so that the rate grows like h^(-1/2)."""
    shifted = lambda x, h, e, g: euler(x, h, e + 0.01, g)
    result = defect(Case(scheme(shifted), target(on)))
    assert result.verdict == "fail", result.reason
    assert "does not go to 0" in result.reason
    rate = float(result.reason.split("/ h = ")[1].split(" at h")[0])
    assert rate > 0


@pytest.mark.parametrize("name", ["no drift", "half the noise", "correlated drift and noise", "a slightly wrong drift"])
def test_a_scheme_with_another_invariant_law_fails(name):
    result = defect(Case(scheme(WRONG[name]), target("anharmonic")))
    assert result.verdict == "fail", result.reason
    assert "c_1" in result.reason


def test_observables_tell_every_coordinate_apart():
    """Exchanging two coordinates, or their signs, changes the vector of expectations."""
    z = np.array([0.4, -1.2, 0.9])
    for other in ([-1.2, 0.4, 0.9], [0.4, 1.2, 0.9], [0.4, 0.9, -1.2]):
        assert np.abs(observables(z) - observables(np.array(other))).max() > 0.1


class NaNAtSmallSteps(SGLD):
    """Euler's method that returns NaN below a step size, as an unguarded 0 / 0 would."""

    def step(self, key, state, step_size, estimator):
        moved = super().step(key, state, step_size, estimator)
        return moved._replace(position=jnp.where(step_size < 1e-3, jnp.nan, moved.position))


@pytest.mark.parametrize("check", [WEAK, DEFECT], ids=lambda check: check.name)
def test_a_step_that_is_not_a_number_fails(check):
    subject = Subject(Row("nan", lambda target: NaNAtSmallSteps()))
    assert check(Case(subject, target("anharmonic")), 0).verdict == "fail"


@pytest.mark.parametrize("function", [local_weak_order, defect, generator_of_code])
def test_an_equation_of_the_position_is_none_of_a_state_that_remembers(function):
    """SGLD that is drawn to the running mean of its positions, of which an optimiser's convention says nothing."""
    pytest.importorskip("optax")
    file = Path(__file__).resolve().parents[2] / "strangers" / "wrong" / "sixth_users" / "c40_optax_langevin.py"
    with jax.enable_x64(True):
        row = find_row(f"optax:{file}:anchored_sgld_with_swag")
        with pytest.raises(OutOfReach, match="the equation is one of 1 numbers, and z has 2"):
            function(Case(Subject(row), target("double-well")))
