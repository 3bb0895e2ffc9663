"""RSVGD on the spherical admixture model: stationarity under the posterior by quadrature, the driver, bad arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.tiers.workload.sam import starts
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.particles.rsvgd_embedded import EmbeddedRSVGD, embedded_direction
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.topic_models.sam import particles
from sgmcmc_verification.samplers.topic_models.sam.estimator import BatchEstimator
from sgmcmc_verification.samplers.topic_models.sam.particles import ParticleTopics
from sgmcmc_verification.samplers.topic_models.sam.run import run_sam
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.topic_models.sam import tiny
from sgmcmc_verification.targets.topic_models.sam.documents import as_rows
from sgmcmc_verification.targets.topic_models.sam.perplexity import LogPerplexity

WORDS, KAPPA, COUNT, REPLICATES = 2, 2.0, 100, 150
PATIENT = WeightSettings(60, 2, 4, 0.2)
"""Weights forget their start, as in the tier of workloads."""


def method(count=COUNT, batch_size=3, weights=PATIENT, **options):
    model = tiny.tiny_model(WORDS)
    sampler = EmbeddedRSVGD(model.manifold, KAPPA)
    rows = as_rows(tiny.tiny_documents(WORDS))
    return ParticleTopics(model, sampler, rows, batch_size, 1.0, weights=weights, particles=count, **options)


def velocities(batch_size, replicates=REPLICATES):
    """The velocity of one and the same particle among draws from the posterior (R, 2), in angles, and its mean.

    Of the other particles the mean is that under the posterior, zero by Stein's identity; what is left is what the
    particle does to itself, 1 / M of its velocity alone.
    """
    law, made = target("sam-s1"), method(batch_size=batch_size)
    draws = starts(law, np.random.default_rng(5), COUNT * replicates).reshape(replicates, COUNT, 2, WORDS).copy()
    here = draws[0, 0].copy()
    draws[:, 0] = here
    angle = lambda x: np.arctan2(x[..., 1], x[..., 0])
    small = 1e-4  # the change of an angle is the velocity times this; the map is exact
    found = []
    for replicate, start in enumerate(draws):
        rng = np.random.default_rng(replicate)
        state = ParticleTopics.init(made, rng, start)
        batch = jax.tree.map(jnp.asarray, made.draw(rng, state))
        after = particles._together(made.sampler, made.model, 1, jax.random.key(0), state, jnp.float64(small), batch)
        found.append((angle(made.topics(after)[0]) - angle(here)) / small)
    alone = lambda x: x.reshape(1, 2, WORDS, 1)
    gradient = np.asarray(jax.grad(law.potential)(jnp.asarray(here)))
    itself = embedded_direction(alone(here), alone(gradient), jnp.ones(1), jnp.full(2, KAPPA))[0, :, :, 0]
    turn = here[:, 0] * itself[:, 1] - here[:, 1] * itself[:, 0]
    return np.array(found), np.asarray(turn) / COUNT


@pytest.mark.parametrize(("batch_size", "resolved"), [(3, 0.1), (1, 0.5)])  # particles share the noise of a batch
def test_the_posterior_is_stationary_for_many_particles(batch_size, resolved):
    found, want = velocities(batch_size)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - want) < stats.t.isf(2.5e-7, len(found) - 1) * error)
    assert np.all(error < resolved)


def test_a_gradient_of_the_wrong_sign_is_seen(monkeypatch):
    """Planted: what the released program hands over."""
    right = BatchEstimator.estimate

    def wrong(self, key, estate, position):
        found, estate = right(self, key, estate, position)
        return found._replace(gradient=-found.gradient), estate

    particles._together.clear_cache()
    monkeypatch.setattr(BatchEstimator, "estimate", wrong)
    with pytest.raises(AssertionError):
        test_the_posterior_is_stationary_for_many_particles(3, 0.1)
    particles._together.clear_cache()


def test_particles_approach_the_posterior_and_a_run_resumes(tmp_path):
    model = tiny.tiny_model(WORDS)
    few = WeightSettings(5, 5, 4, 0.2)

    def go(samples, checkpoint=None):
        made = method(12, 2, few, decay=0.5)
        measure = LogPerplexity(model, as_rows(tiny.tiny_documents(WORDS)), np.random.default_rng(0), 50)
        loop = Loop(evaluate_every=2, checkpoint=checkpoint, checkpoint_every=3)
        return run_sam(made, 3, num_samples=samples, perplexity=measure, averaged=False, loop=loop)

    whole, file = go(10), tmp_path / "run.npz"
    go(5, checkpoint=file)
    np.testing.assert_array_equal(go(10, checkpoint=file).topics, whole.topics)
    assert whole.topics.shape == (12, 2, WORDS)
    np.testing.assert_allclose(np.linalg.norm(whole.topics, axis=-1), 1, rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match="belongs to another run"):
        run_sam(method(12, 2, few, decay=0.4), 3, num_samples=10, loop=Loop(checkpoint=file))


@pytest.mark.parametrize(
    ("options", "name"),
    [({"count": 1}, "particles"), ({"decay": -1.0}, "decay"), ({"batch_size": 4}, "batch_size")],
)
def test_arguments_are_checked(options, name):
    with pytest.raises(ValueError, match=name):
        method(**options)


def test_a_sampler_of_single_chains_is_refused():
    model = tiny.tiny_model(WORDS)
    with pytest.raises(ValueError, match="particle method"):
        ParticleTopics(model, SGGMC(model.manifold), as_rows(tiny.tiny_documents(WORDS)), 3, 0.1)
