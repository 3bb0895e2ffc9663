"""Bandwidths, estimates of densities, and the particle methods that are built of them.

Oracles: definitions by automatic differentiation or loops, Gaussian convolutions in closed form, one method as a
special case of another.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.registry import STATEMENTS, find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.particles.velocity import EPS, particle_rate
from sgmcmc_verification.samplers.dynamics.complete_recipe import row_divergence
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.numerics.selection import median_of_nonnegative
from sgmcmc_verification.samplers.particles.common import estimates, flatten, uniform_weights
from sgmcmc_verification.samplers.particles.density_gradients import DENSITIES, density_gradient, transport_scaling
from sgmcmc_verification.samplers.particles.kernels import (
    gaussian_moments,
    he_bandwidth,
    heat_residual,
    median_bandwidth,
    squared_distances,
)
from sgmcmc_verification.samplers.particles.particle_flow import FlowMixin, ParticleFlow
from sgmcmc_verification.samplers.particles.parvi import ParVI
from sgmcmc_verification.samplers.particles.psghmc import PSGHMC
from sgmcmc_verification.samplers.particles.rsvgd import RSVGD
from sgmcmc_verification.samplers.particles.rsvgd_arcsine import ArcsineRSVGD, arcsine_derivatives, zonal_direction
from sgmcmc_verification.samplers.particles.rsvgd_embedded import EmbeddedRSVGD, median_concentration
from sgmcmc_verification.samplers.particles.svgd import SVGD
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.samplers.riemannian.logistic_metric import LogisticMetric
from sgmcmc_verification.samplers.riemannian.metrics import DiagonalMetric, NonHessian2D
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.registry import target

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 2)) * [1.0, 0.6]
W = RNG.dirichlet(np.full(7, 3.0))


def close(found, expected, digits=1e3):
    """Equal to round-off, relative to the largest entry."""
    expected = np.asarray(expected)
    return np.abs(np.asarray(found) - expected).max() < digits * EPS * np.abs(expected).max()


@pytest.mark.parametrize("values", [[3.0], [2.0, 1.0], [0.0, 0.0, 4.0, 6.0], [1.0, 1.0, 1.0, 9.0], [5.0, -0.0, 1e-300]])
def test_the_median_by_bisection_is_the_median(values):
    assert float(median_of_nonnegative(jnp.asarray(values))) == float(np.median(np.abs(values)))


def test_the_median_by_bisection_is_the_median_of_many_in_either_precision():
    for dtype in (np.float32, np.float64):
        for n in (1000, 1001):
            values = np.abs(RNG.standard_cauchy(n)).astype(dtype)
            found = median_of_nonnegative(jnp.asarray(values))
            assert found.dtype == dtype
            assert found == np.median(values)
    assert jnp.isnan(median_of_nonnegative(jnp.asarray([1.0, np.nan, 2.0])))
    with jax.disable_jit():
        assert float(median_of_nonnegative(jnp.asarray([3.0, 1.0, 2.0, 5.0]))) == 2.5


@pytest.mark.parametrize("spread", [0.0, 0.2, 0.7])
def test_the_median_by_bisection_is_that_of_numbers_made_in_the_same_program(spread):
    """XLA may make them anew, and round them otherwise, in each place that reads them."""
    x = np.array([[0.7 * (1 + 0.1 * i) + spread * i] for i in range(6)])
    gaps = lambda x: squared_distances(jnp.concatenate([x, jnp.sin(3 * x)], 1))
    found = jax.jit(lambda x: median_of_nonnegative(gaps(x)))(x)
    assert float(found) == pytest.approx(float(np.median(gaps(x))), rel=1e-12)


def test_median_rules_are_their_formulas():
    gaps = [float(np.sum((a - b) ** 2)) for a in X for b in X]
    assert float(median_bandwidth(squared_distances(jnp.asarray(X)))) == pytest.approx(np.median(gaps) / 2 / np.log(8))
    assert float(median_bandwidth(jnp.zeros((3, 3)))) == 1
    y = np.asarray(jax.vmap(Sphere(3).random)(jax.random.split(jax.random.key(1), 9)))
    inner = [y[i] @ y[j] for i in range(9) for j in range(i)]
    found = median_concentration(jnp.asarray(y @ y.T)[None], 1)
    assert float(found[0]) == pytest.approx(np.log(8) / (1 - np.median(inner)))


def test_moments_of_a_sum_of_kernels_are_its_derivatives():
    hs = (0.4, 1.5)
    kernel = lambda x, y: sum(jnp.exp(-jnp.sum((x - y) ** 2) / (2 * h)) for h in hs)
    x, y = jnp.asarray(X[0]), jnp.asarray(X[1])
    a = gaussian_moments(jnp.sum((x - y) ** 2), hs, 4)
    D = x - y
    assert close(a[0], kernel(x, y))
    assert close(-a[1] * D, jax.grad(kernel)(x, y))
    assert close(a[2] * jnp.outer(D, D) - a[1] * jnp.eye(2), jax.hessian(kernel)(x, y))
    third = jax.jacfwd(jax.hessian(kernel), 1)(x, y)
    along = a[3] * jnp.einsum("i,j,k->ijk", D, D, D) - a[2] * (
        jnp.einsum("ij,k->ijk", jnp.eye(2), D)
        + jnp.einsum("ik,j->ijk", jnp.eye(2), D)
        + jnp.einsum("jk,i->ijk", jnp.eye(2), D)
    )
    assert close(along, third)


def test_the_heat_residual_is_that_of_the_heat_equation():
    """h^(d+2) sum_k (Lap q(x_k) + sum_j grad_{x_j} q(x_k) . grad log q(x_j))^2, q = sum_j h^(-d/2) E."""
    h, x = 0.37, jnp.asarray(X)
    density = lambda y, particles: jnp.sum(jnp.exp(-jnp.sum((y - particles) ** 2, axis=1) / (2 * h))) / h
    score = jax.vmap(jax.grad(lambda y: jnp.log(density(y, x))))(x)
    terms = []
    for k in range(len(X)):
        by_particle = jax.grad(lambda particles, k=k: density(x[k], particles))(x)
        terms.append(jnp.trace(jax.hessian(density)(x[k], x)) + jnp.sum(by_particle * score))
    assert close(heat_residual(x, h), h**4 * sum(t**2 for t in terms))


def test_the_line_search_goes_down_to_a_minimum():
    x = jnp.asarray(RNG.normal(size=(30, 2)))
    h = median_bandwidth(squared_distances(x))
    step, value = jax.jit(he_bandwidth), jax.jit(heat_residual)
    values = [float(value(x, h))]
    for _ in range(40):
        h = step(x, h)
        values.append(float(value(x, h)))
    assert np.all(np.diff(values) <= 0)
    found = optimize.minimize_scalar(
        lambda u: float(value(x, jnp.exp(u))), bracket=(np.log(h) - 0.1, np.log(h) + 0.1), tol=1e-10
    )
    assert float(h) == pytest.approx(np.exp(found.x), rel=1e-2)


def test_blob_is_the_gradient_of_the_smoothed_functional():
    """-(1 / w_j) d/dx_j of -sum_k w_k log e_k is what each particle is pushed by."""
    h = 0.5

    def functional(x):
        E = jnp.exp(-squared_distances(x) / (2 * h))
        return jnp.asarray(W) @ jnp.log(E @ W)

    expected = np.asarray(jax.grad(functional)(jnp.asarray(X))) / W[:, None]
    assert close(density_gradient("blob", jnp.asarray(X), jnp.asarray(W), h), expected)


def test_gfsd_is_the_score_of_the_kernel_density_estimate():
    h = 0.5
    log_density = lambda y: jnp.log(jnp.exp(-jnp.sum((y - X) ** 2, axis=1) / (2 * h)) @ W)
    expected = jax.vmap(jax.grad(log_density))(jnp.asarray(X))
    assert close(density_gradient("gfsd", jnp.asarray(X), jnp.asarray(W), h), expected)


def test_gfsf_satisfies_steins_identity_at_the_particles():
    """sum_i w_i [E_ij s_i + grad_i E_ij] = 0 for every j as the ridge goes to zero."""
    h, ridge = 0.5, 1e-9
    s = np.asarray(density_gradient("gfsf", jnp.asarray(X), jnp.asarray(W), h, ridge))
    E = np.exp(-np.asarray(squared_distances(jnp.asarray(X))) / (2 * h))
    slope = -(X[:, None] - X[None]) * E[..., None] / h
    residual = np.einsum("i,ij,ia->ja", W, E, s) + np.einsum("i,ija->ja", W, slope)
    # the ridge leaves ridge / M times the solution, which is as large as s
    assert np.abs(residual).max() < 10 * ridge * np.abs(s).max()
    assert np.abs(residual).max() > 0


def test_the_transport_coupling_has_its_marginals():
    """Against a root of its equations; for particles far apart, and for one without weight, too."""
    h, far = 0.5, np.concatenate([X, [[9.0, -9.0]]])
    weights = np.concatenate([W[:-1], [0.0], W[-1:]])
    E = np.exp(-np.asarray(squared_distances(jnp.asarray(far))) / (2 * h))
    found = np.asarray(transport_scaling(jnp.asarray(E), jnp.asarray(weights)))
    expected = optimize.root(lambda v: np.exp(v) * (E @ (weights * np.exp(v))) - 1, np.zeros(len(far)), tol=1e-12)
    assert expected.success
    assert np.abs(found - np.exp(expected.x)).max() < 1e-9
    assert np.abs(found * (E @ (weights * found)) - 1).max() < 1e-11
    assert found[-1] == pytest.approx(W[-1] ** -0.5)  # alone


def test_w_sgld_is_pushed_by_the_transport_cost():
    """4 / (d lambda w_j) times its gradient at fixed multipliers, with a step's particles apart from the last ones."""
    h, w = 0.5, jnp.asarray(W)
    E = jnp.exp(-squared_distances(jnp.asarray(X)) / (2 * h))
    multipliers = w * transport_scaling(E, w)

    def cost(new):
        D = jnp.sum((new[:, None] - X[None]) ** 2, axis=-1)
        return multipliers @ (D * jnp.exp(-D / (2 * h))) @ multipliers

    expected = 4 / (X.shape[1] * 2 * h) * np.asarray(jax.grad(cost)(jnp.asarray(X))) / W[:, None]
    assert close(density_gradient("jko", jnp.asarray(X), w, h), expected)


