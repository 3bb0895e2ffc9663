"""Metrics, SGRLD, gSGRHMC and the recipe, against symbolic transcriptions of the papers' equations."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from sgmcmc_verification.checks.tracing.noise_tape import Noise
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, row_divergence
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.numerics.matrix_sqrt import positive_root
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.riemannian.euler import AugmentedPoint, Recipe
from sgmcmc_verification.samplers.riemannian.metrics import (
    DiagonalMetric,
    Metric,
    NonHessian2D,
    PositiveMetric,
    RecipeMetric,
    dense,
)
from sgmcmc_verification.samplers.riemannian.mmala import MMALA
from sgmcmc_verification.samplers.riemannian.rmhmc import RMHMC
from sgmcmc_verification.samplers.riemannian.sgrhmc import SGRHMC
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.target import Target
from tests.helpers.step_algebra import step_mean_and_covariance, step_program

EPS = float(np.finfo(np.float64).eps)
T = 1.7
H = 0.05
V = np.array([[2.0, 0.6], [0.6, 1.0]])
THETA, MOMENTUM = np.array([0.7, 1.3]), np.array([-0.4, 0.9])


def potential(x):
    """Not separable, not symmetric, positive near the points of the tests."""
    return x[0] ** 4 / 4 + x[0] * x[1] / 2 + x[1] ** 2 + jnp.sin(x[0] * x[1])


TARGET = Target("coupled", Euclidean(2), jnp.zeros(2), potential)
METRICS = {
    "diagonal": DiagonalMetric(),
    "non-hessian": NonHessian2D(),
    "positive": PositiveMetric(),
    "recipe": RecipeMetric(TARGET, offset=1.5),
}
BOTH = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())


def symbolic():
    """U and, for each metric, B = G^-1/2, written a second time in SymPy."""
    x, y = sp.symbols("x y", positive=True)
    U = x**4 / 4 + x * y / 2 + y**2 + sp.sin(x * y)
    c = sp.Rational(3, 10) * sp.cos((x - y) / 2)
    half = sp.Rational(1, 2)
    wave = 1 + half * sp.sin((x + y) / 2)  # cyclic in two dimensions: the same for both coordinates
    roots = {
        "diagonal": sp.diag(sp.sqrt(wave), sp.sqrt(wave)),
        "non-hessian": sp.Matrix(
            [
                [sp.Rational(3, 2) + half * sp.sin((x + y) / 2), c],
                [c, sp.Rational(6, 5) + sp.Rational(2, 5) * sp.cos(y / 2)],
            ]
        ),
        "positive": sp.diag(sp.sqrt(x), sp.sqrt(y)),
        "recipe": sp.sqrt(sp.Rational(3, 2) * sp.sqrt(U + sp.Rational(3, 2))) * sp.eye(2),
    }
    return (x, y), U, roots


def oracle(name):
    """NumPy values at THETA: grad U, B, G^-1, div B, div G^-1; matrix divergences by symbolic differentiation."""
    variables, U, roots = symbolic()
    B = roots[name]
    inverse = B * B

    def divergence(M):
        return [sum(sp.diff(M[i, j], variables[j]) for j in range(2)) for i in range(2)]

    at = dict(zip(variables, map(float, THETA), strict=True))

    def value(expression):
        return np.array(sp.Matrix(expression).evalf(30, subs=at).tolist(), float)

    gradient = [sp.diff(U, v) for v in variables]
    vectors = [value(e).ravel() for e in (gradient, divergence(B), divergence(inverse))]
    return vectors[0], value(B), value(inverse), vectors[1], vectors[2]


def close(actual, expected, k=200):
    """Equal up to k units of round-off of the largest entry."""
    scale = max(1.0, float(np.max(np.abs(expected))))
    return np.max(np.abs(np.asarray(actual) - np.asarray(expected))) <= k * EPS * scale


@BOTH
def test_metric_root_is_symmetric_positive_definite_and_squares_to_the_inverse(metric):
    assert isinstance(metric, Metric)
    for point in np.random.default_rng(0).uniform(0.1, 2.0, (5, 2)):
        root, inverse = dense(metric.inverse_sqrt(jnp.asarray(point))), dense(metric.inverse(jnp.asarray(point)))
        assert close(root @ root, inverse)
        assert close(root, root.T)
        assert np.linalg.eigvalsh(root).min() > 0


def test_non_hessian_metric_separates_gamma_from_the_older_correction():
    # the older correction of Riemannian Langevin dynamics minus Gamma is div(|G| G^-1) / |G|, zero for Hessian metrics
    metric = NonHessian2D()

    def difference(theta):
        weight = lambda y: dense(metric.inverse(y)) / jnp.linalg.det(dense(metric.inverse(y)))
        return jnp.linalg.det(dense(metric.inverse(theta))) * row_divergence(weight, theta)

    assert np.all(
        np.abs(difference(jnp.asarray(THETA)))
        > 0.01 * np.linalg.norm(row_divergence(metric.inverse, jnp.asarray(THETA)))
    )


@BOTH
@pytest.mark.parametrize("kind", [SGRLD, SGRHMC])
def test_claimed_law_is_stationary_for_the_claimed_dynamics(metric, kind):
    dynamics = kind(metric, temperature=T).dynamics(TARGET)
    z = jnp.asarray(np.random.default_rng(1).uniform(0.3, 1.5, (6, dynamics.dim)))
    residual, drift, slope = jax.jit(
        jax.vmap(lambda y: (dynamics.residual(y), dynamics.drift(y), jax.grad(dynamics.H)(y)))
    )(z)
    scale = 1 + np.sum(np.asarray(drift) ** 2, axis=1) + np.sum(np.asarray(slope) ** 2, axis=1)
    assert np.all(np.abs(residual) <= 100 * EPS * scale)


@pytest.mark.parametrize("name", METRICS)
def test_sgrld_step_has_the_drift_and_covariance_of_the_paper(name):
    gradient, _, inverse, _, gamma = oracle(name)
    sampler = SGRLD(METRICS[name], temperature=T)
    mean, covariance = step_mean_and_covariance(sampler, Exact(TARGET), jnp.asarray(THETA), H)
    assert close(mean, THETA - H * (inverse @ gradient - T * gamma))
    assert close(covariance, 2 * H * T * inverse)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("order", "friction"), [("semi-implicit", None), ("explicit", None), ("semi-implicit", 1.7)])
def test_sgrhmc_step_has_the_drift_and_covariance_of_algorithm_1(name, order, friction):
    gradient, B, inverse, divergence, _ = oracle(name)
    sampler = SGRHMC(METRICS[name], temperature=T, order=order, friction=friction)
    inverse = inverse if friction is None else friction * np.eye(2)
    z = PhasePoint(jnp.asarray(THETA), jnp.asarray(MOMENTUM))
    mean, covariance = step_mean_and_covariance(sampler, Exact(TARGET), z, H)
    r = MOMENTUM + H * (-B @ gradient + T * divergence - inverse @ MOMENTUM)
    implicit = order == "semi-implicit"
    assert close(mean, np.concatenate([THETA + H * B @ (r if implicit else MOMENTUM), r]))
    push = np.vstack([H * B if implicit else np.zeros((2, 2)), np.eye(2)])
    assert close(covariance, push @ (2 * H * T * inverse) @ push.T)


@pytest.mark.parametrize("count", [100.0, 10_000.0])
def test_friction_of_the_metric_is_slow_where_theta_is_large_and_a_number_is_not(count):
    """At the mode of theta^N e^-theta the linear drift has lambda^2 + C lambda + 1 = 0, up to 1 / N."""
    law = Target(
        name="gamma", manifold=Positive(1), example=jnp.ones(1), potential=lambda x: jnp.sum(x - count * jnp.log(x))
    )
    for friction, slowest in ((None, 1 / count), (1.0, 0.5)):
        dynamics = SGRHMC(PositiveMetric(), friction=friction).dynamics(law)
        matrix = np.asarray(jax.jacfwd(dynamics.drift)(jnp.array([count, 0.0])))
        rates = -np.linalg.eigvals(matrix).real
        assert abs(rates.min() / slowest - 1) < 3 / count


@pytest.mark.parametrize("kind", [MMALA, RMHMC])
def test_metropolis_kernels_step_alike_in_a_metric_without_its_zeros(kind):
    """`PositiveMetric` returns a `Diagonal`, and the same metric as a `DiagonalMetric` an array."""
    estimator, key = Exact(TARGET), jax.random.key(0)
    ends = []
    for metric in (PositiveMetric(), DiagonalMetric(lambda theta: theta)):
        sampler = kind(metric)
        state = sampler.init(key, jnp.asarray(THETA), estimator)
        for step_key in jax.random.split(key, 8):
            state = sampler.step(step_key, state, H, estimator)
        ends.append(sampler.position(state))
    assert np.any(ends[0] != THETA)
    assert close(ends[0], ends[1])


@pytest.mark.parametrize("report", [True, False], ids=["compensated", "plain"])
def test_compensation_removes_exactly_the_gradient_noise(report):
    _, B, inverse, _, _ = oracle("non-hessian")
    metric, estimator, theta = NonHessian2D(), KnownNoise(TARGET, V), jnp.asarray(THETA)
    _, covariance = step_mean_and_covariance(SGRLD(metric, T, compensate=report), estimator, theta, H)
    extra = 0 if report else H**2 * inverse @ V @ inverse
    assert close(covariance, 2 * H * T * inverse + extra, k=2000)
    z = PhasePoint(theta, jnp.asarray(MOMENTUM))
    _, covariance = step_mean_and_covariance(SGRHMC(metric, T, compensate=report), estimator, z, H)
    extra = 0 if report else H**2 * B @ V @ B
    assert close(covariance[2:, 2:], 2 * H * T * inverse + extra, k=2000)


def test_reflection_mirrors_the_position_and_the_momentum():
    z, empty = PhasePoint(jnp.array([0.02, 1.0]), jnp.zeros(2)), jnp.zeros(0)
    noise = Noise(jnp.array([-50.0, 0.3]), empty, empty)
    plain, mirrored = (
        np.asarray(step_program(SGRHMC(PositiveMetric(), reflect=r), Exact(TARGET), z, 0.5)[0](noise))
        for r in (False, True)
    )
    assert plain[0] < 0 < plain[1]
    assert np.array_equal(mirrored, plain * np.array([-1, 1, -1, 1]))
    plain, mirrored = (
        np.asarray(step_program(SGRLD(PositiveMetric(), reflect=r), Exact(TARGET), z.position, 0.5)[0](noise))
        for r in (False, True)
    )
    assert plain[0] < 0
    assert np.array_equal(mirrored, np.abs(plain))


@pytest.mark.parametrize("compensate", [False, True])
def test_recipe_reproduces_sgld(compensate):
    z, estimator = jnp.asarray(THETA), KnownNoise(TARGET, V)
    recipe = Recipe(SGLD(T).dynamics, TARGET, T, compensate)
    mine = step_mean_and_covariance(recipe, estimator, AugmentedPoint(z, jnp.zeros(0)), H)
    theirs = step_mean_and_covariance(SGLD(T, compensate), estimator, z, H)
    assert close(mine[0], theirs[0])
    assert close(mine[1], theirs[1], k=2000)


@pytest.mark.parametrize(
    "sampler",
    [
        SGHMC(0.8, T, compensate=False, scheme="explicit"),
        SGHMC(0.8, T, compensate=True, scheme="explicit"),
        SGRHMC(NonHessian2D(), T, compensate=True, order="explicit"),
    ],
    ids=["sghmc", "compensated sghmc", "sgrhmc with a full metric"],
)
def test_recipe_reproduces_explicit_samplers_with_a_momentum(sampler):
    estimator, point = KnownNoise(TARGET, V), (jnp.asarray(THETA), jnp.asarray(MOMENTUM))
    recipe = Recipe(sampler.dynamics, TARGET, T, sampler.compensate)
    mine = step_mean_and_covariance(recipe, estimator, AugmentedPoint(*point), H)
    theirs = step_mean_and_covariance(sampler, estimator, PhasePoint(*point), H)
    assert close(mine[0], theirs[0])
    assert close(mine[1], theirs[1], k=2000)


def test_recipe_discretises_a_dynamics_that_no_sampler_has():
    # a curl on a diffusion with a state-dependent, coupled metric and a thermostat-like coordinate: z in R^5
    def dynamics(target):
        def H(z):
            return target.flat_potential(z[:2]) / T + 0.5 * z[2:4] @ z[2:4] + 0.5 * (z[4] - 1) ** 2

        def D(z):
            top = NonHessian2D().inverse(z[:2])
            return jnp.zeros((5, 5), z.dtype).at[:2, :2].set(top).at[4, 4].set(1 + jnp.cos(z[2]) / 2)

        def Q(z):
            upper = jnp.zeros((5, 5), z.dtype).at[0, 1].set(jnp.sin(z[0])).at[0, 2].set(-1).at[1, 3].set(-1)
            upper = upper.at[2, 4].set(z[2]).at[3, 4].set(z[3])
            return upper - upper.T

        return Dynamics(H, D, Q, ("theta[0]", "theta[1]", "r[0]", "r[1]", "xi"), 2)

    model, auxiliary = dynamics(TARGET), jnp.array([0.3, -0.6, 1.4])
    z = jnp.concatenate([jnp.asarray(THETA), auxiliary])
    assert abs(float(model.residual(z))) <= 100 * EPS * float(1 + model.drift(z) @ model.drift(z))
    mean, covariance = step_mean_and_covariance(
        Recipe(dynamics, TARGET, T), Exact(TARGET), AugmentedPoint(jnp.asarray(THETA), auxiliary), H
    )
    assert close(mean, z + H * model.drift(z))
    assert close(covariance, 2 * H * model.D(z), k=2000)


def test_positive_root_has_the_derivative_of_the_square_root_at_multiples_of_the_identity():
    root = lambda s: positive_root((1 + s) * jnp.eye(3))
    assert close(jax.jacfwd(root)(0.0), 0.5 * np.eye(3))
    assert close(jax.jacfwd(jax.jacfwd(root))(0.0), -0.25 * np.eye(3))


def test_positive_root_clips_negative_eigenvalues():
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    matrix = rotation @ np.diag([4.0, -1.0]) @ rotation.T
    assert close(positive_root(jnp.asarray(matrix)), rotation @ np.diag([2.0, 0.0]) @ rotation.T)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_dtype_of_the_position_is_kept_under_strict_promotion(dtype):
    metric, estimator = NonHessian2D(), KnownNoise(TARGET, V)
    samplers = [
        SGRLD(metric, T),
        SGRHMC(metric, T),
        Recipe(SGRHMC(metric, T).dynamics, TARGET, T),
    ]
    for sampler in samplers:
        for compensate in (False, True):
            chosen = dataclasses.replace(sampler, compensate=compensate)
            assert isinstance(chosen, Sampler)
            with jax.numpy_dtype_promotion("strict"):
                state = chosen.init(jax.random.key(0), jnp.ones(2, dtype), estimator)
                state = jax.jit(lambda k, s, c=chosen: c.step(k, s, H, estimator))(jax.random.key(1), state)
            assert {leaf.dtype for leaf in jax.tree.leaves(chosen.unpack(state))} == {jnp.dtype(dtype)}


def test_bad_options_name_the_argument():
    with pytest.raises(ValueError, match="temperature"):
        SGRLD(NonHessian2D(), temperature=0.0)
    with pytest.raises(ValueError, match="order"):
        SGRHMC(NonHessian2D(), order="leapfrog")  # pyright: ignore
    with pytest.raises(ValueError, match="dynamics"):
        Recipe(lambda target: dataclasses.replace(SGLD().dynamics(target), size=1), TARGET)
