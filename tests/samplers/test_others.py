"""HMC, MALA, SAGA, SCIR, SGGMC, SVGD, the host backend and the helper for strangers."""

import dataclasses
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.estimators.basic import Exact, FromLogDensity, Minibatch
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC, TangentPoint
from sgmcmc_verification.samplers.interface.claims import Composite, Diffusion, ExactLaw, ParticleLaw, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import complete, simple_sampler
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.overdamped.host_sgld import HostSGLD
from sgmcmc_verification.samplers.overdamped.mala import MALA
from sgmcmc_verification.samplers.overdamped.saga import SAGA, SAGALD, SAGATable
from sgmcmc_verification.samplers.particles.kernels import median_bandwidth, squared_distances
from sgmcmc_verification.samplers.particles.svgd import SVGD
from sgmcmc_verification.samplers.particles.svgd import stein_direction as weighted_direction
from sgmcmc_verification.samplers.positive.cir_transition import cir_transition
from sgmcmc_verification.samplers.positive.scir import SCIR, CountMinibatch, ExactCounts, SCIRState
from sgmcmc_verification.samplers.underdamped.hmc import HMC
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.registry import target
from tests.helpers.step_algebra import step_mean_and_covariance

EPS = float(np.finfo(np.float64).eps)
RATE = 1e-6
QUANTILE = float(stats.norm.isf(RATE / 2))
T = 1.7


def coupled(x):
    """U on a pytree with two leaves of equal shape, not separable."""
    a, b = x["a"], x["b"]
    return a[0] ** 4 / 4 + a[1] ** 2 + a[0] * b[1] / 2 + b[0] ** 2 * (1 + a[1] ** 2) / 2 + b[1] ** 2


def coupled_numpy(x):
    """The same potential and its gradient, by hand, for x = (a0, a1, b0, b1)."""
    a, c, b, d = x
    value = a**4 / 4 + c**2 + a * d / 2 + b**2 * (1 + c**2) / 2 + d**2
    return value, np.array([a**3 + d / 2, 2 * c + b**2 * c, b * (1 + c**2), a / 2 + 2 * d])


def tree(x):
    return {"a": jnp.asarray(x[:2]), "b": jnp.asarray(x[2:])}


COUPLED = FromLogDensity(lambda x: -coupled(x))


def hmc_numpy(x, w, h, num_steps):
    """End of a leapfrog trajectory and its acceptance probability."""
    y, r = x.copy(), np.sqrt(T) * w
    before = coupled_numpy(y)[0] + r @ r / 2
    for _ in range(num_steps):
        r = r - h / 2 * coupled_numpy(y)[1]
        y = y + h * r
        r = r - h / 2 * coupled_numpy(y)[1]
    return y, min(1.0, np.exp((before - coupled_numpy(y)[0] - r @ r / 2) / T))


def mala_numpy(x, w, h):
    """Proposal and acceptance probability from normal densities of scipy."""
    ux, gx = coupled_numpy(x)
    y = x - h * gx + np.sqrt(2 * h * T) * w
    uy, gy = coupled_numpy(y)
    scale = np.sqrt(2 * h * T)
    forward = stats.norm.logpdf(y, x - h * gx, scale).sum()
    backward = stats.norm.logpdf(x, y - h * gy, scale).sum()
    return y, min(1.0, np.exp(-uy / T + backward + ux / T - forward))


