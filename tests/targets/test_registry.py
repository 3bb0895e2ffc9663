"""Targets: registry, structure, precision, bad input; Gaussian precision, sums over data, curvature, intervals."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from sgmcmc_verification.targets.directional.von_mises_fisher import von_mises_fisher
from sgmcmc_verification.targets.euclidean.funnel import funnel
from sgmcmc_verification.targets.euclidean.gaussian import LISTED, gaussian
from sgmcmc_verification.targets.euclidean.gaussian_mixture import gaussian_mixture
from sgmcmc_verification.targets.euclidean.student_t import student_t
from sgmcmc_verification.targets.positive.gamma import gamma
from sgmcmc_verification.targets.positive.log_normal import log_normal
from sgmcmc_verification.targets.registry import TARGETS, target

EPS = np.finfo(np.float64).eps
NAMES = [row.name for row in TARGETS]
WITH_TERMS = ("tiny-gaussian-data", "tiny-regression", "tiny-logistic")
WITH_TERMS += ("circle-posterior-mean-e1", "circle-posterior-pair-e2")
ON_MANIFOLDS = ("uniform", "vmf", "bingham", "matrix-langevin", "circle-posterior", "dirichlet")
"""Beginnings of the names of laws with more coordinates than dimensions."""
FLAT = [name for name in NAMES if not name.startswith(ON_MANIFOLDS)]
GAUSSIANS = [name for name in NAMES if name.startswith("gaussian") and "mixture" not in name]
GAUSSIANS += ["tiny-gaussian-data", "tiny-regression"]


def test_names_are_unique_and_lookup_is_cached():
    assert len(set(NAMES)) == len(NAMES)
    for row in TARGETS:
        assert target(row.name).name == row.name
        assert target(row.name) is target(row.name)


def test_an_unknown_name_is_refused_with_the_closest_and_all_known_names():
    with pytest.raises(ValueError, match=r"^name: no target 'doble-well'; did you mean 'double-well'\?") as error:
        target("doble-well")
    assert all(name in str(error.value) for name in NAMES)
    with pytest.raises(ValueError, match=r"^name: no target '#'") as error:
        target("#")
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_samples_look_like_the_example_and_lie_on_the_manifold(name):
    law = target(name)
    assert bool(law.manifold.contains(law.example))
    shapes = jax.eval_shape(lambda key: law.sample(key, 4), jax.random.key(0))
    for leaf, drawn in zip(jax.tree.leaves(law.example), jax.tree.leaves(shapes), strict=True):
        assert drawn.shape == (4, *leaf.shape)
        assert drawn.dtype == leaf.dtype == jnp.float64
    assert jax.tree.structure(shapes) == jax.tree.structure(law.example)
    assert law.moments
    assert law.source
    assert 0 < law.curvature < np.inf
    if law.quadrature is not None:
        points, weights = law.quadrature(5)
        assert points.shape == (len(weights), law.size)
        assert abs(weights.sum() - 1) <= len(weights) * EPS
        assert weights.min() >= 0


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_stays_single_under_strict_promotion(name):
    law = target(name)
    position = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), law.example)
    statistics = [moment.function for moment in law.moments.values()] + [cdf.function for cdf in law.cdfs.values()]
    with jax.numpy_dtype_promotion("strict"):
        for function in (law.potential, jax.grad(law.potential), *statistics):
            assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(jax.eval_shape(function, position)))


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("uniform")])
def test_the_example_is_not_a_stationary_point(name):
    law = target(name)
    tangent = law.manifold.tangent(law.example, jax.grad(law.potential)(law.example))
    assert float(jnp.max(jnp.abs(law.ravel(tangent)))) > 0.05


@pytest.mark.parametrize("name", GAUSSIANS)
def test_the_gaussian_precision_is_the_hessian_and_the_mean_is_stationary(name):
    law = target(name)
    mean, precision = law.gaussian
    scale = np.max(np.abs(precision))
    for point in (mean, mean + 1.5):
        hessian = jax.hessian(law.flat_potential)(jnp.asarray(point))
        np.testing.assert_allclose(hessian, precision, rtol=0, atol=32 * law.size * EPS * scale)
    gradient = jax.grad(law.flat_potential)(jnp.asarray(mean))
    assert np.max(np.abs(gradient)) <= 64 * law.size * EPS * scale * (1 + np.max(np.abs(mean)))


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_moments_follow_from_the_hessian(name):
    law = target(name)
    mean = law.gaussian.mean
    covariance = np.linalg.inv(jax.hessian(law.flat_potential)(jnp.asarray(mean)))
    condition = np.linalg.cond(covariance)
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()
    seen = set()
    for i in range(min(law.size, LISTED)):
        line = mean[i] + np.sqrt(covariance[i, i]) * nodes
        for name, power in ((f"theta[{i}]", 1), (f"theta[{i}]^2", 2), (f"theta[{i}]^4", 4)):
            bound = 64 * EPS * condition * (weights @ np.abs(line) ** power)
            assert abs(law.moments[name].value - weights @ line**power) <= bound
            seen.add(name)
        for j in range(i):
            name = f"theta[{j}]*theta[{i}]"
            bound = 64 * EPS * condition * (abs(mean[i] * mean[j]) + np.sqrt(covariance[i, i] * covariance[j, j]))
            assert abs(law.moments[name].value - (mean[i] * mean[j] + covariance[i, j])) <= bound
            seen.add(name)
    assert seen == set(law.moments)


def test_the_pytree_target_has_two_leaves_of_equal_shape_and_is_jointly_correlated():
    law = target("gaussian-pytree")
    assert [leaf.shape for leaf in jax.tree.leaves(law.example)] == [(), (2,), (2,)]
    covariance = np.linalg.inv(law.gaussian.precision)
    assert abs(covariance[1, 3]) > 0.1  # left[0] with right[0]: one key for both leaves would give a correlation of 1
    assert abs(covariance[0, 1]) > 0.1


def test_the_lists_of_laws_are_complete():
    """They are written down so that no law is built before a test asks for it."""
    assert set(WITH_TERMS) == {name for name in NAMES if target(name).terms is not None}
    assert set(FLAT) == {name for name in NAMES if target(name).manifold.dim == target(name).size}


@pytest.mark.parametrize("name", WITH_TERMS)
def test_the_terms_sum_to_the_potential(name):
    law = target(name)
    terms = law.terms
    assert {len(leaf) for leaf in jax.tree.leaves(terms.data)} == {terms.size}

    def total(x):
        records = (jax.tree.map(lambda leaf, i=i: leaf[i], terms.data) for i in range(terms.size))
        return terms.prior(x) + sum(terms.datum(x, record) for record in records)

    points = [law.unravel(p) for p in np.random.default_rng(3).normal(size=(3, law.size))]
    differences = [float(law.potential(x) - total(x)) for x in points]
    assert np.ptp(differences) <= 32 * EPS * max(abs(float(total(x))) for x in points)


def test_the_logistic_potential_is_the_textbook_one():
    from sgmcmc_verification.targets.euclidean.enumerable_data import (
        LOGISTIC_FEATURES,
        LOGISTIC_LABELS,
        LOGISTIC_PRIOR_VARIANCE,
    )

    law = target("tiny-logistic")

    def reference(x):
        with mpmath.workdps(30):
            value = sum(mpmath.mpf(c) ** 2 for c in x) / (2 * mpmath.mpf(LOGISTIC_PRIOR_VARIANCE))
            for z, s in zip(LOGISTIC_FEATURES.tolist(), LOGISTIC_LABELS.tolist(), strict=True):
                logit = sum(mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(z, x, strict=True))
                value -= mpmath.log(1 / (1 + mpmath.exp(-s * logit)))
            return float(value)

    for x in ([0.0, 0.0], [1.5, -0.7], [30.0, -40.0]):
        assert abs(float(law.potential(jnp.array(x))) - reference(x)) <= 16 * EPS * reference(x)


@pytest.mark.parametrize("name", FLAT)
def test_the_curvature_bounds_the_hessian_on_nearly_all_of_the_mass(name):
    law = target(name)
    draws = np.asarray(jax.vmap(law.ravel)(law.sample(jax.random.key(11), 2000)))
    top = np.linalg.eigvalsh(jax.jit(jax.vmap(jax.hessian(law.flat_potential)))(draws))[:, -1]
    above = int(np.sum(top > law.curvature * (1 + 64 * EPS * law.size)))
    # at most 1.1 % of the mass above: a binomial(2000, 0.011) exceeds 50 with probability 3e-7
    assert above <= 50


@pytest.mark.parametrize(("order", "digits"), [(0, "5.365160237834568"), (2, "0.832745487")])
def test_the_double_well_has_the_known_constant_and_second_moment(order, digits):
    with mpmath.workdps(25):

        def density(x):
            return mpmath.exp(-(x**4) + 2 * x**2)

        nodes = [-mpmath.inf, -1, 0, 1, mpmath.inf]
        constant = mpmath.quad(density, nodes)
        value = constant if order == 0 else mpmath.quad(lambda x: x**order * density(x), nodes) / constant
    assert abs(float(value) - float(digits)) <= 1.01 * 10.0 ** -len(digits.partition(".")[2])
    if order:
        assert abs(target("double-well").moments["theta[0]^2"].value - float(value)) <= EPS


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: gaussian([0.0, 0.0], [[1.0, 0.5], [0.4, 1.0]], "x"), "covariance"),
        (lambda: gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], "x"), "covariance"),
        (lambda: gaussian([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], "x"), "covariance"),
        (lambda: gaussian([0.0, 0.0], np.eye(3), "x"), "covariance"),
        (lambda: gaussian([0.0], [[np.nan]], "x"), "covariance"),
        (lambda: gaussian([np.inf], [[1.0]], "x"), "mean"),
        (lambda: gaussian([], np.zeros((0, 0)), "x"), "mean"),
        (lambda: gaussian([0.0], [[1.0]], "x", structure=jnp.zeros(2)), "structure"),
        (lambda: gaussian_mixture([0.5, 0.6], [[0.0], [1.0]], np.ones((2, 1, 1)), "x"), "weights"),
        (lambda: gaussian_mixture([1.5, -0.5], [[0.0], [1.0]], np.ones((2, 1, 1)), "x"), "weights"),
        (lambda: gaussian_mixture([1.0], [0.0], [[[1.0]]], "x"), "means"),
        (lambda: gaussian_mixture([1.0], [[0.0]], [[[-1.0]]], "x"), "covariances"),
        (lambda: gaussian_mixture([1.0], [[0.0]], [[1.0]], "x"), "covariances"),
        (lambda: gamma(0.0), "shape"),
        (lambda: gamma(-1.0), "shape"),
        (lambda: gamma(np.nan), "shape"),
        (lambda: gamma(1.0, rate=0.0), "rate"),
        (lambda: log_normal(scale=0.0), "scale"),
        (lambda: log_normal(location=np.nan), "location"),
        (lambda: student_t(freedom=0.0), "freedom"),
        (lambda: student_t(scale=-1.0), "scale"),
        (lambda: student_t(location=np.inf), "location"),
        (lambda: funnel(leaves=0), "leaves"),
        (lambda: funnel(scale=0.0), "scale"),
        (lambda: von_mises_fisher(direction=(0.0, 0.0, 0.0)), "direction"),
        (lambda: von_mises_fisher(direction=(1.0,)), "direction"),
        (lambda: von_mises_fisher(concentration=0.0), "concentration"),
    ],
)
def test_bad_input_raises_one_error_that_names_the_argument(build, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        build()
