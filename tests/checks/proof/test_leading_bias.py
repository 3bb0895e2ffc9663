"""The leading term of the bias, read from a program, is that of closed forms and of the computed law."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotApplicable
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import position_rule
from sgmcmc_verification.checks.exact_laws.transfer_operator import auxiliary_spread, discrete_law, require_grid
from sgmcmc_verification.checks.proof.leading_bias import leading_term
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw, StationaryMoments
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.registry import target

CLOSED = (
    *("sgld", "sgld-compensated", "psgld-frozen"),
    *("sghmc", "sghmc-explicit", "sghmc-symmetric", "sggmc", "baoab", "aboba", "obabo", "oabao", "ubu", "bub"),
)
"""Rows that claim the closed form of their law on U = k x^2 / 2."""
KNOWN = {"sgld": (1, 1 / 2), "baoab": (2, 0.0), "aboba": (2, 0.0), "obabo": (2, 1 / 4), "oabao": (2, -1 / 4)}
"""Order q and factor a of k var - 1 = a (k h^q) on U = k x^2 / 2. Source: leimkuhler2013rational, table 1."""


def of_variance(found, curvature):
    """The relative error of the variance on U = k x^2 / 2 over h^q, and the error of its projection."""
    value, error = found.bias(gaussian([0.0], [[1 / curvature]], "a line"), lambda x: x**2)
    return value * curvature / found.temperature, error


@pytest.mark.parametrize("name", ["saga-ld", "sgld-cv"])
def test_methods_for_sums_over_data_have_the_leading_term_of_sgld_at_the_exact_gradient(name):
    """They are not made for a line without data: the polynomials are compared."""
    assert str(leading_term(Subject(sampler_row(name))).weight) == str(
        leading_term(Subject(sampler_row("sgld"))).weight
    )


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("curvature", [1.0, 4.0])
def test_the_variance_on_a_gaussian_has_the_leading_term_of_its_closed_form(name, curvature):
    found = leading_term(Subject(sampler_row(name)))
    claims = sampler_row(name).build(target("gaussian-1d-scaled")).claims
    values, order = claims[StationaryMoments].values, float(found.order)
    relative, projection = of_variance(found, curvature)
    error = lambda h: (curvature * values(h, curvature)["position"] / found.temperature - 1) / h**order
    h = 0.02
    # the next power of h is h or h^2: the last extrapolation is better than the one before by a power of h
    once = lambda h: 2 * error(h / 2) - error(h)
    limit, gap = (4 * once(h / 2) - once(h)) / 3, abs(once(h / 2) - once(h))
    roundoff = 1e4 * np.finfo(float).eps / (h / 4) ** order
    assert projection < 1e-9
    assert abs(relative - limit) <= gap + roundoff
    assert gap <= 0.02 * curvature + roundoff  # so that another factor does not pass


@pytest.mark.parametrize("name", KNOWN)
def test_orders_and_factors_are_those_of_the_literature(name):
    order, factor = KNOWN[name]
    found = leading_term(Subject(sampler_row(name)))
    assert found.order == Fraction(order)
    for curvature in (0.5, 1.0, 9.0):
        assert of_variance(found, curvature)[0] == pytest.approx(factor * curvature, rel=1e-9, abs=1e-12)


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
    found, projection = leading_term(Subject(sampler_row("sgld"))).bias(law, f)
    limit, gap = _limit_of_bias(law, f, 0.02 / law.curvature)
    assert projection < 1e-9
    assert abs(found - limit) <= gap
    assert gap <= 0.1 * abs(found)  # so that a factor 2 does not pass


def test_another_coefficient_gives_another_bias():
    found = leading_term(Subject(sampler_row("obabo")))
    doubled = replace(found, weight=found.weight.scaled(2))
    assert of_variance(doubled, 1.0)[0] == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["mala", "hmc", "svgd", "csgld-kept"])
def test_kernels_without_a_power_of_the_step_size_have_no_leading_term(name):
    with pytest.raises(NotApplicable):
        leading_term(Subject(sampler_row(name)))


@pytest.mark.parametrize(("name", "size"), [("obabo", 0.2), ("sghmc-explicit", 0.02)])
def test_the_bias_with_a_momentum_on_a_line_is_that_of_the_transfer_operator(name, size):
    subject, law = Subject(sampler_row(name)), target("anharmonic")
    found = leading_term(subject)
    value, projection = found.bias(law, lambda x: x**2)
    points, weights = position_rule(law)
    step, exact = require_grid(step_map(subject, law)), weights @ points[:, 0] ** 2
    spread, order = auxiliary_spread(step), float(found.order)
    on_grid = lambda h: discrete_law(step, h, 1.0, (96, 80), spread).expectations[1]
    # the next power of h is h^2 of the symmetric scheme, and h of the other one
    first, second = ((on_grid(h) - exact) / h**order for h in (size, size / 2))
    limit = second + (second - first) / (2**order - 1)
    assert projection < 1e-4 * abs(value)
    assert value == pytest.approx(limit, rel=0.03)


def _variance_of_a_thermostat(h, degree):
    """The variance under the stationary law of SGNHT on U = x^2 / 2: its transfer operator on polynomials."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(degree + 8)
    z = np.array(list(product(nodes, repeat=3)))
    w = np.prod(list(product(weights / weights.sum(), repeat=3)), axis=1)
    powers = [k for k in product(range(degree + 1), repeat=3) if sum(k) <= degree]
    hermite = np.polynomial.hermite_e.hermevander
    scale = np.array([1 / np.sqrt(np.prod([math.factorial(i) for i in k])) for k in powers])

    def basis(x, r, y):  # y = xi - 1 is N(0, 1) under the law of the diffusion
        tables = [hermite(each, degree) for each in (x, r, y)]
        return np.prod([table[:, [k[i] for k in powers]] for i, table in enumerate(tables)], axis=0) * scale

    x, r, y = z.T
    pushed = 0.0
    for noise, share in zip(nodes, weights / weights.sum(), strict=True):
        new = r - h * x - h * (1 + y) * r + np.sqrt(2 * h) * noise
        pushed = pushed + share * basis(x + h * new, new, y + h * (new**2 - 1))
    matrix = (w[:, None] * basis(x, r, y)).T @ pushed
    law = np.linalg.lstsq((matrix - np.eye(len(powers))).T[1:, 1:], -matrix[0, 1:], rcond=None)[0]
    return 1 + np.sqrt(2) * law[powers.index((2, 0, 0)) - 1]