@pytest.mark.parametrize("name", ["hmc", "mala"])
def test_metropolis_step_accepts_with_the_probability_of_its_formula(name):
    rng, h = np.random.default_rng(3), 0.6 if name == "hmc" else 0.35
    sampler = HMC(num_steps=3, temperature=T) if name == "hmc" else MALA(temperature=T)
    key, empty = jax.random.key(0), jnp.zeros(0)

    def step(key, position):
        state = sampler.init(key, position, COUPLED)
        new = sampler.step(key, state, h, COUPLED)
        return jnp.concatenate([new.position["a"], new.position["b"]]), new.potential

    program = record(step, key, tree(np.zeros(4)))
    assert program.count("normal") == 4
    assert program.count("uniform") == 1
    run = jax.jit(lambda w, u, x: program(Noise(w, u[None], empty), key, x))
    probabilities = []
    for _ in range(12):
        x, w = rng.normal(size=4), rng.normal(size=4)
        y, probability = hmc_numpy(x, w, h, 3) if name == "hmc" else mala_numpy(x, w, h)
        probabilities.append(probability)
        slack = 1e-10 * probability  # round-off of exp, amplified by the energies (below 1e3)
        accepted, value = run(w, jnp.asarray(min(probability - slack, 1 - EPS)), tree(x))
        assert np.allclose(accepted, y, rtol=1e4 * EPS, atol=1e4 * EPS)
        assert np.isclose(value, coupled_numpy(y)[0], rtol=1e5 * EPS)
        if probability < 1:
            kept, value = run(w, jnp.asarray(probability + slack), tree(x))
            assert np.array_equal(kept, x)
            assert np.isclose(value, coupled_numpy(x)[0], rtol=1e3 * EPS)
    assert min(probabilities) < 0.9  # both outcomes were exercised


@pytest.mark.parametrize("sampler", [HMC(4, T), MALA(T)], ids=["hmc", "mala"])
@pytest.mark.parametrize("outside", [jnp.inf, jnp.nan])
def test_proposals_with_a_potential_that_is_not_finite_are_rejected(sampler, outside):
    wall = FromLogDensity(lambda x: jnp.where(x[0] < 1, -(x[0] ** 2) / 2, -outside))
    state = sampler.init(jax.random.key(0), jnp.array([0.9]), wall)
    keys = jax.random.split(jax.random.key(1), 200)
    positions = jax.jit(jax.vmap(lambda k: sampler.step(k, state, 0.5, wall).position))(keys)
    assert bool(jnp.all(positions < 1))
    assert 20 < int(jnp.sum(positions == 0.9)) < 180  # some are rejected, some are not


@pytest.mark.parametrize(("sampler", "h"), [(HMC(3), 0.25), (MALA(), 0.1)], ids=["hmc", "mala"])
def test_metropolis_chains_started_in_the_double_well_law_keep_it(sampler, h):
    law = target("double-well")
    estimator, n = Exact(law), 10000
    start = law.sample(jax.random.key(5), n)
    keys = jax.random.split(jax.random.key(6), n)

    def chain(key, position):
        init_key, run_key = jax.random.split(key)
        state = sampler.init(init_key, position, estimator)
        body = lambda s, k: (sampler.step(k, s, h, estimator), None)
        return jax.lax.scan(body, state, jax.random.split(run_key, 10))[0].position

    end = np.asarray(jax.jit(jax.vmap(chain))(keys, start))
    assert np.mean(np.abs(end - np.asarray(start)) > 0.1) > 0.5  # the chains moved
    for _, cdf in law.cdfs.items():
        assert stats.kstest(np.asarray(jax.vmap(cdf.function)(end)), cdf.cdf).pvalue > RATE


def test_metropolis_needs_a_potential():
    silent = types.SimpleNamespace(
        init=lambda key, x: (),
        estimate=lambda key, s, x: (Exact(target("double-well")).estimate(key, s, x)[0]._replace(potential=None), s),
    )
    for sampler in (HMC(), MALA()):
        with pytest.raises(ValueError, match="potential"):
            sampler.init(jax.random.key(0), jnp.zeros(1), silent)


# helper for strangers


def langevin(key, x, step_size, estimator):
    gradient = estimator.estimate(key, (), x)[0].gradient
    return x - step_size * gradient + jnp.sqrt(2 * step_size) * jax.random.normal(key, x.shape)


