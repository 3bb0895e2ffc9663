"""Moments against quadrature and known formulas; the independence of draws."""

from fractions import Fraction

import mpmath
import pytest
from scipy import stats

from sgmcmc_verification.checks.proof.densities import log_density
from sgmcmc_verification.checks.proof.draws import Draw, DrawFunction, Expectation, History, evaluator
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import Applied
from sgmcmc_verification.checks.proof.laws import (
    Beta,
    ChiSquare,
    Exponential,
    Gamma,
    GeneralizedNormal,
    Gumbel,
    Laplace,
    LogGamma,
    Logistic,
    Maxwell,
    Normal,
    Rademacher,
    StudentT,
    TruncatedNormal,
    Uniform,
)
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.ring import Ring

KEY = History("step")
LAWS = {
    Normal(): stats.norm(),
    Uniform(): stats.uniform(),
    Exponential(): stats.expon(),
    Laplace(): stats.laplace(),
    Gumbel(): stats.gumbel_r(),
    StudentT(Fraction(9)): stats.t(9),
    TruncatedNormal(Fraction(-1), Fraction(2)): stats.truncnorm(-1, 2),
    Gamma(Fraction(5, 2)): stats.gamma(2.5),
    Gamma(Fraction(1, 2)): stats.gamma(0.5),
    LogGamma(Fraction(3)): stats.loggamma(3),
    LogGamma(Fraction(1, 2)): stats.loggamma(0.5),
    Beta(Fraction(2), Fraction(7, 2)): stats.beta(2, 3.5),
    ChiSquare(Fraction(3)): stats.gamma(1.5, scale=2),
    Logistic(): stats.logistic(),
    GeneralizedNormal(Fraction(3)): stats.gennorm(3),
    Maxwell(): stats.maxwell(),
}


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("order", range(6))
def test_moments_are_those_of_scipy(law, order):
    want = 1.0 if order == 0 else LAWS[law].moment(order)
    assert float(law.moment(order)) == pytest.approx(want, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("law", [law for law in LAWS if not isinstance(law, StudentT)], ids=str)
def test_densities_have_all_mass_within_the_support_and_the_moments(law):
    for order in range(4):
        with mpmath.workdps(25):
            found = mpmath.quad(lambda x, n=order: x**n * law.density(x), law.support)
        assert float(found) == pytest.approx(float(law.moment(order)), rel=1e-9, abs=1e-9)


def test_rademacher_moments():
    assert [Rademacher().moment(k) for k in range(5)] == [1, 0, 1, 0, 1]


def test_a_moment_that_does_not_exist_is_refused():
    with pytest.raises(Unreadable, match="does not exist"):
        StudentT(Fraction(3)).moment(4)


def draw(ring, place=0, law=None, key=KEY):
    return ring.generator(Draw(law or Normal(), key, place))


def test_draws_of_different_keys_are_independent_and_of_one_key_the_same():
    ring = Ring()
    mean = Expectation(ring)
    a, b = draw(ring), draw(ring, key=KEY.child(1))
    assert mean(a * a * b * b).rational == 1
    assert mean(a * a * draw(ring) * draw(ring)).rational == 3
    assert mean(a * b).rational == 0
    x = ring.generator(Coordinate("x", 0))
    assert mean(a * a * x + a) == x


def test_a_smooth_function_of_a_draw_is_integrated():
    ring = Ring()
    xi = draw(ring)
    got = Expectation(ring)(ring.generator(Applied("exp", xi)) * xi).rational
    with mpmath.workdps(30):
        want = mpmath.exp(mpmath.mpf(1) / 2)  # E xi e^xi = e^(1/2)
        assert abs(mpmath.mpf(got.numerator) / got.denominator - want) < 1e-20


def test_a_function_that_is_not_smooth_is_integrated_between_its_breaks():
    ring = Ring()
    xi = draw(ring)
    size = ring.generator(DrawFunction("max", (xi,), lambda v: abs(v[0]), (mpmath.mpf(0),)))
    got = Expectation(ring)(size).rational
    assert float(got) == pytest.approx((2 / 3.141592653589793) ** 0.5, rel=1e-15)
    assert float(Expectation(ring)(size * size).rational) == pytest.approx(1, rel=1e-15)


def test_functions_of_draws_and_state_are_refused():
    ring = Ring()
    x = ring.generator(Coordinate("x", 0))
    with pytest.raises(Unreadable, match="of draws and of the state"):
        Expectation(ring)(ring.generator(Applied("tanh", x * draw(ring))))
    with pytest.raises(Unreadable, match="negative power"):
        Expectation(ring)(ring.power(next(iter(draw(ring).numbers())), -1))


ON_THE_LINE = (Normal(), StudentT(Fraction(9)), Laplace(), Logistic(), Gumbel())


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_log_densities_are_those_of_the_laws(law):
    """Differences between points, for a constant is left out; no other law has a formula."""
    ring = Ring()
    numbers = [ring.constant(Fraction(k, 7)) for k in (-9, 2, 15)]
    found = [log_density(law, x) for x in numbers]
    if law not in ON_THE_LINE:
        assert found == [None] * 3
        return
    value = evaluator(ring, {})
    got = [float(value(p)) for p in found if p is not None]
    want = [LAWS[law].logpdf(k / 7) for k in (-9, 2, 15)]
    assert [a - got[0] for a in got] == pytest.approx([a - want[0] for a in want], rel=1e-12)
