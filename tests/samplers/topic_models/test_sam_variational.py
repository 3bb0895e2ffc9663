"""Variational inference for SAM: its bound and updates against differences and quadrature; topics are recovered."""

import itertools

import jax
import numpy as np
import pytest
from scipy import optimize, stats

from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.topic_models.sam.methods import METHODS, build
from sgmcmc_verification.samplers.topic_models.sam.run import VariationalChain, run_sam
from sgmcmc_verification.samplers.topic_models.sam.variational import (
    LEAST,
    MeanField,
    Optimiser,
    StochasticMeanField,
    Variational,
)
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings
from sgmcmc_verification.targets.numerics.bessel import mean_resultant
from sgmcmc_verification.targets.numerics.spherical import sample_vmf
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.topic_models.sam import tiny
from sgmcmc_verification.targets.topic_models.sam.documents import as_rows
from sgmcmc_verification.targets.topic_models.sam.model import SAM, unit_rows
from sgmcmc_verification.targets.topic_models.sam.perplexity import LogPerplexity

EPS = np.finfo(np.float64).eps


def problem(K=3, V=12, D=6, seed=0):
    rng = np.random.default_rng(seed)
    law = SAM(unit_rows(rng.standard_normal((1, V)))[0], np.linspace(0.8, 2.0, K), 6.0, 15.0, 30.0)
    q = Variational(
        unit_rows(rng.standard_normal((1, V)))[0],
        unit_rows(rng.standard_normal((K, V))),
        rng.gamma(2.0, size=(D, K)) + 0.3,
    )
    return MeanField(law, as_rows(unit_rows(rng.standard_normal((D, V))))), q


def difference(function, h=1e-5):
    """Central difference at 0 and its allowance: round-off of values of size 1e3, and h^2 times a third derivative."""
    return (function(h) - function(-h)) / (2 * h), 64 * EPS * 1e3 / h + 1e4 * h * h


def test_the_gradient_in_the_weights_is_the_derivative_of_the_bound():
    field, q = problem()
    products, gram = field._matrix @ q.topics.T, q.topics @ q.topics.T
    gradient = field.weights_gradient(q.weights, products, gram)
    for index in np.ndindex(*q.weights.shape):
        moved = np.zeros_like(q.weights)
        moved[index] = 1
        value, allowed = difference(lambda t, m=moved: field.bound(q._replace(weights=q.weights + t * m)))
        assert abs(gradient[index] - value) < allowed


def test_the_gradient_in_the_topics_is_the_derivative_along_the_spheres():
    field, q = problem()
    rng = np.random.default_rng(1)
    for scale in (1.0, 3.5):
        gradient = field.topics_gradient(q, scale)
        assert np.abs(np.sum(gradient * q.topics, axis=1)).max() < 1e3 * EPS * np.abs(gradient).max()
        for _ in range(4):
            along = rng.standard_normal(q.topics.shape)
            along -= np.sum(along * q.topics, axis=1, keepdims=True) * q.topics

            def bound(t, along=along, scale=scale):
                moved = q._replace(topics=unit_rows(q.topics + t * along))
                return field.prior_part(moved) + scale * field.document_parts(moved).sum()

            value, allowed = difference(bound)
            assert abs(np.sum(gradient * along) - value) < 30 * allowed


def test_the_mean_is_the_maximum_of_the_bound():
    field, q = problem()
    best = field.update_mean(q)
    rng = np.random.default_rng(2)
    for _ in range(4):
        along = rng.standard_normal(len(q.mean))
        along -= (along @ best.mean) * best.mean
        at = lambda t, along=along: field.bound(best._replace(mean=unit_rows(best.mean + t * along)))
        value, allowed = difference(at)
        assert abs(value) < allowed
        assert at(0.3) < at(0.0) > at(-0.3)


