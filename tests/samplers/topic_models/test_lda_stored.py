"""The estimator that keeps the topics of all words: bookkeeping, first visits, resume; its law: tier `workload`."""

import numpy as np
import pytest

from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.topic_models.lda.gibbs import move_topics
from sgmcmc_verification.samplers.topic_models.lda.run import run_lda
from sgmcmc_verification.samplers.topic_models.lda.scir import TopicSCIR
from sgmcmc_verification.samplers.topic_models.lda.stored_assignments import StoredGibbs, places_of
from sgmcmc_verification.targets.datasets.corpus import from_documents
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent, Shuffled
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.topic_models.lda.model import LDA, normalised

WORDS = Vocabulary(tuple("abcdefg"))
MODEL = LDA(3, 7, alpha=0.3, beta=0.5)
CORPUS = from_documents([np.array(d, int) for d in ([0, 1, 1], [], [2, 3, 4, 5, 6], [6], [0, 0, 0, 2], [1, 5])], WORDS)
PHI = normalised(np.random.default_rng(0).gamma(1.0, size=(7, 3)))


def move(sweeps, topics):
    """A document of one word."""
    return move_topics(np.random.default_rng(0), np.array([1]), np.array([0, 1]), PHI, 0.3, sweeps, np.array(topics))


def recounted(state):
    """n_wk from the stored topics, word by word."""
    counts = np.zeros((7, 3))
    for word, topic in zip(CORPUS.tokens, state.topics, strict=True):
        if topic < 3:
            counts[word, topic] += 1
    return counts


@pytest.mark.parametrize("batches", [Independent(CORPUS, 2, seed=1), Shuffled(CORPUS, 4, seed=1, block=1)])
def test_counts_are_those_of_the_stored_topics_scaled_by_the_documents_visited(batches):
    estimator, rng = StoredGibbs(MODEL, batches, gradient=True), np.random.default_rng(2)
    state, seen = estimator.init(rng, PHI), set()
    for step in range(12):
        visited = {int(d) for d in batches.numbers(step) if CORPUS.lengths[d]}
        unmoved = [d for d in range(len(CORPUS)) if d not in visited]
        kept = [state.topics[CORPUS.offsets[d] : CORPUS.offsets[d + 1]].copy() for d in unmoved]
        found, state = estimator.estimate(rng, state, PHI)
        seen |= visited
        np.testing.assert_array_equal(state.counts, recounted(state))
        np.testing.assert_allclose(found.statistics, recounted(state) * 5 / len(seen), rtol=1e-15)
        np.testing.assert_allclose(found.gradient, MODEL.gradient(PHI, np.asarray(found.statistics)), rtol=1e-15)
        for d, topics in zip(unmoved, kept, strict=True):
            np.testing.assert_array_equal(state.topics[CORPUS.offsets[d] : CORPUS.offsets[d + 1]], topics)
        assert (int(state.number), int(state.visited)) == (step + 1, len(seen))
    assert len(seen) == 5
    assert state.counts.sum() == len(CORPUS.tokens)


def test_topics_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(3)
    words, offsets = rng.integers(7, size=600), np.array([0, 0, 50, 51, 400, 600])
    start = rng.integers(4, size=600)  # 3 is none
    one, two = (move_topics(np.random.default_rng(4), words, offsets, PHI, 0.3, 2, start, threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert one.max() == 2


def test_a_word_moves_to_another_topic_with_the_probability_of_its_conditional():
    # one word a document: P(z = k) is proportional to phi_k,w, whatever the start
    words, offsets = np.full(40_000, 2), np.arange(40_001)
    found = move_topics(np.random.default_rng(5), words, offsets, PHI, 0.3, 1, np.ones(40_000, int))
    share, exact = np.bincount(found, minlength=3) / 40_000, PHI[2] / PHI[2].sum()
    assert np.all(np.abs(share - exact) < 5.5 * np.sqrt(exact * (1 - exact) / 40_000))  # two-sided 4e-8 a topic


def test_places_are_those_of_the_documents():
    places, offsets = places_of(CORPUS.offsets, np.array([4, 1, 0]))
    assert (places.tolist(), offsets.tolist()) == ([9, 10, 11, 12, 0, 1, 2], [0, 4, 4, 7])


def test_a_run_that_is_stopped_goes_on_with_the_same_topics(tmp_path):
    estimator = StoredGibbs(MODEL, Independent(CORPUS, 2, seed=1))
    loop = Loop(checkpoint=tmp_path / "run.npz", checkpoint_every=3)
    whole = run_lda(TopicSCIR(MODEL.beta), estimator, 7, num_steps=9, step_size=0.5)
    run_lda(TopicSCIR(MODEL.beta), estimator, 7, num_steps=5, step_size=0.5, loop=loop)
    again = run_lda(TopicSCIR(MODEL.beta), estimator, 7, num_steps=9, step_size=0.5, loop=loop)
    np.testing.assert_array_equal(whole.theta, again.theta)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: StoredGibbs(LDA(3, 8, 0.3, 0.5), Independent(CORPUS, 2, seed=1)), "model: has 8 words"),
        (lambda: move(1, [0, 1]), "topics: must be of 1 words"),
        (lambda: move(0, [0]), "sweeps: must lie"),
    ],
)
def test_bad_input_is_named(made, message):
    with pytest.raises(ValueError, match=message):
        made()
