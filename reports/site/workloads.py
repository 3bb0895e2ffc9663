"""Real models: perplexity against time, from the lines of the published experiments."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sgmcmc_verification.reports.experiments.common.grid import Lines, load
from sgmcmc_verification.reports.records.jsonl import read
from sgmcmc_verification.reports.site.chart import Axis, Line, chart

SECONDS = Axis("seconds", log=True)


class Workload(NamedTuple):
    """A model with its charts.

    Attributes:
        name: of the model.
        about: the run, and the limits of its figures.
        charts: drawn.
        page: name of the experiment whose page says more.
    """

    name: str
    about: str
    charts: list[str]
    page: str


Curves = dict[str, list[tuple[float, float]]]
"""Name of a line -> (seconds, value)."""


class Row(NamedTuple):
    """A chart of the lines of a published experiment.

    Attributes:
        name: of the model.
        page: name of the experiment.
        title: of the chart.
        curves: reads them off the lines.
        axis: of their values.
        about: the run, and the limits of its figures.
    """

    name: str
    page: str
    title: str
    curves: Callable[[Lines], Curves]
    axis: Axis
    about: str


def draw(curves: Curves, y: Axis, title: str) -> str:
    """One chart against seconds; points at time zero have no place on its axis."""
    return chart([Line(name, tuple(points)) for name, points in curves.items()], SECONDS, y, title)


def sam(lines: Lines) -> Curves:
    """Spherical admixture model: method -> (seconds, log-perplexity), the first seed."""
    from sgmcmc_verification.reports.experiments.liu2016.figure5a import LABELS
    from sgmcmc_verification.reports.experiments.liu2016.figure5a_seeds import of_methods

    found = of_methods(lines, False)
    return {LABELS[name]: [(p[1], p[2]) for p in runs[0]["points"]] for name, runs in found.items()}


def lda_recipe(lines: Lines) -> Curves:
    """LDA with K = 50: method -> (seconds, perplexity), the first seed."""
    from sgmcmc_verification.reports.experiments.ma2015.figure3 import corpora, results

    return {name: _curve(runs[0]) for name, runs in results(lines, corpora(False)[0]).items()}


def lda_scir(lines: Lines) -> Curves:
    """LDA with K = 100: curve -> (seconds, perplexity), the first seed."""
    from sgmcmc_verification.reports.experiments.baker2018.figure3a import corpora, results

    return {name: _curve(runs[0]) for name, runs in results(lines, corpora(False)[0]).items()}


def dp(lines: Lines) -> Curves:
    """DP mixture: setting -> (seconds, minus log predictive), the first seed."""
    from sgmcmc_verification.reports.experiments.baker2018.figure3b import ASIDE, label, results

    found = results(lines, False)
    return {
        label(setting): list(zip(runs[0]["seconds"], runs[0]["score"], strict=True))[1:]
        for setting, runs in found.items()
        if setting not in ASIDE
    }


def logistic(data: str, lines: Lines) -> Curves:
    """Logistic regression on a data set: method -> (seconds, log-likelihood of a test row)."""
    from sgmcmc_verification.reports.experiments.liu2018.figure1 import curves

    return {
        method: list(zip(c["seconds"].mean(axis=0), c["log_likelihood"].mean(axis=0), strict=True))
        for (name, method), c in curves(lines, False).items()
        if name == data
    }


def libraries(path: Path) -> Curves:
    """LDA beside other libraries: system -> (CPU seconds, perplexity); the longest run of each."""
    found: Curves = {}
    for line in read(path):
        points = [(s, p) for s, _, p in line.get("seconds, documents, perplexity", [])]
        if len(points) > len(found.get(line.get("system", ""), [])):
            found[line["system"]] = points
    return found


def _curve(result: dict[str, Any]) -> list[tuple[float, float]]:
    return list(zip(result.get("seconds", []), result.get("perplexity", []), strict=True))


PERPLEXITY = Axis("perplexity of held-out words", log=True)
SCORE = Axis("− log predictive of a user")
LOG_LIKELIHOOD = Axis("log-likelihood of a test row")
LOG_PERPLEXITY = Axis("log-perplexity of a document")
ROWS: tuple[Row, ...] = (
    Row(
        "Latent Dirichlet allocation",
        "ma2015-figure3",
        "LDA on Wikipedia, K = 50",
        lda_recipe,
        PERPLEXITY,
        "Reduced runs on a corpus of Wikipedia articles; the methods of the recipe paper, one seed of two.",
    ),
    Row(
        "Latent Dirichlet allocation, SCIR",
        "baker2018-figure3a",
        "LDA on Wikipedia, K = 100",
        lda_scir,
        PERPLEXITY,
        "Reduced runs; SCIR and SGRLD at the settings of the SCIR paper, one seed.",
    ),
    Row(
        "Spherical admixture model",
        "liu2016-figure5-seeds",
        "SAM on 20News-different, K = 20",
        sam,
        LOG_PERPLEXITY,
        "Reduced: 120 seconds a method, one seed of three; the paper has some 5,000 seconds.",
    ),
    *(
        Row(
            "Logistic regression",
            "liu2018-figure1",
            f"Logistic regression on {data}",
            partial(logistic, data),
            LOG_LIKELIHOOD,
            "Reduced: 100 particles of SVGD and RSVGD, one start; seconds of a shared core, higher is better.",
        )
        for data in ("splice", "covertype")
    ),
    Row(
        "Dirichlet-process mixture",
        "baker2018-figure3b",
        "DP mixture on Microsoft web data",
        dp,
        SCORE,
        "1000 iterations, the first of five seeds; lower is better.",
    ),
)


def workloads(published: Path) -> list[Workload]:
    """Workloads whose results the folder has."""
    found = []
    for row in ROWS:
        path = published / "experiments" / f"{row.page}.jsonl"
        if path.is_file():
            drawn = draw(row.curves(load(path)), row.axis, row.title)
            if found and found[-1].page == row.page:  # another chart of the same lines
                found[-1].charts.append(drawn)
            else:
                found.append(Workload(row.name, row.about, [drawn], row.page))
    path = published / "lda-benchmark.jsonl"
    if path.is_file():
        about = "CPU seconds of one thread, K = 100; every library's own program, one estimator of the perplexity."
        drawn = draw(libraries(path), PERPLEXITY, "LDA beside other libraries")
        found.append(Workload("LDA beside other libraries", about, [drawn], "lda-benchmark"))
    return found