def test_the_second_moment_of_the_mean_topic_is_exact():
    """E |b|^2 over topics vMF about their means and Dirichlet weights, by simulation of both."""
    field, q = problem()
    m, rng, count = field.model, np.random.default_rng(3), 20_000
    A = float(mean_resultant(m.words, m.topic_concentration))
    theta = rng.dirichlet(q.weights[0], size=count)
    axes = jax.numpy.asarray(np.repeat(q.topics[None], count, axis=0).reshape(-1, m.words))
    topics = sample_vmf(jax.random.key(0), axes, jax.numpy.full(len(axes), float(m.topic_concentration)))
    b = np.einsum("nk,nkv->nv", theta, np.asarray(topics).reshape(count, m.topics, m.words))
    square = np.sum(b * b, axis=1)
    a = q.weights[:1]
    _, E, _ = field._moments(a, np.zeros_like(a), q.topics @ q.topics.T)
    assert abs(square.mean() - E[0]) < stats.norm.isf(5e-7) * square.std() / np.sqrt(count)
    assert 0 < A < 1


def test_the_bound_never_falls_and_every_update_reaches_a_stationary_point():
    field, q = problem()
    level = field.bound(q)
    for _ in range(6):
        for update in (field.update_weights, field.update_topics, field.update_mean):
            q = update(q)
            found = field.bound(q)
            assert found >= level - 1e3 * EPS * abs(level)
            level = found
    # the weights of a document alone, by another optimiser
    patient = field.update_weights(q, Optimiser(20_000, 1e-2, 0.05, enough=1e-6))
    products, gram = field._matrix @ q.topics.T, q.topics @ q.topics.T
    other = optimize.minimize(
        lambda a: -field._parts(np.exp(a)[None], products[:1], gram)[0], np.log(patient.weights[0]), tol=1e-10
    )
    assert field.document_parts(patient)[0] >= -other.fun - 1e-6
    assert np.all(patient.weights >= LEAST)


def test_a_gradient_of_the_wrong_sign_leaves_the_bound_where_it_was(monkeypatch):
    """Planted: the ascent is undone at every check, so that the bound keeps its value and the update does nothing."""
    field, q = problem()
    right = MeanField.weights_gradient
    monkeypatch.setattr(MeanField, "weights_gradient", lambda *a: -right(*a))
    np.testing.assert_array_equal(field.update_weights(q).weights, q.weights)


def test_mean_field_has_the_directions_of_the_posterior_on_s2_but_the_width_of_the_prior():
    """On the tiny posterior: the mean of q, a resultant times a direction, beside that of quadrature.

    q(beta_k) keeps the concentration sigma of the prior whatever the data say.
    """
    law = target("sam-s2")
    field = MeanField(tiny.tiny_model(3), as_rows(tiny.tiny_documents(3)))
    q = field.start(np.random.default_rng(0))
    for _ in range(20):
        q = field.sweep(q)
    exact = np.array([[law.moments[f"theta[{k},{i}]"].value for i in range(3)] for k in range(2)])
    resultants = np.linalg.norm(exact, axis=1)
    found = float(mean_resultant(3, tiny.TOPIC))
    directions = np.sum(unit_rows(exact) * q.topics, axis=1)
    assert np.all(directions > 0.99)
    assert resultants[0] > found + 0.1
    # and the stochastic version stays there, from its 100th sweep on
    few, rng = StochasticMeanField(field.model, field.rows, 2), np.random.default_rng(1)
    for number in range(100, 150):
        q = few.sweep(rng, q, number)
    assert np.all(np.sum(unit_rows(exact) * q.topics, axis=1) > 0.99)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_gradient_of_a_batch_is_that_of_all_documents_on_average(size, monkeypatch):
    """What stochastic VI ascends, averaged over every batch, with the weights of each document at their optimum."""
    field, q = problem()
    q = field.update_weights(q._replace(weights=field.start_weights(q.topics)))
    batches, found = [np.array(c) for c in itertools.combinations(range(field.rows.size), size)], []

    def note(part, local, how=None, scale=1.0):
        found.append(part.topics_gradient(local, scale))
        return local

    class Given:
        """Draws the batches in order."""

        def choice(self, total, count, replace):
            assert (total, count, replace) == (field.rows.size, size, False)
            return batches[len(found)]

    monkeypatch.setattr(MeanField, "update_topics", note)
    for _ in batches:
        StochasticMeanField(field.model, field.rows, size).sweep(Given(), q._replace(weights=q.weights[:0]), 0)
    want = field.topics_gradient(q)
    assert np.abs(np.mean(found, axis=0) - want).max() <= 1e3 * EPS * np.abs(want).max()
    assert np.abs(found[0] - want).max() > 0.01 * np.abs(want).max()  # one batch is not all documents


