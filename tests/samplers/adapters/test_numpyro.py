"""The NumPyro adapters call the library's own step; HMCECS leaves the perturbed law invariant, and no other."""

import functools
import itertools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.contrib import einstein
from numpyro.infer import HMC, HMCECS
from numpyro.infer.autoguide import AutoDelta
from scipy import special, stats

from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.adapters import numpyro as adapters
from sgmcmc_verification.samplers.adapters.registry import UNSUPPORTED
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.targets.euclidean import enumerable_data
from sgmcmc_verification.targets.registry import target as find_target
from tests.helpers.closeness import assert_close

KEY = jax.random.key(7)
EPS = np.finfo(float).eps
GAUSSIAN = find_target("gaussian-correlated-2d")
DATA = find_target("tiny-gaussian-data")
LOGISTIC = find_target("tiny-logistic")
M = 2
H, STEPS = 0.8, 3
REFERENCE = (0.1, 0.4)
SIGNED = enumerable_data.LOGISTIC_FEATURES * enumerable_data.LOGISTIC_LABELS[:, None]
N = len(SIGNED)


def log_likelihoods(x):
    """log P(s_i | x) of the logistic regression for points x (..., 2): (..., N)."""
    return -np.logaddexp(0, -x @ SIGNED.T)


def control_variates(x, degree):
    """Taylor polynomials of the log-likelihoods at REFERENCE, (..., N)."""
    start = np.array(REFERENCE)
    p = special.expit(-SIGNED @ start)
    step = x - start
    value = log_likelihoods(start) + step @ (SIGNED * p[:, None]).T
    if degree == 2:
        value = value - 0.5 * (p * (1 - p)) * (step @ SIGNED.T) ** 2
    return value


def log_estimate(x, u, degree):
    """The estimate of the log-likelihood from the data u at points x (..., 2), as the papers write it."""
    if degree == 0:
        return N / len(u) * log_likelihoods(x)[..., u].sum(-1)
    q = control_variates(x, degree)
    d = (log_likelihoods(x) - q)[..., u]
    return q.sum(-1) + N * d.mean(-1) - N**2 / (2 * len(u)) * d.var(-1)


def energy(x, u, degree):
    return np.sum(x**2, -1) / (2 * enumerable_data.LOGISTIC_PRIOR_VARIANCE) - log_estimate(x, u, degree)


@functools.cache
def ecs(degree=2, blocks=1):
    return adapters.HMCECS(LOGISTIC, M, num_blocks=blocks, num_steps=STEPS, taylor=degree, reference=REFERENCE)


@functools.cache
def tape(degree=2, blocks=1):
    """(state, (state, block, new indices, uniforms, normals) -> state), the draws of a step fed from outside."""
    sampler = ecs(degree, blocks)
    state = sampler.init(jax.random.key(1), LOGISTIC.example, Exact(LOGISTIC))
    program = record(lambda s: sampler.step(KEY, s, H, None), state)
    assert program.unintercepted == ()
    assert (program.count("normal"), program.count("uniform")) == (2, 2)
    run = jax.jit(lambda state, normal, uniform, integer: program(Noise(normal, uniform, integer), state))

    def step(state, block, indices, uniforms, normals):
        return run(state, jnp.asarray(normals), jnp.asarray(uniforms, float), jnp.asarray([block, *indices]))

    return state, step


def end(state):
    return np.asarray(state.inner.z["x"]), np.asarray(state.inner.z["data"])


def test_hmcecs_step_is_the_library_step_of_the_model_as_a_user_writes_it():
    data, S = jnp.asarray(enumerable_data.GAUSSIAN_DATA), jnp.asarray(enumerable_data.NOISE_COVARIANCE)

    def model():
        x = numpyro.sample("x", dist.Normal(0.0, 2.0).expand((2,)).to_event(1))
        with numpyro.plate("data", len(data), subsample_size=M) as u:
            numpyro.sample("y", dist.MultivariateNormal(x, S), obs=data[u])

    inner = HMC(
        model, step_size=0.3, adapt_step_size=False, adapt_mass_matrix=False, num_steps=3, trajectory_length=None
    )
    kernel = HMCECS(inner, proxy=HMCECS.taylor_proxy({"x": DATA.example}, degree=1))
    sampler = adapters.HMCECS(DATA, M, taylor=1)
    ours = sampler.init(jax.random.key(1), DATA.example, Exact(DATA))
    theirs = kernel.init(jax.random.key(0), 0, {"x": DATA.example, "data": ours.inner.z["data"]}, (), {})
    step, sample = jax.jit(lambda key, s: sampler.step(key, s, 0.3, None)), jax.jit(lambda s: kernel.sample(s, (), {}))
    for key in jax.random.split(KEY, 5):
        ours = step(key, ours)
        block_key, move_key = jax.random.split(key)
        theirs = sample(theirs._replace(rng_key=block_key, hmc_state=theirs.hmc_state._replace(rng_key=move_key)))
        assert np.array_equal(ours.inner.z["data"], theirs.z["data"])
        assert_close(ours.inner.z["x"], theirs.z["x"], 1e4)


