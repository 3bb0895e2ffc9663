"""The leading term of the bias, read from a program, is that of closed forms and of the computed law."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotApplicable
from sgmcmc_verification.checks.proof.leading_bias import leading_term
from sgmcmc_verification.samplers.interface.claims import StationaryMoments
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

CLOSED = (
    *("sgld", "sgld-compensated", "psgld-frozen", "saga-ld", "sgld-cv"),
    *("sghmc", "sghmc-explicit", "sghmc-symmetric", "sggmc", "baoab", "aboba", "obabo", "oabao", "ubu", "bub"),
)
"""Rows that claim the closed form of their law on U = k x^2 / 2."""
KNOWN = {"sgld": (1, 1 / 2), "baoab": (2, 0.0), "aboba": (2, 0.0), "obabo": (2, 1 / 4), "oabao": (2, -1 / 4)}
"""Order q and factor a of k var - 1 = a (k h^q) on U = k x^2 / 2. Source: leimkuhler2013rational, table 1."""


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("curvature", [1.0, 4.0])
def test_the_variance_on_a_gaussian_has_the_leading_term_of_its_closed_form(name, curvature):
    found = leading_term(Subject(sampler_row(name)))
    claims = sampler_row(name).build(target("gaussian-1d-scaled")).claims
    values, order = claims[StationaryMoments].values, float(found.order)
    error = lambda h: (curvature * values(h, curvature)["position"] / found.temperature - 1) / h**order
    h = 0.02
    # the next power of h is h or h^2: the last extrapolation is better than the one before by a power of h
    once = lambda h: 2 * error(h / 2) - error(h)
    limit, gap = (4 * once(h / 2) - once(h)) / 3, abs(once(h / 2) - once(h))
    roundoff = 1e4 * np.finfo(float).eps / (h / 4) ** order
    assert abs(found.of_variance(curvature) - limit) <= gap + roundoff
    assert gap <= 0.02 * curvature + roundoff  # so that another factor does not pass


@pytest.mark.parametrize("name", KNOWN)
def test_orders_and_factors_are_those_of_the_literature(name):
    order, factor = KNOWN[name]
    found = leading_term(Subject(sampler_row(name)))
    assert found.order == Fraction(order)
    for curvature in (0.5, 1.0, 9.0):
        assert found.of_variance(curvature) == pytest.approx(factor * curvature, rel=1e-9, abs=1e-12)


def _limit_of_bias(law, f, h):
    """(E_pi_h f - E_pi f) / h of SGLD as h -> 0, from the stationary vector of its kernel on a grid."""
    low, high = law.interval
    x = np.linspace(low - 0.5, high + 0.5, 1201)
    potential = np.asarray(jax.vmap(law.flat_potential)(x[:, None]))
    slope = np.asarray(jax.vmap(jax.grad(law.flat_potential))(x[:, None]))[:, 0]
    pi = np.exp(-(potential - potential.min()))
    exact = (pi @ f(x)) / pi.sum()
    biases = []
    for size in (h, h / 2, h / 4):
        kernel = np.exp(-((x[None, :] - (x - size * slope)[:, None]) ** 2) / (4 * size))
        kernel /= kernel.sum(axis=1, keepdims=True)
        equations = np.vstack([kernel.T - np.eye(len(x)), np.ones(len(x))])[1:]  # one of them follows from the others
        stationary = np.linalg.solve(equations, np.eye(len(x))[-1])
        biases.append((stationary @ f(x) - exact) / size)
    once = [2 * b - a for a, b in pairwise(biases)]
    return (4 * once[1] - once[0]) / 3, abs(once[1] - once[0])


@pytest.mark.parametrize("name", ["anharmonic", "double-well"])
def test_the_bias_on_a_line_is_that_of_the_computed_law(name):
    law, f = target(name), lambda x: x**2
    found = leading_term(Subject(sampler_row("sgld"))).on_line(law, f)
    limit, gap = _limit_of_bias(law, f, 0.02 / law.curvature)
    assert abs(found - limit) <= gap
    assert gap <= 0.1 * abs(found)  # so that a factor 2 does not pass


def test_another_coefficient_gives_another_bias():
    found = leading_term(Subject(sampler_row("obabo")))
    doubled = replace(found, weight=found.weight.scaled(2))
    assert doubled.of_variance(1.0) == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["mala", "hmc", "svgd", "csgld-kept"])
def test_kernels_without_a_power_of_the_step_size_have_no_leading_term(name):
    with pytest.raises(NotApplicable):
        leading_term(Subject(sampler_row(name)))


def test_a_thermostat_has_an_order_but_no_closed_variance():
    found = leading_term(Subject(sampler_row("sgnht")))
    assert found.order == 1
    with pytest.raises(NotApplicable, match="more than a position and a momentum"):
        found.of_variance(1.0)
