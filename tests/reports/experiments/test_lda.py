"""The experiments on LDA: the published pages say what was reduced, the quick versions run without data."""

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import lda as race
from sgmcmc_verification.reports.experiments.baker2018 import figure3a
from sgmcmc_verification.reports.experiments.common import lda
from sgmcmc_verification.reports.experiments.common.grid import PUBLISHED, load
from sgmcmc_verification.reports.experiments.liu2019 import lda as particles
from sgmcmc_verification.reports.experiments.ma2015 import figure3
from sgmcmc_verification.reports.records.jsonl import read
from sgmcmc_verification.samplers.particles.density_gradients import density_gradient
from sgmcmc_verification.samplers.particles.kernels import median_bandwidth, squared_distances
from sgmcmc_verification.targets.datasets.corpus import from_documents
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary


@pytest.mark.parametrize("module", [figure3, figure3a, particles], ids=lambda m: m.NAME)
def test_the_published_page_calls_itself_reduced(module):
    page = (PUBLISHED / f"{module.NAME}.md").read_text(encoding="utf-8")
    assert page.splitlines()[0].endswith("reduced")


@pytest.mark.parametrize("corpus", figure3.corpora(False))
def test_riemannian_samplers_are_ahead_of_the_others_in_the_published_figure(corpus):
    lines = load(PUBLISHED / f"{figure3.NAME}.jsonl")
    worst = {m: max(map(lda.final, r)) for m, r in figure3.results(lines, corpus).items()}
    best = {m: min(map(lda.final, r)) for m, r in figure3.results(lines, corpus).items()}
    assert max(worst["SGRLD"], worst["SGRHMC"]) < min(best["SGLD"], best["SGHMC"])


def test_a_step_size_that_is_too_large_is_a_result_and_not_an_error():
    cell = lda.Cell("generated", "SGRHMC", 3, 0.1, 0.1, (5.0, 10.0, 0.5), steps=8, every=4, sweeps=4, batch=10)
    assert "not finite" in lda.measured(cell)["failed"]


def test_the_quick_run_of_particles_leaves_a_page_and_a_figure(tmp_path, monkeypatch):
    assert particles.main(["--quick", "--out", str(tmp_path)]) == 0
    found = particles.results(load(tmp_path / f"{particles.NAME}.jsonl"), True)
    for runs in found.values():
        values = particles.curve(runs, "perplexity")
        assert values[-1] < values[0] < 200  # of 200 words
    assert (tmp_path / f"{particles.NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert "Reduced" in (tmp_path / f"{particles.NAME}.md").read_text(encoding="utf-8")
    monkeypatch.setattr(particles, "measured", None)
    assert particles.main(["--quick", "--resume", "--out", str(tmp_path)]) == 0


def test_steps_to_a_level_are_interpolated():
    runs = [{"steps": [0, 10, 20], "perplexity": [100.0, 60.0, 50.0]}]
    assert particles.reached(runs, 80.0) == 5
    assert particles.reached(runs, 55.0) == 15
    assert particles.reached(runs, 200.0) == 0
    assert particles.reached(runs, 49.0) is None


def test_particles_at_equal_distances_repel_by_the_derived_factor():
    """A simplex of particles: Blob with the median bandwidth is (x_j - mean) / h, h / variance = d / log(M + 1)."""
    M = 5
    x = jnp.asarray(np.eye(M) * 3.0)
    variance = np.var(np.asarray(x), axis=0, ddof=1).mean()
    force = -density_gradient("blob", x, jnp.full(M, 1 / M), median_bandwidth(squared_distances(x)))
    want = (x - x.mean(axis=0)) / (variance * particles.repulsion(M, M))
    np.testing.assert_allclose(force, want, rtol=1e-13)


def test_common_words_keep_their_order_and_long_documents_are_cut():
    vocabulary = Vocabulary(("rare", "the", "of"))
    corpus = from_documents([np.array([1, 0, 2, 1, 2]), np.array([0, 0, 1]), np.array([2, 1])], vocabulary)
    found = particles.common(corpus, 2, 3)
    assert found.vocabulary.words == ("rare", "the")
    assert [found.document(i).tolist() for i in range(len(found))] == [[1, 0, 1], [0, 0, 1]]


def test_the_published_race_beside_other_libraries_is_what_its_lines_say():
    path = PUBLISHED.parent / "lda-benchmark.jsonl"
    assert race.page(list(read(path))) == path.with_suffix(".md").read_text(encoding="utf-8")