@pytest.mark.parametrize("degree", [0, 2])
def test_hmcecs_accepts_subsamples_with_the_ratio_of_the_estimates(degree):
    state, step = tape(degree)
    x, all_subsamples = np.asarray(LOGISTIC.example), list(itertools.product(range(N), repeat=M))
    u = max(all_subsamples, key=lambda u: log_estimate(x, list(u), degree))
    state = step(state, 0, u, (0.0, 0.5), np.zeros(2))  # a uniform of 0 accepts, and without momentum nothing is left
    x = end(state)[0]
    rejected = 0
    for proposal in all_subsamples:
        ratio = np.exp(log_estimate(x, list(proposal), degree) - log_estimate(x, list(u), degree))
        for uniform, accepted in ((ratio * (1 - 1e-9), True), (ratio * (1 + 1e-9), False)):
            if uniform < 1:
                kept = end(step(state, 0, proposal, (uniform, 0.5), np.zeros(2)))[1]
                assert np.array_equal(kept, proposal if accepted else u)
                rejected += not accepted
    assert rejected > N**M / 2


@pytest.mark.parametrize("degree", [0, 2])
def test_hmcecs_moves_theta_by_leapfrog_on_the_estimate_and_accepts_by_its_energy(degree):
    state, step = tape(degree)
    u = [4, 1]
    terms = LOGISTIC.terms

    def potential(x):
        batch = jax.tree.map(lambda a: jnp.asarray(a), terms.data)
        l = lambda x: -jax.vmap(terms.datum, (None, 0))(x, batch)
        start = jnp.array(REFERENCE)
        if degree == 0:
            return terms.prior(x) - N / M * l(x)[jnp.array(u)].sum()
        q = l(start) + jax.jacobian(l)(start) @ (x - start)
        if degree == 2:
            q = q + 0.5 * (jax.hessian(l)(start) @ (x - start)) @ (x - start)
        d = (l(x) - q)[jnp.array(u)]
        return terms.prior(x) - (q.sum() + N * d.mean() - N**2 / (2 * M) * d.var())

    drift = jax.jit(jax.grad(potential))
    start = np.asarray(LOGISTIC.example)
    for momentum in ([1.0, -0.5], [-2.0, 1.0], [0.3, 3.0]):
        x, r = start, np.array(momentum)
        before = energy(x, u, degree) + r @ r / 2
        for _ in range(STEPS):
            r = r - H / 2 * np.asarray(drift(x))
            x = x + H * r
            r = r - H / 2 * np.asarray(drift(x))
        ratio = np.exp(before - energy(x, u, degree) - r @ r / 2)
        # accept the subsample u whatever it is (uniform 0), then test the trajectory
        moved, indices = end(step(state, 0, u, (0.0, min(ratio, 1) * (1 - 1e-9)), momentum))
        assert np.array_equal(indices, u)
        assert_close(moved, x, 1e4)
        if ratio < 1:
            assert_close(end(step(state, 0, u, (0.0, ratio * (1 + 1e-9)), momentum))[0], start)


def test_a_block_is_drawn_anew_and_the_others_stay():
    state, step = tape(blocks=2)
    u = np.asarray(state.inner.z["data"])
    for block, new in itertools.product(range(2), range(N)):
        expected = u.copy()
        expected[block] = new
        assert np.array_equal(end(step(state, block, [new], (0.0, 0.5), np.zeros(2)))[1], expected)


