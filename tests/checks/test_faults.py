"""Every planted bug is caught by the check that it names, and the correct sampler that it is derived from passes it."""

import math
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.checks.core.obligations import GAUSSIAN, LINE
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.faults.fault import CLASSES
from sgmcmc_verification.checks.faults.registry import DEFECTS
from sgmcmc_verification.checks.registry import CHECKS, STATEMENTS, find_statement
from sgmcmc_verification.checks.runner import fallback
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.invariance import law_of_runs
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.reports.pages import kill_matrix
from sgmcmc_verification.samplers.dynamics.complete_recipe import fokker_planck_residual
from sgmcmc_verification.samplers.dynamics.published import RECIPE_OFFSET
from sgmcmc_verification.samplers.entry import DETERMINISTIC_TIERS, SAMPLED_TIERS, WORKLOAD
from sgmcmc_verification.samplers.interface.claims import ExactLaw
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.samplers.riemannian.metrics import RecipeMetric
from sgmcmc_verification.samplers.topic_models.entries import WORKLOADS
from sgmcmc_verification.targets.registry import target

SEED = 20
FRACTIONS = {"geometry": 0.05, WORKLOAD: 0.3, "invariance": 0.2, "noise": 0.2, "convergence": 0.2}
"""Of the chains of tiers with random numbers: the planted bugs are large."""
NAMES = [defect.name for defect in DEFECTS]


@cache
def reference(base: str, options: tuple) -> Subject:
    """One subject for all checks of a reference sampler, which trace and compile it once then."""
    return Subject(find_row(base), dict(options))


@cache
def reference_verdict(base: str, options: tuple, check: str, name: str):
    """Verdict, reason and smallest effect that a check would have caught, on a reference sampler."""
    with fraction_of_chains(FRACTIONS.get(find_statement(check).tier, 1.0)):
        result = execute(find_statement(check), reference(base, options), name, SEED)
    return result.verdict, result.reason, result.detectable


def of_reference(defect, check: str):
    """`reference_verdict` at the options of the kill."""
    options = tuple(sorted(defect.killed_by.options.items()))
    return reference_verdict(defect.base, options, check, defect.killed_by.target)


# One group a pair of check and reference sampler: the reference then runs once on each worker of `--dist loadgroup`.
CASES = [pytest.param(d, id=d.name, marks=pytest.mark.xdist_group(f"{d.killed_by.check}-{d.base}")) for d in DEFECTS]


@pytest.fixture
def undiagnosed(monkeypatch):
    """A verdict stands without its diagnosis, which takes half of the time."""
    for name in ("read", "diagnose", "read_order"):
        monkeypatch.setattr(f"sgmcmc_verification.checks.runner.execute.{name}", lambda *_: None)


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("defect", CASES)
def test_planted_bug_fails_the_named_check_that_its_reference_passes(defect):
    kill = defect.killed_by
    with fraction_of_chains(FRACTIONS.get(find_statement(kill.check).tier, 1.0)):
        result = execute(find_statement(kill.check), defect.subject, kill.target, SEED)
    assert result.verdict == "fail", f"{result.verdict}: {result.reason}"
    verdict, reason, detectable = of_reference(defect, kill.check)
    if verdict == "out-of-reach" and ExactLaw in find_row(defect.base).build(target(kill.target)).claims:
        # An accept step has no smooth law under the noise tape; a bug that removes it has one.
        verdict, reason, detectable = of_reference(defect, "detailed_balance")
    assert verdict == "pass", f"the reference {defect.base}: {verdict}: {reason}"
    if find_statement(kill.check).tier in SAMPLED_TIERS:
        assert detectable is not None


def test_catalogue_has_distinct_rows_that_name_things_that_exist():
    assert len(set(NAMES)) == len(NAMES) >= 60
    references = {row.name for row in (*SAMPLERS, *WORKLOADS)}
    assert not references & set(NAMES)
    for defect in DEFECTS:
        # no reference sampler moves a part of its position: the right one stands beside the bugs
        assert defect.base in references or find_row(defect.base).foreign
        assert find_target(defect.killed_by.target).name == defect.killed_by.target
        assert find_statement(defect.killed_by.check).tier in defect.row.tiers
        assert defect.row.name == defect.name
        assert defect.error
        assert defect.killed_by.equation


def test_every_class_that_hides_bugs_has_a_planted_bug_and_no_row_has_an_unknown_class():
    assert {name for defect in DEFECTS for name in defect.classes} == set(CLASSES)
    assert all(defect.classes for defect in DEFECTS)


def test_every_deterministic_check_is_the_named_killer_of_a_planted_bug():
    deterministic = {check.name for check in STATEMENTS if check.tier in DETERMINISTIC_TIERS}
    assert deterministic - {defect.killed_by.check for defect in DEFECTS} == set()


def test_the_plan_of_a_run_contains_every_named_kill():
    for defect in DEFECTS:
        kill = defect.killed_by
        sampled = [*fallback.TARGETS[LINE], *fallback.TARGETS[GAUSSIAN]] if kill.check == law_of_runs.name else ()
        assert kill.target in (*find_statement(kill.check).applies_to(defect.subject), *sampled), defect.name