@pytest.mark.parametrize("density", ["gfsd", "blob", "gfsf", "jko"])
def test_estimates_on_a_gaussian_law_are_its_convolutions(density):
    """q = N(0, 1): gfsd -x / (1 + h); blob that minus a B x exp(-B x^2 / 2); gfsf -x for a ridge of zero.

    jko (4 / h) E[(x - y)(1 - (x - y)^2 / (2 h))], negative, for the coupling of N(0, 1) with itself, y = r x + noise of
    variance 1 - r^2 with r / (1 - r^2) = 1 / h.
    """
    h, x = 0.3, np.linspace(-6, 6, 121)
    w = np.exp(-(x**2) / 2)
    w /= w.sum()
    found = np.asarray(density_gradient(density, jnp.asarray(x[:, None]), jnp.asarray(w), h, 1e-10))[:, 0]
    bulk = np.abs(x) < 1.5
    if density == "gfsf":  # not smooth at the ends; the ridge
        assert np.abs(found + x)[bulk].max() < 1e-3
        return
    expected = -x / (1 + h)
    if density == "blob":
        a, B = (1 + h) / np.sqrt(1 + h + h**2), h / (1 + h + h**2)
        expected = expected - a * B * x * np.exp(-B * x**2 / 2)
    if density == "jko":
        r = (np.hypot(h, 2) - h) / 2
        m, v = (1 - r) * x, 1 - r**2
        expected = 4 / h * (m - (m**3 + 3 * m * v) / (2 * h))
    assert np.abs(found - expected)[bulk].max() < 1e-7  # q has a mass of 2e-9 beyond the grid