def perturbed_law(degree):
    """Mean and covariance of the law that HMCECS should have: E_u exp(estimate) by listing the 36 subsamples."""
    line = np.linspace(-9, 9, 361)
    x = np.stack(np.meshgrid(line, line, indexing="ij"), -1)
    weights = sum(np.exp(-energy(x, list(u), degree)) for u in itertools.product(range(N), repeat=M))
    weights = weights / weights.sum()
    mean = np.einsum("ij,ijk->k", weights, x)
    return mean, np.einsum("ij,ijk,ijl->kl", weights, x - mean, x - mean)


def test_naive_law_is_the_product_over_the_batch_of_the_mean_tempered_likelihood():
    x = np.random.default_rng(0).normal(size=(20, 2))
    listed = np.mean([np.exp(log_estimate(x, list(u), 0)) for u in itertools.product(range(N), repeat=M)], axis=0)
    assert_close(np.mean(np.exp(N / M * log_likelihoods(x)), -1) ** M, listed)


@pytest.mark.parametrize(("degree", "apart"), [(0, 0.5), (1, 0.05)])
def test_independent_chains_have_the_perturbed_law(degree, apart):
    """End points of independent chains against quadrature, at 1e-6; and the posterior is not that law."""
    sampler, chains, steps = ecs(degree), 4000, 40
    mean, covariance = perturbed_law(degree)

    def run(key):
        start_key, key = jax.random.split(key)
        state = sampler.init(start_key, LOGISTIC.example, Exact(LOGISTIC))
        body = lambda state, k: (sampler.step(k, state, H, None), None)
        return sampler.position(jax.lax.scan(body, state, jax.random.split(key, steps))[0])

    ends = np.asarray(jax.jit(jax.vmap(run))(jax.random.split(KEY, chains)))
    centred = ends - mean
    threshold = stats.norm.isf(1e-6 / 2 / 4)  # two means, two variances
    for sample, value in ((ends, mean), (centred**2, np.diag(covariance))):
        z = (sample.mean(0) - value) / (sample.std(0) / np.sqrt(chains))
        assert np.abs(z).max() < threshold
    points, weights = LOGISTIC.quadrature(60)
    exact = weights @ (points - weights @ points) ** 2
    assert np.abs(np.diag(covariance) / exact - 1).max() > apart


def svgd_step(sampler, state, h, estimator=None):
    """The particles after a compiled step."""
    moved = jax.jit(lambda s: sampler.step(KEY, s, h, estimator or Exact(GAUSSIAN)))(state)
    return moved, np.asarray(sampler.position(moved))


def particles_of(count=7):
    return np.asarray(GAUSSIAN.sample(jax.random.key(3), count))


def published_direction(x, kernel):
    """phi of every particle with k(x, y) and its gradient in the first argument from `kernel`."""
    scores = -(x - GAUSSIAN.gaussian.mean) @ GAUSSIAN.gaussian.precision
    phi = np.zeros_like(x)
    for j in range(len(x)):
        for i in range(len(x)):
            k, gradient = kernel(x[i], x[j])
            phi[j] += (k * scores[i] + gradient) / len(x)
    return phi


def rbf_kernel(x):
    distances = np.linalg.norm(x[:, None] - x[None], axis=-1)
    b = np.median(distances) ** 2 / np.log(len(x)) + EPS

    def kernel(a, c):
        k = np.exp(-np.sum((a - c) ** 2) / b)
        return k, -2 / b * (a - c) * k

    return kernel


def imq_kernel(a, c):
    base = 1 + np.sum((a - c) ** 2)
    return base**-0.5, -(a - c) * base**-1.5


@pytest.mark.parametrize(("name", "kernel"), [("rbf", rbf_kernel), ("imq", lambda x: imq_kernel)])
def test_svgd_moves_along_the_published_direction_of_its_kernel(name, kernel):
    x, h = particles_of(), 0.1
    sampler = adapters.SVGD(GAUSSIAN, kernel=name)
    state = sampler.init(KEY, jnp.asarray(x), Exact(GAUSSIAN))
    _, moved = svgd_step(sampler, state, h)
    assert_close((moved - x) / h, published_direction(x, kernel(x)), 1e4)


