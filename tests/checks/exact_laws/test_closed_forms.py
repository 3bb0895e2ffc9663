"""The exact stationary laws that come out of the code are the published closed forms.

Every formula is written out here by hand for U = lambda (x - m)^2 / 2 with friction C, q = h^2 lambda / 4 and
u = C h / 2; nothing of it is taken from a sampler's own claims. Sources: leimkuhler2013rational for the words in A, B
and O; chen2015convergence for the symmetric scheme; the 2 x 2 Lyapunov equation, solved by hand, for the rest.
"""

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.exact_laws.lyapunov import position_law, stability_limit, variable_law
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.estimators.basic import KnownNoise, Minibatch
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

LINE = target("gaussian-1d-scaled")
LAMBDA, MEAN = 2.5, 0.7
STEPS = (0.05, 0.2, 0.45)
ROUND_OFF = 1e-10


def found(step, h):
    """(mean, lambda Var x, Var r, Cov) of the code."""
    mean, position, _ = position_law(step, h)
    full, _ = variable_law(step, h)
    if len(full) == 1:
        return mean[0], LAMBDA * position[0, 0]
    return mean[0], LAMBDA * position[0, 0], full[1, 1], full[0, 1]


def q_of(h):
    return h * h * LAMBDA / 4


def sghmc(h, C):
    u, q = C * h / 2, q_of(h)
    momentum = 1 / (1 - u - q)
    return (1 - u) * momentum, momentum, h / 2 * momentum


def explicit_euler(h, C):
    w = (C - h * LAMBDA) * (2 * C * h - h * h * LAMBDA - 4)
    momentum = -4 * C / w
    return 2 * C * (C * h - h * h * LAMBDA - 2) / w, momentum, -h / 2 * momentum


def symmetric(h, C):
    u = C * h / 2
    ratio = u / np.sinh(u)
    return ratio, ratio / (np.cosh(u) - q_of(h)), 0.0


CLOSED_FORMS = {
    "sgld": lambda h, C: (1 / (1 - h * LAMBDA / 2),),
    "leimkuhler-matthews": lambda h, C: (1.0,),
    "host-sgld": lambda h, C: (1 / (1 - h * LAMBDA / 2),),
    "baoab": lambda h, C: (1.0, 1 - q_of(h), 0.0),
    "aboba": lambda h, C: (1.0, 1 / (1 - q_of(h)), 0.0),
    "obabo": lambda h, C: (1 / (1 - q_of(h)), 1.0, 0.0),
    "oabao": lambda h, C: (1 - q_of(h), 1.0, 0.0),
    "sghmc": sghmc,
    "sghmc-explicit": explicit_euler,
    "recipe-sghmc": explicit_euler,
    "sghmc-symmetric": symmetric,
}
OVERDAMPED = ("sgld", "leimkuhler-matthews", "host-sgld")


def subject(name, **options):
    return Subject(sampler_row(name), options)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_the_exact_law_of_the_code_is_the_closed_form(name):
    # the explicit scheme needs h lambda < C
    C = 2.2 if CLOSED_FORMS[name] is explicit_euler else 1.3
    options = {} if name in OVERDAMPED else {"friction": C}
    step = step_map(subject(name, **options), LINE)
    for h in STEPS:
        mean, *law = found(step, h)
        assert mean == pytest.approx(MEAN, rel=ROUND_OFF)
        expected = CLOSED_FORMS[name](h, C)
        # the position of Leimkuhler-Matthews is not its full variable, whose variance has no bearing here
        np.testing.assert_allclose(law, expected, rtol=ROUND_OFF, atol=ROUND_OFF)


@pytest.mark.parametrize("name", ["sgld", "baoab", "sghmc-symmetric"])
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_law_is_proportional_to_the_temperature(name, temperature):
    _, *law = found(step_map(subject(name, temperature=temperature), LINE), 0.3)
    np.testing.assert_allclose(law, temperature * np.array(CLOSED_FORMS[name](0.3, 1.0)), rtol=ROUND_OFF, atol=1e-12)