def test_volume_and_lebesgue_densities_have_the_laws_that_are_stated():
    """U taken as minus the log-density with respect to the volume has the Lebesgue law exp(-U) |G|^1/2."""
    law, metric = target("gaussian-correlated-2d"), NonHessian2D()
    nodes, weights = law.quadrature(40)
    inverse = np.asarray(jax.vmap(metric.inverse)(jnp.asarray(nodes)))
    volume = weights / np.sqrt(np.linalg.det(inverse))
    slopes = (nodes - law.gaussian.mean) @ law.gaussian.precision
    sizes = {}
    for density in ("lebesgue", "volume"):
        run = jax.jit(RSVGD(metric, bandwidth=2.0, density=density).velocity)
        for name, masses in (("lebesgue", weights), ("volume", volume / volume.sum())):
            v = np.asarray(run(jnp.asarray(nodes), jnp.asarray(slopes), jnp.asarray(masses)))
            sizes[density, name] = float(np.sqrt(masses @ np.sum(v**2, axis=1)))
    for density in ("lebesgue", "volume"):
        other = "volume" if density == "lebesgue" else "lebesgue"
        # the rule resolves the factor |G|^1/2 to 1e-10; the other density is off by a part of the velocity
        assert sizes[density, density] < 1e-6 * sizes[density, other]