def test_svgd_steps_are_the_library_steps_of_the_model_as_a_user_writes_it():
    law = dist.MultivariateNormal(GAUSSIAN.gaussian.mean, precision_matrix=GAUSSIAN.gaussian.precision)
    svgd = einstein.SVGD(
        lambda: numpyro.sample("x", law), numpyro.optim.Adagrad(0.1), einstein.RBFKernel(), num_stein_particles=7
    )
    theirs = svgd.init(KEY)
    theirs = theirs._replace(optim_state=svgd.optim.init({"x_auto_loc": jnp.asarray(particles_of())}))
    sampler = adapters.SVGD(GAUSSIAN, optimizer="adagrad")
    ours = sampler.init(KEY, jnp.asarray(particles_of()), Exact(GAUSSIAN))
    for _ in range(2):
        theirs, _ = jax.jit(svgd.update)(theirs)
        ours, moved = svgd_step(sampler, ours, 0.1)
    assert_close(moved, svgd.get_params(theirs)["x_auto_loc"], 1e4)


def test_steinvi_with_a_delta_guide_at_temperature_one_over_the_particles_is_svgd():
    """Why `numpyro/steinvi` is among the unsupported ones and has no row of its own."""
    law = dist.MultivariateNormal(GAUSSIAN.gaussian.mean, precision_matrix=GAUSSIAN.gaussian.precision)
    model = lambda: numpyro.sample("x", law)
    x, ends = jnp.asarray(particles_of()), []
    for build in (
        lambda: einstein.SVGD(model, numpyro.optim.SGD(0.1), einstein.RBFKernel(), num_stein_particles=7),
        lambda: einstein.SteinVI(
            model,
            AutoDelta(model),
            numpyro.optim.SGD(0.1),
            einstein.RBFKernel(),
            num_stein_particles=7,
            num_elbo_particles=1,
            loss_temperature=1 / 7,
            non_mixture_guide_params_fn=lambda name: False,
        ),
    ):
        sampler = build()
        state = sampler.init(KEY)
        state = state._replace(optim_state=sampler.optim.init({"x_auto_loc": x}))
        ends.append(np.asarray(sampler.get_params(jax.jit(sampler.update)(state)[0])["x_auto_loc"]))
    assert np.array_equal(*ends)
    assert not np.array_equal(ends[0], x)
    assert "numpyro/svgd" in UNSUPPORTED["numpyro/steinvi"]


def test_gradient_noise_reaches_all_particles_of_svgd_as_one_draw():
    x, h = particles_of(), 0.1
    noisy = KnownNoise(GAUSSIAN, np.diag([1.0, 4.0]))
    sampler = adapters.SVGD(GAUSSIAN, kernel="imq")
    state = sampler.init(KEY, jnp.asarray(x), noisy)
    ends = [svgd_step(sampler, state, h, e)[1] for e in (Exact(GAUSSIAN), noisy)]
    eta = np.asarray(noisy.estimate(KEY, (), x[0])[0].gradient) - np.asarray(jax.grad(GAUSSIAN.potential)(x[0]))
    weights = np.array([[imq_kernel(a, c)[0] for a in x] for c in x]).mean(1)
    assert_close((ends[1] - ends[0]) / h, -weights[:, None] * eta, 1e4)


def test_particles_differ_also_after_a_second_init():
    """Bug 1626 of the library, in its releases up to 0.12: a second init made all particles equal."""
    svgd = einstein.SVGD(
        lambda: numpyro.sample("x", dist.Normal()), numpyro.optim.SGD(0.1), einstein.RBFKernel(), num_stein_particles=5
    )
    for key in jax.random.split(KEY):
        particles = np.asarray(svgd.get_params(svgd.init(key))["x_auto_loc"])
        assert len(np.unique(particles)) == 5


def test_bad_options_and_a_missing_library_are_one_error(monkeypatch):
    with pytest.raises(ValueError, match="target: needs its data"):
        adapters.HMCECS(GAUSSIAN)
    with pytest.raises(ValueError, match="subsample_size: between 1 and 5"):
        adapters.HMCECS(LOGISTIC, subsample_size=6)
    with pytest.raises(ValueError, match="kernel: must be one of rbf"):
        adapters.SVGD(GAUSSIAN, kernel="cosine")  # pyright: ignore[reportArgumentType]
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(ImportError, match=r"needs numpyro: pip install 'sgmcmc-verification\[numpyro\]'"):
        adapters.SVGD(GAUSSIAN)
