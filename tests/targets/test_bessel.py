"""Bessel functions: growth, ratio and constants against mpmath, SciPy, an integral, two-sided bounds and limits."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special

from sgmcmc_verification.targets.numerics.bessel import (
    bessel_ratio,
    log_area,
    log_bessel_i,
    log_mean_exponential,
    log_vmf_constant,
    mean_resultant,
)

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

EPS = np.finfo(np.float64).eps
SINGLE = np.finfo(np.float32).eps
ORDERS = (0.0, 0.5, 1.0, 2.5, 9.0, 23.5, 24.0, 49.0, 2499.0)
CONCENTRATIONS = (1e-8, 1e-3, 0.3, 2.0, 20.0, 300.0, 1e4)


@pytest.fixture(scope="module")
def exact():
    """{(order, concentration): (D, R)} by mpmath."""
    found = {}
    with mpmath.workdps(40):
        for order in ORDERS:
            for kappa in CONCENTRATIONS:
                if order > 1000 and kappa > 1000:
                    continue  # mpmath takes long
                value = mpmath.besseli(order, kappa)
                growth = mpmath.log(mpmath.gamma(order + 1) * (mpmath.mpf(kappa) / 2) ** -mpmath.mpf(order) * value)
                found[order, kappa] = growth, mpmath.besseli(order + 1, kappa) / value, mpmath.log(value)
    return found


def relative(value, reference):
    return float(abs(mpmath.mpf(float(value)) / reference - 1))


def test_growth_and_ratio_are_those_of_mpmath_to_a_relative_error(exact):
    for (order, kappa), (growth, ratio, log_value) in exact.items():
        n = int(2 * order + 2)
        assert relative(log_mean_exponential(n, kappa), growth) <= 16 * EPS, (order, kappa)
        assert relative(bessel_ratio(order, kappa), ratio) <= 16 * EPS, (order, kappa)
        assert relative(mean_resultant(n, kappa), ratio) <= 16 * EPS, (order, kappa)
        scale = abs(order * math.log(kappa / 2)) + math.lgamma(order + 1) + float(growth) + 1
        assert abs(log_bessel_i(order, kappa) - float(log_value)) <= 16 * EPS * scale, (order, kappa)


def test_compiled_results_keep_the_relative_error_of_their_precision(exact):
    kappas = jnp.array(CONCENTRATIONS)
    for order in (0.0, 2.5, 2499.0):
        evaluate = jax.jit(lambda k, order=order: (log_mean_exponential(int(2 * order + 2), k), bessel_ratio(order, k)))
        for dtype, eps in ((jnp.float64, EPS), (jnp.float32, SINGLE)):
            with jax.numpy_dtype_promotion("strict"):
                growth, ratio = evaluate(kappas.astype(dtype))
            assert growth.dtype == ratio.dtype == dtype
            for i, kappa in enumerate(CONCENTRATIONS):
                if (order, kappa) in exact:
                    rounding = 2 * EPS if dtype is jnp.float64 else 2 * SINGLE  # of kappa, squared at small kappa
                    if kappa > 1e-5 or dtype is jnp.float64:
                        assert relative(growth[i], exact[order, kappa][0]) <= 16 * eps + rounding
                    assert relative(ratio[i], exact[order, kappa][1]) <= 16 * eps + rounding


def test_growth_is_that_of_scipy_where_scipy_neither_under_nor_overflows():
    for order in (0.0, 1.0, 9.5, 60.0):
        kappa = np.geomspace(1.0, 500.0, 25)
        reference = np.log(special.ive(order, kappa)) + kappa
        scale = np.abs(reference) + np.abs(order * np.log(kappa / 2)) + math.lgamma(order + 1)
        assert np.all(np.abs(log_bessel_i(order, kappa) - reference) <= 64 * EPS * (scale + 1))


@pytest.mark.parametrize("n", [3, 50, 5000, 50_000])
@pytest.mark.parametrize("kappa", [0.5, 3e3, 1e6])
def test_growth_and_ratio_are_integrals_of_the_height_of_a_uniform_point(n, kappa):
    # theta = arccos x_1 has density sin^(n-2) theta; the integrands are bell-shaped
    def log_integral(slope):
        cosine = 2 * slope / (n - 2 + math.hypot(n - 2, 2 * slope))
        centre = math.acos(cosine)
        curvature = (n - 2) / math.sin(centre) ** 2 + slope * cosine
        reach = 14 / math.sqrt(curvature)
        nodes, weights = np.polynomial.legendre.leggauss(300)
        low, high = max(0.0, centre - reach), min(math.pi, centre + reach)
        theta = (low + high) / 2 + (high - low) / 2 * nodes
        # from the peak, so that nothing large is subtracted from something large
        exponent = (n - 2) * np.log(np.sin(theta) / math.sin(centre))
        exponent -= 2 * slope * np.sin((theta + centre) / 2) * np.sin((theta - centre) / 2)
        values = (high - low) / 2 * weights * np.exp(exponent)
        peak = slope * cosine + (n - 2) * math.log(math.sin(centre))
        return peak + math.log(values.sum()), values @ np.cos(theta) / values.sum(), peak, curvature

    (upper, mean, peak, curvature), (lower, _, base, _) = log_integral(kappa), log_integral(0.0)
    # a node is known to a few eps, so the exponent to eps times the slope of its terms over the width
    rounding = 64 * EPS * (1 + (n + kappa) / math.sqrt(curvature))
    assert abs(log_mean_exponential(n, kappa) - (upper - lower)) <= rounding + 16 * EPS * (abs(peak) + abs(base))
    assert abs(mean_resultant(n, kappa) - mean) <= rounding


def test_the_ratio_lies_within_its_two_sided_bounds():
    kappa = np.geomspace(1e-6, 1e6, 60)
    for order in (0.0, 0.5, 3.0, 24.5, 499.0, 24_999.0):
        ratio = bessel_ratio(order, kappa)
        sharp = kappa / (order + 0.5 + np.sqrt(kappa**2 + (order + 1.5) ** 2))
        other = kappa / (order + 1 + np.sqrt(kappa**2 + (order + 1) ** 2))
        upper = kappa / (order + 0.5 + np.sqrt(kappa**2 + (order + 0.5) ** 2))
        assert np.all(ratio >= np.maximum(sharp, other) * (1 - 16 * EPS))
        assert np.all(ratio <= upper * (1 + 16 * EPS))


def test_derivatives_are_the_ratio_and_its_slope():
    kappas = jnp.array([0.0, 1e-4, 0.7, 30.0, 4e3])
    for n in (2, 5000):
        slope = jax.vmap(jax.grad(lambda k, n=n: log_vmf_constant(n, k)))(kappas)
        np.testing.assert_allclose(slope, -mean_resultant(n, np.asarray(kappas)), rtol=16 * EPS)
        curve = jax.vmap(jax.grad(jax.grad(lambda k, n=n: log_mean_exponential(n, k))))(kappas)
        ratio = mean_resultant(n, np.asarray(kappas))
        with np.errstate(invalid="ignore", divide="ignore"):
            textbook = np.where(kappas > 0, 1 - ratio**2 - (n - 1) * ratio / np.asarray(kappas), 1 / n)
        # the textbook's form cancels: each of its terms is at most 1
        assert np.all(np.abs(curve - textbook) <= 64 * EPS)
        assert abs(curve[0] - 1 / n) <= 16 * EPS / n


def test_closed_forms_on_the_smallest_spheres_and_limits():
    kappa = np.array([0.0, 1e-9, 0.4, 5.0, 700.0, 1e6])
    line = kappa + np.log1p(np.exp(-2 * kappa)) - math.log(2)  # log cosh
    assert np.all(np.abs(log_mean_exponential(1, kappa) - line) <= 16 * EPS * (1 + line))
    np.testing.assert_allclose(mean_resultant(1, kappa), np.tanh(kappa), rtol=16 * EPS)
    positive = kappa[2:]
    constant = np.log(positive) - math.log(2 * math.pi) - positive - np.log1p(-np.exp(-2 * positive))
    assert np.all(np.abs(log_vmf_constant(3, positive) - constant) <= 16 * EPS * np.abs(constant))
    assert abs(log_vmf_constant(2, 0.0) + math.log(2 * math.pi)) <= 4 * EPS
    assert abs(log_area(3) - math.log(4 * math.pi)) <= 8 * EPS
    assert log_bessel_i(0, 0.0) == 0.0
    assert log_bessel_i(3, 0.0) == -math.inf
    assert log_bessel_i(3, jnp.zeros(())) == -math.inf


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: log_bessel_i(-0.5, 1.0), "order"),
        (lambda: bessel_ratio(-1.0, 1.0), "order"),
        (lambda: bessel_ratio(math.nan, 1.0), "order"),
        (lambda: bessel_ratio(1.0, -1.0), "concentration"),
        (lambda: mean_resultant(3, np.array([1.0, math.nan])), "concentration"),
    ],
)
def test_bad_input_names_the_argument(call, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        call()