def test_the_divergence_of_the_logistic_metric_is_that_of_its_inverse():
    metric = LogisticMetric(RNG.normal(size=(9, 3)), 0.7, scale=1.5)
    w = jnp.asarray([0.3, -0.8, 0.5])
    assert close(metric.divergence(w), row_divergence(metric.inverse, w))
    hessian = jax.hessian(lambda w: 1.5 * jnp.sum(jax.nn.softplus(metric.features @ w)) + w @ w / 1.4)(w)
    assert close(jnp.linalg.inv(metric.inverse(w)), hessian)


@pytest.mark.parametrize("form", ["det", "fgh"])
def test_psghmc_is_the_flow_of_its_dynamics(form):
    law, h = target("gaussian-correlated-2d"), 0.05
    mine = PSGHMC(0.7, 2.0, form=form, bandwidth=0.5)
    general = ParticleFlow(mine.dynamics, law, form=form, bandwidth=0.5)
    start = mine.init(jax.random.key(0), jnp.asarray(X), Exact(law))
    z = mine.unpack(start)
    ends = []
    for sampler in (mine, general):
        state = sampler.pack(jax.random.key(1), z, Exact(law))
        ends.append(sampler.step(jax.random.key(2), state, h, Exact(law)))
    assert close(ends[0].position, ends[1].position)
    assert close(ends[0].auxiliary, ends[1].auxiliary)
    # momenta of variance S: chi2 of 14 with mean 14 and deviation 5.3
    assert 1 < float(jnp.sum(start.auxiliary**2)) / 2.0 < 40


def as_length(method):
    """The bandwidth taken for a length rather than its square, in the velocity and in the kernel that is declared."""

    class AsLength(method):
        def move(self, particles, gradients, weights, bandwidths):
            return super().move(particles, gradients, weights, tuple(h**2 for h in bandwidths))

        def kernel(self, particles):
            return method.kernel(dataclasses.replace(self, bandwidth=self.bandwidth**2), particles)

    return AsLength


