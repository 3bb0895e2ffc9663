"""LDA against the enumerated posterior of a tiny corpus: model, both Gibbs samplers, every sampler of topics."""

import inspect
import math
import re
from typing import Any

import jax
import numpy as np
import pytest
from numba import njit

from checks.registry import find_check
from checks.statistics.joint import joint_test
from checks.statistics.moments import mean_test
from checks.step_size_limit import limit_test
from checks.subject import Subject
from samplers.cir import streams
from samplers.lda import collapsed, gibbs
from samplers.lda.collapsed import collapsed_state, collapsed_sweep
from samplers.lda.estimator import DocumentGibbs
from samplers.lda.gibbs import sample_topics, sweep_document
from samplers.lda.scir import TopicSCIR
from samplers.metrics import FlatMetric, PositiveMetric
from samplers.row import Row
from samplers.run import run
from samplers.sgrhmc import SGRHMC
from samplers.sgrld import SGRLD
from targets.datasets.corpus import from_documents
from targets.datasets.stream import Independent
from targets.datasets.text import Vocabulary
from targets.lda.model import LDA
from targets.lda.tiny import TinyLDA
from tests.lda_examples import (
    NAMES,
    TINY,
    DrawnCounts,
    ExactCounts,
    GibbsCounts,
    end_statistics,
    expectations,
    mean_after,
    statistics,
)

RATE = 1e-6
MODEL = TINY.model
STICKY = TinyLDA(LDA(2, 3, alpha=0.05, beta=2.5), TINY.documents)
"""Documents that keep to one topic: a chain that forgets its start slowly."""
PHI = np.array([[0.6, 0.1], [0.3, 0.2], [0.1, 0.7]])
SAMPLERS = {
    "sgld": (SGRLD(FlatMetric(), reflect=True), 0.1),
    "sghmc": (SGRHMC(FlatMetric(), reflect=True), 0.2),
    "sgrld": (SGRLD(PositiveMetric(), reflect=True), 0.1),
    "sgrhmc": (SGRHMC(PositiveMetric(), reflect=True), 0.2),
}


def corpus_of(documents):
    return from_documents([np.asarray(d) for d in documents], Vocabulary(("a", "b", "c")))


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
    for j, expected in enumerate(expectations()):
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


def test_counts_that_keep_the_burn_in_are_biased():
    found = document_counts(lambda *a: sample_topics(*a, burn_in=0), 4, 100_000)
    assert any(o.rejects(RATE) for o in compared(found, mean_after(STICKY, PHI, 1, 4, 2).sum(axis=0)))


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


def geweke(sweep, alpha=0.4, replicates=20_000):
    """Joint test of one sweep over z of one document of three words, for given topics."""
    length, weights = 3, np.ascontiguousarray(PHI, np.float32)
    cumulative = np.cumsum(weights, axis=1, dtype=np.float64)

    def prior(rng, count):
        shares = rng.dirichlet([alpha, alpha], count)
        return (rng.random((count, length)) > shares[:, :1]).astype(np.int64)

    def data(rng, z):
        return (np.cumsum(PHI, axis=0).T[z] < rng.random(z.shape)[..., None]).sum(axis=-1)

    def transition(rng, z, words):
        moved, states = z.astype(np.uint32), streams(rng, len(z))
        visits = np.zeros((length, 2), np.uint16)
        for row, word, state in zip(moved, words, states, strict=True):
            sweep(state, word, row, weights, cumulative, alpha, 1, 0, visits)
        return moved.astype(np.int64)

    def functions(z, words):
        first = z.sum(axis=1)
        return np.stack([first, first**2, np.log(PHI)[words, z].sum(axis=1), (z[:, 0] == z[:, 1])], axis=1)

    return joint_test(prior, data, transition, functions, seed=7, replicates=replicates, sweeps=3)


def test_sweep_over_a_document_passes_the_joint_distribution_test():
    assert not any(o.rejects(RATE / 8) for o in geweke(sweep_document))


def planted(module, function, change) -> Any:
    """The function of a kernel with one change of its source, compiled."""
    source = inspect.getsource(getattr(module, function).py_func)
    before, after = change
    assert source.count(before) == 1, f"{before!r} is not, or not once, in the source of {function}"
    body = re.sub(r"@njit\(.*\)\n", "", source.replace(before, after))
    space = dict(vars(module))
    exec(compile(body, "planted", "exec"), space)
    return njit(space[function])