def test_simple_sampler_fills_in_everything_but_the_step():
    sampler, estimator = simple_sampler(langevin), Exact(target("gaussian-standard"))
    x = target("gaussian-standard").example
    assert isinstance(sampler, Sampler)
    state = sampler.init(jax.random.key(0), x, estimator)
    new = sampler.step(jax.random.key(1), state, 0.1, estimator)
    assert np.array_equal(sampler.position(new), langevin(jax.random.key(1), x, 0.1, estimator))
    assert np.array_equal(sampler.unpack(sampler.pack(jax.random.key(2), new, estimator)), new)
    assert sampler.needs == {"gradient"}
    assert sampler.backend == "jax"
    assert StationaryLaw in sampler.claims
    assert (sampler.claims.weak_order, sampler.claims.invariant_order) == (None, 1)
    assert Diffusion not in sampler.claims


def test_complete_keeps_what_an_object_has_and_fills_in_the_rest():
    candidate = types.SimpleNamespace(step=langevin, needs=frozenset({"gradient", "potential"}), backend="host")
    sampler = complete(candidate)
    assert isinstance(sampler, Sampler)
    assert sampler.needs == {"gradient", "potential"}
    assert sampler.backend == "host"
    own = HMC()
    assert complete(own) is own


@pytest.mark.parametrize(
    ("bad", "message"),
    [(object(), "no method step"), (types.SimpleNamespace(step=3), "no method step"), (HMC, "instance")],
)
def test_complete_refuses_what_is_no_sampler(bad, message):
    with pytest.raises(TypeError, match=message):
        complete(bad)


def test_simple_sampler_refuses_an_estimator_with_a_state():
    law = target("tiny-logistic")
    with pytest.raises(ValueError, match="estimator"):
        simple_sampler(langevin).init(jax.random.key(0), law.example, SAGA(law.terms, 2))


# SAGA


def random_table(terms, position, rng):
    shapes = jax.eval_shape(lambda x: jax.vmap(jax.grad(terms.datum), (None, 0))(x, terms.data), position)
    gradients = jax.tree.map(lambda s: jnp.asarray(rng.normal(size=s.shape)), shapes)
    return SAGATable(gradients, jax.tree.map(lambda g: g.sum(axis=0), gradients))


@pytest.mark.parametrize("replace", [True, False])
def test_saga_is_unbiased_whatever_its_table_holds(replace):
    law = target("tiny-logistic")
    estimator, x = SAGA(law.terms, 2, replace), law.example
    table = random_table(law.terms, x, np.random.default_rng(0))
    batches = jnp.asarray(Minibatch(law.terms, 2, replace).indices())
    gradients = jax.jit(jax.vmap(lambda i: estimator.at(i, table, x)[0].gradient))(batches)
    assert float(jnp.std(gradients, axis=0).min()) > 0.1  # the minibatches differ
    assert np.allclose(gradients.mean(axis=0), jax.grad(law.potential)(x), rtol=1e3 * EPS, atol=1e3 * EPS)


def test_saga_replaces_the_rows_of_the_minibatch_and_keeps_the_sum():
    law = target("tiny-logistic")
    estimator, x = SAGA(law.terms, 3), law.example
    table = random_table(law.terms, x, np.random.default_rng(1))
    fresh = jax.vmap(jax.grad(law.terms.datum), (None, 0))(x, law.terms.data)
    for indices in ([0, 1, 2], [4, 4, 1], [3, 3, 3]):
        new = estimator.at(jnp.array(indices), table, x)[1]
        expected = np.array(table.gradients)
        expected[indices] = np.asarray(fresh)[indices]
        assert np.allclose(new.gradients, expected, rtol=1e2 * EPS, atol=EPS)
        assert np.allclose(new.total, expected.sum(axis=0), rtol=1e3 * EPS, atol=1e2 * EPS)


def test_saga_gradient_is_exact_where_the_table_is_fresh():
    law = target("tiny-logistic")
    estimator, x = SAGA(law.terms, 2), law.example
    estimate, _ = estimator.estimate(jax.random.key(3), estimator.init(jax.random.key(0), x), x)
    assert np.allclose(estimate.gradient, jax.grad(law.potential)(x), rtol=1e3 * EPS, atol=1e3 * EPS)


