"""Reference draws of posteriordb against the densities: Stein's identity, exact expectations, chains of our own.

The tests on real data run on the posteriors whose files are at hand, in SGMCMC_DATA_DIR or the cache.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base import array_stats
from jax.scipy.stats import cauchy, norm
from scipy import signal, special, stats

from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.samplers.underdamped.hmc import HMC
from sgmcmc_verification.targets.datasets.files import available
from sgmcmc_verification.targets.posteriordb.build import unconstrained_draws
from sgmcmc_verification.targets.posteriordb.expectations import effective_sample_size, rank_rhat, standard_error
from sgmcmc_verification.targets.posteriordb.files import DATABASE, load
from sgmcmc_verification.targets.posteriordb.model import Model
from sgmcmc_verification.targets.posteriordb.registry import NAMES, PINNED, density
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.target import Target

EPS = np.finfo(np.float64).eps
RATE = 1e-6
HERE = [name for name in NAMES if available(PINNED.file("posterior", name))]
MIXTURE = "low_dim_gauss_mix-low_dim_gauss_mix"
CENTERED, NONCENTERED = "eight_schools-eight_schools_centered", "eight_schools-eight_schools_noncentered"


class Case(NamedTuple):
    """A posterior with its density and the reference draws as positions (chains, draws, d)."""

    posterior: object
    model: Model
    positions: np.ndarray


@functools.cache
def case(name):
    posterior = load(PINNED, name)
    model = density(posterior)
    return Case(posterior, model, unconstrained_draws(posterior, model))


def stein_scores(name, extra=None):
    """z of E[g . grad log p + div g] = 0 over the draws, for d + d^2 fields g.

    The fields are constant and linear, in coordinates whitened by the draws: e_k and z_j e_k, so that all means and
    covariances of the law are looked at. On the centred eight schools grad log p has no second moment, as tau -> 0:
    there the fields of theta and mu are multiplied by tau, and coordinates are scaled only.

    Args:
        name: of the posterior.
        extra: (values, log Jacobian) -> scalar, added to log p: a planted error.
    """
    _, model, x = case(name)
    d = model.dim

    def log_density(position):
        added = 0.0 if extra is None else extra(model.constrain(position), model.log_jacobian(position))
        return added - model.potential(position)

    flat = x.reshape(-1, d)
    gradients = jax.jit(lambda f: jax.lax.map(jax.grad(log_density), f, batch_size=200))(jnp.asarray(flat))
    g, centre = np.asarray(gradients).reshape(x.shape), flat.mean(axis=0)
    if name == CENTERED:
        scale = flat.std(axis=0)
        tau = np.exp(x[..., -1:])
        weight = np.concatenate([np.repeat(tau, d - 1, axis=-1), np.ones_like(tau)], axis=-1)
        z, along, divergence = (x - centre) / scale, g * weight, np.eye(d) * (weight / scale)[..., None, :]
    else:
        root = np.linalg.cholesky(np.cov(flat.T))
        z, along = np.linalg.solve(root, (flat - centre).T).T.reshape(x.shape), g @ root
        divergence = np.broadcast_to(np.eye(d), (*x.shape, d))
    fields = {(k,): along[..., k] for k in range(d)}
    fields |= {(k, j): along[..., k] * z[..., j] + divergence[..., k, j] for k in range(d) for j in range(d)}
    return {key: value.mean() / standard_error(value) for key, value in fields.items()}


FIELDS = sum(d + d * d for d in (7, 5, 10, 10, 5, 4, 3, 3, 5, 10, 6))
LIMIT = stats.norm.isf(RATE / (2 * FIELDS))
"""For all the fields on the eleven posteriors together."""


@pytest.mark.parametrize("name", HERE)
def test_the_draws_satisfy_steins_identity_for_the_density(name):
    scores = stein_scores(name)
    worst = max(scores, key=lambda key: abs(scores[key]))
    assert abs(scores[worst]) < LIMIT, worst


def wider(name, old, new, law=cauchy):
    """log p' - log p when the scale of a prior is `new` instead of `old`."""
    return lambda v, log_jacobian: jnp.sum(law.logpdf(v[name], 0.0, new) - law.logpdf(v[name], 0.0, old))


