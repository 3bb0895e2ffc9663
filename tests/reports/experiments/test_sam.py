"""Figure 5 of the SGGMC paper: quick versions on documents drawn from a model, in place of the data; calibration."""

import jax
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.reports.experiments.common import sam
from sgmcmc_verification.reports.experiments.common.grid import load
from sgmcmc_verification.reports.experiments.liu2016 import figure5a as figure
from sgmcmc_verification.reports.experiments.liu2016 import figure5a_seeds as seeds
from sgmcmc_verification.reports.experiments.liu2016 import figure5b as large
from sgmcmc_verification.reports.experiments.liu2018 import figure2 as particles
from sgmcmc_verification.reports.experiments.original import sam_calibration
from sgmcmc_verification.targets.datasets.corpus import from_documents
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.topic_models.sam.documents import as_rows
from sgmcmc_verification.targets.topic_models.sam.model import SAM


class Documents:
    """What the experiment reads of `UnitDocuments`; entries may be negative here."""

    def __init__(self, dense):
        self.rows, total = as_rows(dense), dense.sum(axis=0)
        self.mean = total / np.linalg.norm(total)
        self.vocabulary = Vocabulary(tuple("abcdefghijkl"[: dense.shape[1]]))


@pytest.fixture
def small(monkeypatch):
    law = SAM(np.eye(1, 12)[0], np.full(3, 0.5), 20.0, 20.0, 100.0)
    documents = law.generate(jax.random.key(0), 80)[2]
    parts = Documents(documents[:60]), Documents(documents[60:])
    monkeypatch.setattr(sam, "problem", lambda: (law, *parts))
    monkeypatch.setattr(sam, "large_problem", lambda documents, test: (law, *parts))
    monkeypatch.setattr(sam.LargeCell, "batch", 20)
    for module in (figure, seeds, large):
        monkeypatch.setattr(module, "QUICK", 0.3)