@pytest.mark.parametrize("friction", [0.5, 2.0])
@pytest.mark.parametrize(("name", "position", "momentum"), [("ubu", -1 / 6, 1 / 12), ("bub", 1 / 12, -1 / 6)])
def test_the_leading_bias_of_ubu_and_bub(name, position, momentum, friction):
    """lambda Var x = 1 + a lambda h^2 + O(h^3) and Var r = 1 + b lambda h^2 + O(h^3), at any friction."""
    step = step_map(subject(name, friction=friction), LINE)
    hs = 0.4 / 2.0 ** np.arange(6)
    values = np.array([(np.array(found(step, h)[1:3]) - 1) / (LAMBDA * h * h) for h in hs])
    limit, error = neville(hs, values)
    assert np.all(error < 1e-6)
    np.testing.assert_allclose(limit, [position, momentum], rtol=0, atol=10 * error.max() + 1e-9)


# --- gradient noise -------------------------------------------------------------------------------------------------

V = 3.1
NOISE = np.array([[V]])


def coth(x):
    return 1 / np.tanh(x)


NOISY = {
    "sgld": ({}, lambda h, C: (1 + h * V / 2) / (1 - h * LAMBDA / 2)),
    "semi-implicit": ({}, lambda h, C: (1 + h * V / (2 * C)) * sghmc(h, C)[0]),
    "symmetric": ({}, lambda h, C: (1 + h * V / (2 * C)) * symmetric(h, C)[0]),
    "one noisy gradient for both half kicks": (
        {},
        lambda h, C: 1 + h * h * V / 4 * coth(C * h / 2) / (1 - q_of(h)),
    ),
    "fresh noise in each half kick": (
        {"fresh_gradients": True},
        lambda h, C: 1 + h * h * V / 8 * coth(C * h / 2) / (1 - q_of(h)),
    ),
}
ROWS = {"sgld": "sgld", "semi-implicit": "sghmc", "symmetric": "sghmc-symmetric"}


@pytest.mark.parametrize("name", NOISY)
def test_gradient_noise_inflates_the_law_by_the_closed_form(name):
    row = ROWS.get(name, "baoab")
    options, formula = NOISY[name]
    C = 1.3
    options = options if row == "sgld" else {**options, "friction": C}
    step = step_map(subject(row, **options), LINE, KnownNoise(LINE, NOISE))
    for h in STEPS:
        mean, position = found(step, h)[:2]
        assert mean == pytest.approx(MEAN, rel=ROUND_OFF)
        assert position == pytest.approx(formula(h, C), rel=ROUND_OFF)


def test_gradient_noise_inflates_the_momentum_of_sghmc_by_the_same_factor():
    h, C = 0.2, 1.3
    for row, form in (("sghmc", sghmc), ("sghmc-symmetric", symmetric)):
        step = step_map(subject(row, friction=C), LINE, KnownNoise(LINE, NOISE))
        np.testing.assert_allclose(
            found(step, h)[1:], (1 + h * V / (2 * C)) * np.array(form(h, C)), rtol=ROUND_OFF, atol=1e-12
        )


@pytest.mark.parametrize(
    ("row", "form"), [("sgld", CLOSED_FORMS["sgld"]), ("sghmc", sghmc), ("sghmc-symmetric", symmetric)]
)
def test_compensated_gradient_noise_leaves_no_trace(row, form):
    C = 1.3
    options = {} if row == "sgld" else {"friction": C}
    step = step_map(subject(row, compensate=True, **options), LINE, KnownNoise(LINE, NOISE))
    # 2 h C - h^2 V >= 0: the compensation is possible
    for h in (0.05, 0.3):
        np.testing.assert_allclose(found(step, h)[1:], form(h, C), rtol=ROUND_OFF, atol=1e-12)


def test_an_unreported_covariance_cannot_be_compensated():
    step = step_map(subject("sgld", compensate=True), LINE, KnownNoise(LINE, NOISE, report=False))
    assert found(step, 0.2)[1] == pytest.approx(NOISY["sgld"][1](0.2, 1.0), rel=ROUND_OFF)


def test_correlated_gradient_noise_inflates_each_direction_by_its_own_factor():
    """Symmetric SGHMC on the plane with V diagonal in the eigenvectors of the precision."""
    plane = target("gaussian-correlated-2d")
    assert plane.gaussian is not None
    values, vectors = np.linalg.eigh(plane.gaussian.precision)
    h, C, noise = 0.2, 1.3, np.array([0.4, 2.0])
    covariance = vectors @ np.diag(noise) @ vectors.T
    step = step_map(subject("sghmc-symmetric", friction=C), plane, KnownNoise(plane, covariance))
    u = C * h / 2
    expected = vectors @ np.diag((1 + h * noise / (2 * C)) * u / np.sinh(u) / values) @ vectors.T
    np.testing.assert_allclose(position_law(step, h)[1], expected, rtol=ROUND_OFF)