def test_the_bias_of_a_thermostat_is_that_of_its_computed_law():
    found = leading_term(Subject(sampler_row("sgnht")))
    value, projection = of_variance(found, 1.0)
    limits = []
    for degree in (8, 10):
        first, second, third = ((_variance_of_a_thermostat(h, degree) - 1) / h for h in (0.1, 0.05, 0.025))
        limits.append((8 * third - 6 * second + first) / 3)
    assert found.order == 1
    assert projection < 2e-3 * abs(value)
    assert abs(limits[1] - limits[0]) < 0.01 * abs(value)
    assert value == pytest.approx(limits[1], rel=0.01)


def _relativistic(key, state, h, estimator):
    """SGHMC with K(p) = sqrt(1 + p^2): velocity and friction K'(p)."""
    x, p = state
    gradient, speed = estimator.estimate(key, (), x)[0].gradient, lambda p: p / jnp.sqrt(1 + p**2)
    p = p - h * (gradient + speed(p)) + jnp.sqrt(2 * h) * jax.random.normal(key, p.shape, p.dtype)
    return x + h * speed(p), p


def test_an_auxiliary_variable_that_is_not_normal_has_an_order_and_no_bias():
    dynamics = lambda target: Dynamics(
        H=lambda z: target.flat_potential(z[:1]) + jnp.sqrt(1 + z[1] ** 2),
        D=lambda z: jnp.diag(jnp.array([0.0, 1.0])),
        Q=lambda z: jnp.array([[0.0, -1.0], [1.0, 0.0]]),
        names=("theta[0]", "r[0]"),
        size=1,
    )
    sampler = simple_sampler(
        _relativistic,
        init=lambda key, x, estimator: (x, jnp.zeros_like(x)),
        position=lambda state: state[0],
        unpack=lambda state: state,
        pack=lambda key, z, estimator: z,
        claims=Claims(Source("", "none"), StationaryLaw(order=1), Diffusion(dynamics, weak_order=1)),
    )
    (subject, *_) = resolve_object("mine", sampler)
    found = leading_term(subject)
    assert found.order == 1
    with pytest.raises(NotApplicable, match="Gaussian law"):
        of_variance(found, 1.0)


def test_a_sampler_that_is_another_one_on_the_target_has_no_bias_there():
    """`psgld-gamma` makes a constant of its preconditioner from the curvature of its target, 1 in a proof."""
    found, square = leading_term(Subject(sampler_row("psgld-gamma"))), lambda x: x**2
    with pytest.raises(NotApplicable, match="another one on this target"):
        found.bias(target("anharmonic"), square)


def test_a_step_of_the_order_of_another_power_of_h_has_no_bias():
    """One leapfrog step from a fresh momentum, too hot: the time of a step is h^2 / 2."""

    @simple_sampler
    def refreshed(key, x, h, estimator):
        p = jax.random.normal(key, x.shape, x.dtype) - h / 2 * estimator.estimate(key, (), x)[0].gradient
        return x + 1.2 * h * p

    (subject, *_) = resolve_object("mine", refreshed)
    found = leading_term(subject)
    with pytest.raises(NotApplicable, match="no generator at the order of h"):
        found.bias(target("anharmonic"), np.square)
