"""Calibration of everything that decides by a p-value: levels on correct samplers, in the bulk and at 1e-10.

    python -m sgmcmc_verification.reports.pages.calibration [--quick] [--only NAME ...] [--out FILE.jsonl]

Three kinds of lines:

- `primitive`: p-values of a test of `checks.statistics` over fresh seeds, on i.i.d. samples of the right law.
- `check`: p-values of every outcome of a statistical statement over fresh seeds on a correct sampler, with fewer chains
  than `pytest checks` takes, and the decisions of the whole sequential procedure over the same seeds.
- `tail`: the level at 1e-10, by importance sampling or an exact finite law (`reports.pages.tail_calibration`).

Exact p-values are held to uniformity, bounds (Kolmogorov-Smirnov by Massart, a null with an allowance) to
super-uniformity, each by a Kolmogorov-Smirnov test with its exact law. Each case is a JSON line, appended to FILE as
soon as it is there; a run that is started again skips what FILE already has. A Markdown page and a figure of the same
name are written beside it.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import jax
import numpy as np
from scipy import stats
from tqdm import tqdm

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, Statement
from sgmcmc_verification.checks.end_points.error_rates import ALPHA, STAGES, decide_statistically
from sgmcmc_verification.checks.registry import STATEMENTS, find_statement
from sgmcmc_verification.checks.runner.execute import cached_target, versions
from sgmcmc_verification.checks.statistics.distribution import anderson_darling_test, ks_test, ks_two_sample_test
from sgmcmc_verification.checks.statistics.geweke import joint_test
from sgmcmc_verification.checks.statistics.ksd import stein_test
from sgmcmc_verification.checks.statistics.mmd import (
    fourier_frequencies,
    gaussian_moments,
    mmd_test,
    mmd_two_sample_test,
)
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.statistics.sbc import sbc_test
from sgmcmc_verification.checks.statistics.sequential import decide_sequentially
from sgmcmc_verification.checks.tiers.workload.trial import JOINT, LAW, LIMIT, MEAN
from sgmcmc_verification.reports.pages.tail_calibration import TAILS
from sgmcmc_verification.reports.records.jsonl import ROOT, appended, commit
from sgmcmc_verification.reports.records.results import read_renamed as read
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.samplers.topic_models.entries import WORKLOADS

PUBLISHED = ROOT / "reports" / "published" / "calibration.jsonl"
SEEDS, QUICK_SEEDS = 2000, 20
RUNS, QUICK_RUNS = 400, 20
"""Runs of an importance sampling estimate."""
CHAINS, QUICK_CHAINS = 512, 50
"""Chains of a statement in its first stage."""
GRID = np.arange(1, 100) / 100
"""Points at which the distribution function of the p-values is kept, for the figure."""
MANY = 16
"""Times as many chains, for tests of products of normals (kurtosis kappa = 6) in quarters of the chains, 140 at a time:
they work at z = 4, where p is off by exp(kappa z^4/(4 n)) (`moments.log_tail`)."""
FIRST = 20
"""Seeds from which it is told whether the p-values of a component are bounds."""
LEVELS = (0.01, 0.05)
"""Levels at which the rejections of whole checks are counted, besides their own."""
KINDS = {"primitive": "tests on i.i.d. samples", "check": "checks of correct samplers"}
"""Kinds of lines with p-values."""
FORMS = {  # colours of Okabe and Ito's palette
    "exact": ("#0072B2", "exact p-values: uniform"),
    "bound": ("#D55E00", "bounds: on or below the diagonal"),
}
"""Kinds of p-values, with colour and words of the figure."""
END_POINTS = ("end_point_moments", "end_point_ks", "end_point_anderson_darling", "end_point_mmd")
SUBJECTS: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("sgld", "gaussian-correlated-2d", (*END_POINTS, "float32_law", "gradient_noise_end_points", "bad_start"), 1),
    ("sgld", "gaussian-pytree", ("streams_independent",), MANY),
    ("sgld", "gaussian-standard", ("kernel_stein_discrepancy",), 1),
    ("sgld", "tiny-gaussian-data", ("minibatch_end_points",), 1),
    ("saga-ld", "tiny-gaussian-data", ("estimator_memory",), 1),
    (
        "mala",
        "double-well",
        ("end_point_moments", "end_point_ks", "chains_move", "law_of_runs", "law_of_steps", "law_of_several_steps"),
        1,
    ),
    ("sgld", "double-well", ("end_point_mmd", "step_size_limit", "separated_modes"), 1),
    ("lda/scir", "lda-tiny", (LAW,), 1),
    ("lda/sgrld", "lda-tiny", (LIMIT, MEAN), 1),
    ("lda/gibbs", "lda-tiny", (JOINT,), 1),
    ("sggmc", "vmf-s2", ("intrinsic_dimension", "closed_form_marginals", "riemannian_stein_discrepancy"), 1),
    ("svgd", "gaussian-correlated-2d", ("particle_rate",), 1),
    ("gibbs", "potts-3", ("law_of_states",), 1),
)
"""Sampler, target, the statements that are calibrated on them, and times as many chains.