def test_a_kernel_is_what_its_option_says_and_not_what_the_code_declares():
    """Both checks take the definition: a declared kernel that is wrong in the same way is no excuse."""
    svgd, rsvgd = (dataclasses.replace(sampler_row(name), variants=()) for name in ("svgd", "rsvgd-diagonal"))
    tried = {
        "kernel_velocity": (svgd, lambda kind: lambda target, bandwidth: kind(SVGD)(bandwidth=bandwidth)),
        "coordinate_invariance": (
            rsvgd,
            lambda kind: lambda target, bandwidth: kind(RSVGD)(DiagonalMetric(), bandwidth=bandwidth),
        ),
    }
    for check, (row, build) in tried.items():
        found = []
        for kind, h in ((lambda method: method, 0.5), (as_length, 0.5), (as_length, 1.0)):
            subject = Subject(dataclasses.replace(row, build=build(kind)), {"bandwidth": h})
            found.append(execute(find_statement(check), subject, "gaussian-correlated-2d", 0).verdict)
            rest = execute(find_statement("weighted_fixed_point"), subject, "gaussian-1d-scaled", 0)
            assert rest.verdict == "pass", rest.reason
        assert found == ["pass", "fail", "pass"], check


class LastSquares(SVGD):
    """The running mean of squares starts anew from the last direction in every step."""

    def step(self, key, state, step_size, estimator):
        new = super().step(key, state, step_size, estimator)
        rows = flatten(state.position)
        gradients, _ = estimates(estimator, key, state.estate, state.position)
        return new._replace(square=self.move(rows, gradients, uniform_weights(rows), (self.bandwidth,)) ** 2)


@pytest.mark.parametrize(("method", "verdict"), [(SVGD, "pass"), (LastSquares, "fail")])
def test_scaled_steps_have_a_running_mean(method, verdict):
    """It is found in the third step: the first two are the same."""
    row = dataclasses.replace(sampler_row("svgd"), build=lambda target, **options: method(**options))
    subject = Subject(row, {"bandwidth": 2.0, "adagrad": True})
    for name in ("gaussian-1d-scaled", "gaussian-correlated-2d"):
        result = execute(find_statement("step_along_velocity"), subject, name, 0)
        assert result.verdict == verdict, result.reason


@dataclasses.dataclass(frozen=True)
class WholeRidge(PSGHMC):
    """The ridge of GFSF added to every entry of the diagonal, rather than shared among the particles."""

    def score(self, z, size, weights, last):
        whole = dataclasses.replace(self, ridge=self.ridge * len(z))
        return FlowMixin.score(whole, z, size, weights, last)


def test_the_size_of_a_ridge_is_seen_where_the_estimate_has_one():
    """At default options the estimate is Blob, which has none."""
    row = sampler_row("psghmc-fgh")
    wrong = dataclasses.replace(row, build=lambda target, **options: WholeRidge(form="fgh", **options))
    found = {}
    for name, tried in (("right", row), ("wrong", wrong)):
        for options in ({}, dict(row.variants[-1])):
            subject = Subject(tried, options)
            check = find_statement("density_estimate")
            found[name, bool(options)] = execute(check, subject, "gaussian-correlated-2d", 0).verdict
    right = {("right", False): "pass", ("right", True): "pass", ("wrong", False): "pass"}
    assert found == {**right, ("wrong", True): "fail"}


@pytest.mark.parametrize(("sign", "level", "verdict"), [(1, 1.0, "pass"), (-1, 1.0, "pass"), (1, 0.0, "fail")])
def test_a_metric_that_is_not_positive_is_none(sign, level, verdict):
    """sin(theta / 2) / 2 without the one: velocity and definition agree, the target is at rest and the divergence
    falls.
    """
    metric = DiagonalMetric(lambda x: level + sign * 0.5 * jnp.sin(0.5 * (x + jnp.roll(x, -1))))
    row = dataclasses.replace(sampler_row("rsvgd-diagonal"), build=lambda target: RSVGD(metric, bandwidth=0.5))
    for name in ("gaussian-1d-scaled", "gaussian-correlated-2d"):
        result = execute(find_statement("coordinate_invariance"), Subject(row), name, 0)
        assert result.verdict == verdict, result.reason
        assert verdict == "pass" or "no metric" in result.reason
    if verdict == "fail":
        for name in ("weighted_fixed_point", "mean_field_fixed_point", "divergence_falls"):
            assert execute(find_statement(name), Subject(row), "gaussian-1d-scaled", 0).verdict == "pass", name


