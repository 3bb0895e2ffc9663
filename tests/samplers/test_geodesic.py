"""SGGMC and gSGNHT on manifolds, and their dynamics in ambient coordinates and in charts.

Oracles: closed forms of the kinetic energy and of flat space; NumPy and SciPy for one step; integrals over the noise by
cubature that is exact for what is integrated; the recipe in a chart against the dynamics in ambient coordinates.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import law_rule
from sgmcmc_verification.checks.numerics.geodesic_dynamics import generator_of
from sgmcmc_verification.checks.numerics.observables import observables
from sgmcmc_verification.checks.tiers.order.weak_order import local_weak_order
from sgmcmc_verification.checks.tiers.recipe.complete_recipe import symbolic_recipe
from sgmcmc_verification.checks.tracing.noise_tape import Noise
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.dynamics.charts import charts_of, langevin_in_chart, pulled_back, thermostat_in_chart
from sgmcmc_verification.samplers.dynamics.embedded import geodesic_langevin, geodesic_thermostat, projection
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise, Minibatch
from sgmcmc_verification.samplers.geodesic.common import TangentPoint
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT, TangentThermostatPoint
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.interface.claims import StationaryMoments
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.target import DataTerms, Target
from tests.helpers.step_algebra import step_mean_and_covariance, step_program

EPS = float(np.finfo(np.float64).eps)
QUANTILE = 5.0
"""Standard errors granted to an average: exceeded with a probability of 6e-7."""
MANIFOLDS = {
    m.name: m
    for m in (
        Sphere(3),
        ProductOfSpheres(2, 3),
        Simplex(4),
        Stiefel(4, 2),
        Product((Sphere(3), Euclidean(2))),
    )
}
CURVED = {name: m for name, m in MANIFOLDS.items() if not name.startswith("simplex")}
T, C = 1.3, 0.9


def free(manifold) -> Target:
    """U = 0."""
    example = manifold.random(jax.random.key(5))
    return Target("free", manifold, example, lambda x: 0.0 * jnp.sum(ravel_pytree(x)[0]))


def wavy(manifold) -> Target:
    """A potential without symmetry."""
    example = manifold.random(jax.random.key(6))
    n = ravel_pytree(example)[0].size
    w = jnp.asarray(np.cos(1.0 + 2.3 * np.arange(n)))

    def potential(x):
        flat = ravel_pytree(x)[0]
        return 1.2 * w @ flat + 0.4 * (flat @ jnp.roll(w, 1)) ** 2

    return Target("wavy", manifold, example, potential)


def velocity_at(law: Target, seed: int):
    """A tangent vector at the example."""
    white = np.random.default_rng(seed).normal(size=law.size)
    return law.manifold.tangent(law.example, law.unravel(jnp.asarray(white)))


def symmetric(n: int, seed: int) -> np.ndarray:
    """A positive definite matrix (n, n)."""
    a = np.random.default_rng(seed).normal(size=(n, n))
    return a @ a.T / n + 0.3 * np.eye(n)


def mean_square_speed(sampler, estimator, z, h, integers=((),)) -> float:
    """E |v'|^2 over the noise of a step, exactly: |v'|^2 is quadratic in the k normals, as flows keep the speed.

    `integers`: all values of the discrete draws, (count, draws).
    """
    run, k = step_program(sampler, estimator, z, h)
    n = ravel_pytree(z.position)[0].size
    nodes = np.sqrt(k) * np.concatenate([np.eye(k), -np.eye(k)])
    move = jax.vmap(jax.vmap(lambda k, w: run(Noise(w, jnp.zeros(0), k)), (None, 0)), (0, None))
    ends = jax.jit(move)(jnp.asarray(np.array(integers, int)), jnp.asarray(nodes))
    return float(np.mean(np.sum(np.asarray(ends)[..., n : 2 * n] ** 2, axis=-1)))


# --- kinetic energy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MANIFOLDS)
def test_the_kinetic_energy_on_a_free_manifold_is_the_closed_form_gradient_noise_included(name):
    """E |v|^2 = m s T C h / sinh(C h), s = 1 + h V / (2 C T): the fixed point of the exact recursion of E |v|^2."""
    law, h, V = free(MANIFOLDS[name]), 0.4, 3.0
    sampler, estimator = SGGMC(law.manifold, C, T), KnownNoise(law, V * np.eye(law.size))
    v = velocity_at(law, 1)
    size = float(jnp.sum(ravel_pytree(v)[0] ** 2))
    still = jax.tree.map(jnp.zeros_like, v)
    start = mean_square_speed(sampler, estimator, TangentPoint(law.example, still), h)
    slope = (mean_square_speed(sampler, estimator, TangentPoint(law.example, v), h) - start) / size
    assert slope == pytest.approx(np.exp(-2 * C * h), rel=1e4 * EPS)
    s = 1 + h * V / (2 * C * T)
    expected = law.manifold.dim * s * T * C * h / np.sinh(C * h)
    assert start / (1 - slope) == pytest.approx(expected, rel=1e4 * EPS)


@pytest.mark.parametrize("name", ["sphere(2)", "stiefel(4,2)"])
def test_the_thermostat_moves_by_the_excess_of_the_intrinsic_kinetic_energy(name):
    """xi' - xi = h (|v|^2 + |v'|^2 - 2 m T) / (2 mu), so E |v|^2 = m T exactly if the law is stationary."""
    law, h, mu = free(MANIFOLDS[name]), 0.4, 2.5
    sampler = GSGNHT(law.manifold, C, T, mu)
    estimator = KnownNoise(law, symmetric(law.size, 2))
    state = sampler.init(jax.random.key(1), law.example, estimator)
    new = jax.jit(lambda key, state: sampler.step(key, state, h, estimator))(jax.random.key(2), state)
    squares = sum(float(jnp.sum(s.velocity**2)) for s in (state, new))
    expected = h / (2 * mu) * (squares - 2 * law.manifold.dim * T)
    assert float(new.thermostat - state.thermostat) == pytest.approx(expected, rel=1e3 * EPS)
    default = GSGNHT(law.manifold, C, T)
    assert default.mass == law.manifold.dim


def test_gradient_noise_moves_the_mean_of_the_thermostat_and_not_the_temperature():
    """E xi = A + h V / (2 T) + O(h^2) with gradient noise of a variance V that the sampler is not told."""
    law, h, V, chains, steps = free(Sphere(3)), 0.05, 12.0, 2000, 300
    sampler, estimator = GSGNHT(law.manifold, C, T), KnownNoise(law, V * np.eye(3), report=False)
    expected = C + h * V / (2 * T)

    def chain(key):
        start, burn, run = jax.random.split(key, 3)
        state = sampler.init(start, law.example, estimator)
        body = lambda s, k: ((new := sampler.step(k, s, h, estimator)), (new.thermostat, jnp.sum(new.velocity**2)))
        state = jax.lax.scan(body, state, jax.random.split(burn, steps))[0]
        _, (xi, square) = jax.lax.scan(body, state, jax.random.split(run, steps))
        return jnp.mean(xi), jnp.mean(square)

    xi, square = (np.asarray(a) for a in jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(3), chains)))
    error = xi.std() / np.sqrt(chains)
    # the kick doubles as friction sinh(xi h) / h: the next term of its series is (xi h)^2 / 6 of xi
    assert abs(xi.mean() - expected) <= QUANTILE * error + expected * (expected * h) ** 2
    assert abs(xi.mean() - C) > 3 * (QUANTILE * error + expected * (expected * h) ** 2)
    assert abs(square.mean() - 2 * T) <= QUANTILE * square.std() / np.sqrt(chains) + 2 * T * (expected * h) ** 2


# --- matrix friction ------------------------------------------------------------------------------------------------


def test_sggmc_with_matrix_friction_in_flat_space_is_the_symmetric_splitting():
    law, h = target("gaussian-correlated-2d"), 0.3
    friction = symmetric(2, 3)
    assert law.gaussian is not None
    x, v = np.array([0.4, -1.1]), np.array([0.8, 0.3])
    sampler = SGGMC(Euclidean(2), friction, T)
    z = TangentPoint(jnp.asarray(x), jnp.asarray(v))
    mean, covariance = step_mean_and_covariance(sampler, Exact(law), z, h)
    middle, decay = x + h / 2 * v, scipy.linalg.expm(-h / 2 * friction)
    new_v = decay @ (decay @ v - h * law.gaussian.precision @ (middle - law.gaussian.mean))
    push = np.vstack([h / 2 * decay, decay])
    np.testing.assert_allclose(mean, np.concatenate([middle + h / 2 * new_v, new_v]), rtol=1e4 * EPS)
    np.testing.assert_allclose(covariance, 2 * T * h * push @ friction @ push.T, rtol=1e4 * EPS, atol=100 * EPS)
    assert StationaryMoments not in sampler.claims


def test_sggmc_with_diagonal_friction_has_the_closed_form_of_every_coordinate():
    """lambda Var x = T u / sinh u, Var v = T (u / sinh u) / (cosh u - q), u = C h / 2, q = h^2 lambda / 4, from the
    Lyapunov equation of the step."""
    frictions, curvatures, h = np.array([0.5, 2.0]), np.array([1.5, 0.7]), 0.5
    law = Target("separable", Euclidean(2), jnp.zeros(2), lambda x: 0.5 * jnp.sum(jnp.asarray(curvatures) * x**2))
    sampler = SGGMC(Euclidean(2), np.diag(frictions), T)
    move = lambda z: step_mean_and_covariance(sampler, Exact(law), TangentPoint(z[:2], z[2:]), h)
    matrix = np.stack([move(jnp.asarray(e))[0] for e in np.eye(4)], axis=1)
    stationary = scipy.linalg.solve_discrete_lyapunov(matrix, move(jnp.zeros(4))[1])
    u, q = frictions * h / 2, h * h * curvatures / 4
    expected = np.diag(np.concatenate([T * u / np.sinh(u) / curvatures, T * u / np.sinh(u) / (np.cosh(u) - q)]))
    np.testing.assert_allclose(stationary, expected, rtol=1e5 * EPS, atol=1e4 * EPS)


def test_matrix_friction_damps_within_the_tangent_space_as_in_the_paper():
    """Without force and noise a step is geodesic, exp(-L(x) C h), geodesic, with NumPy and SciPy."""
    law, h, friction = free(Sphere(3)), 0.7, symmetric(3, 4)
    v = np.asarray(velocity_at(law, 3))
    run, count = step_program(
        SGGMC(law.manifold, friction, T), Exact(law), TangentPoint(law.example, jnp.asarray(v)), h
    )
    moved = np.asarray(run(Noise(jnp.zeros(count), jnp.zeros(0), jnp.zeros(0, int))))

    def glide(x, v, t):
        a = np.linalg.norm(v)
        return x * np.cos(a * t) + v / a * np.sin(a * t), v * np.cos(a * t) - a * x * np.sin(a * t)

    x, v = glide(np.asarray(law.example), v, h / 2)
    v = scipy.linalg.expm(-(np.eye(3) - np.outer(x, x)) @ friction * h) @ v
    np.testing.assert_allclose(moved, np.concatenate(glide(x, v, h / 2)), rtol=1e4 * EPS, atol=100 * EPS)


def test_noise_with_matrix_friction_has_the_tangent_part_of_the_matrix_as_its_covariance():
    """From rest, E |v'|^2 = 2 T h tr[P C P exp(-P C P h)], with and without gradient noise that is compensated."""
    law, h, friction = free(Stiefel(3, 2)), 0.2, symmetric(6, 5)
    P = np.asarray(projection(law.manifold, law.example))
    tangent = P @ friction @ P
    expected = 2 * T * h * np.trace(tangent @ scipy.linalg.expm(-h * tangent))
    rest = TangentPoint(law.example, jnp.zeros((3, 2)))
    plain = mean_square_speed(SGGMC(law.manifold, friction, T), Exact(law), rest, h)
    noisy = KnownNoise(law, symmetric(6, 6))
    compensated = mean_square_speed(SGGMC(law.manifold, friction, T, True), noisy, rest, h)
    assert plain == pytest.approx(expected, rel=1e4 * EPS)
    assert compensated == pytest.approx(expected, rel=1e4 * EPS)