def test_sagald_carries_the_table_through_its_steps():
    law = target("tiny-logistic")
    estimator, sampler = SAGA(law.terms, 2), SAGALD(T)
    state = sampler.init(jax.random.key(0), law.example, estimator)
    step = jax.jit(lambda k, s: sampler.step(k, s, 0.05, estimator))
    state = step(jax.random.key(2), state)  # leaves the position at which `init` has filled the table
    for key in jax.random.split(jax.random.key(1), 5):
        new = step(key, state)
        assert 1 <= int(jnp.sum(jnp.any(new.estate.gradients != state.estate.gradients, axis=1))) <= 2
        state = new
    assert np.allclose(state.estate.total, state.estate.gradients.sum(axis=0), rtol=1e3 * EPS, atol=1e2 * EPS)
    with pytest.raises(ValueError, match="compensate"):
        SAGALD(compensate=True)


# SCIR


@pytest.mark.parametrize("shape", [0.1, 0.8, 5.0])
def test_cir_transition_has_the_noncentral_chi_square_law(shape):
    h, start, n = 0.4, 1.3, 200000
    draws = np.exp(cir_transition(np.random.default_rng(7), np.full(n, np.log(start)), shape, h))
    factor = -np.expm1(-h) / 2
    law = stats.ncx2(2 * shape, 2 * start * np.exp(-h) / -np.expm1(-h))
    assert stats.kstest(draws / factor, law.cdf).pvalue > RATE


def test_cir_transition_keeps_a_sparse_gamma_law_where_its_draws_underflow():
    # Gamma(a) with a = 1e-3: log theta / a tends to minus an exponential; P(log theta < s) is regularised gammainc
    shape, n, rng = 1e-3, 20000, np.random.default_rng(8)
    start = np.log(rng.standard_gamma(shape + 1, n)) - rng.standard_exponential(n) / shape
    assert np.mean(start < np.log(np.finfo(float).tiny)) > 0.4
    end = cir_transition(rng, start, shape, 0.5)
    # for x -> 0, P(theta < x) = x^a / Gamma(a + 1) up to a relative x: exact in double precision below x = 1e-17
    small = end < -40
    bound = float(np.exp(shape * -40) / special.gamma(shape + 1))
    scaled = np.exp(shape * end[small]) / np.exp(shape * -40)
    assert stats.binomtest(int(small.sum()), n, bound).pvalue > RATE
    assert stats.kstest(scaled, "uniform").pvalue > RATE


@pytest.mark.parametrize("replace", [True, False])
def test_scir_has_the_finite_time_mean_and_variance_of_theorem_3_1(replace):
    labels = np.repeat([0, 1, 2], [12, 5, 3])
    alpha, h, steps, size, batch, chains = 0.5, 0.3, 4, 20, 4, 5000
    estimator, sampler, rng = CountMinibatch(labels, 3, batch, replace), SCIR(alpha), np.random.default_rng(9)
    theta0 = np.array([2.0, 0.5, 7.0])
    ends = np.empty((chains, 3))
    for c in range(chains):
        state = sampler.init(rng, theta0, estimator)
        for _ in range(steps):
            state = sampler.step(rng, state, h, estimator)
        ends[c] = sampler.position(state)
    # recursions of the conditional mean and variance of a noncentral chi-square with a random shape
    counts = np.array([12, 5, 3])
    a, p, E = alpha + counts, counts / size, np.exp(-h)
    noise = size**2 / batch * p * (1 - p) * (1 if replace else (size - batch) / (size - 1))
    mean, variance = theta0.copy(), np.zeros(3)
    for _ in range(steps):
        variance = E**2 * variance + (1 - E) ** 2 * noise + 2 * mean * (E - E**2) + a * (1 - E) ** 2
        mean = E * mean + (1 - E) * a
    level = stats.norm.isf(RATE / 12)
    assert np.all(np.abs(ends.mean(axis=0) - mean) <= level * np.sqrt(variance / chains))
    centred = (ends - ends.mean(axis=0)) ** 2
    assert np.all(np.abs(centred.mean(axis=0) - variance) <= level * centred.std(axis=0) / np.sqrt(chains))