no_jacobian = lambda v, log_jacobian: -log_jacobian
PLANTED = [
    (CENTERED, "no Jacobian", no_jacobian),
    (NONCENTERED, "no Jacobian", no_jacobian),
    ("sblrc-blr", "no Jacobian", no_jacobian),
    ("kilpisjarvi_mod-kilpisjarvi", "no Jacobian", no_jacobian),
    (NONCENTERED, "tau ~ half-Cauchy(50) for 5", wider("tau", 5.0, 50.0)),
    (CENTERED, "mu ~ N(0, 10) for 5", wider("mu", 5.0, 10.0, norm)),
    ("kidiq-kidscore_momiq", "sigma flat", wider("sigma", 2.5, 1e9)),
    (MIXTURE, "mu ~ N(0, 1) for 2", wider("mu", 2.0, 1.0, norm)),
    ("sblrc-blr", "sigma ~ half-N(1) for 10", wider("sigma", 10.0, 1.0, norm)),
]
"""Errors that shift the law by more than 10,000 draws leave open. A factor sigma on N data shifts log sigma by
1 / sqrt(2 N) standard deviations, 2 standard errors for N = 1192: there the comparison with SciPy has to see it."""


@pytest.mark.parametrize(
    ("name", "extra"),
    [pytest.param(name, extra, id=f"{name}: {error}") for name, error, extra in PLANTED if name in HERE],
)
def test_a_planted_error_violates_steins_identity(name, extra):
    assert max(abs(score) for score in stein_scores(name, extra).values()) > LIMIT


def by_quadrature(name):
    """Exact expectations of the quantities and of their squares: conditionally normal laws, mixed over one scale.

    Given sigma (or tau), coefficients have a normal law in closed form; the scale is integrated by trapezoids in its
    logarithm, which converge geometrically. The priors are written again here.

    Returns:
        Means (k,) and raw second moments (k,) in the order of the columns of the draws, the scale last.
    """
    data = case(name).posterior.data.values
    a = {key: np.asarray(value, float) for key, value in data.items()}
    if name.startswith("eight_schools"):
        grid = np.linspace(-25, 9, 3401)
        tau, y, noise = np.exp(grid), a["y"], a["sigma"] ** 2
        spread = noise + tau[:, None] ** 2
        precision = (1 / spread).sum(axis=1) + 1 / 25
        mu = (y / spread).sum(axis=1) / precision
        # y ~ N(0, diag(spread) + 25): determinant and inverse of a rank-one change
        log_weight = (-np.log(spread) / 2 - y**2 / spread / 2).sum(axis=1) - np.log(precision) / 2
        log_weight += mu**2 * precision / 2 + stats.halfcauchy.logpdf(tau, 0, 5) + grid
        shrink = tau[:, None] ** 2 / spread
        theta = shrink * y + (1 - shrink) * mu[:, None]
        variance = shrink * noise + (1 - shrink) ** 2 / precision[:, None]
        means = np.column_stack([theta, mu, tau])
        variances = np.column_stack([variance, 1 / precision, np.zeros_like(tau)])
        return _mixed(log_weight, means, variances)
    ones, location, flat, log_prior = np.ones, 0.0, 0.0, lambda sigma: 0.0 * sigma
    if name.startswith("kidiq"):
        hs, iq, y = a["mom_hs"], a["mom_iq"], a["kid_score"]
        columns = {"momiq": [iq], "momhsiq": [hs, iq], "interaction": [hs, iq, hs * iq]}[name.split("_")[-1]]
        A, precision = np.column_stack([ones(len(y)), *columns]), flat
        log_prior = lambda sigma: stats.halfcauchy.logpdf(sigma, 0, 2.5)
    elif name.startswith("earnings"):
        height, male, y = a["height"], a["male"], np.log(a["earn"])
        A, precision = np.column_stack([ones(len(y)), height, male, height * male]), flat
    elif name.startswith("nes"):
        y, age = a["partyid7"], a["age_discrete"]
        columns = [a["real_ideo"], a["race_adj"], age == 2, age == 3, age == 4, a["educ1"], a["gender"], a["income"]]
        A, precision = np.column_stack([ones(len(y)), *columns]), flat
    elif name == "sblrc-blr":
        A, y, precision = a["X"], a["y"], 1 / 100
        log_prior = lambda sigma: stats.halfnorm.logpdf(sigma, 0, 10)
    elif name.startswith("kilpisjarvi"):
        A, y = np.column_stack([ones(62), a["x"]]), a["y"]
        location = np.array([a["pmualpha"], a["pmubeta"]])
        precision = np.array([a["psalpha"], a["psbeta"]]) ** -2.0
    else:
        assert name == "arK-arK", name
        y = a["y"][5:]
        A, precision = np.column_stack([ones(195), *(a["y"][5 - k : 200 - k] for k in range(1, 6))]), 1 / 100
        log_prior = lambda sigma: stats.halfcauchy.logpdf(sigma, 0, 2.5)
    n, k = A.shape
    prior = np.eye(k) * precision
    least, *_ = np.linalg.lstsq(A, y, rcond=None)
    residual = y - A @ least
    scale = np.log(np.sqrt(residual @ residual / (n - k)))
    grid = np.linspace(scale - 15 / np.sqrt(2 * n), scale + 25 / np.sqrt(2 * n), 401)
    log_weight, means, variances = [], [], []
    for sigma in np.exp(grid):
        H = A.T @ A / sigma**2 + prior
        b = np.linalg.solve(H, A.T @ y / sigma**2 + prior @ np.broadcast_to(location, k))
        off, r = b - location, y - A @ b
        quadratic = r @ r / sigma**2 + off @ prior @ off
        log_weight.append(-n * np.log(sigma) - quadratic / 2 - np.linalg.slogdet(H)[1] / 2 + log_prior(sigma))
        means.append([*b, sigma])
        variances.append([*np.diag(np.linalg.inv(H)), 0.0])
    return _mixed(np.array(log_weight) + grid, np.array(means), np.array(variances))


