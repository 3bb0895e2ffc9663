"""Parts that the experiments on LDA share: corpora, settings, a run of a sampler, figures of perplexity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import new_figure
from sgmcmc_verification.samplers.positive.scir import SCIR
from sgmcmc_verification.samplers.riemannian.metrics import FlatMetric, PositiveMetric
from sgmcmc_verification.samplers.riemannian.sgrhmc import SGRHMC
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.runner.schedules import decreasing
from sgmcmc_verification.samplers.topic_models.lda.completion import Completion
from sgmcmc_verification.samplers.topic_models.lda.estimator import DocumentGibbs
from sgmcmc_verification.samplers.topic_models.lda.run import run_lda
from sgmcmc_verification.targets.datasets.corpus import Corpus, from_documents
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent
from sgmcmc_verification.targets.datasets.newsgroups import load_newsgroups
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.datasets.wikipedia import load_wikipedia
from sgmcmc_verification.targets.topic_models.lda.model import LDA

SHORTEST = 30
"""Words that an article has at least; shorter ones are stubs with hardly anything to predict."""
HELD_OUT = 400
METHODS: dict[str, Callable[[LDA], Any]] = {
    "SGLD": lambda model: SGRLD(FlatMetric(), reflect=True),
    "SGHMC": lambda model: SGRHMC(FlatMetric(), reflect=True),
    "SGRLD": lambda model: SGRLD(PositiveMetric(), reflect=True),
    "SGRHMC": lambda model: SGRHMC(PositiveMetric(), reflect=True),
    "SGRHMC, friction 10": lambda model: SGRHMC(PositiveMetric(), reflect=True, friction=10.0),
    "SCIR": lambda model: SCIR(model.beta),
}
"""Rows `sgld-reflected`, `sghmc-reflected` (friction 1), `sgrld`, `sgrhmc` (with another friction too) and `scir` of
the registry."""
STYLES = {
    "SGLD": ("#E69F00", "s"),
    "SGHMC": ("#56B4E9", "^"),
    "SGRLD": ("#0072B2", "o"),
    "SGRHMC": ("#D55E00", "D"),
    "SCIR": ("#009E73", "v"),
}
"""Colour, of the palette of Okabe and Ito, and marker."""


@dataclass(frozen=True)
class Cell(Keyed):
    """A run.

    Attributes:
        corpus: `wikipedia`, `newsgroups` or `generated`.
        method: of `METHODS`.
        topics: K.
        alpha, beta: of the priors.
        schedule: (a, b, c) of the step sizes a (1 + t / b)^-c.
        sweeps: of the Gibbs sampler in a document, half of them discarded.
        steps: updates of the topics, with minibatches of `batch` documents.
        every: steps from one evaluation to the next.
    """

    corpus: str
    method: str
    topics: int
    alpha: float
    beta: float
    schedule: tuple[float, float, float]
    steps: int
    every: int
    sweeps: int = 50
    batch: int = 50
    seed: int = 0


def corpora(quick: bool) -> tuple[str, ...]:
    """Names of the corpora of an experiment."""
    return ("generated",) if quick else ("wikipedia", "newsgroups")


@cache
def documents(name: str) -> tuple[Corpus, Corpus]:
    """(training, held-out) documents; the order of the training documents is random once and for all."""
    order = np.random.default_rng(2013)
    if name == "wikipedia":
        whole = load_wikipedia()
        kept = np.flatnonzero(whole.lengths >= SHORTEST)
        order.shuffle(kept)
        return whole.take(kept[1000:]), whole.take(kept[:HELD_OUT])
    if name == "newsgroups":
        posts = load_newsgroups()
        kept = [np.flatnonzero(part.lengths >= SHORTEST) for part in (posts.train, posts.test)]
        for part in kept:
            order.shuffle(part)
        return posts.train.take(kept[0]), posts.test.take(kept[1][:HELD_OUT])
    return generated(order, 400), generated(order, 40)


@cache
def generated_topics(topics: int = 5, words: int = 200) -> np.ndarray:
    """phi (K, V) of the generated corpus."""
    return np.random.default_rng(5).dirichlet(np.full(words, 0.05), topics)


def generated(generator: np.random.Generator, count: int, length: int = 60) -> Corpus:
    """Documents of an LDA model with five topics over 200 words."""
    phi = generated_topics()
    shares = generator.dirichlet(np.full(len(phi), 0.2), count)
    found = [generator.choice(phi.shape[1], length, p=share @ phi) for share in shares]
    letters = "abcdefghijklmnopqrstuvwxyz"
    return from_documents(found, Vocabulary(tuple(f"{letters[i // 26]}{letters[i % 26]}" for i in range(phi.shape[1]))))


def measured(cell: Cell) -> dict[str, Any]:
    """Perplexities on the way, or the step from which the topics were not finite."""
    train, held_out = documents(cell.corpus)
    model = LDA(cell.topics, len(train.vocabulary), cell.alpha, cell.beta)
    sampler = METHODS[cell.method](model)
    batches = Independent(train, cell.batch, cell.seed)
    estimator = DocumentGibbs(model, batches, cell.sweeps, gradient="gradient" in sampler.needs)
    try:
        found = run_lda(
            sampler,
            estimator,
            cell.seed,
            step_size=decreasing(*cell.schedule),
            num_steps=cell.steps,
            completion=lambda: Completion(held_out, cell.alpha, cell.sweeps),
            loop=Loop(evaluate_every=cell.every),
        )
    except (FloatingPointError, ValueError) as error:
        return {"failed": str(error)}
    return {
        "steps": [p.step for p in found.points],
        "documents": [p.documents for p in found.points],
        "seconds": [round(p.seconds, 2) for p in found.points],
        "perplexity": [round(p.perplexity, 2) for p in found.points],
        "predicted": len(Completion(held_out, cell.alpha).predicted.tokens),
        "training": [len(train), len(train.tokens), len(train.vocabulary)],
    }


def title(cell: Cell, seeds: int, result: dict[str, Any]) -> str:
    """Facts for the caption of a figure: the cell of one of them, how many seeds, the result of one of them."""
    documents, tokens, words = result["training"]
    return (
        f"Reduced: {cell.steps} steps of {cell.batch} documents, {seeds} seed{'s' * (seeds > 1)}\n"
        f"{cell.corpus}, {documents:,} documents, {tokens / 1e6:.1f} million words, V = {words:,}, K = {cell.topics}"
    )


def final(result: dict[str, Any]) -> float:
    """The last perplexity; infinity for a run that failed."""
    return result["perplexity"][-1] if "perplexity" in result else float("inf")


def best(lines: Lines, cells: Sequence[Cell]) -> Cell:
    """The cell with the lowest last perplexity."""
    return min(cells, key=lambda cell: final(lines[cell.key]["result"]))


def curves(panels: Sequence[tuple[str, dict[str, list[dict[str, Any]]]]], path: Path) -> None:
    """Perplexity against documents, one panel for each (title, label -> results of the seeds); mean and range."""
    figure, axes = new_figure(1, len(panels), (5.2 * len(panels), 4.2))
    for axis, (title, runs) in zip(axes[0], panels, strict=True):
        for label, results in runs.items():
            results = [r for r in results if "perplexity" in r]
            if not results:
                continue
            colour, marker = STYLES[label.split(",")[0].split(" ")[0]]
            x = np.array(results[0]["documents"])
            y = np.array([r["perplexity"] for r in results])
            dashed = {"ls": "--", "mfc": "white"} if "," in label else {}
            axis.plot(
                x,
                y.mean(axis=0),
                color=colour,
                marker=marker,
                markevery=max(1, len(x) // 8),
                ms=5,
                label=label,
                **dashed,
            )
            if len(results) > 1:
                axis.fill_between(x, y.min(axis=0), y.max(axis=0), color=colour, alpha=0.2, lw=0)
        axis.set_yscale("log")
        axis.set_xlabel("documents seen")
        axis.set_ylabel("perplexity of held-out words")
        axis.set_title(title, fontsize=9)
        axis.yaxis.set_major_formatter("{x:.0f}")
        axis.yaxis.set_minor_formatter("{x:.0f}")
        axis.tick_params(axis="y", which="minor", labelsize=7)
        axis.grid(alpha=0.3, lw=0.4, which="both")
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)
