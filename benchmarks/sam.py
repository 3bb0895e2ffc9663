"""Seconds of a sample of SGGMC on a spherical admixture model of the size of 20News-different, and of its parts.

    python -m benchmarks.sam [--samples N] [--double] [--out FILE.md]

K = 20, V = 5,000, batch 50 of 1,666 documents of 70 words, 40 + 20 weights a document by trajectories of 10 steps,
10 steps of SGGMC. The documents are random: no file is needed. Processor time is of all threads, and does not depend on
what else the machine does; wall time does.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np

from sgmcmc_verification.reports.records.jsonl import commit
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.topic_models.sam.methods import Method, build
from sgmcmc_verification.samplers.topic_models.sam.weights import FLAT, SPHERE, WeightSettings, sample_weights
from sgmcmc_verification.targets.numerics.ragged import SparseRows
from sgmcmc_verification.targets.topic_models.sam.model import SAM, unit_rows

TOPICS, WORDS, DOCUMENTS, ENTRIES = 20, 5000, 1666, 70


def documents(generator: np.random.Generator) -> SparseRows:
    """Random unit documents."""
    columns = np.stack([generator.choice(WORDS, ENTRIES, replace=False) for _ in range(DOCUMENTS)])
    values = unit_rows(generator.random((DOCUMENTS, ENTRIES)))
    starts = np.arange(DOCUMENTS + 1) * ENTRIES
    return SparseRows(starts, np.sort(columns, axis=1).astype(np.int32).ravel(), values.ravel(), WORDS)


def measured(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """(wall, processor) milliseconds of a call, the mean after one that is not counted."""
    jax.block_until_ready(work())
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        jax.block_until_ready(work())
    return 1e3 * (time.perf_counter() - wall) / repeats, 1e3 * (time.process_time() - processor) / repeats


def problem(name: str, kind: type = np.float32) -> tuple[Method, np.random.Generator]:
    """A method on the documents, and the generator of both."""
    generator = np.random.default_rng(0)
    rows = documents(generator)
    mean = np.bincount(rows.columns, rows.counts, WORDS)
    model = SAM(unit_rows(mean), np.full(TOPICS, 10.0), 1e4, 1e4, 3e4)
    return build(name, model, rows, step_size=3e-5, decay=0.1, dtype=kind), generator


def table(samples: int, double: bool) -> list[tuple[str, float, float]]:
    """(what, wall ms, processor ms)."""
    kind = np.float64 if double else np.float32
    method, generator = problem("sggmc", kind)
    model, rows = method.model, method.rows
    state = method.sample(generator, method.start(generator))
    lines = [("sample", *measured(lambda: method.sample(generator, state), samples))]
    lines.append(("batch and weights", *measured(lambda: method.draw(generator, state), samples)))
    beta = method.topics(state)[0].astype(np.float64)
    part = rows.take(generator.choice(DOCUMENTS, 50, replace=False)).dense()
    for form in (SPHERE, FLAT):
        draw = lambda form=form: sample_weights(
            generator, part @ beta.T, (beta @ beta.T)[None], model.alpha, model.concentration, WeightSettings(form=form)
        )
        lines.append((f"weights, {form}", *measured(draw, samples)))
    noise = jax.jit(lambda key: jax.random.normal(key, (10, TOPICS, WORDS), kind))
    lines.append(("noise of 10 steps", *measured(lambda: noise(jax.random.key(0)), samples)))
    return lines


RELEASED = (600.0, 1200.0)
"""Milliseconds of a sample of the authors' C++ program on a machine of two cores."""


def page(lines: Sequence[tuple[str, float, float]], samples: int, double: bool) -> str:
    """The table as a page."""
    (_, wall, processor), batch = lines[0], lines[1]
    low, high = (ms / wall for ms in RELEASED)
    return render(
        "sam-benchmark.md.j2",
        samples=samples,
        precision="double" if double else "single",
        processors=os.cpu_count(),
        commit=commit(),
        topics=TOPICS,
        words=f"{WORDS:,}",
        documents=f"{DOCUMENTS:,}",
        parts=[(what, f"{ms:.1f}", f"{cpu:.1f}") for what, ms, cpu in lines],
        released=" to ".join(f"{ms:.0f}" for ms in RELEASED),
        ratios=f"{low:.0f} to {high:.0f}",
        share=f"{100 * batch[2] / processor:.0f}",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sam")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--double", action="store_true", help="steps in double precision")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="write a page too")
    given = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    lines = table(given.samples, given.double)
    for what, wall, processor in lines:
        print(f"{what:20s} {wall:8.1f} ms  {processor:8.1f} ms of processor")
    if given.out is not None:
        given.out.write_text(page(lines, given.samples, given.double), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
