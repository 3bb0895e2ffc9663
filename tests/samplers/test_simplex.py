"""Samplers on positive and simplex spaces. Oracles: closed forms of Patterson and Teh's parameterisations, of SCIR's
finite-time law and of the Ornstein-Uhlenbeck process; enumeration of minibatches; exact samplers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from scipy import integrate, stats

from sgmcmc_verification.checks.tracing.host_branching import branches
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, fokker_planck_residual, row_divergence
from sgmcmc_verification.samplers.dynamics.cox_ingersoll_ross import cir_dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumState
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.latent_counts import LatentCounts
from sgmcmc_verification.samplers.interface.claims import Diffusion
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.positive.cir_euler import CIREuler
from sgmcmc_verification.samplers.positive.cir_transition import cir_transition
from sgmcmc_verification.samplers.positive.exponential_ou import ExponentialOU, LogLocation
from sgmcmc_verification.samplers.positive.scir import SCIR, CountMinibatch, ExactCounts
from sgmcmc_verification.samplers.riemannian.metrics import (
    ExpandedNaturalMetric,
    FlatMetric,
    PositiveMetric,
    ReducedMeanMetric,
    ReducedNaturalMetric,
    dense,
)
from sgmcmc_verification.samplers.riemannian.sgrhmc import SGRHMC
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.simplex import parameterisations as posterior

EPS = np.finfo(np.float64).eps
RATE = 1e-6

# The four parameterisations. Closed forms of patterson2013stochastic, section 4, in terms of pi and theta.

N3, A3 = np.array(posterior.REDUCED), posterior.PRIOR + np.array(posterior.REDUCED)
N2, A2 = np.array(posterior.EXPANDED), posterior.SMOOTH + np.array(posterior.EXPANDED)


def reduced_mean(theta):
    pi = np.append(theta, 1 - theta.sum())
    N = N3.sum()
    gradient = (A3[:-1] - 1) / theta - (A3[-1] - 1) / pi[-1]
    return gradient, (np.diag(theta) - np.outer(theta, theta)) / N, (1 - 3 * theta) / N


def reduced_natural(theta):
    pi = np.append(np.exp(theta), 1.0)
    pi = pi / pi.sum()
    p, N = pi[:-1], N3.sum()
    gradient = A3[:-1] - A3.sum() * p
    inverse = (np.diag(1 / p) + 1 / pi[-1]) / N
    return gradient, inverse, (-(1 - p) / p + (1 - pi[-1]) / pi[-1]) / N


def expanded_mean(theta):
    gradient = (A2 - 1) / theta - N2.sum() / theta.sum() - 1
    return gradient, np.diag(theta), np.ones(2)


def expanded_natural(theta):
    gradient = A2 - N2.sum() * np.exp(theta) / np.exp(theta).sum() - np.exp(theta)
    return gradient, np.diag(np.exp(-theta)), -np.exp(-theta)


CHARTS = {
    "simplex-reduced-mean": (reduced_mean, ReducedMeanMetric(sum(posterior.REDUCED))),
    "simplex-reduced-natural": (reduced_natural, ReducedNaturalMetric(sum(posterior.REDUCED))),
    "simplex-expanded-mean": (expanded_mean, PositiveMetric()),
    "simplex-expanded-natural": (expanded_natural, ExpandedNaturalMetric()),
}


@pytest.mark.parametrize("name", CHARTS)
def test_gradient_metric_and_gamma_have_their_closed_forms(name):
    closed, metric = CHARTS[name]
    law = target(name)
    for theta in (np.array([0.2, 0.35]), np.array([0.5, 0.15])):
        gradient, inverse, gamma = closed(theta)
        x = jnp.asarray(theta)
        allowed = 1e3 * EPS
        assert np.allclose(-jax.grad(law.flat_potential)(x), gradient, rtol=allowed, atol=allowed * 100)
        assert np.allclose(dense(metric.inverse(x)), inverse, rtol=allowed, atol=allowed)
        root = dense(metric.inverse_sqrt(x))
        assert np.allclose(root @ root, inverse, rtol=allowed, atol=allowed)
        assert np.allclose(root, root.T, rtol=allowed, atol=allowed)
        assert np.allclose(row_divergence(metric.inverse, x), gamma, rtol=allowed, atol=100 * allowed)


@pytest.mark.parametrize("name", CHARTS)
def test_every_parameterisation_has_the_same_law_of_the_probabilities(name):
    """pi is Dirichlet(alpha + n): exp(-U) integrated by a plain grid, without the oracles of the target."""
    law = target(name)
    a = A3 if "reduced" in name else A2
    mean = law.moments["pi[0]"].function
    low, high = {"simplex-reduced-mean": (1e-9, 1), "simplex-reduced-natural": (-7, 7)}.get(
        name, (1e-9, 60) if name == "simplex-expanded-mean" else (-5, 5)
    )
    grid = np.linspace(low, high, 1201)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    points = points[points.sum(axis=1) < 1] if name == "simplex-reduced-mean" else points
    energy = np.asarray(jax.vmap(law.flat_potential)(jnp.asarray(points)))
    weights = np.exp(-(energy - energy.min()))
    values = np.asarray(jax.vmap(mean)(jnp.asarray(points)))
    found = (weights @ values) / weights.sum()
    variance = (weights @ values**2) / weights.sum() - found**2
    exact = stats.beta(a[0], a.sum() - a[0])
    # smooth integrands that vanish with their derivatives at the edges: the trapezoidal rule leaves the edge alone
    assert found == pytest.approx(exact.mean(), rel=1e-6)
    assert variance == pytest.approx(exact.var(), rel=1e-5)


@pytest.mark.parametrize("name", CHARTS)
def test_exact_samples_have_the_moments_of_the_target(name):
    law, n = target(name), 20000
    assert law.sample is not None
    draws = law.sample(jax.random.key(3), n)
    for label, moment in law.moments.items():
        values = np.asarray(jax.vmap(moment.function)(draws))
        assert abs(values.mean() - moment.value) <= stats.norm.isf(RATE / 2) * values.std() / np.sqrt(n), label
    for label, cdf in law.cdfs.items():
        values = np.asarray(jax.vmap(cdf.function)(draws))
        assert stats.kstest(values, cdf.cdf).pvalue > RATE, label


def test_our_step_is_that_of_patterson_and_teh_with_half_their_epsilon():
    """theta + (eps / 2) (alpha - theta + n - N omega) + sqrt(eps theta) Z, their equation in the expanded mean."""
    law, theta, eps = target("simplex-expanded-mean"), np.array([3.0, 5.0]), 0.02
    sampler, key = SGRLD(PositiveMetric(), reflect=True), jax.random.key(1)
    state = sampler.step(key, PositionState(jnp.asarray(theta), ()), eps / 2, Exact(law))
    z = jax.random.normal(jax.random.split(key)[1], (2,))
    drift = posterior.SMOOTH - theta + N2 - N2.sum() * theta / theta.sum()
    expected = np.abs(theta + eps / 2 * drift + np.sqrt(eps * theta) * np.asarray(z))
    assert np.allclose(state.position, expected, rtol=1e2 * EPS, atol=0)


# Reflection


@pytest.mark.parametrize("metric", [FlatMetric(), PositiveMetric()])
def test_a_reflection_turns_position_and_momentum_of_the_coordinates_that_cross(metric):
    law, sampler = target("simplex-expanded-mean"), SGRHMC(metric, reflect=True)
    free = SGRHMC(metric)
    state = MomentumState(jnp.asarray([0.05, 4.0]), jnp.asarray([-40.0, 1.0]), ())
    key, h = jax.random.key(0), 0.05
    moved, straight = (s.step(key, state, h, Exact(law)) for s in (sampler, free))
    assert straight.position[0] < 0 < straight.position[1]
    assert np.array_equal(moved.position, np.abs(straight.position))
    assert np.array_equal(moved.momentum, straight.momentum * np.array([-1.0, 1.0]))


# Theorem 2.1: u = 2 sqrt(theta) is Langevin for a generalised Gamma law


def test_the_root_of_a_cir_process_is_langevin_symbolically():
    """Ito: f_u = u' f + u'' D and D_u = u'^2 D; -d/du of U_u = u^2 / 4 - (2 a - 1) log u is that drift, and D_u = 1.

    Source: baker2018large, theorem 2.1.
    """
    theta, a, u = sympy.symbols("theta a u", positive=True)
    f, D, change = a - theta, theta, 2 * sympy.sqrt(theta)
    drift = sympy.diff(change, theta) * f + sympy.diff(change, theta, 2) * D
    diffusion = sympy.diff(change, theta) ** 2 * D
    potential = u**2 / 4 - (2 * a - 1) * sympy.log(u)
    at = lambda expression: expression.subs(theta, u**2 / 4)
    assert sympy.simplify(at(diffusion) - 1) == 0
    assert sympy.simplify(at(drift) + sympy.diff(potential, u)) == 0
    # and exp(-potential) is the law of 2 sqrt(Gamma(a)): the Gamma density times d theta / d u
    density = theta ** (a - 1) * sympy.exp(-theta) * sympy.sqrt(theta)
    ratio = sympy.simplify(at(density) / sympy.exp(-potential))
    assert sympy.simplify(sympy.diff(ratio, u)) == 0


@pytest.mark.parametrize("a", [0.3, 2.5])
def test_the_root_of_a_cir_process_is_langevin_by_the_recipe(a):
    """H = u^2 / 4 - (2 a - 1) log u, D = 1, Q = 0 has the drift of theorem 2.1 and no Fokker-Planck residual."""
    one = lambda z: jnp.ones((1, 1))
    model = Dynamics(lambda z: z[0] ** 2 / 4 - (2 * a - 1) * jnp.log(z[0]), one, lambda z: jnp.zeros((1, 1)), ("u",), 1)
    for u in (0.4, 3.0):
        z = jnp.asarray([u])
        assert float(model.drift(z)[0]) == pytest.approx((2 * a - 1) / u - u / 2, rel=100 * EPS, abs=100 * EPS)
        assert abs(float(fokker_planck_residual(model.drift, model.D, model.H, z))) < 1e3 * EPS * (1 + 1 / u**2)


def test_the_dynamics_of_cir_have_the_drift_a_minus_theta():
    law = target("gamma")
    model = cir_dynamics(law)
    for x in (0.3, 2.0, 9.0):
        assert float(model.drift(jnp.asarray([x]))[0]) == pytest.approx(2.5 - x, rel=100 * EPS, abs=100 * EPS)


# SCIR: finite-time oracles


def test_the_laplace_transform_of_many_steps_is_theorem_3_1_with_its_index_reversed():
    """log E exp(-s theta_M) = log E exp(-s theta_M) with exact counts + sum_m (a_{M-m+1} - a) log(ratio_m).

    ratio_m = (1 + s (1 - e^-(m-1)h)) / (1 + s (1 - e^-mh)), a_m the shape of step m: the last step has m = 1. The
    printed order of the indices gives another value. Against the recursion of one step, and the branches of two.

    Source: baker2018large, theorem 3.1.
    """
    h, s, a, theta0, shapes = 0.4, 0.8, 2.0, 1.3, np.array([0.9, 1.7, 4.1])
    argument, log_value = s, 0.0
    for shape in shapes[::-1]:
        log_value -= shape * np.log1p(argument * -np.expm1(-h))
        argument *= np.exp(-h) / (1 + argument * -np.expm1(-h))
    recursion = np.exp(log_value - argument * theta0)

    def theorem(order):
        M = len(order)
        reach = lambda m: 1 + s * -np.expm1(-m * h)
        clean = -a * np.log(reach(M)) - s * theta0 * np.exp(-M * h) / reach(M)
        m = np.arange(1, M + 1)
        return np.exp(clean + np.sum((order - a) * np.log(reach(m - 1) / reach(m))))

    assert theorem(shapes[::-1]) == pytest.approx(recursion, rel=100 * EPS)
    assert abs(theorem(shapes) / recursion - 1) > 0.05

    def two_steps(generator):
        y = np.array([np.log(theta0)])
        for shape in shapes[1:]:
            y = cir_transition(generator, y, shape, h)
        return float(np.exp(-s * np.exp(y[0])))

    found, coarser = (sum(w * v for w, v in branches(two_steps, k)) for k in (10, 8))
    step2 = s * np.exp(-h) / (1 + s * -np.expm1(-h))
    exact = np.exp(
        -shapes[2] * np.log1p(s * -np.expm1(-h))
        - shapes[1] * np.log1p(step2 * -np.expm1(-h))
        - theta0 * step2 * np.exp(-h) / (1 + step2 * -np.expm1(-h))
    )
    assert abs(found - exact) < 10 * abs(found - coarser) + 1e3 * EPS


def test_the_recursions_have_the_solution_of_corollary_3_2():
    """Var theta^_M = Var theta_M + (1 - e^-2Mh) tanh(h/2) Var a^; stationary a + tanh(h/2) Var a^."""
    h, a, noise, theta0, M = 0.3, 1.7, 2.2, 0.4, 7
    decay, c = np.exp(-h), -np.expm1(-h)
    mean, variance = theta0, 0.0
    for _ in range(M):
        variance = decay**2 * variance + c**2 * noise + 2 * mean * decay * c + a * c**2
        mean = decay * mean + c * a
    far = np.exp(-M * h)
    assert mean == pytest.approx(theta0 * far + a * (1 - far), rel=100 * EPS)
    clean = 2 * theta0 * (far - far**2) + a * (1 - far) ** 2
    assert variance == pytest.approx(clean + (1 - far**2) * np.tanh(h / 2) * noise, rel=100 * EPS)


@pytest.mark.parametrize("replace", [True, False])
def test_the_variance_of_minibatch_counts_has_its_closed_form(replace):
    """(N^2 / n) p (1 - p), times (N - n) / (N - 1) without replacement: all minibatches enumerated."""
    labels, n = np.array([0, 0, 1, 2, 2, 2]), 2
    estimator = CountMinibatch(labels, 4, n, replace)
    batches = itertools.product(range(6), repeat=n) if replace else itertools.combinations(range(6), n)
    values = np.array([estimator.at(list(b)).statistics for b in batches])
    p, N = np.array([2, 1, 3, 0]) / 6, 6
    closed = N**2 / n * p * (1 - p) * (1 if replace else (N - n) / (N - 1))
    assert np.allclose(values.var(axis=0), closed, rtol=1e2 * EPS, atol=1e2 * EPS)


def test_control_variates_of_observed_labels_are_the_exact_counts():
    """a^(theta) - a^(theta_0) + a(theta_0) with a^ that does not depend on theta is a(theta_0), whatever the minibatch.

    So a control variate costs one pass over the data and is `ExactCounts`; there is no other variant for observed
    labels.
    """
    labels = np.repeat([0, 1, 2], [5, 3, 2])
    minibatch, full = CountMinibatch(labels, 3, 2), ExactCounts(np.bincount(labels))
    exact = full.estimate(None, (), np.ones(3))[0].statistics
    for indices in itertools.combinations(range(10), 2):
        here, there = (minibatch.at(list(indices)).statistics for _ in ("theta", "theta_0"))
        assert np.array_equal(here - there + exact, exact)


def test_control_variates_of_latent_counts_are_unbiased_and_vanish_at_the_reference():
    """A mixture with known components: E[z_i | x_i, theta] = theta_k f_k(x_i) / sum. All minibatches are enumerated."""
    likelihood = np.random.default_rng(1).uniform(0.1, 1.0, (6, 3))

    def expected(theta, indices):
        weights = theta * likelihood[indices]
        return weights / weights.sum(axis=1, keepdims=True)

    reference = np.array([1.0, 2.0, 0.5])
    plain = LatentCounts(expected, 6, 2)
    controlled = LatentCounts(expected, 6, 2, reference)
    estate = controlled.init(None, reference)
    batches = [list(b) for b in itertools.combinations(range(6), 2)]
    spread = {}
    for shift in (0.0, 0.01, 0.02):
        theta = reference * (1 + shift * np.array([1.0, -1.0, 0.5]))
        values = np.array([controlled.at(theta, b, estate).statistics for b in batches])
        crude = np.array([plain.at(theta, b, ()).statistics for b in batches])
        for found in (values, crude):
            assert np.allclose(found.mean(axis=0), plain.total(theta), rtol=1e3 * EPS, atol=1e3 * EPS)
        spread[shift] = values.var(axis=0).sum()
        assert spread[shift] < 1e-3 * crude.var(axis=0).sum()
    assert spread[0.0] < (1e2 * EPS) ** 2
    assert spread[0.02] / spread[0.01] == pytest.approx(4, rel=0.1)  # |theta - theta_0|^2, up to the next order


def test_a_gamma_law_in_linear_space_underflows_to_rows_of_zeros():
    """What the logarithms of `cir_transition` are for: P(Gamma(1e-4) < 1e-308) = .93."""
    rng = np.random.default_rng(0)
    linear = rng.standard_gamma(1e-4, (2000, 10))
    assert 0.5**10 < np.mean((linear == 0).all(axis=1)) < 0.6
    logs = cir_transition(rng, np.log(linear, where=linear > 0, out=np.full(linear.shape, -np.inf)), 1e-4, 0.5)
    assert np.isfinite(logs).all()


# CIR-Euler and the exponential Ornstein-Uhlenbeck process


def test_cir_euler_tends_to_the_exact_transition_with_order_one():
    """E theta^2 after the time 1, by the recursion of the scheme, against that of the process."""
    a, theta0 = 2.0, 1.5
    sampler = CIREuler(a)

    def error(steps):
        h = 1 / steps
        mean, second = theta0, theta0**2
        for _ in range(steps):  # (theta + h (a - theta) + sqrt(2 h theta) Z)^2, squares do not see the mirror
            second = (1 - h) ** 2 * second + 2 * (1 - h) * h * a * mean + (h * a) ** 2 + 2 * h * mean
            mean = mean + h * (a - mean)
        E = np.exp(-1)
        exact = (theta0 * E + a * (1 - E)) ** 2 + 2 * theta0 * (E - E**2) + a * (1 - E) ** 2
        return second - exact

    assert error(200) / error(400) == pytest.approx(2, rel=0.02)

    def one(generator):
        state = sampler.step(generator, PositionState(np.array([theta0]), ()), 0.1, ExactCounts(np.zeros(1)))
        return state.position[0] ** 2

    square = sum(w * v for w, v in branches(one, 4))
    assert square == pytest.approx(0.81 * theta0**2 + 0.18 * a * theta0 + 0.01 * a**2 + 0.2 * theta0, rel=100 * EPS)


def test_cir_euler_stays_positive_and_refuses_bad_input():
    rng, sampler = np.random.default_rng(0), CIREuler(0.1)
    state = sampler.init(rng, np.full(1000, 0.01), ExactCounts(np.zeros(1000)))
    for _ in range(20):
        state = sampler.step(rng, state, 0.5, ExactCounts(np.zeros(1000)))
    assert (state.position > 0).all()
    with pytest.raises(ValueError, match="alpha"):
        CIREuler(0.0)
    with pytest.raises(ValueError, match="step_size"):
        sampler.step(rng, state, 0.0, ExactCounts(np.zeros(1000)))


def test_noisy_locations_add_tanh_of_half_a_step_to_the_variance():
    """Stationary on the log scale: N(mu, sigma^2 + tanh(h/2) Var mu^)."""
    logs = np.array([[0.1], [0.9], [-0.4], [1.4]])
    noise, h, sigma, chains = logs.var() / 2, 1.2, 0.3, 20000
    sampler, estimator = ExponentialOU(sigma), LogLocation(logs, batch_size=2)

    @jax.jit
    def run(key):
        def one(key):
            step = lambda state, k: (sampler.step(k, state, h, estimator), None)
            start = PositionState(jnp.exp(jnp.full(1, 0.5)), ())
            return jnp.log(jax.lax.scan(step, start, jax.random.split(key, 20))[0].position[0])

        return jax.vmap(one)(jax.random.split(key, chains))

    y = np.asarray(run(jax.random.key(2)))
    level, variance = stats.norm.isf(RATE / 2), sigma**2 + np.tanh(h / 2) * noise
    assert abs(y.mean() - logs.mean()) <= level * np.sqrt(variance / chains)
    squares = (y - y.mean()) ** 2
    # after 20 steps of 1.2 the start is forgotten to e^-48
    assert abs(squares.mean() - variance) <= level * squares.std() / np.sqrt(chains)
    assert abs(sigma**2 - variance) > 10 * squares.std() / np.sqrt(chains)


def test_the_exponential_ou_process_refuses_bad_input():
    with pytest.raises(ValueError, match="scale"):
        ExponentialOU(0.0)
    with pytest.raises(ValueError, match="batch_size"):
        LogLocation(np.zeros((3, 1)), batch_size=4)
    law = target("log-normal")
    with pytest.raises(ValueError, match="statistics"):
        ExponentialOU().step(jax.random.key(0), PositionState(law.example, ()), 0.1, Exact(law))


def test_the_stationary_law_of_scir_and_its_density_agree():
    """The Gamma law is carried over one transition: the integral of density times noncentral chi-square density."""
    a, h, y = 1.4, 0.6, 0.9
    c = -np.expm1(-h) / 2
    integrand = lambda x: stats.gamma(a).pdf(x) * stats.ncx2(2 * a, 2 * x / np.expm1(h)).pdf(y / c) / c
    value, error = integrate.quad(integrand, 0, 60, epsabs=1e-12)
    assert abs(value - stats.gamma(a).pdf(y)) < 10 * error + 1e-10
    assert SCIR(a).claims[Diffusion].dynamics is cir_dynamics
