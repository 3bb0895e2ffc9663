"""Densities of posteriordb's models: bijections, log densities and gradients against SciPy, on data made up here."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from sgmcmc_verification.targets.datasets.files import DataError
from sgmcmc_verification.targets.posteriordb.bijections import Identity, Ordered, Positive, UnitInterval
from sgmcmc_verification.targets.posteriordb.files import Fields
from sgmcmc_verification.targets.posteriordb.model import Parameter
from sgmcmc_verification.targets.posteriordb.priors import half_cauchy
from sgmcmc_verification.targets.posteriordb.registry import MODELS
from tests.helpers.posteriordb_examples import data, log_density

EPS = np.finfo(np.float64).eps
NAMES = [row.name for row in MODELS]
BIJECTIONS = [Identity(), Positive(), UnitInterval(), Ordered()]


@functools.cache
def model(name):
    return {row.name: row.build for row in MODELS}[name](data(name))


@functools.cache
def value_and_gradient(name):
    return jax.jit(jax.value_and_grad(model(name).potential))


def points(name, n=4):
    return np.random.RandomState(1).standard_normal((n, model(name).dim))


@pytest.mark.parametrize("bijection", BIJECTIONS, ids=lambda b: type(b).__name__)
def test_a_bijection_is_inverted_and_its_log_jacobian_is_that_of_its_derivative(bijection):
    for x in np.random.RandomState(2).standard_normal((5, 3)) * 2:
        y = bijection.forward(jnp.asarray(x))
        # the largest condition is that of log(diff(y)) at entries of size e^6
        np.testing.assert_allclose(bijection.inverse(y), x, rtol=0, atol=64 * EPS * np.exp(6))
        jacobian = np.asarray(jax.jacfwd(bijection.forward)(jnp.asarray(x)))
        assert abs(np.linalg.slogdet(jacobian)[1] - float(bijection.log_jacobian(jnp.asarray(x)))) < 64 * EPS * 6


@pytest.mark.parametrize(
    ("bijection", "density"),
    [(Positive(), stats.gamma(2.5).pdf), (UnitInterval(), stats.beta(2, 5).pdf), (Identity(), stats.norm(1, 2).pdf)],
    ids=["Positive", "UnitInterval", "Identity"],
)
def test_a_density_keeps_its_mass_in_the_unconstrained_coordinate(bijection, density):
    def transformed(x):
        y = jnp.asarray([x])
        return float(density(bijection.forward(y)[0]) * jnp.exp(bijection.log_jacobian(y)))

    mass, error = integrate.quad(transformed, -40, 40, points=[-2, 0, 2], limit=200)
    assert error < 1e-7
    assert abs(mass - 1) <= error + 64 * EPS


def test_an_ordered_pair_keeps_the_mass_of_its_density_in_the_unconstrained_coordinates():
    # two normal numbers in order have density 2 phi(y_1) phi(y_2); trapezoids converge geometrically
    grid = np.linspace(-9, 9, 181)
    first, second = np.meshgrid(grid, np.linspace(-30, 4, 341), indexing="ij")
    x = jnp.asarray(np.stack([first.ravel(), second.ravel()], axis=1))
    y, log_jacobian = jax.vmap(lambda x: (Ordered().forward(x), Ordered().log_jacobian(x)))(x)
    mass = 2 * np.sum(stats.norm.pdf(np.asarray(y)).prod(axis=1) * np.exp(np.asarray(log_jacobian))) * 0.1**2
    assert np.all(np.diff(np.asarray(y)) >= 0)
    # the mass below x_2 = -30 is less than e^-30
    assert abs(mass - 1) < np.exp(-30) + 64 * EPS


def oracle(name, x):
    """Log density at an unconstrained position by SciPy, and the sum of the sizes of what it adds up."""
    law, values, start, log_jacobian = model(name), {}, 0, 0.0
    for key, parameter in law.parameters.items():
        block = x[start : start + parameter.size]
        start += parameter.size
        kind = type(parameter.bijection)
        if kind is Positive:
            y, change = np.exp(block), block.sum()
        elif kind is UnitInterval:
            y = 1 / (1 + np.exp(-block))
            change = np.log(y * (1 - y)).sum()
        elif kind is Ordered:
            y, change = np.array([block[0], block[0] + np.exp(block[1])]), block[1]
        else:
            y, change = block, 0.0
        values[key] = y.reshape(parameter.shape) if parameter.shape else float(y[0])
        log_jacobian += change
    prior, likelihood = log_density(name, data(name).values, values)
    return prior + likelihood + log_jacobian, abs(prior) + abs(likelihood) + abs(log_jacobian)


@pytest.mark.parametrize("name", NAMES)
def test_the_log_density_is_that_of_scipy_constants_included(name):
    for x in points(name):
        value, size = oracle(name, x)
        assert abs(-float(value_and_gradient(name)(jnp.asarray(x))[0]) - value) < 64 * EPS * (1 + size)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_differences_of_the_scipy_density(name):
    for x in points(name, 2):
        found = -np.asarray(value_and_gradient(name)(jnp.asarray(x))[1])
        assert np.all(np.isfinite(found))
        h = 2e-3
        for i, unit in enumerate(np.eye(len(x))):
            change = lambda s, e=unit, x=x: oracle(name, x + s * e)[0] - oracle(name, x - s * e)[0]
            coarse, middle, fine = (change(s) / (2 * s) for s in (h, h / 2, h / 4))
            once = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
            twice = (16 * once[1] - once[0]) / 15
            # what is left of an extrapolated difference is below the last correction; plus round-off over the step
            bound = abs(twice - once[1]) + 64 * EPS * (1 + oracle(name, x)[1]) / (h / 4)
            assert abs(found[i] - twice) <= bound


@pytest.mark.parametrize("name", NAMES)
def test_the_sum_over_data_is_the_potential(name):
    law = model(name)
    x = jnp.asarray(points(name)[0])
    size = {len(leaf) for leaf in jax.tree.leaves(law.data)}.pop()
    datum = jax.jit(law.datum)
    parts = [float(datum(x, jax.tree.map(lambda a, i=i: a[i], law.data))) for i in range(size)]
    total = float(law.prior(x)) + sum(parts)
    assert abs(float(value_and_gradient(name)(x)[0]) - total) < 64 * EPS * (1 + np.abs(parts).sum())


@pytest.mark.parametrize("name", NAMES)
def test_a_float32_position_stays_float32_under_strict_promotion(name):
    law = model(name)
    x = jnp.zeros(law.dim, jnp.float32)
    row = jax.tree.map(lambda a: a[0], law.data)
    functions = [law.potential, law.prior, lambda x: law.datum(x, row)]
    reported = lambda x: law.quantities(law.constrain(x))
    functions += [lambda x, key=key: jnp.sum(reported(x)[key]) for key in jax.eval_shape(reported, x)]
    with jax.numpy_dtype_promotion("strict"):
        for function in functions:
            assert jax.eval_shape(jax.grad(function), x).dtype == jnp.float32


@pytest.mark.parametrize("name", NAMES)
def test_quantities_and_parameters_are_inverse_to_each_other(name):
    law = model(name)
    for x in points(name):
        back = law.unconstrain(law.parameters_of(law.quantities(law.constrain(jnp.asarray(x)))))
        np.testing.assert_allclose(back, x, rtol=0, atol=256 * EPS * np.exp(np.abs(x).max()) ** 2)


def without_jacobian(law):
    class Bare(type(law)):
        def log_jacobian(self, position):
            return jnp.zeros((), position.dtype)

    return Bare(**{f.name: getattr(law, f.name) for f in dataclasses.fields(law)})


PLANTED = {
    "no Jacobian": (NAMES, without_jacobian),
    "a scale of 25 for 2.5": (
        ["kidscore_momiq", "arK"],
        lambda law: dataclasses.replace(
            law,
            log_prior=lambda v: law.log_prior(v) - half_cauchy(v["sigma"], 2.5) + half_cauchy(v["sigma"], 25.0),
        ),
    ),
    "a Cauchy law on the line for half of it": (
        ["kidscore_interaction"],
        lambda law: dataclasses.replace(law, log_prior=lambda v: law.log_prior(v) - jnp.log(2.0)),
    ),
    "precisions for scales": (
        ["blr"],
        lambda law: dataclasses.replace(
            law, log_likelihood=lambda v, r: law.log_likelihood({**v, "sigma": 1 / v["sigma"]}, r)
        ),
    ),
    "weights exchanged": (
        ["low_dim_gauss_mix"],
        lambda law: dataclasses.replace(
            law, log_likelihood=lambda v, r: law.log_likelihood({**v, "theta": 1 - v["theta"]}, r)
        ),
    ),
    "an unordered pair": (
        ["low_dim_gauss_mix"],
        lambda law: dataclasses.replace(law, parameters={**law.parameters, "mu": Parameter(Identity(), (2,))}),
    ),
}


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_seen_by_the_comparison_with_scipy(error):
    names, plant = PLANTED[error]
    for name in names:
        wrong = plant(model(name))

        x = points(name)[0]
        value, size = oracle(name, x)
        assert abs(-float(jax.jit(wrong.potential)(jnp.asarray(x))) - value) > 1e6 * 64 * EPS * (1 + size)


@pytest.mark.parametrize(
    ("name", "key", "value", "problem"),
    [
        ("blr", "y", None, "is missing"),
        ("blr", "X", [[1.0, 2.0]] * 6, r"shape \(7, 2\), got \(6, 2\)"),
        ("blr", "X", [[1.0, 2.0]] * 6 + [[1.0]], "must be numbers"),
        ("blr", "N", 7.5, "positive integer"),
        ("blr", "y", [float("nan")] * 7, "must be finite"),
        ("blr", "y", ["1"] * 6 + ["x"], "must be numbers"),
        ("blr", "y", "seven", "must not be 'seven'"),
        ("kilpisjarvi", "psbeta", 0.0, "must be positive"),
        ("arK", "T", 2, "must be above K = 2"),
        ("logearn_interaction", "earn", [1.0] * 10 + [0.0], "must be positive"),
        ("eight_schools_centered", "sigma", [1.0, 2.0, 0.0], "must be positive"),
    ],
)
def test_data_that_do_not_fit_the_model_are_refused_with_file_and_field(name, key, value, problem):
    values = {k: v for k, v in data(name).values.items() if k != key}
    if value is not None:
        values[key] = value
    build = {row.name: row.build for row in MODELS}[name]
    with pytest.raises(DataError, match=rf"^data/toy\.json\.zip: {key}: .*{problem}.*; replace the file"):
        build(Fields("data/toy.json.zip", values))
