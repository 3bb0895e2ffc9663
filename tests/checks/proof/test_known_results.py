"""Steps whose defects are known: the first coefficient that is not zero is derived here by hand or by SymPy."""

import jax
import jax.numpy as jnp
import pytest
import sympy as sp

from sgmcmc_verification.checks.proof.expansion import expand
from sgmcmc_verification.checks.proof.potential import any_target, uninterpreted
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.statements.orders import invariant_coefficients
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.checks.proof.oracle import to_sympy

x = sp.Symbol("x", real=True)
U, M, V = (sp.Function(name)(x) for name in "UMV")


def gradient(estimator, position):
    return estimator.estimate(jax.random.key(0), (), position)[0].gradient


def normal(key, like):
    return jax.random.normal(key, like.shape, like.dtype)


def coefficients(step, order, dimension=1):
    """c_1/2, c_1, .. of a step on a position."""
    target = any_target(dimension)
    expansion = expand(simple_sampler(step), target, Exact(target), 2 * order)
    (region,) = expansion.regions
    return invariant_coefficients(expansion, region)


def assert_equal(polynomial, expression):
    assert sp.simplify(sp.expand(to_sympy(polynomial) - expression.doit())) == 0


def sgld(key, position, h, estimator):
    return position - h * gradient(estimator, position) + jnp.sqrt(2 * h) * normal(key, position)


def test_sgld_has_the_defect_of_euler():
    c = coefficients(sgld, 2)
    assert not c[0]
    assert not c[1]
    assert not c[2]
    d = [sp.diff(U, x, k) for k in range(5)]
    assert_equal(c[3], (d[1] ** 2 * d[2] - 2 * d[1] * d[3] - d[2] ** 2 + d[4]) / 2)


def test_noise_of_half_the_variance_shows_at_first_order():
    c = coefficients(lambda key, y, h, estimator: y - h * gradient(estimator, y) + jnp.sqrt(h) * normal(key, y), 1)
    assert_equal(c[1], (sp.diff(U, x, 2) - sp.diff(U, x) ** 2) / 2)


def test_explicit_midpoint_is_of_order_one_with_a_defect_that_is_zero_on_gaussians():
    def midpoint(key, y, h, estimator):
        noise = jnp.sqrt(2 * h) * normal(key, y)
        half = y - h / 2 * gradient(estimator, y) + noise / 2
        return y - h * gradient(estimator, half) + noise

    c = coefficients(midpoint, 2)
    assert not c[1]
    assert_equal(c[3], (sp.diff(U, x) * sp.diff(U, x, 3) - sp.diff(U, x, 4)) / 4)


def test_one_draw_for_two_coordinates_correlates_them():
    c = coefficients(
        lambda key, y, h, estimator: y - h * gradient(estimator, y) + jnp.sqrt(2 * h) * jax.random.normal(key), 1, 2
    )
    x1, x2 = sp.symbols("x1 x2", real=True)
    u = sp.Function("U")(x1, x2)
    assert_equal(c[1], 2 * (sp.diff(u, x1) * sp.diff(u, x2) - sp.diff(u, x1, x2)))


def test_a_metric_without_its_divergence_leaves_the_divergence():
    metric = lambda y: uninterpreted(y, "M")

    def step(key, y, h, estimator):
        return y - h * metric(y) * gradient(estimator, y) + jnp.sqrt(2 * h * metric(y)) * normal(key, y)

    c = coefficients(step, 1)
    assert_equal(c[1], sp.diff(M, x, 2) - sp.diff(M, x) * sp.diff(U, x))


def test_a_metric_with_its_divergence_is_proved():
    metric = lambda y: uninterpreted(y, "M")

    def step(key, y, h, estimator):
        drift = -metric(y) * gradient(estimator, y) + jax.grad(metric)(y)
        return y + h * drift + jnp.sqrt(2 * h * metric(y)) * normal(key, y)

    c = coefficients(step, 1)
    assert not c[1]


