"""The spherical admixture model: gradient, weights given topics, perplexity, against quadrature."""

from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from sgmcmc_verification.samplers.topic_models.sam import weights as weights_module
from sgmcmc_verification.samplers.topic_models.sam.estimator import Batch, BatchEstimator
from sgmcmc_verification.samplers.topic_models.sam.weights import (
    WeightSettings,
    default_step,
    reflected,
    sample_weights,
)
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.topic_models.sam import tiny
from sgmcmc_verification.targets.topic_models.sam.documents import as_rows
from sgmcmc_verification.targets.topic_models.sam.model import SAM, unit_rows
from sgmcmc_verification.targets.topic_models.sam.perplexity import LogPerplexity

EPS = np.finfo(np.float64).eps
Z = stats.norm.isf(5e-7)


def model(K=3, V=7, alpha=None):
    rng = np.random.default_rng(1)
    m = unit_rows(rng.standard_normal((1, V)))[0]
    return SAM(m, np.linspace(0.7, 2.0, K) if alpha is None else np.array(alpha), 5.0, 3.0, 8.0)


def case(K=3, V=7, S=4, N=5):
    """A model, topics, documents and weights."""
    rng = np.random.default_rng(0)
    beta, X = unit_rows(rng.standard_normal((K, V))), unit_rows(rng.standard_normal((S, V)))
    return model(K, V), beta, X, rng.dirichlet(np.ones(K), size=(S, N))


def long_potential(law, beta, X, theta, scale):
    """U by loops over pairs with scipy's Bessel function, from the definition."""
    mbar = law.prior_concentration * law.direction + law.topic_concentration * beta.sum(axis=0)
    r, nu = np.linalg.norm(mbar), len(mbar) / 2 - 1
    value = nu * np.log(r) - np.log(special.ive(nu, r)) - r - len(mbar) / 2 * np.log(2 * np.pi)
    for s, v in enumerate(X):
        for weights in theta[s]:
            b = sum(w * topic for w, topic in zip(weights, beta, strict=True))
            value -= scale * law.concentration * (v @ b) / np.linalg.norm(b)
    return value


def gradient_error(estimate_model=None, batch=None):
    """(largest error of the gradient by central differences, its allowance, error of the potential)."""
    law, beta, X, theta = case()
    scale = 30 / theta.shape[0] / theta.shape[1]  # of 30 documents
    batch = batch or Batch(jnp.asarray(X), jnp.asarray(theta), jnp.asarray(scale))
    found, _ = BatchEstimator(estimate_model or law, batch).estimate(None, (), jnp.asarray(beta))
    h, differences = 1e-5, np.zeros_like(beta)
    for index in np.ndindex(*beta.shape):
        moved = [beta.copy(), beta.copy()]
        moved[0][index] += h
        moved[1][index] -= h
        differences[index] = np.diff([long_potential(law, x, X, theta, scale) for x in moved[::-1]])[0] / (2 * h)
    value = long_potential(law, beta, X, theta, scale)
    # round-off 8 eps |U| / h, and h^2 / 6 of a third derivative, at most 30 kappa (2 / |b|)^3 with |b| > 0.2
    allowed = 8 * EPS * abs(value) / h + h * h / 6 * 30 * law.concentration * 1000
    assert found.potential is not None
    return np.abs(found.gradient - differences).max(), allowed, abs(float(found.potential) - value) / abs(value)


def test_the_collapsed_gradient_is_the_derivative_of_the_sum_over_pairs():
    error, allowed, potential = gradient_error()
    assert error < allowed
    assert potential < 1e3 * EPS


def planted_gradients():
    law, _, X, theta = case()
    scale = 30 / theta.shape[0] / theta.shape[1]

    class Ratio(SAM):
        def prior_gradient(self, beta):
            mbar, length = self.centre(beta)
            return -(self.topic_concentration / length) * mbar  # A_V missing

    class Prior(SAM):
        def prior_gradient(self, beta):
            return jnp.zeros_like(beta[0])  # log c_V(|mbar|) missing

    arguments = (law.direction, law.alpha, 5.0, 3.0, 8.0)
    whole = Batch(jnp.asarray(X), jnp.asarray(theta), jnp.asarray(scale))
    return {
        "Bessel ratio": (Ratio(*arguments), whole),
        "prior": (Prior(*arguments), whole),
        "D / S": (law, whole._replace(scale=jnp.asarray(1 / theta.shape[1]))),
        "1 / N": (law, whole._replace(scale=jnp.asarray(30 / theta.shape[0]))),
        "other document's weights": (law, whole._replace(weights=jnp.asarray(theta[::-1]))),
    }