# --- gradient noise -------------------------------------------------------------------------------------------------


def test_only_the_tangent_part_of_the_gradient_noise_has_to_be_below_the_injected_noise():
    """From rest E |v'|^2 = 2 C T h m exp(-C h) though 2 C T h - h^2 V^ is negative along the normal."""
    law, h = free(Sphere(3)), 0.2
    x = np.asarray(law.example)
    V = 400.0 * np.outer(x, x) + 0.5 * np.eye(3) + 1.5 * np.outer(x, np.cross(x, [1.0, 0, 0]))
    V = (V + V.T) / 2
    assert 2 * C * T * h - h * h * np.linalg.eigvalsh(V)[-1] < 0
    rest = TangentPoint(law.example, jnp.zeros(3))
    energy = mean_square_speed(SGGMC(law.manifold, C, T, True), KnownNoise(law, V), rest, h)
    assert energy == pytest.approx(2 * C * T * h * 2 * np.exp(-C * h), rel=1e6 * EPS)


def test_the_empirical_fisher_matrix_takes_away_the_noise_of_minibatches():
    """The mean over all minibatches of E |v'|^2 is the one with exact gradients, as V^ is unbiased."""
    data = np.random.default_rng(7).normal(size=(3, 2))
    terms = DataTerms(lambda x: 0.3 * x[0], lambda x, y: jnp.sum((x - y) ** 2 * jnp.array([4.0, 1.6])), data, 3)
    law = Target(
        "three data",
        Sphere(2),
        jnp.array([0.6, 0.8]),
        lambda x: terms.prior(x) + sum(terms.datum(x, y) for y in data),
        terms=terms,
    )
    z, h = TangentPoint(law.example, jnp.array([0.8, -0.6])), 0.1
    batches = Minibatch(terms, 2, fisher=True)
    every = batches.indices()
    compensated = mean_square_speed(SGGMC(law.manifold, 4.0, T, compensate=True), batches, z, h, every)
    exact = mean_square_speed(SGGMC(law.manifold, 4.0, T), Exact(law), z, h)
    raw = mean_square_speed(SGGMC(law.manifold, 4.0, T), batches, z, h, every)
    assert compensated == pytest.approx(exact, rel=1e5 * EPS)
    assert raw > exact * (1 + 1e-3)  # the noise is there