def test_count_minibatches_are_unbiased():
    labels = np.array([0, 0, 1, 2, 2, 2])
    for replace, batches in (
        (True, itertools.product(range(6), repeat=2)),
        (False, itertools.combinations(range(6), 2)),
    ):
        estimator = CountMinibatch(labels, 4, 2, replace)
        values = np.array([estimator.at(list(b)).statistics for b in batches])
        assert np.allclose(values.mean(axis=0), [2, 1, 3, 0], rtol=1e2 * EPS, atol=1e2 * EPS)


def test_scir_with_exact_counts_keeps_the_gamma_laws():
    counts, n, rng = np.array([0.0, 3.0]), 20000, np.random.default_rng(10)
    sampler, estimator = SCIR(0.3), ExactCounts(counts)
    assert isinstance(sampler, Sampler)
    shape = 0.3 + counts
    state = sampler.init(rng, rng.standard_gamma(shape, (n, 2)), estimator)
    assert isinstance(state, SCIRState)
    end = sampler.position(sampler.step(rng, state, 2.0, estimator))
    for j in range(2):
        assert stats.kstest(end[:, j], stats.gamma(shape[j]).cdf).pvalue > RATE


def test_scir_refuses_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="alpha"):
        SCIR(0.0)
    with pytest.raises(ValueError, match="position"):
        SCIR(1.0).init(rng, np.array([-1.0]), ExactCounts(np.ones(1)))
    gradients = Exact(target("gaussian-standard"))
    state = SCIR(1.0).init(rng, np.ones_like(gradients.target.example), gradients)
    with pytest.raises(ValueError, match="counts"):
        SCIR(1.0).step(rng, state, 0.1, gradients)
    with pytest.raises(ValueError, match="batch_size"):
        CountMinibatch(np.array([0, 1]), 2, 3)
    with pytest.raises(ValueError, match="labels"):
        CountMinibatch(np.array([0, 2]), 2, 1)


# SGGMC

FREE = FromLogDensity(lambda x: 0.0 * jnp.sum(x))


def run_chains(sampler, estimator, start, h, steps, key):
    """End states of vmapped chains."""

    def chain(key, position):
        init_key, run_key = jax.random.split(key)
        state = sampler.init(init_key, position, estimator)
        body = lambda s, k: (sampler.step(k, s, h, estimator), None)
        return jax.lax.scan(body, state, jax.random.split(run_key, steps))[0]

    return jax.jit(jax.vmap(chain))(jax.random.split(key, start.shape[0]), start)


def test_sggmc_stays_on_the_sphere_and_its_velocity_tangent():
    law = target("vmf-s2")
    sampler, estimator = SGGMC(law.manifold, 0.7), Exact(law)
    state = sampler.init(jax.random.key(0), law.example, estimator)
    body = lambda s, k: ((new := sampler.step(k, s, 0.3, estimator)), (new.position, new.velocity))
    _, (x, v) = jax.jit(lambda s, k: jax.lax.scan(body, s, k))(state, jax.random.split(jax.random.key(1), 10000))
    assert float(jnp.max(jnp.abs(jnp.sum(x * x, axis=1) - 1))) <= 8 * EPS
    assert float(jnp.max(jnp.abs(jnp.sum(x * v, axis=1)) / (1 + jnp.linalg.norm(v, axis=1)))) <= 8 * EPS