@pytest.mark.parametrize("bug", list(planted_gradients()))
def test_planted_bugs_of_the_gradient_are_seen(bug):
    error, allowed, _ = gradient_error(*planted_gradients()[bug])
    assert error > 100 * allowed


def test_the_gradient_is_finite_and_right_for_a_large_vocabulary_and_many_topics():
    """V = 10^4, K = 100 in both precisions: the derivative along a tangent direction, by differences."""
    rng = np.random.default_rng(2)
    V, K, S, N = 10_000, 100, 3, 2
    law = SAM(unit_rows(rng.random((1, V)))[0], np.full(K, 10.0), 1e4, 1e4, 3e4)
    beta, X = law.start(rng), unit_rows(rng.random((S, V)))
    theta = rng.dirichlet(law.alpha, size=(S, N))
    along = rng.standard_normal((K, V))
    along -= np.sum(along * beta, axis=1, keepdims=True) * beta
    along /= np.linalg.norm(along)

    @jax.jit
    def both(x, batch):
        found, _ = BatchEstimator(law, batch).estimate(None, (), x)
        return found.potential, found.gradient

    batch = Batch(jnp.asarray(X), jnp.asarray(theta), jnp.asarray(500.0))
    gradient = both(jnp.asarray(beta), batch)[1]
    h = 1e-4
    ahead, behind = (both(jnp.asarray(beta + s * h * along), batch)[0] for s in (1, -1))
    value = float(np.sum(np.asarray(gradient) * along))
    # the potential is about 1e7: round-off 8 eps |U| / h; h^2 / 6 of a third derivative of about 1e8
    assert abs((ahead - behind) / (2 * h) - value) < 8 * EPS * abs(ahead) / h + h * h * 1e8
    single = both(jnp.asarray(beta, jnp.float32), jax.tree.map(lambda a: a.astype(jnp.float32), batch))[1]
    # sums of up to V terms in single precision, of which round-off grows as sqrt V
    assert np.abs(single - gradient).max() < 10 * np.sqrt(V) * 1.2e-7 * np.abs(gradient).max()


# Weights -------------------------------------------------------------------------------------------------------------


def weight_case(K, alpha):
    rng = np.random.default_rng(4)
    beta, v = unit_rows(rng.standard_normal((K, 4))), unit_rows(rng.standard_normal((1, 4)))[0]
    return np.array(alpha), beta @ beta.T, beta @ v, 6.0


def exact_means(alpha, gram, p, kappa):
    """E theta and E theta^2 by adaptive quadrature over the simplex, in angles so that faces are no trouble."""
    K = len(alpha)

    def at(*angles):
        if K == 2:
            theta = np.array([np.cos(angles[0]) ** 2, np.sin(angles[0]) ** 2])
            jacobian = 2 * np.cos(angles[0]) * np.sin(angles[0])
        else:
            a, b = angles
            theta = np.array([np.cos(a) ** 2, (np.sin(a) * np.cos(b)) ** 2, (np.sin(a) * np.sin(b)) ** 2])
            jacobian = 4 * np.cos(a) * np.sin(a) ** 3 * np.cos(b) * np.sin(b)
        level = kappa * (theta @ p) / np.sqrt(theta @ gram @ theta)
        return theta, np.prod(theta ** (alpha - 1)) * jacobian * np.exp(level)

    nodes, mass = np.polynomial.legendre.leggauss(120)
    nodes, mass = (nodes + 1) * np.pi / 4, mass * np.pi / 4
    grid = [(x,) for x in nodes] if K == 2 else [(x, y) for x in nodes for y in nodes]
    values = [at(*angles) for angles in grid]
    weights = np.array([w for _, w in values]) * (mass if K == 2 else np.outer(mass, mass).ravel())
    theta = np.stack([t for t, _ in values])
    weights /= weights.sum()
    return np.concatenate([weights @ theta, weights @ theta**2])


def exact_draws(rng, count, alpha, gram, p, kappa):
    """By rejection from the Dirichlet law."""
    found = np.zeros((0, len(alpha)))
    while len(found) < count:
        theta = rng.dirichlet(alpha, size=4 * count)
        cosine = (theta @ p) / np.sqrt(np.einsum("nk,kl,nl->n", theta, gram, theta))
        found = np.concatenate([found, theta[np.log(rng.random(len(theta))) < kappa * (cosine - 1)]])
    return found[:count]