# --- dynamics -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CURVED)
def test_the_acceleration_from_the_projection_is_that_of_the_geodesic_flow(name):
    law = free(CURVED[name])
    v = velocity_at(law, 8)
    _, (dx, dv) = jax.jvp(lambda t: law.manifold.geodesic(law.example, v, t), (0.0,), (1.0,))
    z = jnp.concatenate([law.ravel(law.example), law.ravel(v)])
    drift = geodesic_langevin(dataclasses.replace(law), 0.0, T).drift(z)
    expected = jnp.concatenate([ravel_pytree(dx)[0], ravel_pytree(dv)[0]])
    np.testing.assert_allclose(drift, expected, rtol=1e3 * EPS, atol=100 * EPS)


@pytest.mark.parametrize("thermostat", [False, True], ids=["langevin", "thermostat"])
@pytest.mark.parametrize("n", [2, 3], ids=["circle", "sphere"])
def test_the_dynamics_in_a_chart_are_those_in_ambient_coordinates(n, thermostat):
    """L [phi(x(q), M G^-1 p, xi)] = (L phi)(x(q), M G^-1 p, xi) for many phi: Ito's formula."""
    law, friction = wavy(Sphere(n)), symmetric(n, 9)
    ambient = geodesic_thermostat(law, C, T, 2.2) if thermostat else geodesic_langevin(law, friction, T)
    rng = np.random.default_rng(10)
    charts = charts_of(law.manifold)
    for chart in charts if n == 2 else charts[thermostat:][:1]:  # one each on the sphere: these take a while to compile
        m, inner_law = chart.dim, pulled_back(law, chart, T)
        inside = (
            thermostat_in_chart(inner_law, chart, C, T, 2.2)
            if thermostat
            else langevin_in_chart(inner_law, chart, friction, T)
        )

        def embed(z, m=m, chart=chart):
            q, p = z[:m], z[m : 2 * m]
            M = chart.jacobian(q)
            return jnp.concatenate([chart.embed(q), M @ jnp.linalg.solve(M.T @ M, p), z[2 * m :]])

        both = jax.jit(
            jax.vmap(
                lambda z, inside=inside, embed=embed: (
                    generator_of(inside)(lambda y: observables(embed(y)))(z),
                    generator_of(ambient)(observables)(embed(z)),
                )
            )
        )
        z = rng.normal(size=(3, inside.dim))
        z[:, :m] = np.asarray(chart.centre) + chart.spread * z[:, :m]
        left, right = (np.asarray(a) for a in both(jnp.asarray(z)))
        np.testing.assert_allclose(left, right, rtol=0, atol=1e5 * EPS * np.abs(right).max())