# --- minibatches, all of them listed -------------------------------------------------------------------------------

DATA = target("tiny-gaussian-data")
SIZE, BATCH = 5, 2


def noise_covariance(replace):
    """Covariance of (N / n) sum_S of the gradients S^-1 (x - y_i) over minibatches, the same at every x."""
    assert DATA.terms is not None
    y = np.asarray(DATA.terms.data)
    spread = np.cov(y.T, bias=True)
    weight = np.linalg.inv([[1.5, 0.4], [0.4, 0.8]])
    finite = 1.0 if replace else (SIZE - BATCH) / (SIZE - 1)
    return SIZE**2 / BATCH * finite * weight @ spread @ weight


def euler_covariance(h, noise):
    """S with S = (I - h P) S (I - h P) + 2 h I + h^2 V, entry by entry in the eigenvectors of P."""
    assert DATA.gaussian is not None
    values, vectors = np.linalg.eigh(DATA.gaussian.precision)
    forcing = 2 * h * np.eye(2) + h * h * vectors.T @ noise @ vectors
    contraction = 1 - h * values
    return vectors @ (forcing / (1 - np.outer(contraction, contraction))) @ vectors.T


@pytest.mark.parametrize("replace", [True, False], ids=["with replacement", "without replacement"])
@pytest.mark.parametrize("h", [0.005, 0.05])
def test_sgld_over_all_minibatches_has_the_hand_solved_covariance(replace, h):
    assert DATA.terms is not None
    assert DATA.gaussian is not None
    step = step_map(subject("sgld"), DATA, Minibatch(DATA.terms, BATCH, replace))
    mean, covariance, _ = position_law(step, h)
    np.testing.assert_allclose(mean, DATA.gaussian.mean, rtol=ROUND_OFF)
    np.testing.assert_allclose(covariance, euler_covariance(h, noise_covariance(replace)), rtol=ROUND_OFF)


def test_the_fisher_estimate_compensates_all_minibatches_without_replacement_on_average():
    """The estimate is unbiased and the noise does not depend on x: the law is the one of exact gradients."""
    assert DATA.terms is not None
    h = 0.01
    step = step_map(subject("sgld", compensate=True), DATA, Minibatch(DATA.terms, BATCH, False, fisher=True))
    np.testing.assert_allclose(position_law(step, h)[1], euler_covariance(h, np.zeros((2, 2))), rtol=ROUND_OFF)


# --- stability ------------------------------------------------------------------------------------------------------


def _sghmc_limit(stiffness, C):
    """u + q < 1: h^2 lambda / 4 + C h / 2 = 1."""
    return (-C + np.sqrt(C * C + 4 * stiffness)) / stiffness


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("sgld", lambda stiffness: 2 / stiffness),
        ("leimkuhler-matthews", lambda stiffness: 2 / stiffness),
        ("baoab", lambda stiffness: 2 / np.sqrt(stiffness)),
        ("sghmc", lambda stiffness: _sghmc_limit(stiffness, 1.0)),
        ("sghmc-symmetric", lambda stiffness: 2 * np.sqrt(np.cosh(0.5 * _ssi(stiffness)) / stiffness)),
        ("sghmc-explicit", lambda stiffness: 1 / stiffness),
    ],
)
def test_the_stability_limit_is_that_of_the_stiffest_direction(name, limit):
    plane = target("gaussian-correlated-2d")
    assert plane.gaussian is not None
    stiffness = np.linalg.eigvalsh(plane.gaussian.precision)[-1]
    found_limit = stability_limit(step_map(subject(name), plane), 0.11, refinements=20)
    expected = limit(stiffness)
    # bisection of an interval of at most the limit itself, and the margin 1e-12 of the radius
    assert found_limit == pytest.approx(expected, rel=2.0**-18)


def _ssi(stiffness):
    """The step size with cosh(h / 2) = h^2 stiffness / 4, by bisection."""
    low, high = 0.0, 4 / np.sqrt(stiffness)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.cosh(middle / 2) > middle**2 * stiffness / 4 else (low, middle)
    return low