def deviation(sample, count, alpha, form, sweeps=4, leapfrogs=4, step=0.12, seed=0):
    """Largest |z| of means and squares of independent chains that start from the exact law."""
    alpha, gram, p, kappa = weight_case(len(alpha), alpha)
    rng = np.random.default_rng(seed)
    start = exact_draws(rng, count, alpha, gram, p, kappa)
    settings = WeightSettings(sweeps - 1, 1, leapfrogs, step, form)
    theta, accepted = sample(rng, np.tile(p, (count, 1)), gram[None], alpha, kappa, settings, None, start)
    assert 0.2 < accepted < 0.999  # the test of Metropolis matters
    assert np.abs(theta[:, 0] - start).mean() > 0.02  # and the chains moved
    values = np.concatenate([theta[:, 0], theta[:, 0] ** 2], axis=1)
    error = values.std(axis=0, ddof=1) / np.sqrt(count)
    return np.abs((values.mean(axis=0) - exact_means(alpha, gram, p, kappa)) / error).max()


ALPHAS = [(3.0, 1.5), (0.7, 1.0, 2.0)]


def test_the_quadrature_of_the_weights_is_that_of_an_adaptive_rule():
    alpha, gram, p, kappa = weight_case(2, ALPHAS[0])
    density = lambda x: (
        x ** (alpha[0] - 1)
        * (1 - x) ** (alpha[1] - 1)
        * np.exp(kappa * (np.array([x, 1 - x]) @ p) / np.sqrt(np.array([x, 1 - x]) @ gram @ np.array([x, 1 - x])))
    )
    mass, first = (integrate.quad(lambda x, k=k: x**k * density(x), 0, 1, epsabs=0, epsrel=1e-10)[0] for k in (0, 1))
    assert exact_means(alpha, gram, p, kappa)[0] == pytest.approx(first / mass, rel=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("form", ["flat", "sphere"])
def test_the_law_of_the_weights_is_that_of_quadrature(alpha, form):
    step = 0.06 if form == "flat" and len(alpha) == 3 else 0.25 if form == "sphere" else 0.12
    assert deviation(sample_weights, 20_000, alpha, form, step=step) < Z + 0.5  # 6 statistics


PLANTED = {
    "new v_j in the reflection": ("old = v[j]\n", "v[j] = -v[j]\n    old = v[j]\n"),
    "no change of measure on the sphere": ("2.0 * alpha[i] - 1.0", "2.0 * alpha[i] - 2.0"),
    "sign of the data": ("(p[i] * inverse - pull * along[i])", "(pull * along[i] - p[i] * inverse)"),
    "no test of Metropolis": ("after - before <= level", "after == after"),
    "potential without the data": ("_prior(x, alpha, flat) - kappa * cosine", "_prior(x, alpha, flat)"),
}


def mutant(bug):
    """`sample_weights` with a planted bug, interpreted: the kernels run as plain Python."""
    source = Path(weights_module.__file__).read_text(encoding="utf-8")
    old, new = PLANTED[bug]
    assert old in source
    source = source.replace(old, new).replace("from numba import config, njit", "")
    plain = lambda *args, **options: args[0] if args else (lambda f: f)
    namespace = {"__name__": "mutant", "njit": plain, "config": SimpleNamespace(NUMBA_NUM_THREADS=1)}
    exec(compile(source, "mutant", "exec"), namespace)
    return namespace["sample_weights"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bug", list(PLANTED))
def test_planted_bugs_of_the_weights_are_seen(bug):
    flat = bug == "new v_j in the reflection"
    alpha, form, step = ((0.7, 1.0, 2.0), "flat", 0.2) if flat else ((3.0, 1.5), "sphere", 0.35)
    try:
        found = deviation(mutant(bug), 400 if flat else 1500, alpha, form, sweeps=4 if flat else 8, step=step)
    except AssertionError:
        found = np.inf  # everything, or nothing, is accepted
    assert not found < Z + 0.5


def test_a_reflection_keeps_sum_and_speed_and_is_that_of_the_simplex():
    rng = np.random.default_rng(3)
    v = rng.standard_normal(5)
    v -= v.mean()
    for j in range(5):
        moved = v.copy()
        reflected(moved, j)
        expected = Simplex(5).reflected(jnp.asarray(v), jnp.arange(5) == j)
        np.testing.assert_allclose(moved, expected, atol=8 * EPS)
        assert abs(moved.sum()) < 20 * EPS
        assert moved @ moved == pytest.approx(v @ v, rel=20 * EPS)


def test_weights_do_not_depend_on_other_documents_or_threads_and_settings_are_checked(monkeypatch):
    alpha, gram, p, kappa = weight_case(3, ALPHAS[1])
    both = [gram, np.eye(3)]
    draw = lambda: sample_weights(
        np.random.default_rng(5),
        np.stack([p, p, 2 * p]) / 2,
        np.stack(both),
        alpha,
        kappa,
        WeightSettings(3, 2),
        np.array([0, 1, 0]),
    )[0]
    monkeypatch.setattr(weights_module.config, "NUMBA_NUM_THREADS", 1)
    one = draw()
    monkeypatch.setattr(weights_module.config, "NUMBA_NUM_THREADS", 3)
    np.testing.assert_array_equal(one, draw())
    assert one.shape == (3, 2, 3)
    np.testing.assert_allclose(one.sum(axis=-1), 1, rtol=20 * EPS)
    for wrong in ({"burn_in": -1}, {"kept": 0}, {"leapfrogs": 0}, {"step_size": 0.0}, {"form": "cube"}, {"floor": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            WeightSettings(**wrong).check()


@pytest.mark.parametrize("form", ["flat", "sphere"])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_the_default_step_is_accepted_for_topics_close_together_and_orthogonal(form, orthogonal):
    rng = np.random.default_rng(6)
    K, V = 20, 400
    beta = np.linalg.qr(rng.standard_normal((V, K)))[0].T if orthogonal else unit_rows(rng.random((K, V)))
    X = unit_rows(rng.dirichlet(np.full(K, 0.5), size=30) @ beta + 0.02 * rng.standard_normal((30, V)))
    gram, alpha = (beta @ beta.T)[None], np.full(K, 10.0)
    assert default_step(gram, alpha, 3e4, form).shape == (1,)
    _, accepted = sample_weights(rng, X @ beta.T, gram, alpha, 3e4, WeightSettings(10, 5, form=form))
    assert accepted > 0.5


# Perplexity ----------------------------------------------------------------------------------------------------------


def test_log_perplexity_is_that_of_quadrature_within_its_standard_error():
    """On S^1, two samples of the topics; the density of a document is a mean over the law of its weights."""
    law, documents = tiny.tiny_model(2), tiny.tiny_documents(2)
    samples = [unit_rows(np.array([[1.0, 0.2], [0.3, 1.0]])), unit_rows(np.array([[1.0, -0.5], [1.0, 1.0]]))]
    theta, mass = tiny.weight_rule()
    density = np.zeros(3)
    for beta in samples:
        b = theta @ beta
        cosines = documents @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T
        constant = 1 / (2 * np.pi * special.ive(0, law.concentration))
        density += constant * np.exp(law.concentration * (cosines - 1)) @ mass / 2
    exact = -np.log(density).mean()
    found = LogPerplexity(law, as_rows(documents), np.random.default_rng(0), draws=4000)
    for beta in samples:
        found.add(beta)
    value = found.value()
    assert abs(value.value - exact) < Z * value.standard_error + 1e-4  # the bias of a logarithm, variance / (2 N)
    assert value.standard_error < 0.02
    assert 0 < value.draws < 4000
    # the standard error is the spread over repetitions: chi-square with 199 degrees of freedom, 4.9 sigma
    spread = []
    for seed in range(200):
        part = LogPerplexity(law, as_rows(documents), np.random.default_rng(seed), draws=100)
        part.add(samples[0])
        spread.append(part.value()[:2])
    values, errors = np.array(spread).T
    assert abs(values.std(ddof=1) / np.sqrt(np.mean(errors**2)) - 1) < 4.9 / np.sqrt(2 * 199)


def test_a_window_forgets_and_a_state_comes_back():
    law, rows = tiny.tiny_model(2), as_rows(tiny.tiny_documents(2))
    rng = np.random.default_rng(1)
    samples = [unit_rows(rng.standard_normal((2, 2))) for _ in range(5)]
    windowed, last = (LogPerplexity(law, rows, np.random.default_rng(0), 20, w, 2) for w in (2, None))
    for beta in samples:
        windowed.add(beta)
    for beta in samples[2:]:
        last.add(beta)
    assert windowed.samples == last.samples == 3
    assert last.alone(np.stack(samples[2:])).value == pytest.approx(last.value().value, rel=1e-13)
    assert windowed.value().value == pytest.approx(last.value().value, rel=1e-13)
    other = LogPerplexity(law, rows, np.random.default_rng(0), 20, 2, 2)
    other.restore(windowed.dump())
    assert other.value() == windowed.value()
    with pytest.raises(ValueError, match="no sample"):
        LogPerplexity(law, rows, rng).value()
    with pytest.raises(ValueError, match="have 2 words, the model 7"):
        LogPerplexity(model(), rows, rng)


def test_arguments_of_the_model_are_checked():
    good = (np.eye(1, 3)[0], np.ones(2), 1.0, 1.0, 1.0)
    SAM(*good)
    for place, wrong, name in ((0, np.ones(3), "direction"), (1, np.zeros(2), "alpha"), (4, -1.0, "concentration")):
        with pytest.raises(ValueError, match=name):
            SAM(*good[:place], wrong, *good[place + 1 :])
    with pytest.raises(ValueError, match="documents"):
        as_rows(np.array([[np.nan, 1.0]]))