def test_the_recipe_is_decided_in_the_charts_of_the_manifold():
    subject = Subject(Row("planted", lambda on: SGGMC(on.manifold, symmetric(2, 11), T)))
    result = symbolic_recipe(Case(subject, target("vmf-s1")), 0)
    assert result.verdict == "pass"
    assert "angle and stereographic" in result.reason


# --- order and law --------------------------------------------------------------------------------------------------

WEAK = local_weak_order


def _flawed(kind, **changes):
    return type("Flawed", (kind,), changes)


def _ambient_thermostat(self, x, v, xi, time):
    """The size of the ambient space in place of the dimension."""
    x, v = self.manifold.geodesic(x, v, time)
    return x, v, xi + time * (jnp.sum(v * v) - (self.manifold.dim + 1) * self.temperature) / self.mass


@pytest.mark.parametrize(
    ("build", "order"),
    [
        (lambda m: SGGMC(m, symmetric(2, 12), T), 2.0),
        (lambda m: GSGNHT(m, C, T, 2.2), 2.0),
        (lambda m: _flawed(GSGNHT, _glide=_ambient_thermostat)(m, C, T, 2.2), 0.0),
    ],
    ids=["matrix friction", "thermostat", "planted: ambient dimension"],
)
def test_the_weak_order_on_the_circle_is_two(build, order):
    row = Row("planted", lambda on: build(on.manifold), step_size=0.2, step_power=0.5)
    result = local_weak_order(Case(Subject(row), target("vmf-s1")))
    assert result.measurements["measured_order"] == pytest.approx(order, abs=0.1)
    assert result.verdict == ("pass" if order == 2 else "fail")