Every statistical statement, on what is quickest to run.
"""


class Components(NamedTuple):
    """P-values of the components of a case over its seeds.

    Attributes:
        p: name -> p-values.
        bound: names of those that are bounds: super-uniform, not uniform.
    """

    p: dict[str, list[float]]
    bound: set[str]

    def add(self, outcome: Outcome) -> None:
        """Take one outcome; a Kolmogorov-Smirnov bound brings its exact p-value along."""
        p = self.p.setdefault(outcome.name, [])
        if len(p) < FIRST and self._bounded(outcome):
            self.bound.add(outcome.name)
        p.append(outcome.p)
        if outcome.unit == "KS distance" and outcome.allowance < 1e-6:
            one_sample = math.sqrt(math.log(4) / (2 * outcome.n))
            if math.isclose(outcome.threshold(0.5), outcome.allowance + one_sample):
                exact = float(stats.kstwo.sf(outcome.effect, outcome.n))
                self.p.setdefault(f"{outcome.name}, exact law of D", []).append(exact)

    @staticmethod
    def _bounded(outcome: Outcome) -> bool:
        """True for a Kolmogorov-Smirnov bound; for a null with an allowance, unless it is far below the noise, as the
        numerical error of a null law is; and for a z test of so few values that its p-values end above 0.001."""
        if outcome.unit == "KS distance" or not math.isfinite(outcome.detectable(1e-3, 0.5)):
            return True
        return outcome.allowance > 0 and outcome.allowance > 0.01 * outcome.threshold(0.5)


def summary(components: Components) -> list[dict[str, Any]]:
    """One record per component: the test of its p-values and their distribution function."""
    found = []
    for name, values in components.p.items():
        p = np.asarray(values)
        bound = name in components.bound
        test = stats.kstest(p, "uniform", alternative="greater" if bound else "two-sided", method="exact")
        found.append(
            {
                "name": name,
                "kind": "bound" if bound else "exact",
                "seeds": p.size,
                "distance": round(float(test.statistic), 5),
                "p_value": float(test.pvalue),
                "smallest": float(p.min()),
                "ecdf": [int(np.count_nonzero(p <= t)) for t in GRID],
            }
        )
    return found


# Primitives -----------------------------------------------------------------------------------------------------------

_MEAN, _COVARIANCE = np.array([0.5, -1.0]), np.array([[2.0, 0.9], [0.9, 1.0]])
_ROOT = np.linalg.cholesky(_COVARIANCE)
_FREQUENCIES = fourier_frequencies(11, 2, 2.0, count=4)
_EXACT = gaussian_moments(_FREQUENCIES, _MEAN, _COVARIANCE)
_LOCATIONS = np.array([[0.5, -1.0], [2.0, 0.0], [-1.0, -2.0]])


def _plane(rng: np.random.Generator, n: int) -> np.ndarray:
    return _MEAN + rng.normal(size=(n, 2)) @ _ROOT.T


def _stein(rng: np.random.Generator, n: int) -> Outcome:
    x = _plane(rng, n)
    return stein_test(x, -(x - _MEAN) @ np.linalg.inv(_COVARIANCE), _LOCATIONS)


def _prior(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=n)


def _data(rng: np.random.Generator, theta: np.ndarray) -> np.ndarray:
    return theta + rng.normal(size=theta.size)


def _posterior(rng: np.random.Generator, _theta: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y / 2 + rng.normal(size=y.size) / np.sqrt(2)


def _quantities(theta: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([theta, (y - theta) ** 2], axis=1)


def _draws(rng: np.random.Generator, theta: np.ndarray, y: np.ndarray, length: int) -> list[np.ndarray]:
    return [_posterior(rng, theta, y) for _ in range(length)]


PRIMITIVES: dict[str, Callable[[np.random.Generator], Sequence[Outcome]]] = {
    "mean_test": lambda rng: [
        mean_test(rng.normal(size=50), 0.0, name="normal f, n = 50", skewness=0.0),
        mean_test(rng.normal(size=1000) ** 2, 1.0, name="square of a normal, n = 1000"),
        mean_test(rng.exponential(size=1000), 1.0, name="exponential f, n = 1000"),
        mean_test(rng.normal(size=500) ** 3, 0.0, name="cube of a normal, n = 500"),
        mean_test(rng.normal(size=20_000) ** 3, 0.0, name="cube of a normal, n = 20000"),
        mean_test(rng.normal(size=500) ** 4, 3.0, name="fourth power of a normal, n = 500"),
        mean_test(rng.normal(size=20_000) ** 4, 3.0, name="fourth power of a normal, n = 20000"),
        mean_test(rng.normal(0.1, 1.0, 1000), 0.0, name="an error of the allowance, n = 1000", allowance=0.1),
    ],
    "ks_test": lambda rng: [ks_test(rng.random(500), name="n = 500")],
    "ks_two_sample_test": lambda rng: [
        ks_two_sample_test(rng.normal(size=300), rng.normal(size=300), name="two-sample, n = m = 300"),
        ks_two_sample_test(rng.normal(size=200), rng.normal(size=800), name="two-sample, n = 200, m = 800"),
    ],
    "anderson_darling_test": lambda rng: [anderson_darling_test(rng.random(500), name="n = 500")],
    "mmd_test": lambda rng: [
        mmd_test(_plane(rng, 500), _FREQUENCIES, *_EXACT, name="exact covariance, n = 500"),
        mmd_test(_plane(rng, 500), _FREQUENCIES, _EXACT[0], name="covariance of the sample, n = 500"),
        mmd_two_sample_test(_plane(rng, 300), _plane(rng, 500), _FREQUENCIES, name="two-sample, n = 300, m = 500"),
    ],
    "stein_test": lambda rng: [_stein(rng, 500)],
    "joint_test": lambda rng: joint_test(
        _prior, _data, _posterior, _quantities, seed=int(rng.integers(1 << 32)), replicates=200
    ),
    "sbc_test": lambda rng: sbc_test(
        _prior, _data, _draws, _quantities, seed=int(rng.integers(1 << 32)), replicates=200, length=7
    ),
}
"""Name -> outcomes of one fresh sample of the right law."""


def primitive(name: str, seeds: int) -> dict[str, Any]:
    """Line of a primitive."""
    components = Components({}, set())
    for seed in range(seeds):
        for outcome in PRIMITIVES[name](np.random.default_rng([seed, *name.encode()])):
            components.add(outcome)
    return {"kind": "primitive", "case": name, "components": summary(components)}


# Checks ---------------------------------------------------------------------------------------------------------------


Run = Callable[[int, int], Sequence[Outcome]]
"""Stage and number of chains -> outcomes."""


class _Captured(Exception):
    """Carries the `run` of a statement out of it."""


@contextmanager
def _capturing(caught: list[dict[str, Any]]) -> Iterator[None]:
    """Within, `decide_statistically` raises `_Captured` in place of deciding, with its arguments in `caught`."""

    def capture(run: Run, **options: Any) -> NoReturn:
        caught.append({"run": run, **options})
        raise _Captured

    modules = [
        m for m in list(sys.modules.values()) if getattr(m, "decide_statistically", None) is decide_statistically
    ]
    modules = [m for m in modules if m.__name__ != __name__]
    for module in modules:
        module.decide_statistically = capture  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module.decide_statistically = decide_statistically  # type: ignore[attr-defined]


def run_of(statement: Statement, subject: Subject, target: str) -> dict[str, Any]:
    """Arguments that a statement hands to `decide_statistically`: `run` (stage, n) -> outcomes, and the options.

    Raises:
        NotApplicable, Inconclusive: as the statement.
        LookupError: the statement decides without p-values.
    """
    caught: list[dict[str, Any]] = []
    with _capturing(caught):
        try:
            statement(Case(subject, cached_target(target)), 0)
        except _Captured:
            return caught[0]
    raise LookupError(f"{statement.name} decides without p-values")


def checked(
    statements: Sequence[Statement], subject: Subject, target: str, seeds: int, chains: int
) -> Iterator[dict[str, Any]]:
    """Lines of some statements about a correct sampler: their outcomes and their decisions over fresh seeds.

    The statements take turns, seed by seed: those that look at the same end points draw them once.
    """
    runs = []
    for statement in statements:
        try:
            runs.append((statement, run_of(statement, subject, target), Components({}, set()), []))
        except (NotApplicable, Inconclusive, LookupError) as reason:
            yield {**_head(statement, subject, target), "reason": str(reason)}
    seconds = [0.0] * len(runs)
    for seed in tqdm(range(seeds), unit="seed", disable=not sys.stderr.isatty(), leave=False, mininterval=1.0):
        for number, (_, captured, components, decisions) in enumerate(runs):
            began = time.perf_counter()
            first: list[Outcome] = []

            def stage_of(
                stage: int, n: int, run: Run = captured["run"], seed: int = seed, first: list[Outcome] = first
            ) -> Sequence[Outcome]:
                outcomes = run(seed * STAGES + stage, n)  # every stage has a seed of its own
                first.extend(outcomes if stage == 0 else ())
                return outcomes

            decision = decide_sequentially(stage_of, captured.get("alpha", ALPHA), chains, STAGES)
            decisions.append((decision.rejected, min(1.0, len(first) * min(o.p for o in first))))
            for outcome in first:
                components.add(outcome)
            seconds[number] += time.perf_counter() - began
    for number, (statement, captured, components, decisions) in enumerate(runs):
        rejected = sum(r for r, _ in decisions)
        yield {
            **_head(statement, subject, target),
            "chains": chains,
            "alpha": captured.get("alpha", ALPHA),
            "runs": seeds,
            "false_alarms": rejected,
            "upper": upper_bound(rejected, seeds),
            "below": {str(level): sum(q <= level for _, q in decisions) for level in LEVELS},
            "components": summary(components),
            "versions": versions(subject),
            "seconds": round(seconds[number], 1),
        }


def _head(statement: Statement, subject: Subject, target: str) -> dict[str, Any]:
    return {
        "kind": "check",
        "case": f"{statement.name} {subject.name} {target}",
        "statement": statement.name,
        "tier": statement.tier,
        "sampler": subject.name,
        "target": target,
    }


def upper_bound(count: int, runs: int, confidence: float = 0.95) -> float:
    """One-sided upper confidence bound of a rate (Clopper and Pearson)."""
    return 1.0 if count == runs else float(stats.beta.ppf(confidence, count + 1, runs - count))


# The command ----------------------------------------------------------------------------------------------------------


def tail(name: str, runs: int) -> dict[str, Any]:
    """Line of a tail."""
    found = TAILS[name](runs)
    return {
        "kind": "tail",
        "case": name,
        "runs": runs if found.error else None,
        **found._asdict(),
        "ratio": found.ratio,
    }


def produce(done: set[tuple[str, str]], quick: bool, only: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Lines that are not done yet, the cheap ones first; `only` keeps the cases that contain one of its names."""
    seeds, runs = (QUICK_SEEDS, QUICK_RUNS) if quick else (SEEDS, RUNS)

    def wanted(kind: str, case: str) -> bool:
        return (kind, case) not in done and (not only or any(name in case for name in only))

    yield from (primitive(name, seeds) for name in PRIMITIVES if wanted("primitive", name))
    yield from (tail(name, runs) for name in TAILS if wanted("tail", name))
    rows = {row.name: row for row in (*SAMPLERS, *WORKLOADS)}
    for sampler, target, names, times in SUBJECTS:
        subject = Subject(rows[sampler])
        statements = map(find_statement, names[:1] if quick else names)
        left = [each for each in statements if wanted("check", _head(each, subject, target)["case"])]
        yield from checked(left, subject, target, seeds, times * (QUICK_CHAINS if quick else CHAINS))


