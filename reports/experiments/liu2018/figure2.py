"""Figure 2 of the RSVGD paper, reduced: topics on spheres by RSVGD, GMC and SGGMC, by epoch and by particles.

    python -m sgmcmc_verification.reports.experiments.liu2018.figure2 [--quick] [--resume] [--out FOLDER]

Log-perplexity of 20News-different. An epoch is a visit to all documents. Every cell is a JSON line in
FOLDER/liu2018-figure2.jsonl; `--resume` skips what the file has. Needs the data
(`targets.datasets.newsgroups_different`).

Source: liu2018riemannian, section 5.2 and figure 2; settings of the released programs, but for those that the page
names.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sgmcmc_verification.reports.experiments.common import sam
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, results
from sgmcmc_verification.reports.experiments.liu2016.figure5a import STEP
from sgmcmc_verification.samplers.particles.rsvgd_embedded import EmbeddedRSVGD
from sgmcmc_verification.samplers.topic_models.sam.methods import build
from sgmcmc_verification.samplers.topic_models.sam.particles import ParticleTopics
from sgmcmc_verification.samplers.topic_models.sam.weights import WeightSettings
from sgmcmc_verification.targets.topic_models.sam.perplexity import LogPerplexity

NAME = "liu2018-figure2"
COUNTS = (2, 4, 8)
"""Sets of topics that a perplexity is of."""
EPOCHS, EVERY, QUICK = 40, 2, 1
WEIGHTS = WeightSettings(15, 10)
RSVGD_STEP = 5e-7
BATCH = 50
METHODS = ("RSVGD", "GMC-seq", "GMC-par", "SGGMCf-seq", "SGGMCf-par", "SGGMCb-seq")
COLOURS = {"RSVGD": "#0072B2", "GMC": "#009E73", "SGGMCf": "#D55E00", "SGGMCb": "#E69F00"}


@dataclass(frozen=True)
class Cell(Keyed):
    """A method; `particles` sets of topics of RSVGD, or chains of a parallel method, or samples of a sequential one."""

    method: str
    particles: int
    epochs: int
    seed: int = 0


def chain_of(cell: Cell) -> Any:
    """The method on the documents of `sam.problem`."""
    model, train, _ = sam.problem()
    D = train.rows.size
    options: dict[str, Any] = {"weights": WEIGHTS}
    if cell.method == "RSVGD":
        sampler: Any = EmbeddedRSVGD(model.manifold)
        return ParticleTopics(
            model,
            sampler,
            train.rows,
            D,
            RSVGD_STEP,
            num_steps=1,
            dtype=np.float32,
            particles=cell.particles,
            **options,
        )
    if cell.method.startswith("GMC"):
        return build("gmc-apprmh", model, train.rows, **options)
    name = "sggmc-full" if cell.method.startswith("SGGMCf") else "sggmc"
    if name == "sggmc":
        options["batch_size"] = BATCH
    return build(name, model, train.rows, step_size=STEP[0], decay=STEP[1], dtype=np.float32, **options)


def measured(cell: Cell) -> dict[str, Any]:
    """Log-perplexities by epoch, of each number of sets of topics in COUNTS that there are."""
    model, _, test = sam.problem()
    chain, generator = chain_of(cell), np.random.default_rng(cell.seed)
    perplexity = LogPerplexity(model, test.rows, np.random.default_rng(1), sam.DRAWS)
    parallel = cell.method.endswith("par")
    if parallel:
        state = chain.init(generator, np.stack([model.start(generator) for _ in range(cell.particles)]))
    else:
        state = chain.start(generator)
    counts = [cell.particles] if cell.method == "RSVGD" else [n for n in COUNTS if n <= cell.particles]
    kept: deque[np.ndarray] = deque(maxlen=cell.particles)
    epochs, values, each = [], {n: [] for n in counts}, chain.batch_size / chain.size
    number = 0

    def evaluate():
        sets = np.array(kept) if cell.method.endswith("seq") else chain.topics(state)
        epochs.append(round(number * each, 6))
        for n in counts:
            values[n].append(perplexity.alone(sets[-n:]).value)

    kept.append(chain.topics(state)[0])
    evaluate()
    for end in range(EVERY, cell.epochs + 1, EVERY):
        while number * each < end - 1e-9:
            state = chain.sample(generator, state, number)
            number += 1
            kept.append(chain.topics(state)[0])
        evaluate()
    return {"epochs": epochs, "log_perplexity": {str(n): v for n, v in values.items()}}


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    most = COUNTS[-1]
    if quick:
        return [Cell(m, COUNTS[0], QUICK * EVERY) for m in ("RSVGD", "GMC-par", "SGGMCb-seq")]
    return [Cell(m, most, EPOCHS) for m in METHODS] + [Cell("RSVGD", n, EPOCHS) for n in COUNTS[:-1]]


# The page ----------------------------------------------------------------------------------------------------------


def curves(lines: Lines, quick: bool) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]:
    """(method, sets of topics) -> (epochs, log-perplexities)."""
    found = {}
    for cell, result in results(lines, plan(quick)).items():
        for n, values in result["log_perplexity"].items():
            found[cell.method, int(n)] = np.array(result["epochs"]), np.array(values)
    return found


def claims(found: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]], most: int) -> list[str]:
    """The paper's claims beside what was measured, rows of a table."""
    end = lambda method, n: float(found[method, n][1][-1])
    verdict = lambda yes: "as in the paper" if yes else "not so"
    others = {m: end(m, most) for m in METHODS[1:] if (m, most) in found}
    best = min(others, key=lambda m: others[m])
    ours = end("RSVGD", most)
    rows = [
        f"| RSVGD makes the most progress by epoch | at the end {ours:.0f}, the best other ({best}) {others[best]:.0f} "
        f"| {verdict(ours < others[best])} |"
    ]
    for name in ("GMC", "SGGMCf"):
        pair = [others.get(f"{name}-{how}") for how in ("seq", "par")]
        if None not in pair:
            rows.append(f"| -seq and -par of {name} behave alike | at the end {pair[0]:.0f} and {pair[1]:.0f} | – |")
    if len(COUNTS) > 1 and ("RSVGD", COUNTS[0]) in found and most != COUNTS[0]:
        gain = lambda m: end(m, COUNTS[0]) - end(m, most)
        rows.append(
            f"| more particles help RSVGD more than the chains | from {COUNTS[0]} to {most} lower by: RSVGD "
            f"{gain('RSVGD'):.1f}, {best} {gain(best):.1f} | {verdict(gain('RSVGD') > gain(best))} |"
        )
    return rows


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found = curves(lines, quick)
    most = max(n for _, n in found)
    counts = sorted({n for _, n in found})
    number = lambda m, n: f"{found[m, n][1][-1]:.1f}" if (m, n) in found else "–"
    rows = [
        f"| {m} | {found[m, most][0][-1]:.0f} | " + " | ".join(number(m, n) for n in counts) + " |"
        for m in METHODS
        if (m, most) in found
    ]
    return experiment_page(
        NAME,
        lines,
        epochs=EPOCHS,
        most=most,
        claims=claims(found, most),
        counts=" | ".join(f"{n} sets" for n in counts),
        num_counts="---|" * len(counts),
        rows=rows,
        draws=sam.DRAWS,
        rsvgd_step=f"{RSVGD_STEP:g}",
        first_step=f"{STEP[0]:g}",
        second_step=f"{STEP[1]:g}",
        batch=BATCH,
        burn_in=WEIGHTS.burn_in,
        kept=WEIGHTS.kept,
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Left by epoch, right at the end by number of sets of topics."""
    found = curves(lines, quick)
    most = max(n for _, n in found)
    figure, axes = new_figure(1, 2, (11, 4.4))
    for method in METHODS:
        if (method, most) not in found:
            continue
        name = method.split("-")[0]
        style = {
            "color": COLOURS[name],
            "ls": "--" if method.endswith("seq") else "-",
            "lw": 3.5 if name == "GMC" else 1.6,  # else hidden by SGGMCf
        }
        epochs, values = found[method, most]
        axes[0, 0].plot(epochs, values, marker="o" if name == "RSVGD" else None, ms=3, label=method, **style)
        counts = sorted(n for m, n in found if m == method)
        ends = [found[method, n][1][-1] for n in counts]
        axes[0, 1].plot(counts, ends, marker="o", ms=4, label=method, **style)
    axes[0, 0].set_xlabel("epoch")
    axes[0, 0].set_ylabel("log-perplexity, per document")
    axes[0, 0].set_title(f"(a) {most} sets of topics", fontsize=10)
    axes[0, 1].set_xticks(sorted({n for _, n in found}))
    axes[0, 1].set_xlabel("sets of topics")
    axes[0, 1].set_title("(b) at the end", fontsize=10)
    for axis in axes[0]:
        axis.grid(alpha=0.25, lw=0.4)
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