def test_psghmc_moves_by_the_equations_of_the_poster():
    law, S, C, e = target("gaussian-correlated-2d"), 2.0, 0.7, 0.05
    r = RNG.normal(size=X.shape)
    uniform = jnp.full(7, 1 / 7)
    score = lambda x: np.asarray(density_gradient("blob", jnp.asarray(x), uniform, 0.5))
    slope = (X - law.gaussian.mean) @ law.gaussian.precision
    for form in ("det", "fgh"):
        sampler = PSGHMC(C, S, form=form, bandwidth=0.5)
        state = sampler.init(jax.random.key(0), jnp.asarray(X), Exact(law))._replace(auxiliary=jnp.asarray(r))
        new = sampler.step(jax.random.key(0), state, e, Exact(law))
        extra = form == "fgh"
        assert close(new.position, X + e * (r / S + extra * score(r)))
        assert close(new.auxiliary, r + e * (-slope - C * r / S - C * score(r) - extra * score(X)))


def test_parvi_is_the_flow_of_langevin_dynamics():
    law = target("gaussian-correlated-2d")
    for density in DENSITIES:
        general = ParticleFlow(lambda t: overdamped_dynamics(t, 1.0), law, density=density, bandwidth=0.5)
        ends = []
        for sampler in (ParVI(density, 0.5), general):
            state = sampler.init(jax.random.key(0), jnp.asarray(X), Exact(law))
            ends.append(sampler.step(jax.random.key(0), state, 0.1, Exact(law)).position)
        assert close(ends[0], ends[1])


def test_particles_stay_on_their_manifold():
    for name in ("vmf-s1^2", "matrix-langevin-3-2"):
        law = target(name)
        sampler = EmbeddedRSVGD(law.manifold)
        start = jax.vmap(law.manifold.random)(jax.random.split(jax.random.key(3), 8))
        state = sampler.init(jax.random.key(0), start, Exact(law))
        step = jax.jit(lambda s, sampler=sampler, law=law: sampler.step(jax.random.key(0), s, 0.3, Exact(law)))
        for _ in range(20):
            state = step(state)
        assert bool(jax.vmap(law.manifold.contains)(state.position).all())
        assert float(jnp.abs(state.position - start).max()) > 0.1


def test_the_derivatives_of_the_arcsine_kernel_are_those_of_its_taylor_series():
    """arcsin u = sum_k (2k)! / (4^k (k!)^2 (2k + 1)) u^(2k + 1): the coefficients that make it a kernel."""
    rho, t = 0.7, np.linspace(-1, 1, 9)
    c, series = 1.0, np.zeros(202)
    for k in range(100):
        series[2 * k + 1] = c / (2 * k + 1) * rho ** (2 * k + 1)
        c *= (2 * k + 1) / (2 * k + 2)
    for order, found in enumerate(arcsine_derivatives(jnp.asarray(t), rho), 1):
        expected = np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyder(series, order))
        assert close(found, expected)


def test_a_zonal_field_with_the_exponential_is_that_of_the_von_mises_fisher_kernel():
    kappa, points = 1.7, np.asarray(jax.vmap(Sphere(3).random)(jax.random.split(jax.random.key(2), 7)))
    slopes, weights = jnp.asarray(RNG.normal(size=points.shape)), jnp.asarray(W)
    k = jnp.exp(kappa * (points @ points.T - 1))
    found = zonal_direction(jnp.asarray(points), slopes, weights, (kappa * k, kappa**2 * k, kappa**3 * k))
    expected = EmbeddedRSVGD(Sphere(3), kappa).velocity(jnp.asarray(points), slopes, weights)
    assert close(found, expected)


