"""LDA by Blob, SGHMC, pSGHMC-det and pSGHMC-fGH, the experiment of the flow paper: perplexity by iteration. Reduced.

    python -m reports.experiments.liu2019_lda [--quick] [--out FOLDER]

Wikipedia articles in place of the paper's abstracts. Every cell is a JSON line in FOLDER/liu2019-lda.jsonl; a run that
is started again skips what the file has. Needs the files of `targets.datasets.wikipedia`, `--quick` does not.

Source: liu2019understanding, its experiment on LDA; model, priors, start, batch, particles, step size, friction and
mass are those of its released code.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reports.experiments.cells import Keyed, Lines
from reports.experiments.lda import documents as texts
from reports.experiments.pages import new_figure, provenance
from reports.experiments.publish import publish
from samplers.lda.completion import Completion
from samplers.lda.particles import ParticleGibbs, run_particles
from samplers.parvi import ParVI
from samplers.psghmc import PSGHMC
from samplers.sghmc import SGHMC
from targets.datasets.corpus import Corpus, from_documents
from targets.datasets.stream import Independent
from targets.datasets.text import Vocabulary
from targets.lda.softmax import SoftmaxLDA

NAME = "liu2019-lda"
STEP, FRICTION, MASS = 1e-3, 0.1, 1 / 300
"""epsilon of all methods, C, and the variance S of a momentum."""
ALPHA, PRIOR_MEAN, PRIOR_VARIANCE = 0.1, 0.1, 1.0
DOCUMENTS, LONGEST = 765, 60
SEEDS = (0, 1)
LARGE = 10


class Method(NamedTuple):
    """A sampler, its step size, how it is drawn."""

    build: Callable[[], Any]
    step: float
    colour: str
    line: str = "-"


def chains(temperature: float) -> Method:
    """SGHMC in units in which the mass is one: r / sqrt(S) for r, epsilon / sqrt(S) for epsilon, C / sqrt(S) for C."""
    root = math.sqrt(MASS)
    line = "-" if temperature == 1 else "--"
    return Method(lambda: SGHMC(FRICTION / root, temperature), STEP / root, "#56B4E9", line)


METHODS: dict[str, Method] = {
    "Blob": Method(lambda: ParVI(), STEP, "#E69F00"),
    "SGHMC": chains(1.0),
    "pSGHMC-det": Method(lambda: PSGHMC(FRICTION, MASS, "det"), STEP, "#0072B2"),
    "pSGHMC-fGH": Method(lambda: PSGHMC(FRICTION, MASS, "fgh"), STEP, "#D55E00"),
    "Blob, step x 10": Method(lambda: ParVI(), LARGE * STEP, "#E69F00", "--"),
    "SGHMC, temperature 0.1": chains(FRICTION),
}
"""Rows `blob`, `sghmc`, `psghmc-det` and `psghmc-fgh` of the registry; the paper's four methods come first."""
PAPER = tuple(METHODS)[:4]


@dataclass(frozen=True)
class Cell(Keyed):
    """A run.

    Attributes:
        corpus: `wikipedia` or `generated`.
        method: of `METHODS`.
        steps: of all particles; one minibatch of `batch` documents each.
        every: steps from one evaluation to the next.
        particles: M, or chains.
        topics: K.
        words: V at most.
        sweeps: of the Gibbs sampler in a document, half of them discarded.
    """

    corpus: str
    method: str
    steps: int
    every: int
    particles: int = 20
    topics: int = 20
    words: int = 500
    sweeps: int = 10
    batch: int = 100
    seed: int = 0


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    if quick:
        return [
            Cell("generated", method, 30, 10, particles=4, topics=5, words=200, sweeps=6, batch=40)
            for method in METHODS
        ]
    return [Cell("wikipedia", method, 300, 20, seed=seed) for seed in SEEDS for method in METHODS]


def common(corpus: Corpus, words: int, longest: int) -> Corpus:
    """The first `longest` of the most frequent words of each document, documents of at least half as many."""
    counts = np.bincount(corpus.tokens, minlength=len(corpus.vocabulary))
    kept = np.sort(np.argsort(-counts, kind="stable")[:words])
    place = np.full(len(counts), -1)
    place[kept] = np.arange(len(kept))
    found = [d[d >= 0][:longest] for d in (place[corpus.document(i)] for i in range(len(corpus)))]
    vocabulary = Vocabulary(tuple(corpus.vocabulary.words[i] for i in kept))
    return from_documents([d for d in found if 2 * len(d) >= longest], vocabulary)


@cache
def documents(name: str, words: int) -> tuple[Corpus, Corpus]:
    """(training, held-out) documents, four to one as in the paper."""
    if name == "wikipedia":
        whole = common(texts(name)[0].take(range(3 * DOCUMENTS)), words, LONGEST)
        whole, cut = whole.take(range(DOCUMENTS)), DOCUMENTS * 4 // 5
        return whole.take(range(cut)), whole.take(range(cut, DOCUMENTS))
    return texts(name)


def measured(cell: Cell) -> dict[str, Any]:
    """Perplexities and spreads on the way, or why there are none."""
    train, held_out = documents(cell.corpus, cell.words)
    model = SoftmaxLDA(cell.topics, len(train.vocabulary), ALPHA, PRIOR_MEAN, PRIOR_VARIANCE)
    method = METHODS[cell.method]
    estimator = ParticleGibbs(model, Independent(train, cell.batch, cell.seed), cell.sweeps)
    start = np.random.default_rng([cell.seed, cell.particles])
    theta = np.stack([model.start(start) for _ in range(cell.particles)])
    about = {
        "predicted": len(Completion(held_out, ALPHA).predicted.tokens),
        "training": [len(train), len(train.tokens), len(train.vocabulary)],
    }
    try:
        found = run_particles(
            method.build(), estimator, cell.seed, theta, step_size=method.step, num_steps=cell.steps,
            completion=lambda: Completion(held_out, ALPHA, cell.sweeps), evaluate_every=cell.every, dtype=np.float32,
        )  # fmt: skip
    except FloatingPointError as error:
        return {**about, "failed": str(error)}
    return {
        **about,
        "steps": [p.step for p in found.points],
        "seconds": [round(p.seconds, 2) for p in found.points],
        "perplexity": [round(p.perplexity, 2) for p in found.points],
        "spread": [float(f"{p.spread:.4g}") for p in found.points],
    }
