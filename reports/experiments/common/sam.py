"""Common parts of the experiments on spherical topics: problem, methods, a run with its points, words of topics."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.reports.experiments.common.grid import Keyed
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.topic_models.sam.methods import build
from sgmcmc_verification.samplers.topic_models.sam.run import Chain, VariationalChain, run_sam
from sgmcmc_verification.samplers.topic_models.sam.variational import MeanField, StochasticMeanField
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings
from sgmcmc_verification.targets.datasets.newsgroups_different import load_newsgroups_different
from sgmcmc_verification.targets.datasets.tfidf import UnitDocuments, counted, document_frequency, tfidf
from sgmcmc_verification.targets.datasets.wikipedia import load_wikipedia
from sgmcmc_verification.targets.topic_models.sam.model import SAM
from sgmcmc_verification.targets.topic_models.sam.perplexity import LogPerplexity

TOPICS, PRIOR, DATA, ALPHA = 20, 1e4, 3e4, 10.0
"""K, kappa_0 = sigma, kappa and alpha of 20News-different."""
DRAWS = 200
"""Weights that all documents share in the log-perplexity."""
VARIATIONAL = ("vi", "stovi")


@dataclass(frozen=True)
class Cell(Keyed):
    """A run.

    Attributes:
        method: a name of `samplers.topic_models.sam.methods.METHODS`, or of `VARIATIONAL`.
        seconds: how long its samples may take.
        step: step size and friction times step size of SGGMC and gSGNHT, step size and steps of a trajectory of GMC;
            None for the paper's.
        form: of the sampling of weights.
        single: steps in single precision.
        seed: of the run.
    """

    method: str
    seconds: float
    step: tuple[float, float] | None = None
    form: str = "sphere"
    single: bool = True
    seed: int = 0

    @property
    def batch(self) -> int:
        """Documents of a batch."""
        return 50

    def problem(self) -> tuple[SAM, UnitDocuments, UnitDocuments]:
        """Model, training and test documents."""
        return problem()


@dataclass(frozen=True)
class LargeCell(Cell):
    """A run on articles of Wikipedia.

    Attributes:
        documents: for training.
        test: held out.
    """

    documents: int = 150_000
    test: int = 1000

    @property
    def batch(self) -> int:
        """Documents of a batch."""
        return 100

    def problem(self) -> tuple[SAM, UnitDocuments, UnitDocuments]:
        """Model, training and test documents."""
        return large_problem(self.documents, self.test)


@cache
def problem() -> tuple[SAM, UnitDocuments, UnitDocuments]:
    """Model, training and test documents."""
    train, test = load_newsgroups_different()
    return SAM(train.mean, np.full(TOPICS, ALPHA), PRIOR, PRIOR, DATA), train, test


LARGE_TOPICS, LARGE_PRIOR, LARGE_DATA = 50, 6e3, 2e4
"""K, kappa_0 = sigma and kappa of the 150K subset of Wikipedia."""
SHORTEST = 16
"""Words that an article has at least; shorter ones are stubs."""


@cache
def large_problem(documents: int, test: int) -> tuple[SAM, UnitDocuments, UnitDocuments]:
    """Model, training and test articles: the first ones of a random order, drawn once and for all."""
    whole = load_wikipedia()
    kept = np.flatnonzero(whole.lengths >= SHORTEST)
    if len(kept) < documents + test:
        raise ValueError(f"documents: {len(kept)} articles have {SHORTEST} words, {documents + test} are asked for")
    np.random.default_rng(2016).shuffle(kept)
    tested, trained = (counted(whole.take(kept[a:b])) for a, b in ((0, test), (test, test + documents)))
    # the words of the training articles weigh those of the test articles too: the model is used on single documents
    frequency = document_frequency(trained)
    train, held_out = (
        tfidf(tf, whole.vocabulary, frequency, documents, name=name)
        for tf, name in ((trained, "training articles"), (tested, "test articles"))
    )
    model = SAM(train.mean, np.full(LARGE_TOPICS, ALPHA), LARGE_PRIOR, LARGE_PRIOR, LARGE_DATA)
    return model, train, held_out


def chain_of(cell: Cell, model: SAM, train: UnitDocuments) -> Chain:
    """The method with the settings of the paper, or its own step."""
    method, form = cell.method, cell.form
    if method == "vi":
        return VariationalChain(MeanField(model, train.rows))
    if method == "stovi":
        return VariationalChain(StochasticMeanField(model, train.rows, cell.batch))
    burn_in, kept = {"gmc-apprmh": (15, 10), "gmc-bgibbs": (15, 1)}.get(method, (40, 20))
    options: dict[str, Any] = {"weights": WeightSettings(burn_in, kept, form=form)}
    if method.startswith("gmc"):
        if cell.step is not None:
            options |= {"step_size": cell.step[0], "sampler": GMC(model.manifold, round(cell.step[1]))}
    else:
        # a Metropolis test in single precision would see round-off of U
        options["dtype"] = np.float32 if cell.single else np.float64
        if not method.endswith("full"):
            options["batch_size"] = cell.batch
        if cell.step is not None:
            options |= {"step_size": cell.step[0], "decay": cell.step[1]}
    return build(method, model, train.rows, **options)


def evaluated(cell: Cell, checkpoint: Path | None = None) -> dict[str, Any]:
    """Points of log-perplexity on the way, and the most prominent words of each topic at the end."""
    model, train, test = cell.problem()
    chain = chain_of(cell, model, train)
    spare = np.random.default_rng(0)
    chain.sample(spare, chain.start(spare), 0)  # compiles, outside of the time
    # the last 40 samples that were taken in count
    perplexity = LogPerplexity(model, test.rows, np.random.default_rng(1), DRAWS, window=8, chunk=5)
    found = run_sam(
        chain,
        cell.seed,
        num_samples=1_000_000,
        perplexity=perplexity,
        averaged=cell.method not in VARIATIONAL,
        loop=Loop(
            evaluate_every=1 if cell.method in VARIATIONAL or "full" in cell.method else 5,
            checkpoint=checkpoint,
            checkpoint_every=100,
            seconds=cell.seconds,
        ),
    )
    topics = found.topics[0].astype(np.float64)
    return {
        "points": [list(point) for point in found.points],
        "words": top_words(topics, train.mean, train.vocabulary.words),
        "cosine": float((topics @ topics.T)[np.triu_indices(len(topics), 1)].mean()),
        "samples": found.points[-1].sample if found.points else 0,
    }


def top_words(topics: np.ndarray, mean: np.ndarray, words: Sequence[str], count: int = 8) -> list[list[str]]:
    """The words of each topic whose weight is furthest above that of the mean document, most first."""
    return [[str(words[i]) for i in np.argsort(mean - topic)[:count]] for topic in topics]


def frame(axis: Any, title: str) -> None:
    """Labels, grid and legend of a figure of log-perplexity against seconds."""
    axis.set_xlabel("seconds of samples (shared cores)")
    axis.set_ylabel("log-perplexity, per document")
    axis.set_title(title, fontsize=10)
    axis.grid(alpha=0.25, lw=0.4)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))


def run_row(label: str, result: dict[str, Any]) -> str:
    """The row of a run in a table: samples, ms a sample, and what the last point has."""
    last, taken = result["points"][-1], result["samples"]
    return (
        f"| {label} | {taken} | {1e3 * last[1] / taken:.0f} | {last[2]:.0f} ± {last[3]:.2f} | "
        f"{last[4]:.2f} | {last[5]:.0f} | {result['cosine']:.2f} |"
    )


def lowest(found: dict[Any, dict[str, Any]]) -> Any:
    """The cell of the run that ends lowest."""
    return min(found, key=lambda cell: found[cell]["points"][-1][2])


def plot_run(axis: Any, result: dict[str, Any], style: str, colour: str, width: float, label: str) -> None:
    """Log-perplexity against seconds, with markers where points are few."""
    points = result["points"]
    marker = "o" if len(points) < 15 else None
    x, y = [p[1] for p in points], [p[2] for p in points]
    axis.plot(x, y, style, color=colour, lw=width, marker=marker, ms=3, label=label)