@pytest.mark.parametrize("temperature", [1.0, T])
def test_sggmc_kinetic_energy_on_a_free_sphere_is_the_closed_form(temperature):
    # stationary variance of v <- e^-Ch v + e^(-Ch/2) N(0, 2 C T h): T C h / sinh(C h), on any manifold
    C, h, n, sphere = 1.0, 0.8, 60000, Sphere(3)
    start = jax.vmap(sphere.random)(jax.random.split(jax.random.key(2), n))
    state = run_chains(SGGMC(sphere, C, temperature), FREE, start, h, 20, jax.random.key(3))
    energy = np.asarray(jnp.sum(state.velocity**2, axis=1)) / 2
    expected = temperature * C * h / np.sinh(C * h)
    # the start has variance T, of which e^(-2 C h 20) < 1e-13 is left
    error = energy.std() / np.sqrt(n)
    assert abs(energy.mean() - expected) <= QUANTILE * error
    assert abs(temperature - expected) > 3 * QUANTILE * error  # the SDE itself has T: the scheme is what is seen


def test_sggmc_mean_resultant_tends_to_the_closed_form_with_the_square_of_the_step():
    kappa = 3.0
    sphere, mu, n = Sphere(3), jnp.array([2.0, -1.0, 2.0]) / 3, 60000
    estimator = FromLogDensity(lambda x: kappa * mu @ x)
    exact = 1 / np.tanh(kappa) - 1 / kappa
    # exact vMF heights on S^2 by inversion, start in equilibrium
    u = np.random.default_rng(4).random(n)
    height = 1 + np.log(u + (1 - u) * np.exp(-2 * kappa)) / kappa
    spin = jax.vmap(sphere.random)(jax.random.split(jax.random.key(5), n))
    across = jax.vmap(lambda s: sphere.project_roundoff(s - mu * (mu @ s)))(spin)
    start = height[:, None] * mu + np.sqrt(1 - height**2)[:, None] * across
    bias, error = [], []
    for h in (0.6, 0.3):
        state = run_chains(SGGMC(sphere, 1.0), estimator, start, h, round(6 / h), jax.random.key(6))
        z = np.asarray(state.position @ mu)
        bias.append(z.mean() - exact)
        error.append(z.std() / np.sqrt(n))
    # Richardson: with bias c h^2 + O(h^4) the combination below is O(h^4) = O(bias(0.6) / 4)
    extrapolated = (4 * bias[1] - bias[0]) / 3
    noise = np.hypot(4 * error[1], error[0]) / 3
    assert abs(extrapolated) <= QUANTILE * noise + 0.6**2 / 4 * abs(bias[0])


def test_sggmc_in_flat_space_is_the_symmetric_splitting_of_sghmc():
    law = target("gaussian-correlated-2d")
    sampler = SGGMC(Euclidean(2), 0.9, T)
    x, v, h, C = np.array([0.4, -1.1]), np.array([0.8, 0.3]), 0.3, 0.9
    z = TangentPoint(jnp.asarray(x), jnp.asarray(v))
    mean, covariance = step_mean_and_covariance(sampler, Exact(law), z, h)
    middle, decay = x + h / 2 * v, np.exp(-C * h / 2)
    new_v = decay * (decay * v - h * law.gaussian.precision @ (middle - law.gaussian.mean))
    push = np.vstack([h / 2 * decay * np.eye(2), decay * np.eye(2)])
    assert np.allclose(mean, np.concatenate([middle + h / 2 * new_v, new_v]), rtol=1e3 * EPS, atol=1e2 * EPS)
    assert np.allclose(covariance, 2 * C * T * h * push @ push.T, rtol=1e3 * EPS, atol=1e2 * EPS)
    assert Diffusion in sampler.claims
    assert Diffusion not in SGGMC(Sphere(3)).claims
    assert isinstance(sampler, Sampler)


# SVGD


def stein_direction(particles, gradients, bandwidth):
    """`weighted_direction` at equal weights, for one kernel."""
    return weighted_direction(particles, gradients, jnp.full(len(particles), 1 / len(particles)), (bandwidth,))