@pytest.mark.parametrize(("name", "power"), [("sgrld-naive", 1.0), ("sgrhmc-naive", 0.5)])
def test_naive_riemannian_sampler_has_its_exact_wrong_law(name, power):
    """exp(-U) G for SGRLD without Gamma, exp(-U) G^1/2 for SGRHMC without div B: residual zero, and not for exp(-U)."""
    law = target("double-well")
    metric = RecipeMetric(law, offset=RECIPE_OFFSET)
    hamiltonian = step_map(next(d for d in DEFECTS if d.name == name).subject, law).sampler.dynamics(law)
    log_g = lambda z: -jnp.log(metric.factor(z[:1]))
    wrong = lambda z: hamiltonian.H(z) - power * log_g(z)
    naive = lambda z: hamiltonian.drift(z) - hamiltonian.gamma(z)
    points = np.random.default_rng(0).normal(size=(5, hamiltonian.dim))
    residual = lambda H: max(
        abs(float(fokker_planck_residual(naive, hamiltonian.D, H, jnp.asarray(z)))) for z in points
    )
    # terms are of size 10 to 100
    assert residual(wrong) < 1e5 * np.finfo(float).eps
    assert residual(hamiltonian.H) > 1e-2


def test_naive_sghmc_gains_energy_at_the_predicted_rate():
    """With gradient noise V, E H grows by h^2 tr V / 2 / (1 - h^2 lambda / 4) a step in the long run."""
    law = target("gaussian-1d-scaled")
    defect = next(d for d in DEFECTS if d.name == "sghmc-naive")
    step, h = step_map(defect.subject, law), defect.subject.step_size(law)
    curvature = float(law.gaussian.precision[0, 0])
    variance = float(defect.row.estimator(law).covariance[0, 0])
    (affine,) = step.affine(h)
    second, steps = np.zeros((2, 2)), 4000
    energies = []
    for _ in range(steps):
        second = affine.matrix @ second @ affine.matrix.T + affine.noise @ affine.noise.T
        energies.append(0.5 * (curvature * second[0, 0] + second[1, 1]))
    predicted = h**2 * variance / 2 / (1 - h**2 * curvature / 4)
    # the energy oscillates by a bounded amount of one period's gain: the mean slope has an error of 1 / steps
    period = 2 * math.pi / (h * math.sqrt(curvature))
    assert energies[-1] / steps == pytest.approx(predicted, rel=2 * period / steps)


PUBLISHED = Path(__file__).resolve().parents[2] / "reports" / "published" / "kill-matrix.jsonl"


@pytest.mark.release
def test_published_kill_matrix_has_every_row_of_the_registry_and_its_kill():
    lines = kill_matrix.read(PUBLISHED)
    kills = {(r["sampler"].split("[")[0], r["statement"], r["target"]) for r in lines if r["verdict"] == "fail"}
    named = {(d.name, d.killed_by.check, d.killed_by.target) for d in DEFECTS}
    assert named - kills == set()
    assert all(r["detail"]["commit"] for r in lines)


def test_kill_matrix_resumes_and_counts_a_kill_only_for_the_verdict_fail(tmp_path, monkeypatch):
    defect, other = DEFECTS[0], DEFECTS[1]
    runs = []

    def planned(case, revision, fraction):
        runs.append(case.key)
        named = case.statement.name == defect.killed_by.check and case.defect is defect
        verdict = "fail" if named else "inconclusive"
        detail = {"commit": revision, "defect": case.defect.name}
        names = case.statement.name, "family", case.statement.tier
        return Result(*names, "", case.subject.name, verdict, "", case.target, seconds=1.0, detail=detail)

    monkeypatch.setattr(kill_matrix, "decide", planned)
    path = tmp_path / "matrix.jsonl"
    kill_matrix.run([defect, other], path, quick=True, first=False)
    everything, lines = list(runs), path.read_text(encoding="utf-8").splitlines()
    assert len(set(everything)) == len(everything) == len(lines)
    # an interruption in the middle of a line: that line, and what came after it, is run again
    path.write_text("\n".join([*lines[:3], lines[3][:20]]), encoding="utf-8")
    runs.clear()
    kill_matrix.run([defect, other], path, quick=True, first=False)
    assert runs == everything[3:]
    text = kill_matrix.page(kill_matrix.read(path), [defect, other])
    assert "**Killed: 1 of 2.**" in text
    assert f"Survivors: `{other.name}`" in text


@pytest.mark.release
def test_every_check_kills_two_bugs_alone_or_says_why_it_stands():
    lines = kill_matrix.read(kill_matrix.PUBLISHED)
    tried = [bug for bug in kill_matrix.by_defect(lines, DEFECTS) if bug.lines]
    alone = {check: kill_matrix.count(tried, "check", check.name).alone for check in CHECKS}
    assert {c.name: n for c, n in alone.items() if bool(c.stands) != (n < kill_matrix.ALONE)} == {}
