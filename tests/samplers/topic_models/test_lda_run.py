"""Runs on LDA models: resumed runs, perplexity, minibatches, bad input."""

import jax
import numpy as np
import pytest

from sgmcmc_verification.reports.experiments.common.lda import METHODS, generated, generated_topics
from sgmcmc_verification.samplers.runner.checkpoint import CheckpointError
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.runner.schedules import decreasing
from sgmcmc_verification.samplers.topic_models.lda.completion import Completion, perplexity
from sgmcmc_verification.samplers.topic_models.lda.estimator import DocumentGibbs
from sgmcmc_verification.samplers.topic_models.lda.run import run_lda
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent, Shuffled
from sgmcmc_verification.targets.topic_models.lda.model import LDA

CORPUS, HELD_OUT = generated(np.random.default_rng(0), 60), generated(np.random.default_rng(1), 12)
MODEL = LDA(4, 200, 0.2, 0.5)
STEPS = 6


class Killed(Exception):
    """Stands for the end of the process."""


def estimator_of(name, seed=3):
    kind = Shuffled(CORPUS, 7, seed, block=4, pool=3) if name == "SCIR" else Independent(CORPUS, 7, seed)
    return DocumentGibbs(MODEL, kind, sweeps=6)


def run_of(name, path=None, steps=STEPS, seed=1, completion=lambda: Completion(HELD_OUT, MODEL.alpha, 6), **options):
    return run_lda(
        METHODS[name](MODEL),
        estimator_of(name),
        seed,
        step_size=decreasing(0.01, 10.0, 0.5),
        num_steps=steps,
        completion=completion,
        loop=Loop(evaluate_every=2, checkpoint=path, checkpoint_every=2),
        **options,
    )


@pytest.mark.parametrize("name", METHODS)
def test_a_killed_run_resumes_to_the_same_samples(name, tmp_path):
    whole = run_of(name)
    path = tmp_path / "run.ckpt"
    calls = []

    class Dying(Completion):
        def add(self, generator, phi):
            calls.append(1)
            if len(calls) == 3:
                raise Killed
            return super().add(generator, phi)

    with pytest.raises(Killed):
        run_of(name, path, completion=lambda: Dying(HELD_OUT, MODEL.alpha, 6))
    resumed = run_of(name, path)
    np.testing.assert_array_equal(resumed.theta, whole.theta)
    assert [p.perplexity for p in resumed.points] == [p.perplexity for p in whole.points]
    assert [p.step for p in resumed.points] == [2, 4, 6]
    assert not np.array_equal(whole.theta, run_of(name, seed=2).theta)


def test_a_finished_run_goes_on_when_more_steps_are_asked_for(tmp_path):
    path = tmp_path / "run.ckpt"
    run_of("SGRLD", path, steps=4)
    longer = run_of("SGRLD", path)
    np.testing.assert_array_equal(longer.theta, run_of("SGRLD").theta)


def test_a_checkpoint_of_another_run_or_a_truncated_one_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    run_of("SGRLD", path, steps=2)
    with pytest.raises(CheckpointError, match="seed"):
        run_of("SGRLD", path, seed=5)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match="truncated"):
        run_of("SGRLD", path)


def test_a_scheme_that_asks_for_another_gradient_is_refused():
    with pytest.raises(ValueError, match="elsewhere than at its position"):
        run_lda(SGHMC(scheme="symmetric"), estimator_of("SGHMC"), 0, step_size=0.01, num_steps=1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_steps": 0}, "num_steps"),
        ({"step_size": -1.0}, "step_size"),
        ({"theta": np.ones((3, 4))}, "theta"),
    ],
)
def test_bad_input_of_a_run_is_named(changes, words):
    given = {"step_size": 0.01, "num_steps": 1}
    with pytest.raises(ValueError, match=words):
        run_lda(METHODS["SGRLD"](MODEL), estimator_of("SGRLD"), 0, **{**given, **changes})
    blind = DocumentGibbs(MODEL, Independent(CORPUS, 7, 0), gradient=False)
    with pytest.raises(ValueError, match="gradient=True"):
        run_lda(METHODS["SGRLD"](MODEL), blind, 0, step_size=0.01, num_steps=1)
    with pytest.raises(ValueError, match="model: has 9 words"):
        DocumentGibbs(LDA(4, 9, 0.1, 0.1), Independent(CORPUS, 7, 0))
    with pytest.raises(ValueError, match="alpha: must be positive"):
        LDA(4, 9, -0.1, 0.1)


def test_bad_numbers_of_a_loop_are_named(tmp_path):
    for name in ("evaluate_every", "checkpoint_every"):
        with pytest.raises(ValueError, match=f"^{name}: must be at least 1"):
            Loop(**{name: 0})
    with pytest.raises(ValueError, match=r"^checkpoint: the folder .* does not exist"):
        Loop(checkpoint=tmp_path / "none" / "run.ckpt")