def test_stein_direction_is_the_double_sum_of_the_paper():
    rng = np.random.default_rng(11)
    particles, gradients, h = rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), 0.7
    expected = np.zeros((5, 2))
    for j in range(5):
        for i in range(5):
            difference = particles[i] - particles[j]
            kernel = np.exp(-difference @ difference / (2 * h))
            expected[j] += (-kernel * gradients[i] - difference / h * kernel) / 5
    assert np.allclose(stein_direction(particles, gradients, h), expected, rtol=1e3 * EPS, atol=1e2 * EPS)
    repulsion = stein_direction(jnp.asarray(particles), jnp.zeros((5, 2)), h)
    assert np.allclose(repulsion.sum(axis=0), 0, atol=1e2 * EPS)
    assert float(jnp.abs(repulsion).min()) > 1e-3


def test_stein_direction_vanishes_on_the_target_in_the_mean_field_limit():
    # E_x [ -K(x, y) x - (x - y) / h K(x, y) ] = 0 for x ~ N(0, 1): particles on a fine grid, repeated by weight
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    h, y = 0.8, np.linspace(-2, 2, 9)
    kernel = np.exp(-((nodes[:, None] - y) ** 2) / (2 * h))
    oracle = (weights / weights.sum()) @ (-kernel * nodes[:, None] - (nodes[:, None] - y) / h * kernel)
    assert np.abs(oracle).max() < 1e-6  # the identity itself, by quadrature
    # quantiles of the law as particles: the error of the mid-point rule with n points is O(1 / n)
    worst = []
    for n in (200, 400):
        particles = stats.norm.ppf((np.arange(n) + 0.5) / n)[:, None]
        worst.append(np.abs(stein_direction(particles, particles, h)).max())
    assert worst[1] < 0.75 * worst[0]


def test_median_bandwidth_is_that_of_the_paper():
    particles = np.random.default_rng(12).normal(size=(6, 3))
    squares = [np.sum((a - b) ** 2) for a in particles for b in particles]
    expected = np.median(squares) / (2 * np.log(7))
    assert np.isclose(median_bandwidth(squared_distances(jnp.asarray(particles))), expected, rtol=1e2 * EPS)
    assert float(median_bandwidth(jnp.zeros((1, 1)))) == 1.0


def test_svgd_particles_share_one_minibatch():
    law = target("tiny-logistic")
    seen = Minibatch(law.terms, 2)
    x = jnp.asarray(np.random.default_rng(13).normal(size=(4, 2)))
    key, sampler = jax.random.key(4), SVGD(bandwidth=0.5)
    new = sampler.step(key, sampler.init(key, x, seen), 0.1, seen)
    gradients = jnp.stack([seen.at(seen.draw(key), p).gradient for p in x])
    assert np.allclose(new.position, x + 0.1 * stein_direction(x, gradients, 0.5), rtol=1e3 * EPS, atol=1e2 * EPS)


def test_svgd_adagrad_scales_by_the_running_mean_square():
    law = target("gaussian-correlated-2d")
    sampler, estimator = SVGD(bandwidth=0.5, adagrad=True), Exact(law)
    x = jnp.asarray(np.random.default_rng(14).normal(size=(4, 2)))
    state, expected, square = sampler.init(jax.random.key(0), x, estimator), np.asarray(x), None
    for _ in range(3):
        state = sampler.step(jax.random.key(1), state, 0.05, estimator)
        slope = (expected - law.gaussian.mean) @ law.gaussian.precision
        phi = np.asarray(stein_direction(jnp.asarray(expected), jnp.asarray(slope), 0.5))
        square = phi**2 if square is None else 0.9 * square + 0.1 * phi**2
        expected = expected + 0.05 * phi / (1e-6 + np.sqrt(square))
    assert np.allclose(state.position, expected, rtol=1e4 * EPS, atol=1e4 * EPS)