WRONG_SWEEPS = {
    "the word itself stays counted": ("total += count[k] *", "total += (count[k] + 1.0) *"),
    "alpha halved": ("alpha * cumulative[row, topics - 1]", "0.5 * alpha * cumulative[row, topics - 1]"),
    "topics without regard to the word": ("* weights[row, k]", "* weights[0, k]"),
    "the prior always gives the first topic": ("at = (at - total) / alpha", "at = 0.0"),
    "the last word is never moved": ("range(size):\n            row", "range(size - 1):\n            row"),
}


@pytest.mark.parametrize("change", [*WRONG_SWEEPS.values()][:4], ids=[*WRONG_SWEEPS][:4])
def test_wrong_sweep_fails_the_joint_distribution_test(change):
    assert any(o.rejects(RATE / 8) for o in geweke(planted(gibbs, "sweep_document", change)))


def test_a_word_that_is_never_moved_changes_the_mean_counts():
    # the joint law is kept by it: what fails is the mean over sweeps from uniform topics
    wrong = planted(gibbs, "sweep_document", WRONG_SWEEPS["the last word is never moved"])
    assert not any(o.rejects(RATE / 8) for o in geweke(wrong))
    document, weights = np.asarray(TINY.documents[1]), np.ascontiguousarray(PHI, np.float32)
    cumulative, rng = np.cumsum(weights, axis=1, dtype=np.float64), np.random.default_rng(8)
    found = np.zeros((5000, 2))
    for row, state in zip(found, streams(rng, len(found)), strict=True):
        visits, z = np.zeros((len(document), 2), np.uint16), rng.integers(2, size=len(document)).astype(np.uint32)
        wrong(state, document, z, weights, cumulative, STICKY.model.alpha, 8, 4, visits)
        row[:] = visits.sum(axis=0) / 4
    assert any(o.rejects(RATE) for o in compared(found, mean_after(STICKY, PHI, 1, 8, 4).sum(axis=0)))


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


# Collapsed Gibbs ---------------------------------------------------------------------------------------------------


def collapsed_geweke(sweep=None, replicates=5000):
    """Joint test of a sweep over all words of two documents, theta and phi integrated out."""
    model = LDA(2, 3, 0.5, 0.7)
    lengths = (2, 3)

    def prior(rng, count):
        z = [(rng.random((count, n)) > rng.dirichlet([model.alpha] * 2, count)[:, :1]) for n in lengths]
        phi = rng.dirichlet([model.beta] * 3, (count, 2))
        return {"z": np.concatenate(z, axis=1).astype(np.int64), "phi": phi}

    def data(rng, theta):
        # phi given z and the words before is a Dirichlet law; here it is kept with z, and drawn again in a transition
        shares = np.take_along_axis(theta["phi"], theta["z"][:, :, None], axis=1)
        return (np.cumsum(shares, axis=2) < rng.random((*theta["z"].shape, 1))).sum(axis=2)

    def transition(rng, theta, words):
        z, phi = theta["z"].copy(), np.empty_like(theta["phi"])
        for r in range(len(z)):
            corpus = corpus_of(np.split(words[r], [lengths[0]]))
            state = collapsed_state(corpus, model, z[r])
            if sweep is None:
                collapsed_sweep(rng, corpus, model, state)
            else:
                sweep(streams(rng, 1)[0], words[r].astype(np.int64), corpus.offsets, *state, model.alpha, model.beta)
            z[r] = state.topics
            phi[r] = [rng.dirichlet(model.beta + state.in_words[:, k]) for k in range(2)]
        return {"z": z, "phi": phi}

    def functions(theta, words):
        z, phi = theta["z"], theta["phi"]
        likelihood = np.log(np.take_along_axis(phi, z[:, :, None], axis=1) + 1e-300)
        picked = np.take_along_axis(likelihood, words[:, :, None], axis=2)[..., 0]
        together = (z[:, 0] == z[:, 1]) & (words[:, 0] == words[:, 1])
        return np.stack([np.maximum(picked, -20).sum(axis=1), z[:, :2].sum(axis=1) ** 2, together], axis=1)

    return joint_test(prior, data, transition, functions, seed=9, replicates=replicates, sweeps=2)


def test_collapsed_sweep_passes_the_joint_distribution_test():
    assert not any(o.rejects(RATE / 6) for o in collapsed_geweke())


def test_collapsed_sweep_that_keeps_the_word_in_the_counts_fails():
    wrong = planted(
        collapsed, "sweep_corpus", ("in_words[word, k] -= 1.0\n", "in_words[word, k] -= 0.0\n")
    )  # fmt: skip
    assert any(o.rejects(RATE / 6) for o in collapsed_geweke(wrong))