def run(path: Path, quick: bool, only: Sequence[str] = ()) -> None:
    """Run what the file lacks, appending each line as it is done."""
    lines = read(path)
    done = {(line["kind"], line["case"]) for line in lines}
    revision = commit()
    with appended(path) as append:
        progress = tqdm(unit="case", disable=not sys.stderr.isatty(), mininterval=1.0)
        began = time.perf_counter()
        for line in produce(done, quick, only):
            line = {"seconds": round(time.perf_counter() - began, 1), **line, "quick": quick, "commit": revision}
            append(json.dumps(line, sort_keys=True))
            progress.update()
            began = time.perf_counter()


# The page -------------------------------------------------------------------------------------------------------------


def page(lines: Sequence[dict[str, Any]], figure: str) -> str:
    """Markdown page of a file of results."""
    checks = [line for line in lines if line["kind"] == "check" and "runs" in line]
    done = {line["statement"] for line in checks}
    return render(
        "calibration.md.j2",
        lines=lines,
        figure=figure,
        groups={words: components_of(lines, kind) for kind, words in KINDS.items()},
        checks=checks,
        missing=[s.name for s in STATEMENTS if s.samples and s.name not in done],
        tails=[line for line in lines if line["kind"] == "tail"],
        levels=LEVELS,
        worst=worst,
        upper_bound=upper_bound,
    )


