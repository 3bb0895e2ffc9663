"""Sets of topics that move together: gradients by enumeration, moves by autodiff, the law by quadrature."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.particles.parvi import ParVI
from sgmcmc_verification.samplers.particles.psghmc import PSGHMC
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.topic_models.lda import particles
from sgmcmc_verification.samplers.topic_models.lda.completion import Completion
from sgmcmc_verification.samplers.topic_models.lda.particles import ParticleGibbs, run_particles
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.datasets.corpus import from_documents
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.target import Target
from sgmcmc_verification.targets.topic_models.lda.model import LDA
from sgmcmc_verification.targets.topic_models.lda.softmax import SoftmaxLDA
from sgmcmc_verification.targets.topic_models.lda.tiny import TinyLDA, tiny_lda

QUANTILE = stats.norm.isf(2.5e-7)  # 36 numbers at most, each at a two-sided rate of 1e-6 / 2
TINY = tiny_lda()
MODEL = SoftmaxLDA(2, 3, TINY.model.alpha, mean=0.3, variance=0.5)
CORPUS = from_documents([np.array(d) for d in TINY.documents], Vocabulary(("a", "b", "c")))
TWO = Loop(evaluate_every=2)
THETA = np.random.default_rng(0).normal(0.3, 1.0, (3, 3, 2))


def potential(model, tiny):
    """U of theta flat (V K,), with the topics of all words summed out: the oracle of all that follows."""
    log_prior, counts = jnp.asarray(tiny.log_prior), jnp.asarray(tiny.topic_counts)

    def U(x):
        theta = x.reshape(model.words, model.topics)
        likelihood = jax.nn.logsumexp(log_prior + jnp.einsum("svk,vk->s", counts, jax.nn.log_softmax(theta, axis=0)))
        return 0.5 * jnp.sum((theta - model.mean) ** 2) / model.variance - likelihood

    return U


U = potential(MODEL, TINY)
SLOPES = np.asarray(jax.vmap(jax.grad(U))(THETA.reshape(3, -1))).reshape(THETA.shape)


@dataclasses.dataclass(frozen=True)
class Enumerated:
    """grad U with exact expected counts (M, V, K), in place of those of Gibbs sampling."""

    model: SoftmaxLDA
    tiny: TinyLDA
    documents: int = 2

    def estimate(self, key, estate, position):
        del key
        counts = self.tiny.expected_counts(self.model.weights(position))
        return Estimate(self.model.gradient(position, counts)), estate


def test_gradient_of_expected_counts_is_the_gradient_of_the_potential():
    found = Enumerated(MODEL, TINY).estimate(None, (), THETA)[0].gradient
    np.testing.assert_allclose(found, SLOPES, rtol=0, atol=1e3 * np.finfo(float).eps * np.abs(SLOPES).max())


def z_scores(batch, repeats, seed=1):
    """Of the mean gradient of each particle, over minibatches and topics of words, about the exact gradient."""
    # 40 sweeps of two or three words forget a uniform start: the bias is below 1e-6, the standard errors above 1e-3
    estimator = ParticleGibbs(MODEL, Independent(CORPUS, batch, 3), sweeps=80)
    draw = np.random.default_rng(seed)
    found = np.array([estimator.estimate(draw, np.int64(i), THETA)[0].gradient for i in range(repeats)])
    return (found.mean(axis=0) - SLOPES) / (found.std(axis=0, ddof=1) / np.sqrt(repeats))


@pytest.mark.parametrize("batch", [1, 2])
def test_the_gradient_of_every_particle_is_unbiased(batch):
    assert np.abs(z_scores(batch, 500)).max() < QUANTILE


def test_counts_of_another_particle_would_be_seen(monkeypatch):
    """Planted: the particles get each other's counts; theta of the prior's part is their own."""
    right = ParticleGibbs.estimate

    def wrong(self, key, estate, position):
        found, estate = right(self, key, estate, position)
        return found._replace(gradient=self.model.gradient(position, np.roll(found.statistics, 1, axis=0))), estate

    monkeypatch.setattr(ParticleGibbs, "estimate", wrong)
    assert np.abs(z_scores(2, 200)).max() > 2 * QUANTILE


def test_all_particles_see_the_same_minibatch_and_draw_topics_of_their_own():
    batches = Independent(CORPUS, 1, 3)
    estimator = ParticleGibbs(MODEL, batches, sweeps=4)
    differ = 0
    for number in range(12):
        counts = estimator.estimate(np.random.default_rng(number), np.int64(number), THETA[[0, 0]])[0].statistics
        words = np.bincount(CORPUS.document(batches.numbers(number)[0]), minlength=3)
        # of every word the document has as many as all topics together, times D / n = 2
        np.testing.assert_allclose(counts.sum(axis=2), 2.0 * np.array([words, words]), rtol=1e-14)
        differ += not np.array_equal(counts[0], counts[1])
    assert differ > 0


METHODS = {
    "blob": ParVI(),
    "det": PSGHMC(0.4, 0.3, "det"),
    "fgh": PSGHMC(0.4, 0.3, "fgh"),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_run_makes_the_moves_of_the_method_with_the_gradient_of_the_potential(name):
    sampler = METHODS[name]
    found = run_particles(sampler, Enumerated(MODEL, TINY), 0, THETA, step_size=0.05, num_steps=4, loop=TWO)
    target = Target("tiny", Euclidean(6), jnp.zeros(6), U, source="enumeration")
    # the start of the momenta is the driver's
    key = jax.random.key(
        int(np.random.default_rng(np.random.SeedSequence(0, spawn_key=(particles._INIT,))).integers(2**63))
    )
    state = sampler.init(key, jnp.asarray(THETA), particles.NoEstimator())
    rows = state._replace(position=jnp.asarray(THETA.reshape(3, 6)), estate=())
    step = jax.jit(lambda state: sampler.step(jax.random.key(1), state, 0.05, Exact(target)))
    for _ in range(4):
        rows = step(rows)
    want = np.asarray(sampler.position(rows)).reshape(THETA.shape)
    # four steps of a few dozen operations, on numbers up to 10
    np.testing.assert_allclose(found.theta, want, rtol=0, atol=1e4 * np.finfo(float).eps)
    assert [p.step for p in found.points] == [0, 2, 4]
    assert [p.documents for p in found.points] == [0, 4, 8]
    assert found.points[-1].spread == pytest.approx(np.var(want, axis=0, ddof=1).mean(), rel=1e-10)


@pytest.mark.parametrize("sampler", [METHODS["det"], SGHMC()], ids=["particles", "chains"])
def test_a_run_that_is_stopped_goes_on_to_the_same_sets(sampler, tmp_path):
    def go(steps, file=None):
        estimator = ParticleGibbs(MODEL, Independent(CORPUS, 1, 3), sweeps=2)
        loop = Loop(evaluate_every=2, checkpoint=file, checkpoint_every=3)
        completion = lambda: Completion(CORPUS, MODEL.alpha, 4)
        return run_particles(
            sampler, estimator, 0, THETA, step_size=0.05, num_steps=steps, completion=completion, loop=loop
        )

    whole, file = go(8), tmp_path / "run.npz"
    go(4, file)
    resumed = go(8, file)
    np.testing.assert_array_equal(resumed.theta, whole.theta)
    assert [p._replace(seconds=0.0) for p in resumed.points] == [p._replace(seconds=0.0) for p in whole.points]


@pytest.mark.parametrize("name", ["blob", "det"])
def test_the_centre_of_the_sums_over_words_follows_its_linear_equation(name):
    """With s_k = sum_w theta_wk: sum_w (N_wk - phi_wk N_.k) = 0, and the forces of Blob sum to zero, so that the mean
    of s_k over the particles moves under the prior alone, whatever minibatches and topics of words there are.
    """
    sampler, h = METHODS[name], 0.05
    estimator = ParticleGibbs(MODEL, Independent(CORPUS, 1, 3), sweeps=2)
    found = run_particles(sampler, estimator, 4, THETA, step_size=h, num_steps=30)
    rest = MODEL.words * MODEL.mean
    x = THETA.sum(axis=1).mean(axis=0) - rest
    if name == "blob":
        want = x * (1 - h / MODEL.variance) ** 30
    else:
        key = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(particles._INIT,))).integers(2**63)
        state = sampler.init(jax.random.key(int(key)), jnp.asarray(THETA), particles.NoEstimator())
        r = np.asarray(state.auxiliary).reshape(THETA.shape).sum(axis=1).mean(axis=0)
        for _ in range(30):
            x, r = x + h * r / 0.3, r - h * x / MODEL.variance - h * 0.4 * r / 0.3
        want = x
    centre = found.theta.sum(axis=1).mean(axis=0) - rest
    np.testing.assert_allclose(centre, want, rtol=0, atol=1e4 * np.finfo(float).eps)


# Two words and two topics: phi depends on the differences of theta alone, whose law is an integral over the plane ----

PAIRS = TinyLDA(LDA(2, 2, alpha=0.6, beta=1.0), ((0, 0), (1,)))
PLANE = SoftmaxLDA(2, 2, 0.6, mean=0.1, variance=1.0)
COUNT = 2000


def quadrature():
    """E d_1^2, E d_1 d_2 and E phi_1 (1 - phi_1), d_k = theta_0k - theta_1k ~ N(0, 2 variance) before the words."""
    # the trapezoidal rule of smooth functions with Gaussian tails: spectral accuracy
    d = np.linspace(-12, 12, 241)
    a, b = (x.ravel() for x in np.meshgrid(d, d, indexing="ij"))
    theta = np.stack([np.stack([a, b], axis=1), np.zeros((a.size, 2))], axis=1)
    phi = PLANE.phi(theta)
    log_phi = np.einsum("nvk,svk->ns", np.log(phi), PAIRS.topic_counts)
    density = (np.exp(PAIRS.log_prior + log_phi).sum(axis=1)) * np.exp(-(a**2 + b**2) / (4 * PLANE.variance))
    density /= density.sum()
    return np.array([density @ a**2, density @ (a * b), density @ (phi[:, 0, 0] * phi[:, 1, 0])])


def moments(temperature):
    """The same at the end of chains of SGHMC: (means, standard errors)."""
    h, steps = 0.05, 200  # 10 units of time: of the start t exp(-t) is left, 5e-4
    start = np.random.default_rng(2).normal(0.1, 1.0, (COUNT, 2, 2))
    run = run_particles(
        SGHMC(2.0, temperature),
        Enumerated(PLANE, PAIRS),
        5,
        start,
        step_size=h,
        num_steps=steps,
        loop=Loop(evaluate_every=steps),
    )
    d, phi = run.theta[:, 0] - run.theta[:, 1], PLANE.phi(run.theta)
    values = np.stack([d[:, 0] ** 2, d[:, 0] * d[:, 1], phi[:, 0, 0] * phi[:, 1, 0]], axis=1)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(COUNT)


def test_chains_have_the_posterior_at_temperature_one_and_another_law_at_that_of_the_released_code():
    exact = quadrature()
    # relative bias of a variance: q / (1 - u - q), u = C h / 2, q = h^2 L / 4; L <= 1 / variance + 3 words / 2
    u, q = 2.0 * 0.05 / 2, 0.05**2 * 2.5 / 4
    allowance = q / (1 - u - q) * np.array([exact[0], exact[0], 0.25])
    mean, error = moments(1.0)
    assert np.all(np.abs(mean - exact) < QUANTILE * error + allowance)
    cold, error = moments(0.1)
    assert np.all(np.abs(cold - exact)[[0, 2]] > (QUANTILE * error + allowance)[[0, 2]])


def test_the_perplexity_is_that_of_the_mean_over_the_sets():
    made = []

    class Watched(Completion):
        def add(self, generator, phi):
            made.append(phi)
            return super().add(generator, phi)

    found = run_particles(
        ParVI(),
        Enumerated(MODEL, TINY),
        0,
        THETA,
        step_size=0.01,
        num_steps=2,
        loop=TWO,
        completion=lambda: Watched(CORPUS, MODEL.alpha, 4),
    )
    assert len(made) == 2 * len(THETA)
    np.testing.assert_allclose(np.stack(made[:3]), np.exp(THETA) / np.exp(THETA).sum(axis=1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(np.stack(made[3:]), MODEL.phi(found.theta), rtol=1e-13)


def test_a_step_that_is_too_large_and_bad_arguments_are_named():
    exact = Enumerated(MODEL, TINY)
    with pytest.raises(FloatingPointError, match="reduce step_size"):
        run_particles(SGHMC(), exact, 0, THETA, step_size=1e200, num_steps=3)
    for changes, words in (
        ({"num_steps": 0}, "num_steps"),
        ({"step_size": -1.0}, "step_size"),
        ({"theta": THETA[0]}, "theta"),
        ({"theta": THETA[:, :2]}, "of the model"),
    ):
        given = {"theta": THETA, "step_size": 0.1, "num_steps": 1, **changes}
        with pytest.raises(ValueError, match=words):
            run_particles(ParVI(), exact, 0, given.pop("theta"), **given)
    with pytest.raises(ValueError, match="elsewhere than at its position"):
        run_particles(SGHMC(scheme="symmetric"), exact, 0, THETA, step_size=0.1, num_steps=1)
    for changes, words in (({"variance": 0.0}, "variance"), ({"mean": np.inf}, "mean"), ({"alpha": -1.0}, "alpha")):
        with pytest.raises(ValueError, match=words):
            SoftmaxLDA(**{"topics": 2, "words": 3, "alpha": 0.1, **changes})
    with pytest.raises(ValueError, match="topics"):
        SoftmaxLDA(0, 3, 0.1)