def _mixed(log_weight, means, variances):
    weight = special.softmax(log_weight)
    # the grid holds all of the mass
    assert max(weight[0], weight[-1]) < 1e-9
    return weight @ means, weight @ (variances + means**2)


@pytest.mark.parametrize("name", [name for name in HERE if name != MIXTURE])
def test_reference_expectations_agree_with_exact_ones_within_their_standard_errors(name):
    means, seconds = by_quadrature(name)
    moments = target(f"posteriordb/{name}").moments
    quantities = [key for key in moments if not key.startswith("square")]
    assert len(quantities) == len(means)
    limit = stats.norm.isf(RATE / (2 * 2 * 72))
    for key, mean, second in zip(quantities, means, seconds, strict=True):
        value, square = moments[key], moments[f"square {key}"]
        assert abs(value.value - mean) < limit * value.error, key
        assert abs(square.value - (second - 2 * value.value * mean + value.value**2)) < limit * square.error, key
        # as good as draws that are nearly independent: the error is neither missing nor inflated
        spread = np.sqrt(second - mean**2)
        assert 0.8 * spread / 100 < value.error < 1.2 * spread / 100, key


@pytest.mark.skipif(NONCENTERED not in HERE, reason="the files of eight schools are not at hand")
def test_centred_and_noncentred_schools_share_expectations_and_differ_by_the_jacobian():
    centred, noncentred = (target(f"posteriordb/{name}") for name in (CENTERED, NONCENTERED))
    assert {k: v[1:] for k, v in centred.moments.items()} == {k: v[1:] for k, v in noncentred.moments.items()}
    first, second = case(CENTERED).positions[0, :20], case(NONCENTERED).positions[0, :20]
    for x, y in zip(first, second, strict=True):
        for key in ("theta[3]", "square mu", "tau"):
            values = [float(law.moments[key].function(jnp.asarray(p))) for law, p in ((centred, x), (noncentred, y))]
            assert abs(values[0] - values[1]) < 64 * EPS * (1 + abs(values[0]))
    # theta = mu + tau theta_trans has derivative tau^8
    pairs = zip(first, second, strict=True)
    difference = [float(centred.potential(x) - noncentred.potential(y)) - 8 * x[-1] for x, y in pairs]
    # theta - mu is rounded at the scale of theta, and divided by tau
    size = np.abs([float(centred.potential(x)) for x in first]) + np.exp(-2 * first[:, -1])
    assert np.all(np.abs(difference) < 256 * EPS * size)


@pytest.mark.skipif(MIXTURE not in HERE, reason="the files of low_dim_gauss_mix are not at hand")
def test_chains_of_hmc_from_elsewhere_have_the_reference_expectations():
    # the one posterior whose expectations have no quadrature above
    name, chains = MIXTURE, 12
    law, flat = target(f"posteriordb/{name}"), case(name).positions.reshape(-1, case(name).model.dim)
    # preconditioned by the scales alone: nothing but these is taken from the draws
    scale, start = flat.std(axis=0), np.asarray(law.example)
    scaled = Target("scaled", law.manifold, jnp.zeros(law.size), lambda z: law.potential(start + scale * z))
    starts = jnp.asarray(np.random.RandomState(1).standard_normal((chains, law.size)))
    found = run(
        HMC(num_steps=7), scaled, jax.random.key(5), step_size=0.25, num_steps=300, burn_in=50, positions=starts
    )
    draws = start + scale * np.asarray(found.samples)
    limit = stats.norm.isf(RATE / (2 * len(law.moments)))
    model = case(name).model
    quantities = jax.vmap(jax.vmap(lambda x: model.quantities(model.constrain(x))))(jnp.asarray(draws))
    columns = {}
    for key, values in quantities.items():
        for index in np.ndindex(values.shape[2:]):
            columns[key + (f"[{index[0] + 1}]" if index else "")] = np.asarray(values[(..., *index)])
    columns |= {f"square {key}": (values - law.moments[key].value) ** 2 for key, values in columns.items()}
    assert columns.keys() == law.moments.keys()
    for key, values in columns.items():
        error = float(array_stats.mcse(values, chain_axis=0, draw_axis=1, method="mean"))
        assert abs(values.mean() - law.moments[key].value) < limit * np.hypot(error, law.moments[key].error), key
        assert error < 0.05 * values.std()