def components_of(lines: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Components of all lines of a kind."""
    return [c for line in lines if line["kind"] == kind for c in line.get("components", ())]


def worst(components: Sequence[dict[str, Any]], form: str) -> str:
    """Smallest p-value of the tests of the exact p-values, or of the bounds, times their number; empty if none."""
    mine = [c["p_value"] for c in components if c["kind"] == form]
    return f"{len(mine) * min(mine):.2g}" if mine else ""


def draw(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the distribution functions of the p-values minus the uniform one, and the band that they stay in."""
    from matplotlib.figure import Figure  # here: nothing else needs it, and it takes its time

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, (kind, title) in enumerate(KINDS.items()):
        components = components_of(lines, kind)
        for row, (form, (colour, words)) in enumerate(FORMS.items()):
            mine = [c for c in components if c["kind"] == form]
            _draw_deviations(axes[row, column], mine, colour, two_sided=form == "exact")
            axes[row, column].set_title(f"{title}\n{words} ({len(mine)} curves)", fontsize=9)
        axes[1, column].set_xlabel("p")
    for axis in axes[:, 0]:
        axis.set_ylabel("share of p-values ≤ p, minus p")
    figure.savefig(path, dpi=130)


def _draw_deviations(axis: Any, components: Sequence[dict[str, Any]], colour: str, two_sided: bool) -> None:
    """Draw a curve per component, and the band of Kolmogorov and Smirnov at 1% for all of them together."""
    for c in components:
        axis.plot(GRID, np.array(c["ecdf"]) / c["seeds"] - GRID, color=colour, lw=0.7, alpha=0.5)
    axis.axhline(0, color="black", lw=0.8)
    if components:
        band = float(stats.kstwo.isf(0.01 / len(components), min(c["seeds"] for c in components)))
        for height in (band, -band) if two_sided else (band,):
            axis.axhline(height, color="black", lw=0.8, ls="--")
    axis.set_xlim(0, 1)
    axis.grid(alpha=0.3)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.calibration",
        description="p-values of all statistical tests and checks on correct samplers.",
    )
    parser.add_argument("--quick", action="store_true", help="a few seeds, one sampler a check: to see that it runs")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="cases with this in their name; repeatable"
    )
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    if given.out.suffix != ".jsonl":
        parser.error(f"--out {given.out}: the name must end in .jsonl; the page and the figure are written beside it")
    if given.quick and given.out == PUBLISHED:
        parser.error("--quick: give --out FILE.jsonl as well; a quick run is not to be published")
    jax.config.update("jax_enable_x64", True)
    run(given.out, given.quick, given.only)
    lines, figure = read(given.out), given.out.with_suffix(".png")
    draw(lines, figure)
    text = page(lines, figure.name)
    given.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(f"{given.out.with_suffix('.md')}: {len(lines)} cases")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
