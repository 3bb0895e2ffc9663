"""GMC, CHMC, mMALA and RMHMC: maps that keep the volume and run back, energy errors, closed forms, detailed balance."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.tiers.law.detailed_balance import detailed_balance
from sgmcmc_verification.samplers.dynamics.charts import stereographic
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.geodesic.chmc import CHMC
from sgmcmc_verification.samplers.geodesic.constraints import constraint_of, solve_small
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.riemannian.metrics import NonHessian2D
from sgmcmc_verification.samplers.riemannian.mmala import MMALA
from sgmcmc_verification.samplers.riemannian.rmhmc import RMHMC
from sgmcmc_verification.samplers.riemannian.trajectories import agree, solve
from sgmcmc_verification.samplers.underdamped.hmc import HMC
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.target import Target

EPS = float(np.finfo(np.float64).eps)
CHART = stereographic(2)
METRIC = NonHessian2D()


def sphere_law() -> Target:
    """A law on S^2 without symmetry."""
    w = jnp.array([0.9, -0.4, 1.3])
    potential = lambda x: 1.2 * w @ x + 0.8 * (x[0] * x[2]) ** 2 + 0.5 * x[1] ** 3
    return Target("tilted", Sphere(3), jnp.array([0.6, 0.0, -0.8]), potential)


def plane_law() -> Target:
    """A law on R^2 that is not Gaussian."""
    potential = lambda x: 0.25 * x[0] ** 4 + 0.5 * x[1] ** 2 * (1 + 0.3 * x[0]) + 0.2 * x[0] * x[1]
    return Target("bent", Euclidean(2), jnp.array([0.4, -0.7]), potential)


def ambient(z):
    """(q, p) in stereographic coordinates -> (x, v)."""
    q, p = z[:2], z[2:]
    M = CHART.jacobian(q)
    return CHART.embed(q), M @ jnp.linalg.solve(M.T @ M, p)


def coordinates(x, v):
    """The inverse of `ambient`: q = x_12 / (1 - x_3), p = M^T v."""
    q = x[:2] / (1 - x[2])
    return jnp.concatenate([q, CHART.jacobian(q).T @ v])


CASES = {
    "gmc": (lambda: GMC(Sphere(3)), sphere_law, ambient, coordinates),
    "chmc": (lambda: CHMC(Sphere(3)), sphere_law, ambient, coordinates),
    "rmhmc": (
        lambda: RMHMC(METRIC, temperature=1.4),
        plane_law,
        lambda z: (z[:2], z[2:]),
        lambda x, p: jnp.concatenate([x, p]),
    ),
}
START = jnp.array([0.3, -0.5, 0.8, 0.6])


def integrator(name):
    """(sampler, (z, h) -> (z', valid, H(z'))) in canonical coordinates z = (q, p) (4,)."""
    build, law, there, back = CASES[name]
    sampler, on = build(), law()
    estimator = Exact(on)

    def run(z, h):
        x, p = there(z)
        state = sampler.init(jax.random.key(0), x, estimator)
        end, p, valid = sampler.integrate(jax.random.key(1), state, p, h, estimator)
        return back(end.position, p), valid, end.potential + sampler.kinetic(end.position, p)

    return sampler, jax.jit(run)


@pytest.mark.parametrize("name", CASES)
def test_a_step_of_the_integrator_is_symplectic_and_runs_back(name):
    """D^T J D = J for the Jacobian D in canonical coordinates, so det D = 1; and back after p -> -p."""
    _, run = integrator(name)
    flip = jnp.array([1.0, 1.0, -1.0, -1.0])
    D = np.asarray(jax.jit(jax.jacfwd(lambda z: run(z, 0.3)[0]))(START))
    J = np.kron([[0, 1], [-1, 0]], np.eye(2))
    np.testing.assert_allclose(D.T @ J @ D, J, rtol=0, atol=1e5 * EPS)
    assert np.linalg.det(D) == pytest.approx(1, rel=1e5 * EPS)
    end, valid, _ = run(START, 0.3)
    returned, again, _ = run(flip * end, 0.3)
    assert bool(valid)
    assert bool(again)
    np.testing.assert_allclose(flip * returned, START, rtol=0, atol=1e4 * EPS)
    assert float(jnp.abs(end - START).max()) > 0.05


@pytest.mark.parametrize("name", CASES)
def test_the_energy_error_of_a_trajectory_of_fixed_length_has_order_two(name):
    """H(z_T) - H(z_0) = c h^2 + O(h^4) for a symmetric integrator: ratios 4 + O(h^2), which halving h brings to 4."""
    _, run = integrator(name)
    start, errors = float(run(START, 1e-9)[2]), []
    for steps in (10, 20, 40):
        z = START
        for _ in range(steps):
            z, valid, energy = run(z, 0.8 / steps)
            assert bool(valid)
        errors.append(float(energy) - start)
    coarse, fine = errors[0] / errors[1], errors[1] / errors[2]
    assert abs(fine - 4) <= 0.5 * abs(coarse - 4)
    assert fine == pytest.approx(4, abs=0.5)
    assert abs(errors[0]) > 1e-6


# --- GMC and CHMC ---------------------------------------------------------------------------------------------------


def test_gmc_and_chmc_in_flat_space_are_hmc():
    law = plane_law()
    estimator = Exact(law)
    first, second, third = HMC(3, 1.4), GMC(Euclidean(2), 3, 1.4), CHMC(Euclidean(2), 3, 1.4)
    for seed in range(6):
        key = jax.random.key(seed)
        ends = []
        for sampler in (first, second, third):
            state = sampler.init(jax.random.key(9), law.example, estimator)
            ends.append(np.asarray(sampler.step(key, state, 0.6, estimator).position))
        np.testing.assert_allclose(ends[1], ends[0], rtol=100 * EPS)
        np.testing.assert_allclose(ends[2], ends[0], rtol=100 * EPS)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_small_equations_are_solved_as_by_elimination(size):
    rng = np.random.default_rng(size)
    matrix, right = rng.normal(size=(size, size)), rng.normal(size=size)
    expected = np.linalg.solve(matrix, right)
    # Cofactors are sums of at most six products of at most three entries each.
    allowed = 50 * np.finfo(float).eps * np.linalg.cond(matrix) ** 2 * np.linalg.norm(expected)
    found = np.asarray(solve_small(jnp.asarray(matrix), jnp.asarray(right)))
    assert np.linalg.norm(found - expected) <= allowed
    assert allowed < 1e-9


def test_rattle_on_the_sphere_is_the_closed_form():
    """U = 0, hl = 1 - sqrt(1 - h^2 |v|^2): x' = (1 - hl) x + h v, v' = L(x') [v - (hl / h) x]; |v'| = |v|."""
    x, v, h = np.array([0.6, 0.0, 0.8]), np.array([0.4, 0.9, -0.3]), 0.5
    free = Target("free", Sphere(3), jnp.asarray(x), lambda y: 0.0 * jnp.sum(y))
    sampler = CHMC(Sphere(3))
    state = sampler.init(jax.random.key(0), jnp.asarray(x), Exact(free))
    end, new, valid = sampler.integrate(jax.random.key(0), state, jnp.asarray(v), h, Exact(free))
    shift = 1 - np.sqrt(1 - h * h * v @ v)
    expected = (1 - shift) * x + h * v
    inside = v - shift / h * x
    assert bool(valid)
    np.testing.assert_allclose(end.position, expected, rtol=1e3 * EPS, atol=10 * EPS)
    np.testing.assert_allclose(new, inside - expected * (expected @ inside), rtol=1e3 * EPS, atol=10 * EPS)
    assert float(new @ new) == pytest.approx(v @ v, rel=1e3 * EPS)


def test_a_step_that_cannot_reach_the_manifold_is_rejected():
    x, fast = jnp.array([0.6, 0.0, 0.8]), jnp.array([0.0, 3.0, 0.0])
    law = dataclasses.replace(sphere_law(), potential=lambda y: 0.0 * jnp.sum(y))
    sampler = CHMC(Sphere(3), num_steps=1, temperature=400.0)
    state = sampler.init(jax.random.key(0), x, Exact(law))
    _, _, valid = sampler.integrate(jax.random.key(0), state, fast, 0.5, Exact(law))
    assert not bool(valid)  # h |p| = 1.5: the line x + h p is farther from the axis than the sphere reaches
    stayed = sampler.step(jax.random.key(1), state, 0.5, Exact(law))
    assert bool(jnp.all(stayed.position == x))


@pytest.mark.parametrize(
    "manifold", [Sphere(3), ProductOfSpheres(2, 3), Stiefel(4, 2), Product((Sphere(3), Euclidean(2)))]
)
def test_constraints_vanish_on_the_manifold_and_their_gradients_span_the_normal_space(manifold):
    x = manifold.random(jax.random.key(3))
    c = constraint_of(manifold)
    flat, unravel = ravel_pytree(x)
    J = np.asarray(jax.jacfwd(lambda y: c(unravel(y)))(flat))
    assert J.shape == (flat.size - manifold.dim, flat.size)
    assert float(jnp.abs(c(x)).max()) <= 10 * EPS
    assert np.linalg.matrix_rank(J) == len(J)
    for row in J:
        tangent = ravel_pytree(manifold.tangent(x, unravel(jnp.asarray(row))))[0]
        np.testing.assert_allclose(tangent, 0, atol=10 * EPS)


def test_chmc_refuses_a_manifold_with_a_boundary():
    with pytest.raises(ValueError, match="manifold: simplex"):
        CHMC(Simplex(3))


def test_an_iteration_that_does_not_converge_says_so():
    root, converged = solve(lambda x: 0.5 * (x + 2 / x), jnp.array([1.0]))
    assert bool(converged)
    assert float(root[0]) == pytest.approx(np.sqrt(2), rel=4 * EPS)
    for update in (lambda x: -x, lambda x: 2 * x, lambda x: x / 0.0):
        assert not bool(solve(update, jnp.array([1.0]))[1])
    assert not bool(agree(jnp.array([1.0]), jnp.array([np.nan])))


# --- metrics --------------------------------------------------------------------------------------------------------


def test_the_proposal_of_mmala_has_the_density_that_it_says():
    law, h, T = plane_law(), 0.1, 1.4
    sampler = MMALA(METRIC, T)
    x, y = np.array([0.4, -0.7]), np.array([0.1, 0.5])
    inverse = np.asarray(METRIC.inverse(jnp.asarray(x)))
    shift, gamma = 1e-5, np.zeros(2)
    for j, e in enumerate(np.eye(2)):
        ahead, behind = (np.asarray(METRIC.inverse(jnp.asarray(x + s * shift * e))) for s in (1, -1))
        gamma += (ahead - behind)[:, j] / (2 * shift)
    gradient = np.asarray(jax.grad(law.potential)(jnp.asarray(x)))
    mean = x - h * (inverse @ gradient - T * gamma)
    density = lambda end: sampler.log_proposal(jnp.asarray(x), jnp.asarray(gradient), jnp.asarray(end), h)
    normal = stats.multivariate_normal(mean, cov=2 * h * T * inverse)  # pyright: ignore[reportArgumentType]
    # central differences: an error of shift^2 times a third derivative of order one, over the variance
    assert float(density(y) - density(x)) == pytest.approx(normal.logpdf(y) - normal.logpdf(x), rel=shift**2 / h * 10)


def test_the_momentum_of_rmhmc_has_the_metric_as_its_covariance():
    x, T = jnp.array([0.4, -0.7]), 1.4
    draws = np.asarray(
        jax.vmap(lambda k: RMHMC(METRIC, temperature=T).refresh(k, x))(jax.random.split(jax.random.key(4), 40000))
    )
    white = draws @ np.linalg.cholesky(np.asarray(METRIC.inverse(x)) / T)
    error = np.sqrt(2 / len(draws))
    np.testing.assert_allclose(white.T @ white / len(draws), np.eye(2), rtol=0, atol=5 * error)


class NoVolume(MMALA):
    """The proposal density without the determinant of the metric."""

    def log_proposal(self, start, gradient, end, step_size):
        return (
            super().log_proposal(start, gradient, end, step_size)
            + 0.5 * jnp.linalg.slogdet(self.metric.inverse(start))[1]
        )


BALANCE = detailed_balance


@pytest.mark.parametrize(
    ("build", "verdict"),
    [
        (lambda on: MMALA(METRIC, 1.4), "pass"),
        (lambda on: NoVolume(METRIC, 1.4), "fail"),
        (lambda on: RMHMC(METRIC, 2, 1.4), "pass"),
    ],
    ids=["mmala", "planted: no determinant", "rmhmc"],
)
def test_the_kernels_in_a_metric_are_in_detailed_balance(build, verdict):
    row = Row("planted", build, step_size=0.6)
    assert detailed_balance(Case(Subject(row), target("gaussian-correlated-2d"))).verdict == verdict