# Recovery, runs ------------------------------------------------------------------------------------------------------


def generated(D=300, V=30, K=3, alpha=0.4, topic=20.0):
    law = SAM(np.eye(1, V)[0], np.full(K, alpha), 30.0, topic, 300.0)
    beta, _, documents = law.generate(jax.random.key(1), D + 50)
    return law, beta, as_rows(documents[:D]), as_rows(documents[D:])


def matched_cosine(beta, found):
    """Least cosine of a topic with its partner under the best assignment."""
    cosines = beta @ found.T
    rows, columns = optimize.linear_sum_assignment(-cosines)
    return cosines[rows, columns].min()


@pytest.mark.parametrize("name", [*METHODS[:2], "gmc-bgibbs", "vi", "stovi"])
def test_topics_that_made_the_documents_are_recovered(name):
    # q has the concentration of the prior: where that is far from the posterior's, its topics are turned aside.
    # Two topics may share a direction in a local mode: of four starts the one that predicts best is taken.
    law, beta, train, test = generated(alpha=0.2, topic=100.0) if "vi" in name else generated()
    if name == "vi":
        chain, samples = VariationalChain(MeanField(law, train)), 10
    elif name == "stovi":
        chain, samples = VariationalChain(StochasticMeanField(law, train, 30)), 20
    elif name == "gmc-bgibbs":
        chain, samples = build(name, law, train, step_size=1.5e-3, weights=WeightSettings(5, 1, 5)), 100
    else:
        chain = build(name, law, train, step_size=2e-3, decay=0.2, batch_size=30, weights=WeightSettings(10, 5, 5))
        samples = 100
    runs = [run_sam(chain, seed, num_samples=samples).topics[0].astype(np.float64) for seed in range(4)]
    measure = LogPerplexity(law, test, np.random.default_rng(0))
    assert matched_cosine(beta, min(runs, key=lambda topics: measure.alone(topics).value)) > 0.9


@pytest.mark.parametrize("name", ["sggmc", "gsgnht", "gmc-bgibbs", "stovi"])
def test_a_run_that_is_killed_and_resumed_gives_the_same_samples(name, tmp_path):
    law, _, train, test = generated(40, 8)

    def chain():
        if name == "stovi":
            return VariationalChain(StochasticMeanField(law, train, 10))
        return build(
            name,
            law,
            train,
            step_size=1e-3,
            batch_size=40 if "gmc-" in name else 10,
            weights=WeightSettings(2, 2 if "gmc-" not in name else 1, 2),
        )

    def go(num_samples, checkpoint=None):
        measure = LogPerplexity(law, test, np.random.default_rng(0), 20, window=2, chunk=2)
        loop = Loop(evaluate_every=2, checkpoint=checkpoint, checkpoint_every=3)
        return run_sam(chain(), 3, num_samples=num_samples, perplexity=measure, loop=loop)

    whole = go(num_samples=10)
    file = tmp_path / "run.npz"
    go(num_samples=5, checkpoint=file)
    resumed = go(num_samples=10, checkpoint=file)
    np.testing.assert_array_equal(whole.topics, resumed.topics)
    strip = lambda run: [point._replace(seconds=0.0) for point in run.points]
    assert strip(whole) == strip(resumed)
    with pytest.raises(ValueError, match="belongs to another run"):
        run_sam(chain(), 4, num_samples=10, loop=Loop(checkpoint=file))


def test_arguments_of_methods_are_checked():
    law, _, train, _ = generated(10, 8)
    for wrong, name in (
        ({"batch_size": 11}, "batch_size"),
        ({"step_size": -1.0}, "step_size"),
        ({"num_steps": 0}, "num_steps"),
    ):
        with pytest.raises(ValueError, match=name):
            build("sggmc", law, train, **wrong)
    with pytest.raises(ValueError, match="name"):
        build("svgd", law, train)
    other = SAM(np.eye(1, 9)[0], np.ones(3), 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="9 words"):
        build("sggmc", other, train)
    with pytest.raises(ValueError, match="9 words"):
        MeanField(other, train)
    with pytest.raises(ValueError, match="decay"):
        StochasticMeanField(law, train, 5, decay=0.5)