@pytest.mark.parametrize("name", HERE)
def test_the_example_is_in_the_bulk(name):
    law = target(f"posteriordb/{name}")
    _, model, x = case(name)
    flat = x.reshape(-1, model.dim)
    assert law.name == f"posteriordb/{name}"
    assert law.size == model.dim
    assert bool(law.manifold.contains(law.example))
    root = np.linalg.cholesky(np.cov(flat.T, ddof=0))
    distance = np.linalg.solve(root, np.asarray(law.example) - flat.mean(axis=0))
    assert abs(distance @ distance - law.size / 4) < 64 * EPS * np.linalg.cond(root) * law.size


@pytest.mark.parametrize("name", [name for name in (CENTERED,) if name in HERE])
def test_the_curvature_bounds_the_hessian_on_nearly_all_of_the_mass(name):
    law = target(f"posteriordb/{name}")
    draws = jnp.asarray(case(name).positions[:, ::5].reshape(-1, law.size))
    top = np.linalg.eigvalsh(jax.jit(jax.vmap(jax.hessian(law.potential)))(draws))[:, -1]
    # the 99th percentile of 500 draws leaves more than 4 % of the mass above it with probability 1e-6
    share = stats.beta.isf(RATE, 6, 495)
    assert stats.binom.sf(np.sum(top > law.curvature) - 1, len(top), share) > RATE
    assert np.max(np.abs(jax.grad(law.potential)(law.example))) > 0.05 * np.sqrt(law.curvature)


def autoregressive(correlation, chains=8, draws=4000, seed=0):
    """Stationary chains of unit variance with autocorrelation r^t."""
    noise = np.sqrt(1 - correlation**2) * np.random.RandomState(seed).standard_normal((chains, draws))
    noise[:, 0] /= np.sqrt(1 - correlation**2)
    return signal.lfilter([1.0], [1.0, -correlation], noise, axis=1)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_standard_error_is_that_of_an_autoregressive_chain(correlation):
    # the mean of n values has variance (1 + r) / (1 - r) / n up to O(1 / n^2)
    reps = [standard_error(autoregressive(correlation, seed=seed)) for seed in range(12)]
    exact = np.sqrt((1 + correlation) / (1 - correlation) / (8 * 4000))
    spread = np.std(reps, ddof=1) / np.sqrt(len(reps))
    assert abs(np.mean(reps) - exact) < stats.t.isf(RATE / 2, 11) * spread
    assert spread < 0.02 * exact


@pytest.mark.parametrize("correlation", [-0.4, 0.0, 0.6, 0.95])
def test_effective_sample_size_and_rhat_are_those_of_arviz(correlation):
    # long enough for the sum to be cut before the last lag, where ArviZ counts one term less
    values = autoregressive(correlation, 4, 2000) + 0.05 * np.arange(4)[:, None]
    size = array_stats.ess(values, chain_axis=0, draw_axis=1, method="mean")
    assert abs(effective_sample_size(values) / min(size, values.size) - 1) < 1e3 * EPS
    assert abs(rank_rhat(values) - array_stats.rhat(values, chain_axis=0, draw_axis=1, method="rank")) < 1e3 * EPS


def test_a_shift_a_spread_and_a_stuck_chain_raise_rhat_and_constants_do_not():
    values = np.random.RandomState(0).standard_normal((4, 400))
    assert rank_rhat(values) < 1.01
    assert rank_rhat(values + np.array([[0.5], [0], [0], [0]])) > 1.01
    assert rank_rhat(values * np.array([[2.0], [1], [1], [1]])) > 1.01
    stuck = values.copy()
    stuck[0] = stuck[0, 0]
    assert rank_rhat(stuck) > 1.01
    assert rank_rhat(np.ones((4, 400))) == 1
    assert effective_sample_size(np.ones((4, 400))) == 1600
    assert rank_rhat(np.ones((4, 400)) * np.arange(4)[:, None]) == np.inf


def test_sources_are_pinned_to_a_whole_commit_and_checksums_are_whole():
    kinds = set()
    for kind, files in PINNED.sha256.items():
        kinds.add(kind)
        for name in files:
            file = PINNED.file(kind, name)
            commit, path = file.url.removeprefix("https://raw.githubusercontent.com/stan-dev/posteriordb/").split(
                "/", 1
            )
            assert len(bytes.fromhex(commit)) == 20
            assert len(bytes.fromhex(file.sha256)) == 32
            assert path == "posterior_database/" + DATABASE[kind].format(name)
    assert kinds == set(DATABASE)
