"""Figure 5(a) of the SGGMC paper: its quick version on documents drawn from a model, in place of the data."""

import jax
import numpy as np
import pytest

from reports.experiments import liu2016_figure5 as figure
from reports.experiments import sam
from reports.experiments.cells import load
from targets.datasets.text import Vocabulary
from targets.sam.documents import as_rows
from targets.sam.model import SAM


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
    monkeypatch.setattr(figure, "QUICK", 0.3)


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
    assert figure.main(["--quick", "--out", str(tmp_path)]) == 0


@pytest.mark.parametrize("method", ["gmc-bgibbs", "vi", "stovi"])
def test_the_other_methods_give_points_too(small, method):
    found = sam.evaluated(sam.Cell(method, 0.3))
    assert np.all(np.isfinite(np.array(found["points"])))
    assert len(found["points"]) >= 1


def test_the_words_of_a_topic_are_those_above_the_mean():
    topics = np.array([[0.1, 0.9, 0.2], [0.9, 0.1, 0.2]])
    assert sam.top_words(topics, np.array([0.5, 0.5, 0.1]), ("a", "b", "c"), 2) == [["b", "c"], ["a", "c"]]
