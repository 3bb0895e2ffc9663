"""LDA by Blob, SGHMC, pSGHMC-det and pSGHMC-fGH, the experiment of the flow paper: perplexity by iteration. Reduced.

    python -m sgmcmc_verification.reports.experiments.liu2019.lda [--quick] [--resume] [--out FOLDER]

Wikipedia articles in place of the paper's abstracts. Every cell is a JSON line in FOLDER/liu2019-lda.jsonl;
`--resume` skips what the file has. Needs the files of `targets.datasets.wikipedia`, `--quick` does not.

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

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.lda import documents as texts
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure
from sgmcmc_verification.samplers.particles.parvi import ParVI
from sgmcmc_verification.samplers.particles.psghmc import PSGHMC
from sgmcmc_verification.samplers.runner.loop import Loop
from sgmcmc_verification.samplers.topic_models.lda.completion import Completion
from sgmcmc_verification.samplers.topic_models.lda.particles import ParticleGibbs, run_particles
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.datasets.corpus import Corpus, from_documents
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent
from sgmcmc_verification.targets.datasets.tokenise import Vocabulary
from sgmcmc_verification.targets.topic_models.lda.softmax import SoftmaxLDA

NAME = "liu2019-lda"
STEP, FRICTION, MASS = 1e-3, 0.1, 1 / 300
"""epsilon of all methods, C, and the variance S of a momentum."""
ALPHA, PRIOR_MEAN, PRIOR_VARIANCE = 0.1, 0.1, 1.0
DOCUMENTS, LONGEST = 765, 40
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
    sweeps: int = 8
    batch: int = 100
    seed: int = 0


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    if quick:
        return [
            Cell("generated", method, 30, 10, particles=4, topics=5, words=200, sweeps=6, batch=40)
            for method in METHODS
        ]
    return [Cell("wikipedia", method, 240, 20, seed=seed) for seed in SEEDS for method in METHODS]


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
            method.build(),
            estimator,
            cell.seed,
            theta.astype(np.float32),
            step_size=method.step,
            num_steps=cell.steps,
            completion=lambda: Completion(held_out, ALPHA, cell.sweeps),
            loop=Loop(evaluate_every=cell.every),
        )
    except FloatingPointError as error:
        return {**about, "failed": str(error)}
    return {
        **about,
        "steps": [p.step for p in found.points],
        "seconds": [round(p.seconds, 2) for p in found.points],
        "perplexity": [round(p.perplexity, 2) for p in found.points],
        "spread": [float(f"{p.spread:.4g}") for p in found.points],
    }


# The page ----------------------------------------------------------------------------------------------------------


def results(lines: Lines, quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Method -> results of its seeds."""
    found: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
    for cell in plan(quick):
        found[cell.method].append(lines[cell.key]["result"])
    return found


def curve(runs: Sequence[dict[str, Any]], name: str) -> np.ndarray:
    """`perplexity` or `spread` by evaluation, mean over the seeds."""
    return np.mean([run[name] for run in runs], axis=0)


def reached(runs: Sequence[dict[str, Any]], level: float) -> float | None:
    """The step at which the mean perplexity first is at or below a level, by linear interpolation; None for never."""
    steps, values = runs[0]["steps"], curve(runs, "perplexity")
    below = np.flatnonzero(values <= level)
    if not len(below):
        return None
    at = int(below[0])
    if at == 0:
        return 0.0
    share = (values[at - 1] - level) / (values[at - 1] - values[at])
    return steps[at - 1] + share * (steps[at] - steps[at - 1])


def repulsion(particles: int, size: int) -> float:
    """h of the median rule over the mean variance of a coordinate, for particles at equal distances from each other."""
    return size / math.log(particles + 1)