def test_completion_with_the_true_topics_and_shares_is_the_entropy_of_the_model():
    # with one topic there is nothing to infer: p(w | d) = phi_w, so the perplexity is exp of the mean of -log phi_w
    phi = generated_topics()[:1].T
    only = Completion(HELD_OUT, 0.3, sweeps=4)
    found = only.add(np.random.default_rng(0), phi + 1e-12)
    direct = np.exp(-np.mean(np.log(phi[only.predicted.tokens, 0] + 1e-12)))
    np.testing.assert_allclose(found, direct, rtol=1e-10)
    assert len(only.predicted.tokens) == 6 * len(HELD_OUT)


def test_completion_averages_probabilities_and_not_perplexities():
    one, two = np.array([0.5, 0.1]), np.array([0.1, 0.5])
    assert perplexity((one + two) / 2) == pytest.approx(1 / 0.3, rel=1e-14)
    running = Completion(HELD_OUT, 0.3, sweeps=4)
    topics = generated_topics().T + 1e-9
    rngs = [np.random.default_rng(i) for i in range(2)]
    parts = [Completion(HELD_OUT, 0.3, sweeps=4).probabilities(rng, topics) for rng in rngs]
    for rng in (np.random.default_rng(i) for i in range(2)):
        last = running.add(rng, topics)
    np.testing.assert_allclose(last, perplexity(np.mean(parts, axis=0)), rtol=1e-12)


def test_true_topics_predict_better_than_a_uniform_law_and_than_shuffled_topics():
    topics = generated_topics().T + 1e-6
    topics /= topics.sum(axis=0)
    right = Completion(HELD_OUT, 0.2, sweeps=20).add(np.random.default_rng(0), topics)
    wrong = Completion(HELD_OUT, 0.2, sweeps=20).add(np.random.default_rng(0), topics[::-1].copy())
    assert right < len(topics) / 2 < wrong


def test_perplexity_falls_in_a_run():
    sampler = METHODS["SGRLD"](MODEL)
    found = run_lda(
        sampler,
        estimator_of("SGRLD"),
        1,
        step_size=0.01,
        num_steps=30,
        completion=lambda: Completion(HELD_OUT, MODEL.alpha, 20),
    )
    values = [p.perplexity for p in found.points]
    assert values[-1] < values[0] < 200
    assert [p.documents for p in found.points] == [70, 140, 210]
    assert np.all(np.isfinite(found.theta))


def test_shuffled_minibatches_visit_every_document_once_a_pass_and_depend_on_the_step_alone():
    stream = Shuffled(CORPUS, 7, seed=2, block=8, pool=2)
    steps = [stream.numbers(t) for t in range(60)]
    seen = np.concatenate(steps)
    for start in range(0, 420, 60):
        assert sorted(seen[start : start + 60]) == list(range(60))
    assert not np.array_equal(seen[:60], seen[60:120])
    again = Shuffled(CORPUS, 7, seed=2, block=8, pool=2)
    for t in (41, 3, 17):
        np.testing.assert_array_equal(again.numbers(t), steps[t])


def test_independent_minibatches_are_subsets_and_depend_on_the_step_alone():
    stream = Independent(CORPUS, 7, seed=2)
    assert all(len(set(stream.numbers(t))) == 7 for t in range(20))
    np.testing.assert_array_equal(stream.numbers(5), Independent(CORPUS, 7, seed=2).numbers(5))
    assert not np.array_equal(stream.numbers(5), stream.numbers(6))
    for kind in (Independent, Shuffled):
        with pytest.raises(ValueError, match="batch_size"):
            kind(CORPUS, 61, 0)


def test_metrics_without_zeros_are_the_dense_ones():
    from sgmcmc_verification.samplers.dynamics.complete_recipe import row_divergence
    from sgmcmc_verification.samplers.riemannian.metrics import Diagonal, PositiveMetric, dense

    theta = np.array([0.3, 1.2, 2.0])
    matrix, vector = np.random.default_rng(0).normal(size=(3, 3)), np.arange(3.0)
    for field, entries in ((PositiveMetric().inverse, theta), (PositiveMetric().inverse_sqrt, np.sqrt(theta))):
        found = field(jax.numpy.asarray(theta))
        assert isinstance(found, Diagonal)
        full = np.diag(entries)
        eps = 8 * np.finfo(float).eps
        for got, want in (
            (found @ vector, full @ vector),
            (found @ matrix, full @ matrix),
            (matrix @ found, matrix @ full),
            (2 * found, 2 * full),
            (dense(found), full),
        ):
            np.testing.assert_allclose(got, want, rtol=eps)
        slope = row_divergence(lambda z, field=field: dense(field(z)), jax.numpy.asarray(theta))
        np.testing.assert_allclose(row_divergence(field, jax.numpy.asarray(theta)), slope, rtol=eps)