def test_gradient_noise_of_any_variance_adds_its_own_terms_at_second_order():
    def step(key, y, h, estimator):
        own, other = jax.random.split(key)
        noisy = gradient(estimator, y) + jnp.sqrt(uninterpreted(y, "V")) * normal(other, y)
        return y - h * noisy + jnp.sqrt(2 * h) * normal(own, y)

    c, plain = coefficients(step, 2), coefficients(sgld, 2)
    assert not c[1]
    d = sp.diff
    want = (V * d(U, x) ** 2 - V * d(U, x, 2) - 2 * d(U, x) * d(V, x) + d(V, x, 2)) / 2
    assert sp.simplify(sp.expand(to_sympy(c[3]) - to_sympy(plain[3]) - want)) == 0


def test_skewed_noise_is_right_in_the_limit_only():
    def step(key, y, h, estimator):
        skewed = jax.random.exponential(key, y.shape, y.dtype) - 1
        return y - h * gradient(estimator, y) + jnp.sqrt(2 * h) * skewed

    c = coefficients(step, 2)
    assert not c[1]
    assert c[2]
    proof = prove(simple_sampler(step), 1)
    assert proof.verdict == "fail"
    assert "right in the limit" in proof.reason


@pytest.mark.parametrize("name", ["baoab", "aboba", "obabo", "oabao", "ubu", "bub", "sgnht-splitting", "badodab"])
def test_splittings_are_of_order_two(name):
    row = sampler_row(name)
    proof = prove(row.build, 1, row.estimator)
    assert proof.verdict == "pass", str(proof)
    assert {"invariant order 2", "weak order 2"} <= {result.statement for result in proof.results}


def test_leimkuhler_matthews_has_order_two_of_the_position_and_one_of_its_hidden_variable():
    row = sampler_row("leimkuhler-matthews")
    assert prove(row.build, 2, row.estimator).is_proved
    target = any_target(1)
    sampler = row.build(target)
    expansion = expand(sampler, target, Exact(target), 5, sampler.claims[Diffusion].dynamics(target))
    (region,) = expansion.regions
    assert region.readout is not None
    hidden = type(region)(region.conditions, region.moments, region.density, region.recipe, None)
    assert not invariant_coefficients(expansion, region)[3]
    assert invariant_coefficients(expansion, hidden)[3]  # not of order two without the noise of the readout


@pytest.mark.parametrize("name", ["mala", "hmc"])
@pytest.mark.parametrize("dimension", [1, 2])
def test_metropolis_kernels_are_balanced_at_every_step_size(name, dimension):
    row = sampler_row(name)
    proof = prove(row.build, dimension, row.estimator)
    assert proof.verdict == "pass", str(proof)


def test_thermostat_that_is_driven_by_twice_the_temperature_is_wrong():
    """c_1 = A - q in one dimension, where q is driven by p^2 - 2."""
    row = sampler_row("sgnht")

    class Wrong:
        def __init__(self, target):
            self.right = row.build(target)
            self.backend, self.needs, self.claims = "jax", self.right.needs, self.right.claims
            self.init, self.pack = self.right.init, self.right.pack
            self.position, self.unpack = self.right.position, self.right.unpack

        def step(self, key, state, h, estimator):
            new = self.right.step(key, state, h, estimator)
            fields = dict(zip(new._fields, new, strict=True))
            name = next(k for k in new._fields if k in ("xi", "thermostat", "friction"))
            return new._replace(**{name: fields[name] - h})

    proof = prove(Wrong, 1)
    assert proof.verdict == "fail", str(proof)
    assert "c_1 is not zero" in proof.reason


def test_a_declared_law_of_another_temperature_is_found():
    """The step and its equation agree with each other, and not with exp(-U)."""
    from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics

    def step(key, y, h, estimator):
        return y - h * gradient(estimator, y) + jnp.sqrt(h) * normal(key, y)

    dynamics = lambda target: overdamped_dynamics(target, 0.5)
    claims = Claims(Source("", "none"), StationaryLaw(order=1), Diffusion(dynamics, weak_order=1))
    proof = prove(simple_sampler(step, claims=claims), 1)
    assert proof.verdict == "fail"
    assert "law of the position" in proof.reason