def test_svgd_runs_on_pytrees_and_with_estimators_that_have_a_state():
    sampler = SVGD()
    x = {"a": jnp.asarray(np.random.default_rng(15).normal(size=(3, 2))), "b": jnp.ones((3, 2))}
    new = sampler.step(jax.random.key(0), sampler.init(jax.random.key(0), x, COUPLED), 0.1, COUPLED)
    assert jax.tree.map(jnp.shape, new.position) == {"a": (3, 2), "b": (3, 2)}
    law = target("tiny-logistic")
    saga = SAGA(law.terms, 2)
    state = sampler.init(jax.random.key(0), x["a"], saga)
    assert sampler.step(jax.random.key(1), state, 0.1, saga).estate.gradients.shape == (3, 6, 2)
    assert isinstance(sampler, Sampler)
    with pytest.raises(ValueError, match="bandwidth"):
        SVGD(bandwidth="mean")  # pyright: ignore


# host backend


def test_host_sgld_is_the_recursion_with_the_noise_of_its_generator():
    law = target("gaussian-correlated-2d")
    sampler, x, h = HostSGLD(T), np.array([0.4, -1.1]), 0.1
    assert isinstance(sampler, Sampler)
    start = x.copy()
    state = sampler.init(np.random.default_rng(20), x, Exact(law))
    rng, twin, expected = np.random.default_rng(21), np.random.default_rng(21), x
    for _ in range(4):
        twin.integers(2**63)  # the estimator's key
        slope = law.gaussian.precision @ (expected - law.gaussian.mean)
        expected = expected - h * slope + np.sqrt(2 * h * T) * twin.standard_normal(2)
        state = sampler.step(rng, state, h, Exact(law))
    assert np.allclose(sampler.position(state), expected, rtol=1e3 * EPS, atol=1e2 * EPS)
    assert np.array_equal(x, start)  # the caller's array was not touched


def test_host_sgld_uses_fresh_minibatches_of_a_jax_estimator():
    law = target("tiny-logistic")
    sampler, estimator, rng = HostSGLD(), Minibatch(law.terms, 1), np.random.default_rng(22)
    keys = []
    spy = types.SimpleNamespace(
        init=estimator.init,
        estimate=lambda key, s, x: (keys.append(jax.random.key_data(key).tolist()), estimator.estimate(key, s, x))[1],
    )
    state = sampler.init(rng, law.example, spy)
    for _ in range(3):
        state = sampler.step(rng, state, 0.01, spy)
    assert len({tuple(k) for k in keys}) == 3


def test_claims_name_their_kind_and_temperature():
    assert all(ExactLaw in sampler.claims for sampler in (HMC(temperature=T), MALA(T), SCIR()))
    assert Composite in HMC().claims
    assert ParticleLaw in SVGD().claims
    for sampler in (HMC(temperature=T), MALA(T), SAGALD(T), HostSGLD(T), SGGMC(Sphere(3), temperature=T)):
        assert sampler.claims.temperature == T
        with pytest.raises(ValueError, match="temperature"):
            dataclasses.replace(sampler, temperature=0.0)


def test_chains_of_scir_end_in_the_stationary_gamma_law_whatever_their_start():
    """Two starts, one far out; the end points are independent draws of Gamma(alpha, 1)."""
    from sgmcmc_verification.samplers.positive.scir import SCIR, CountMinibatch, ExactCounts

    n = 20_000
    starts = np.repeat([[0.01], [30.0]], n // 2, axis=0)
    ends = SCIR(alpha=2.5).chains(np.random.default_rng(4), starts, 4.0, 6, ExactCounts(np.zeros(1)))
    assert stats.kstest(ends[:, 0], stats.gamma(2.5).cdf).pvalue > 1e-6
    assert stats.kstest(ends[:, 0], stats.gamma(2.6).cdf).pvalue < 1e-6
    with pytest.raises(ValueError, match="independent"):
        SCIR().chains(np.random.default_rng(0), starts, 0.1, 1, CountMinibatch(np.zeros(4, int), 1, 2))
