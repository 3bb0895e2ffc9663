"""The experiments on LDA: pages are what their lines say, the quick versions run without data."""

import pytest

from benchmarks import lda as race
from reports.experiments import baker2018_figure3a, lda, ma2015_figure3
from reports.experiments.cells import PUBLISHED, load
from reports.lines import read


@pytest.mark.parametrize("module", [ma2015_figure3, baker2018_figure3a], ids=["ma2015", "baker2018"])
def test_the_published_page_is_what_its_lines_say_and_calls_itself_reduced(module):
    lines = load(PUBLISHED / f"{module.NAME}.jsonl")
    page = (PUBLISHED / f"{module.NAME}.md").read_text(encoding="utf-8")
    assert "\n".join(module.text(lines, False)) == page
    assert page.splitlines()[0].endswith("reduced")
    assert (PUBLISHED / f"{module.NAME}.png").is_file()


@pytest.mark.parametrize("corpus", ma2015_figure3.corpora(False))
def test_riemannian_samplers_are_ahead_of_the_others_in_the_published_figure(corpus):
    lines = load(PUBLISHED / f"{ma2015_figure3.NAME}.jsonl")
    worst = {m: max(map(lda.final, r)) for m, r in ma2015_figure3.results(lines, corpus).items()}
    best = {m: min(map(lda.final, r)) for m, r in ma2015_figure3.results(lines, corpus).items()}
    assert max(worst["SGRLD"], worst["SGRHMC"]) < min(best["SGLD"], best["SGHMC"])


def test_a_step_size_that_is_too_large_is_a_result_and_not_an_error():
    cell = lda.Cell("generated", "SGRHMC", 3, 0.1, 0.1, (5.0, 10.0, 0.5), steps=8, every=4, sweeps=4, batch=10)
    assert "not finite" in lda.measured(cell)["failed"]


def test_the_published_race_beside_other_libraries_is_what_its_lines_say():
    path = PUBLISHED.parent / "lda-benchmark.jsonl"
    assert race.page(list(read(path))) == path.with_suffix(".md").read_text(encoding="utf-8")