def test_the_rule_of_the_law_of_position_velocity_and_thermostat_has_its_moments():
    """v ~ N(0, T P(x)), xi ~ N(A, T / mu), independent."""
    law, mu = target("vmf-s1"), 2.2
    row = Row("planted", lambda on: GSGNHT(on.manifold, C, 1.0, mu))
    step = step_map(Subject(row), law)
    points, weights = law_rule(step, step.sampler.claims)
    x, v, xi = points[:, :2], points[:, 2:4], points[:, 4]
    np.testing.assert_allclose(np.sum(x * v, axis=1), 0, atol=100 * EPS)
    assert weights @ xi == pytest.approx(C, rel=1e4 * EPS)
    assert weights @ (xi - C) ** 2 == pytest.approx(1 / mu, rel=1e4 * EPS)
    assert weights @ np.sum(v * v, axis=1) == pytest.approx(1, rel=1e4 * EPS)
    assert weights @ (np.sum(v * v, axis=1) * xi * x[:, 0]) == pytest.approx(C * (weights @ x[:, 0]), rel=1e5 * EPS)


# --- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda m: SGGMC(m, -1.0), "friction: must be positive"),
        (lambda m: SGGMC(m, [1.0, 2.0, 3.0]), "friction: must be a number or a matrix"),
        (lambda m: SGGMC(m, np.triu(np.ones((3, 3)))), "friction: must be a symmetric matrix"),
        (lambda m: SGGMC(m, np.diag([1.0, 1.0, -0.1])), "friction: must be positive"),
        (lambda m: SGGMC(m, np.diag([1.0, np.nan, 1.0])), "friction: must be"),
        (lambda m: SGGMC(m, temperature=0.0), "temperature: must be positive"),
        (lambda m: GSGNHT(m, diffusion=0.0), "diffusion: must be positive"),
        (lambda m: GSGNHT(m, thermal_mass=-2.0), "thermal_mass: must be positive"),
    ],
)
def test_bad_arguments_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build(Sphere(3))


def test_states_carry_position_and_velocity():
    law = free(Sphere(3))
    sampler = GSGNHT(law.manifold)
    z = TangentThermostatPoint(law.example, velocity_at(law, 13), jnp.asarray(0.4))
    again = sampler.unpack(sampler.pack(jax.random.key(0), z, Exact(law)))
    assert all(bool(jnp.all(a == b)) for a, b in zip(jax.tree.leaves(z), jax.tree.leaves(again), strict=True))
