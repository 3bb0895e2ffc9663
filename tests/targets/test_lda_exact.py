"""LDA on a tiny corpus: the enumeration, counts of documents. Laws of the samplers: the tier `workload`."""

import math

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.tiers.workload.lda import (
    NAMES,
    PHI,
    STICKY,
    corpus_of,
    expectations,
    mean_after,
    statistics,
)
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.riemannian.metrics import PositiveMetric
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.topic_models.lda.estimator import DocumentGibbs
from sgmcmc_verification.samplers.topic_models.lda.gibbs import sample_topics
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent
from sgmcmc_verification.targets.topic_models.lda.tiny import TinyLDA, tiny_lda

RATE = 1e-6
TINY = tiny_lda()
MODEL = TINY.model


# The oracle -------------------------------------------------------------------------------------------------------


def test_enumerated_potential_is_that_of_the_exact_sampler():
    # Stein: E[theta_i d_i U] = 1 for every coordinate, if the draws have the density exp(-U)
    draws = TINY.sample(np.random.default_rng(0), 40_000).reshape(40_000, -1)
    gradients = np.asarray(jax.jit(jax.vmap(jax.grad(TINY.target().potential)))(draws))
    for i in range(draws.shape[1]):
        assert not mean_test(draws[:, i] * gradients[:, i], 1.0, name=f"{i}", unit="1").rejects(RATE)


def test_gradient_of_expected_counts_is_the_gradient_of_the_potential():
    # Fisher's identity: the posterior mean of the gradient given z is the gradient with z summed out
    theta = np.random.default_rng(1).gamma(2.0, size=(3, 2))
    exact = np.asarray(jax.grad(TINY.target().potential)(theta.ravel())).reshape(3, 2)
    found = MODEL.gradient(theta, TINY.expected_counts(theta))
    np.testing.assert_allclose(found, exact, rtol=1e3 * np.finfo(float).eps)


def test_moments_by_enumeration_are_those_of_the_exact_sampler():
    values = statistics(TINY.sample(np.random.default_rng(2), 40_000))
    for j, expected in enumerate(expectations(TINY)):
        assert not mean_test(values[:, j], expected, name=NAMES[j], unit="1").rejects(RATE)


# The Gibbs sampler of a document -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("sweeps", "burn_in"), [(1, 0), (4, 2), (200, 100)])
def test_mean_counts_of_the_gibbs_sampler_are_those_of_its_exact_chain(sweeps, burn_in):
    repeats = 20_000 if sweeps < 100 else 1000
    document = TINY.documents[1]
    found = document_counts(sample_topics, sweeps, repeats)
    exact = mean_after(STICKY, PHI, 1, sweeps, burn_in)
    assert all(not o.rejects(RATE / len(document)) for o in compared(found, exact.sum(axis=0)))


def document_counts(sampler, sweeps, repeats):
    """A_dk of many copies of the second document."""
    document = np.asarray(TINY.documents[1])
    words, offsets = np.tile(document, repeats), len(document) * np.arange(repeats + 1)
    return sampler(np.random.default_rng(3), words, offsets, PHI, STICKY.model.alpha, sweeps).documents


def compared(values, expected):
    return [mean_test(values[:, k], expected[k], name=f"topic {k}", unit="1") for k in range(len(expected))]


def test_counts_do_not_depend_on_the_number_of_threads():
    words = np.random.default_rng(4).integers(3, size=600)
    offsets = np.array([0, 0, 50, 51, 400, 600])
    one, two = (sample_topics(np.random.default_rng(5), words, offsets, PHI, 0.3, 6, threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.words, two.words)
    np.testing.assert_array_equal(one.documents, two.documents)
    np.testing.assert_allclose(one.documents.sum(axis=1), np.diff(offsets), rtol=1e-12)


def test_words_of_documents_and_of_topics_are_all_counted():
    words = np.array([0, 1, 1, 2, 2, 2])
    found = sample_topics(np.random.default_rng(6), words, np.array([0, 2, 6]), PHI, 0.5, 10)
    np.testing.assert_allclose(found.words.sum(axis=1), [1, 2, 3], rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha": 0.0}, "alpha: must be positive"),
        ({"sweeps": 0}, "sweeps: must lie"),
        ({"burn_in": 4}, "burn_in: must lie between 0 and 3"),
        ({"threads": 0}, "threads: must be at least 1"),
        ({"offsets": np.array([0, 3])}, "offsets: end at 3"),
        ({"weights": np.zeros((3, 2))}, "weights: row 0"),
        ({"words": np.array([0, 3])}, "words: must be rows"),
    ],
)
def test_bad_input_of_the_gibbs_sampler_is_named(changes, words):
    given = {"words": np.array([0, 1]), "offsets": np.array([0, 2]), "weights": PHI, "alpha": 0.1, "sweeps": 4}
    with pytest.raises(ValueError, match=words):
        sample_topics(np.random.default_rng(0), **{**given, **changes})


# Samplers of topics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["autodiff_recipe", "generator_of_code"])
def test_the_code_has_the_dynamics_of_the_enumerated_posterior(check):
    row = Row("sgrld", lambda target: SGRLD(PositiveMetric(), reflect=True), step_size=0.01)
    found = find_statement(check)(Case(Subject(row), TINY.target()), 0)
    assert found.verdict == "pass"


# The estimator over a corpus ---------------------------------------------------------------------------------------


def test_minibatch_counts_are_unbiased_over_all_documents():
    corpus = corpus_of([(0, 1), (0, 0, 2), (2,), (1, 2)])
    whole = TinyLDA(MODEL, tuple(tuple(int(w) for w in corpus.document(d)) for d in range(4)))
    theta = np.random.default_rng(14).gamma(2.0, size=(3, 2))
    estimator = DocumentGibbs(MODEL, Independent(corpus, 2, seed=3), sweeps=40)
    rng, estate, found, gradients = np.random.default_rng(15), np.zeros((), np.int64), [], []
    for _ in range(4000):
        estimate, estate = estimator.estimate(rng, estate, theta)
        found.append(estimate.statistics.ravel())
        gradients.append(estimate.gradient.ravel())
    exact = whole.expected_counts(theta)
    slope = MODEL.gradient(theta, exact).ravel()
    for values, expected in ((np.array(found), exact.ravel()), (np.array(gradients), slope)):
        for j in range(6):
            assert not mean_test(values[:, j], expected[j], name=f"{j}", unit="1").rejects(RATE / 12)
    missing = np.array(found) / 2  # the scale N / n left out
    assert mean_test(missing[:, 0], exact.ravel()[0], name="0", unit="1").rejects(RATE)
    assert int(estate) == 4000


def test_bias_left_by_a_finite_number_of_sweeps_is_negligible_at_the_default():
    # exact chain of the sweeps against the law they converge to
    exact = TINY.conditional(PHI)
    counts = np.einsum("s,stk->tk", exact, np.eye(2)[TINY.assignments])[2:]
    bias = np.abs(mean_after(TINY, PHI, 1, 200, 100) - counts).max()
    assert bias < 1e4 * np.finfo(float).eps
    assert math.isclose(counts.sum(), 3, rel_tol=1e-12)