def test_the_quick_run_leaves_a_page_and_a_figure_and_is_not_computed_again(small, tmp_path, monkeypatch):
    assert figure.main(["--quick", "--out", str(tmp_path)]) == 0
    (line,) = load(tmp_path / f"{figure.NAME}.jsonl").values()
    points = np.array(line["result"]["points"])
    assert np.all(np.isfinite(points))
    assert np.all(np.diff(points[:, 0]) == 5)
    assert len(line["result"]["words"]) == 3
    assert (tmp_path / f"{figure.NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert "Reduced" in (tmp_path / f"{figure.NAME}.md").read_text(encoding="utf-8")
    monkeypatch.setattr(figure, "evaluated", None)
    assert figure.main(["--quick", "--resume", "--out", str(tmp_path)]) == 0


@pytest.mark.parametrize(("module", "runs"), [(seeds, 2), (large, 1)], ids=["seeds", "5b"])
def test_the_other_figures_leave_a_page_and_a_figure(small, tmp_path, monkeypatch, module, runs):
    assert module.main(["--quick", "--out", str(tmp_path)]) == 0
    lines = load(tmp_path / f"{module.NAME}.jsonl")
    assert len(lines) == runs
    ends = [line["result"]["points"][-1][2] for line in lines.values()]
    assert len(set(ends)) == runs  # another seed, another run
    assert (tmp_path / f"{module.NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert "Words that stand out" in (tmp_path / f"{module.NAME}.md").read_text(encoding="utf-8")
    monkeypatch.setattr(module, "evaluated", None)
    assert module.main(["--quick", "--resume", "--out", str(tmp_path)]) == 0


def test_the_figure_of_particles_has_a_perplexity_of_each_method_by_epoch(small, tmp_path, monkeypatch):
    monkeypatch.setattr(particles, "BATCH", 20)  # three samples an epoch
    assert particles.main(["--quick", "--out", str(tmp_path)]) == 0
    found = particles.curves(load(tmp_path / f"{particles.NAME}.jsonl"), True)
    assert {m for m, _ in found} == {"RSVGD", "GMC-par", "SGGMCb-seq"}
    for epochs, values in found.values():
        assert epochs.tolist() == [0, particles.EVERY]
        assert np.all(np.isfinite(values))
        assert values[0] != values[1]  # it moved
    assert found["RSVGD", 2][1][0] == pytest.approx(found["GMC-par", 2][1][0], rel=1e-5)  # from the same start
    assert (tmp_path / f"{particles.NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert "Reduced" in (tmp_path / f"{particles.NAME}.md").read_text(encoding="utf-8")
    monkeypatch.setattr(particles, "measured", None)
    assert particles.main(["--quick", "--resume", "--out", str(tmp_path)]) == 0


def test_claims_on_particles_are_read_off_the_curves():
    curve = lambda end: (np.array([0.0, 20.0]), np.array([5100.0, end]))
    few, most = particles.COUNTS[0], particles.COUNTS[-1]
    ends = {("RSVGD", few): 4900.0, ("RSVGD", most): 4800.0, ("GMC-seq", few): 4950.0, ("GMC-seq", most): 4945.0}
    found = {key: curve(end) for key, end in ends.items()}
    assert [row.split(" | ")[-1].strip(" |") for row in particles.claims(found, most)] == ["as in the paper"] * 2
    found["GMC-seq", most] = curve(4700.0)
    assert [row.split(" | ")[-1].strip(" |") for row in particles.claims(found, most)] == ["not so"] * 2


def test_articles_of_both_parts_are_weighed_by_the_words_of_the_training_articles(monkeypatch):
    rng = np.random.default_rng(0)
    words = Vocabulary(tuple(f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"))
    whole = from_documents([rng.integers(64, size=n) for n in rng.integers(16, 40, 60)], words)
    monkeypatch.setattr(sam, "load_wikipedia", lambda: whole)
    sam.large_problem.cache_clear()
    model, train, test = sam.large_problem(30, 10)
    assert (train.rows.size, test.rows.size, model.topics) == (30, 10, sam.LARGE_TOPICS)
    with pytest.raises(ValueError, match="61 are asked for"):
        sam.large_problem(51, 10)
    sam.large_problem.cache_clear()


def test_the_page_of_the_calibration_marks_regions_that_cover_too_often(tmp_path):
    ranks = (np.arange(300) + 0.5) / 300
    lines = {
        cell.key: {
            "result": {"ranks": [list(0.5 + width * (ranks - 0.5))] * 3, "samples": 1},
            "commit": "abc",
            "versions": {},
            "seconds": 1.0,
        }
        for cell, width in zip(sam_calibration.plan(False), (1.0, 0.5), strict=False)
    }
    page = sam_calibration.text(lines, False).splitlines()
    assert sum("| 0.500 | 0.900 | 1 |" in line for line in page) == 3
    assert sum("| **1.000** | **1.000** |" in line for line in page) == 3
    sam_calibration.draw(lines, False, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_ranks_of_the_truth_are_uniform_for_the_exact_method_and_not_for_the_prior(monkeypatch):
    cell = sam_calibration.Cell("gmc-bgibbs", 0.02, sam_calibration.DOCUMENTS, 150)
    monkeypatch.setattr(sam_calibration, "samples_of", lambda cell: (25, 4))
    ranks = np.array(sam_calibration.measured(cell)["ranks"])
    assert ranks.shape == (3, 150)
    assert all(stats.kstest(r, "uniform").pvalue > 1e-6 / 3 for r in ranks)
    # topics that stay near m, whatever the documents say
    monkeypatch.setattr(sam_calibration.OwnDocuments, "sample", lambda self, rng, state: state)
    wrong = np.array(sam_calibration.measured(cell)["ranks"])
    assert min(stats.kstest(r, "uniform").pvalue for r in wrong) < 1e-6


@pytest.mark.parametrize("method", ["gmc-bgibbs", "vi", "stovi"])
def test_the_other_methods_give_points_too(small, method):
    found = sam.evaluated(sam.Cell(method, 0.3))
    assert np.all(np.isfinite(np.array(found["points"])))
    assert len(found["points"]) >= 1


def test_the_words_of_a_topic_are_those_above_the_mean():
    topics = np.array([[0.1, 0.9, 0.2], [0.9, 0.1, 0.2]])
    assert sam.top_words(topics, np.array([0.5, 0.5, 0.1]), ("a", "b", "c"), 2) == [["b", "c"], ["a", "c"]]


def test_a_claim_of_order_holds_where_the_gap_is_two_standard_errors():
    level = {
        "sggmc": 10,
        "gsgnht": 30,
        "sggmc-full": 31,
        "gsgnht-full": 50,
        "gmc-apprmh": 70,
        "gmc-bgibbs": 80,
        "vi": 60,
        "stovi": 90,
    }
    ends = {name: (float(mean), np.array([mean - 1.0, mean, mean + 1.0])) for name, mean in level.items()}
    rows = [line.split(" | ")[2].strip(" |") for line in seeds.claims(ends) if " ± " in line and line.startswith("| ")]
    assert rows == ["no", "not decided", "no", "yes"]
    assert seeds.claims({"vi": ends["vi"]}) == []
