"""LDA beside gensim, scikit-learn and tomotopy: documents a second, perplexity after equal times. One run, one thread.

    python -m benchmarks.lda [--seconds 60] [--corpus wikipedia|generated] [--out FILE.jsonl]

Every system gets the same 20,000 documents, K = 100, alpha and beta, minibatches of 50 documents (tomotopy, collapsed
Gibbs sampling, sweeps over all), one thread, and the same seconds of CPU time of the process, its own setup left out.
Its topics are then judged by one estimator, `samplers.topic_models.lda.completion.Completion`, once (no average over
samples, which the samplers could profit from). Times are CPU times, so that a shared machine does not decide; take
ratios.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.reports.experiments.common.lda import METHODS, documents
from sgmcmc_verification.reports.records.jsonl import commit
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.runner.schedules import Schedule, constant, decreasing
from sgmcmc_verification.samplers.topic_models.lda.completion import Completion
from sgmcmc_verification.samplers.topic_models.lda.estimator import DocumentGibbs
from sgmcmc_verification.samplers.topic_models.lda.gibbs import sample_topics
from sgmcmc_verification.samplers.topic_models.lda.run import TopicChain
from sgmcmc_verification.samplers.topic_models.lda.scir import TopicSCIR
from sgmcmc_verification.samplers.topic_models.lda.stored_assignments import StoredGibbs
from sgmcmc_verification.targets.datasets.corpus import Corpus
from sgmcmc_verification.targets.datasets.minibatch_stream import Independent
from sgmcmc_verification.targets.topic_models.lda.model import LDA, normalised

TRAINING, BATCH, TOPICS, ALPHA, BETA = 20_000, 50, 100, 0.1, 0.1

SCHEDULES = {"SGRLD": decreasing(0.01, 1000, 0.55), "SCIR": decreasing(0.5, 10, 0.33)}


def clock() -> float:
    """CPU seconds of the process."""
    return time.process_time()


def steps_of(sampler: Any, estimator: DocumentGibbs | StoredGibbs, schedule: Schedule) -> Iterator[Any]:
    """(documents, topics) of one step after the other; what is compiled is compiled before."""
    fresh = lambda: TopicChain(sampler, estimator, 0, estimator.model.start(np.random.default_rng(0)))
    fresh().step(0, 1e-9)
    chain = fresh()
    topics = lambda: normalised(chain.theta())
    yield 0, topics
    for number in itertools.count():
        chain.step(number, float(schedule(np.asarray(number))))
        yield estimator.batches.batch_size, topics


def stored(batch: int, step_size: float = 10.0) -> Callable[[Corpus, LDA], Iterator[Any]]:
    """SCIR with the topics of all words kept between visits, a sweep a visit.

    A step of size 10 forgets the weights to e^-10: given the topics it is a fresh draw of them.
    """

    def train(corpus: Corpus, model: LDA):
        estimator = StoredGibbs(model, Independent(corpus, batch, 0))
        return steps_of(TopicSCIR(model.beta), estimator, constant(step_size))

    return train


def suite(method: str, sweeps: int) -> Callable[[Corpus, LDA], Iterator[tuple[int, Callable[[], np.ndarray]]]]:
    """A sampler of the suite."""

    def train(corpus: Corpus, model: LDA):
        sampler = METHODS[method](model)
        gradient = "gradient" in sampler.needs
        estimator = DocumentGibbs(model, Independent(corpus, BATCH, 0), sweeps, gradient=gradient)
        return steps_of(sampler, estimator, SCHEDULES[method])

    return train


def gensim(corpus: Corpus, model: LDA):
    """LdaModel, online variational Bayes."""
    from gensim.models import LdaModel

    bags = [list(zip(*np.unique(corpus.document(d), return_counts=True), strict=True)) for d in range(len(corpus))]
    bags = [[(int(w), int(c)) for w, c in bag] for bag in bags]
    options: dict[str, Any] = {
        "num_topics": model.topics,
        "id2word": {i: str(i) for i in range(model.words)},
        "alpha": [model.alpha] * model.topics,
        "eta": model.beta,
        "chunksize": BATCH,
        "random_state": 0,
        "eval_every": None,
    }
    lda = LdaModel(**options)
    topics = lambda: np.asarray(lda.get_topics(), np.float64).T
    yield 0, topics
    while True:
        order = np.random.default_rng(0).permutation(len(bags))
        for start in range(0, len(order), BATCH):
            chunk = [bags[i] for i in order[start : start + BATCH]]
            lda.update(chunk, chunksize=BATCH)
            yield len(chunk), topics


def sklearn(corpus: Corpus, model: LDA):
    """LatentDirichletAllocation, online variational Bayes."""
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import LatentDirichletAllocation

    ones = np.ones(len(corpus.tokens))
    matrix = csr_matrix((ones, np.asarray(corpus.tokens, np.int32), corpus.offsets), (len(corpus), model.words))
    matrix.sum_duplicates()
    lda = LatentDirichletAllocation(
        model.topics,
        doc_topic_prior=model.alpha,
        topic_word_prior=model.beta,
        learning_method="online",
        batch_size=BATCH,
        total_samples=len(corpus),
        random_state=0,
        n_jobs=1,
    )
    topics = lambda: normalised(np.asarray(lda.components_, np.float64).T)
    yield 0, topics
    while True:
        order = np.random.default_rng(0).permutation(len(corpus))
        for start in range(0, len(order), BATCH):
            chunk = matrix[order[start : start + BATCH]]
            lda.partial_fit(chunk)
            yield chunk.shape[0], topics


def tomotopy(corpus: Corpus, model: LDA):
    """LDAModel, collapsed Gibbs sampling."""
    import tomotopy as tp

    lda = tp.LDAModel(k=model.topics, alpha=model.alpha, eta=model.beta, seed=0)
    lda.optim_interval = 0
    for number in range(len(corpus)):
        lda.add_doc([str(w) for w in corpus.document(number)])

    def topics():
        phi = np.full((model.words, model.topics), 1e-12)
        where = [int(word) for word in lda.used_vocabs]
        phi[where] = np.stack([lda.get_topic_word_dist(k) for k in range(model.topics)], axis=1)
        return normalised(phi)

    lda.train(0, workers=1)
    yield 0, topics
    while True:
        lda.train(1, workers=1)
        yield len(corpus), topics


SYSTEMS: dict[str, Callable[[Corpus, LDA], Iterator[Any]]] = {
    "SGRLD, 10 sweeps": suite("SGRLD", 10),
    "SGRLD, 50 sweeps": suite("SGRLD", 50),
    "SCIR, 50 sweeps": suite("SCIR", 50),
    "SCIR, topics kept": stored(BATCH),
    "SCIR, topics kept, batches of 5,000": stored(5_000),
    "gensim": gensim,
    "scikit-learn": sklearn,
    "tomotopy": tomotopy,
}


def race(name: str, corpus: Corpus, held_out: Corpus, seconds: float) -> dict[str, Any]:
    """Train for so many CPU seconds; documents a second and perplexity on the way and at the end."""
    model = LDA(TOPICS, len(corpus.vocabulary), ALPHA, BETA)
    work = SYSTEMS[name](corpus, model)
    _, topics = next(work)
    marks = [seconds / 4, seconds / 2, seconds]
    spent, taken, found = 0.0, 0, []
    while marks:
        began = clock()
        count, topics = next(work)
        spent += clock() - began
        taken += count
        if spent >= marks[0]:
            value = Completion(held_out, ALPHA).add(np.random.default_rng(1), topics())
            found.append((round(spent, 1), taken, round(value, 1)))
            marks = [mark for mark in marks if mark > spent]
    return {"system": name, "documents/s": round(taken / spent), "seconds, documents, perplexity": found}


def step_time(corpus: Corpus) -> dict[str, Any]:
    """Seconds of a SCIR step and its parts: K = 100, minibatch of 50 documents, 200 sweeps; after `SETTLED` steps."""
    model = LDA(TOPICS, len(corpus.vocabulary), ALPHA, BETA)
    sampler = METHODS["SCIR"](model)
    found: dict[str, Any] = {"vocabulary": model.words, "words of a document": float(np.mean(corpus.lengths))}
    for threads in (1, 2):
        estimator = DocumentGibbs(model, Independent(corpus, BATCH, 0), 200, threads, gradient=False)
        chain = TopicChain(sampler, estimator, 0, model.start(np.random.default_rng(0)))
        times = []
        for number in range(SETTLED + 60):
            wall, cpu = time.perf_counter(), clock()
            chain.step(number, float(SCHEDULES["SCIR"](np.asarray(number))))
            times.append((time.perf_counter() - wall, clock() - cpu))
        wall, cpu = np.median(times[SETTLED:], axis=0)
        found[f"SCIR step, {threads} thread(s), s (wall, CPU)"] = [round(float(wall), 3), round(float(cpu), 3)]
        batch = corpus.take(estimator.batches.numbers(0))
        used, local = np.unique(batch.tokens, return_inverse=True)
        weights = normalised(chain.theta())[used]
        began, cpu = time.perf_counter(), clock()
        for i in range(5):
            sample_topics(np.random.default_rng(i), local, batch.offsets, weights, ALPHA, 200, threads=threads)
        found[f"of it Gibbs, {threads} thread(s), s (wall, CPU)"] = [
            round((time.perf_counter() - began) / 5, 3),
            round((clock() - cpu) / 5, 3),
        ]
    return found


SETTLED = 100
"""Steps before a step is timed: at the start all weights are of the order of 1, which takes the most draws; a run has
thousands of steps."""
RELEASED = 0.7
"""Seconds of a step of the released program of baker2018large at these sizes, on a machine at rest."""


def page(lines: list[dict[str, Any]]) -> str:
    """The lines as a page: what was measured, and what of the suite's goals it meets."""
    about, step, *races = lines
    races = [race for race in races if "missing" not in race]
    last = {race["system"]: race["seconds, documents, perplexity"][-1] for race in races}
    speed = {race["system"]: race["documents/s"] for race in races}
    marks = [[m for m, *_ in race["seconds, documents, perplexity"]] for race in races]
    header = " | ".join(f"after {seconds:.0f} s" for seconds in np.median(marks, axis=0))
    table = [
        f"| {race['system']} | {race['documents/s']:,} | "
        + " | ".join(f"{value:.0f}" for *_, value in race["seconds, documents, perplexity"])
        + " |"
        for race in races
    ]
    found = []
    others = [name for name in ("gensim", "scikit-learn") if name in speed]
    own = [name for name in speed if name.startswith(("SG", "SCIR")) and "5,000" not in name]
    for name in own:
        ratios = ", ".join(f"{speed[name] / speed[other]:.1f} times as many as {other}" for other in others)
        found.append(f"- {name}: documents a second, {ratios}.")
    if "tomotopy" in last:
        for name in (n for n in last if n.startswith(("SG", "SCIR"))):
            seconds, _, value = last[name]
            gap = 100 * (value / last["tomotopy"][2] - 1)
            found.append(f"- {name}: perplexity after {seconds:.0f} s {gap:+.1f}% of tomotopy's.")
    for threads in (1, 2):
        wall, cpu = step[f"SCIR step, {threads} thread(s), s (wall, CPU)"]
        gibbs, _ = step[f"of it Gibbs, {threads} thread(s), s (wall, CPU)"]
        found.append(
            f"- A SCIR step of 200 sweeps (after {SETTLED} steps), {threads} thread{'s' * (threads > 1)} for Gibbs: "
            f"{wall:.3f} s ({gibbs:.3f} s of it Gibbs; processor time {cpu:.3f} s), the released program's "
            f"{RELEASED:g} s is {RELEASED / wall:.1f} times that."
        )
    return render(
        "lda-benchmark.md.j2",
        commit=about["commit"][:12],
        documents=f"{about['documents']:,}",
        length=f"{about['words'] / about['documents']:.0f}",
        vocabulary=f"{step['vocabulary']:,}",
        topics=TOPICS,
        alpha=f"{ALPHA:g}",
        beta=f"{BETA:g}",
        batch=BATCH,
        header=header,
        marks=len(marks[0]),
        table=table,
        found=found,
    )


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lda")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--corpus", choices=("wikipedia", "generated"), default="wikipedia")
    parser.add_argument("--system", action="append", choices=tuple(SYSTEMS))
    parser.add_argument("--out", type=Path, metavar="FILE.jsonl", help="write the lines, and FILE.md beside them")
    given = parser.parse_args(arguments)
    train, held_out = documents(given.corpus)
    corpus = train.take(range(min(TRAINING, len(train))))
    lines: list[dict[str, Any]] = [{"commit": commit(), "documents": len(corpus), "words": len(corpus.tokens)}]
    lines.append(step_time(corpus))
    print(json.dumps(lines[0]), json.dumps(lines[1]), sep="\n", flush=True)
    for name in given.system or SYSTEMS:
        try:
            lines.append(race(name, corpus, held_out, given.seconds))
        except ImportError as error:
            lines.append({"system": name, "missing": str(error)})
        print(json.dumps(lines[-1]), flush=True)
    if given.out:
        given.out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        given.out.with_suffix(".md").write_text(page(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