def test_antipodal_pairs_are_at_rest_with_the_arcsine_kernel_and_not_with_another():
    """The kernel is odd: it does not see where the pairs are, for a uniform target."""
    half = np.asarray(jax.vmap(Sphere(3).random)(jax.random.split(jax.random.key(4), 3)))
    points = jnp.asarray(np.concatenate([half, -half]))
    run = lambda sampler: np.asarray(sampler.velocity(points, jnp.zeros_like(points), jnp.full(6, 1 / 6)))
    one = np.abs(np.asarray(ArcsineRSVGD(Sphere(3)).velocity(points[:3], jnp.zeros((3, 3)), jnp.full(3, 1 / 3)))).max()
    assert np.abs(run(ArcsineRSVGD(Sphere(3)))).max() < 100 * EPS * one
    assert np.abs(run(EmbeddedRSVGD(Sphere(3), 1.0))).max() > 0.01


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: SVGD(bandwidth="mean"), "bandwidth"),
        (lambda: SVGD(bandwidth=(1.0, -1.0)), "bandwidth"),
        (lambda: ParVI(bandwidth=(1.0, 2.0)), "bandwidth"),
        (lambda: ParVI("kde"), "density"),
        (lambda: ParVI(ridge=0.0), "ridge"),
        (lambda: RSVGD(NonHessian2D(), density="chart"), "density"),
        (lambda: EmbeddedRSVGD(Euclidean(2)), "manifold"),
        (lambda: EmbeddedRSVGD(Sphere(3), 0.0), "concentration"),
        (lambda: LogisticMetric(np.ones((2, 1)), 1.0, scale=0.0), "scale"),
        (lambda: ArcsineRSVGD(Euclidean(3)), "manifold"),
        (lambda: ArcsineRSVGD(Sphere(3), 1.0), "scale"),
        (lambda: PSGHMC(friction=0.0), "friction"),
        (lambda: PSGHMC(mass=-1.0), "mass"),
        (lambda: PSGHMC(form="both"), "form"),
        (lambda: ParticleFlow(PSGHMC().dynamics, target("banana"), form="both"), "form"),
        (
            lambda: ParticleFlow(lambda t: overdamped_dynamics(target("banana"), 1.0), target("anharmonic")),
            "dynamics",
        ),
    ],
)
def test_bad_input_is_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_every_particle_row_is_a_sampler_that_some_check_of_its_law_runs_on():
    laws = [
        c for c in STATEMENTS if c.tier == "law" and c.name not in ("permutation_equivariance", "repulsion_balance")
    ]
    for row in SAMPLERS:
        sampler = row.build(target(row.targets[0]))
        if ParticleLaw in sampler.claims:
            assert isinstance(sampler, Sampler)
            assert any(c.applies_to(Subject(row)) for c in laws if "particle" in c.function.__module__), row.name


@pytest.mark.parametrize(("name", "verdict"), [("svgd", "pass"), ("svgd-without-repulsion", "fail")])
def test_the_rate_in_the_number_of_particles_tells_a_wrong_field(name, verdict):
    """A field whose mean is not zero does not fall as M^-1/2."""
    subject = Subject(sampler_row(name)) if name == "svgd" else find_defect(name).subject
    result = particle_rate(Case(subject, target("gaussian-correlated-2d")), 5)
    assert result.verdict == verdict, result.reason


def test_the_rate_has_uniform_p_values_on_a_correct_sampler():
    """Sixty seeds: the smaller of the two p-values, corrected for both, is below 1/2 in about half of the runs."""
    subject, p = Subject(sampler_row("svgd"), {"bandwidth": 0.7}), []
    with fraction_of_chains(0.064):
        for seed in range(60):
            p.append(particle_rate(Case(subject, target("gaussian-1d-scaled")), seed).significance.p_value)
    below = np.count_nonzero(np.array(p) < 0.5)
    # 1 - (1 - 1/4)^2 = 0.4375 for independent p-values: 26 +- 4.9 * 3.9, binomial, at 1e-6 two-sided
    assert abs(below - 60 * 0.4375) < 4.9 * 3.9