def claims(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The paper's claims beside what was measured, rows of a table."""
    end = {m: curve(runs, "perplexity")[-1] for m, runs in found.items()}
    level, rows = end["Blob"], []
    for name in ("pSGHMC-det", "pSGHMC-fGH"):
        for other in ("Blob", "SGHMC"):
            mine, its = (reached(found[m], level) for m in (name, other))
            ahead = [
                np.mean(1 - np.divide(run["perplexity"][1:], against["perplexity"][1:]))
                for run, against in zip(found[name], found[other], strict=True)
            ]
            verdict = "as in the paper" if min(ahead) >= 0 else "undecided" if max(ahead) >= 0 else "not so"
            show = lambda step: "never" if step is None else f"{step:.0f}"
            claim = "faster than" if other == "Blob" else "as fast as, or faster than,"
            rows.append(
                f"| {name} is {claim} {other} | at the last perplexity of Blob ({level:.0f}) after {show(mine)} steps, "
                f"{other} after {show(its)}; at the end {end[name]:.0f}, {other} {end[other]:.0f}; over the run "
                f"{', '.join(f'{share:.1%}' for share in ahead)} lower | {verdict} |"
            )
    return rows


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found, cell = results(lines, quick), plan(quick)[0]
    documents, tokens, words = found["Blob"][0]["training"]
    size = words * cell.topics
    seeds, steps = len(found["Blob"]), found["Blob"][0]["steps"]
    middle = len(steps) // 3
    last = lambda m, name: float(curve(found[m], name)[-1])
    early = lambda m: float(curve(found[m], "perplexity")[2])
    rows = []
    for method, runs in found.items():
        ends = ", ".join(f"{run['perplexity'][-1]:.0f}" for run in runs)
        at = curve(runs, "perplexity")[middle]
        seconds = np.mean([run["seconds"][-1] for run in runs])
        spread = last(method, "spread")
        rows.append(f"| {method} | {METHODS[method].step:.3g} | {at:.0f} | {ends} | {spread:.3f} | {seconds:.0f} |")
    pull = repulsion(cell.particles, size)
    large = METHODS["Blob, step x 10"].step * cell.steps
    gap = last("Blob, step x 10", "perplexity") / last("pSGHMC-det", "perplexity") - 1
    return experiment_page(
        NAME,
        lines,
        documents=documents,
        tokens=f"{tokens:,}",
        words=words,
        topics=cell.topics,
        steps=cell.steps,
        sweeps=cell.sweeps,
        seeds=seeds,
        plural="s" * (seeds > 1),
        claims=claims(found),
        middle_step=steps[middle],
        rows=rows,
        predicted=f"{found['Blob'][0]['predicted']:,}",
        particles=cell.particles,
        epsilon=f"{STEP:g}",
        step_ratio=f"{1 / FRICTION:.0f}",
        large_step_perplexity=f"{last('Blob, step x 10', 'perplexity'):.0f}",
        gap=f"{abs(gap):.1%}",
        side="above" if gap > 0 else "below",
        third_step=steps[2],
        blob_early=f"{early('Blob, step x 10'):.0f}",
        psghmc_early=f"{early('pSGHMC-det'):.0f}",
        dimensions=f"{size:,}",
        pull=f"{pull:,.0f}",
        decay=f"{math.exp(-2 * large):.1g}",
        large_step_spread=f"{last('Blob, step x 10', 'spread'):.3g}",
        sghmc_spread=f"{last('SGHMC', 'spread'):.2f}",
        gap_of_fgh=f"{abs(last('pSGHMC-fGH', 'perplexity') / last('pSGHMC-det', 'perplexity') - 1):.1%}",
        friction=f"{FRICTION:g}",
        cold_perplexity=f"{last('SGHMC, temperature 0.1', 'perplexity'):.0f}",
        cold_spread=f"{last('SGHMC, temperature 0.1', 'spread'):.2f}",
        sghmc_perplexity=f"{last('SGHMC', 'perplexity'):.0f}",
        longest=LONGEST,
        prior_mean=f"{PRIOR_MEAN:g}",
        prior_variance=f"{PRIOR_VARIANCE:g}",
        alpha=f"{ALPHA:g}",
        batch=cell.batch,
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Perplexity and spread by step."""
    found, cell = results(lines, quick), plan(quick)[0]
    figure, axes = new_figure(1, 2, (11, 4.4))
    for method, runs in found.items():
        style: dict[str, Any] = {"color": METHODS[method].colour, "ls": METHODS[method].line}
        if method == "pSGHMC-det":
            style |= {"lw": 3.5, "zorder": 1}  # the others lie on it
        for axis, name in zip(axes[0], ("perplexity", "spread"), strict=True):
            values = np.array([run[name] for run in runs])
            axis.plot(runs[0]["steps"], values.mean(axis=0), label=method, **style)
            if len(runs) > 1:
                axis.fill_between(
                    runs[0]["steps"], values.min(axis=0), values.max(axis=0), color=style["color"], alpha=0.2, lw=0
                )
    axes[0, 0].set_ylabel("perplexity of held-out words")
    axes[0, 0].set_title(f"Reduced: {cell.particles} particles, K = {cell.topics}", fontsize=10)
    axes[0, 1].set_ylabel("variance of a coordinate over the particles")
    axes[0, 1].set_title("Spread of the particles; the prior has 1", fontsize=10)
    axes[0, 1].set_ylim(bottom=0)
    for axis in axes[0]:
        axis.set_xlabel("step")
        axis.grid(alpha=0.25, lw=0.4)
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