def test_long_collapsed_chain_has_the_enumerated_law_of_assignments():
    # from the exact law of z: after two sweeps the end points have it still
    corpus, rng = corpus_of(TINY.documents), np.random.default_rng(10)
    chosen = rng.choice(len(TINY.posterior), 8000, p=TINY.posterior)
    ends = np.empty(len(chosen), np.int64)
    for r, start in enumerate(chosen):
        state = collapsed_state(corpus, MODEL, TINY.assignments[start])
        for _ in range(2):
            collapsed_sweep(rng, corpus, MODEL, state)
        ends[r] = int("".join(map(str, state.topics)), 2)
    for s in np.argsort(TINY.posterior)[-8:]:
        p = float(TINY.posterior[s])
        assert not mean_test((ends == s).astype(float), p, name=str(s), unit="1").rejects(RATE / 8)


# Samplers of topics ------------------------------------------------------------------------------------------------


def limits(values, expected, count=5):
    scale = values[0].std(axis=0)
    return [limit_test(values[:, :, j] / scale[j], 1, expected[j] / scale[j], NAMES[j]) for j in range(count)]


@pytest.mark.parametrize("name", SAMPLERS)
def test_limit_of_the_law_is_the_enumerated_posterior_for_exact_gradients(name):
    sampler, h = SAMPLERS[name]
    chains, steps = 10_000, 8
    values = []
    for k in range(3):
        start = TINY.sample(np.random.default_rng(k), chains).reshape(chains, -1)
        n = steps * 2**k
        found = run(sampler, target(), jax.random.key(k), step_size=h / 2**k, num_steps=n, thin=n, positions=start)
        values.append(statistics(np.asarray(found.samples)[:, 0].reshape(chains, 3, 2)))
    assert not any(o.rejects(RATE / 5) for o in limits(np.stack(values), expectations()))


@pytest.mark.parametrize("name", ["sgld", "sgrld"])
@pytest.mark.parametrize("check", ["autodiff_recipe", "generator_of_code"])
def test_the_code_has_the_dynamics_of_the_enumerated_posterior(name, check):
    row = Row(name, lambda target: SAMPLERS[name][0], step_size=0.01)
    found = find_check(check).run(find_check(check), Subject(row), target(), 0)
    assert found.verdict == "pass"


def target():
    """One object, so that what is compiled for it is found again."""
    if not hasattr(target, "made"):
        target.made = TINY.target()
    return target.made


def gibbs_limits():
    sampler, h = SAMPLERS["sgrld"]
    estimator = GibbsCounts()
    values = [end_statistics(sampler, estimator, h / 2**k, 6 * 2**k, 10_000, k) for k in range(3)]
    return limits(np.stack(values), expectations())


def test_limit_of_the_law_is_the_enumerated_posterior_for_gibbs_minibatches():
    assert not any(o.rejects(RATE / 5) for o in gibbs_limits())


@pytest.mark.parametrize("step_size", [0.1, 2.0])
def test_scir_with_fresh_totals_has_the_enumerated_posterior_at_every_step_size(step_size):
    for estimator in (DrawnCounts(), GibbsCounts(batch=2, sweeps=12, burn_in=11)):
        values = end_statistics(TopicSCIR(MODEL.beta), estimator, step_size, 6, 10_000, 11)
        expected = expectations()
        for j in range(4):
            assert not mean_test(values[:, j], expected[j], name=NAMES[j], unit="1").rejects(RATE / 4)


def test_scir_of_averaged_counts_has_too_little_variance_at_large_steps():
    # at h -> infinity theta is Gamma(beta + E[n | phi]), where the posterior is the mixture over n
    values = end_statistics(TopicSCIR(MODEL.beta), ExactCounts(), 20.0, 4, 20_000, 12)
    expected = expectations()
    assert any(mean_test(values[:, j], expected[j], name=NAMES[j], unit="1").rejects(RATE) for j in range(4))


def test_counts_without_their_scale_give_another_law():
    wrong = GibbsCounts(batch=2, sweeps=12, burn_in=11, scale=0.5)
    values = end_statistics(TopicSCIR(MODEL.beta), wrong, 2.0, 6, 10_000, 11)
    assert any(mean_test(values[:, j], expectations()[j], name=NAMES[j], unit="1").rejects(RATE) for j in range(4))


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
