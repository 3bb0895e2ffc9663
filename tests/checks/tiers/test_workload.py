"""The tier `workload`: what it runs, kernels whose bugs `test_defects` does not meet, and that blunt runs say so."""

from functools import cache

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.registry import STATEMENTS, find_statement
from sgmcmc_verification.checks.runner.execute import execute, run_check
from sgmcmc_verification.checks.runner.plan import make_plan
from sgmcmc_verification.checks.tiers.workload.trial import JOINT, LAW, LIMIT, MEAN, Moments, Trial, trials, trials_of
from sgmcmc_verification.samplers.entry import TIERS, WORKLOAD
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.samplers.topic_models.entries import WORKLOADS

FRACTION = 0.3
"""Of the chains: these are correct kernels, and the promises widen accordingly."""
FEWER = {"sam/gmc-bgibbs": 0.1}
"""Of a kernel that runs in Python for each document."""

SHARED = {("lda/gibbs", LAW), ("lda/gibbs", JOINT), ("lda/collapsed", JOINT), ("lda/scir", LAW), ("dp/gibbs", LAW)}
SHARED |= {
    ("dp/scir", LAW),
    ("lda/sgrld", MEAN),
    ("dp/scir-batch", MEAN),
    ("dp/sgrld-batch", MEAN),
    ("sam/sggmc", MEAN),
}
"""Checks that the planted bugs share with a kernel: test_faults.py runs them."""


@cache
def plan():
    """Of all kernels; it enumerates their posteriors."""
    return make_plan(tiers=[WORKLOAD])


@pytest.mark.parametrize("name", [pytest.param(r.name, marks=pytest.mark.xdist_group(r.name)) for r in WORKLOADS])
def test_a_correct_kernel_passes(name):
    """On its first posterior, at its defaults."""
    mine = [c for c in plan().cases if c.subject.row.name == name and not c.subject.options]
    for case in mine:
        if case.target != case.subject.row.targets[0] or (name, case.statement.name) in SHARED:
            continue
        with fraction_of_chains(FEWER.get(name, FRACTION)):
            result = execute(case.statement, case.subject, case.target, 1)
        assert result.verdict == "pass", f"{case.statement.name}: {result.reason}"
        assert result.allowance_source
        assert result.detectable is not None


def test_the_tier_alone_is_all_kernels_and_an_ordinary_sampler_does_not_notice_it(monkeypatch):
    """With one statement for ordinary samplers: who is planned does not depend on how many there are."""
    few = [s for s in STATEMENTS if s.tier == WORKLOAD or s.name == "pack_unpack_inverse"]
    monkeypatch.setattr("sgmcmc_verification.checks.runner.plan.STATEMENTS", few)
    kernels = tuple(row.name for row in WORKLOADS)
    assert plan().rows == kernels
    everything = make_plan(tiers=["all"])
    assert everything.rows == (*(row.name for row in SAMPLERS), *kernels)
    one = make_plan(["sgld"], tiers=["all"])
    assert WORKLOAD not in one.tiers
    assert one.tiers == tuple(t for t in TIERS if t != WORKLOAD)
    assert {case.statement.tier for case in make_plan(["lda/sgrld"], tiers=["all"]).cases} == {WORKLOAD}
    assert make_plan(tiers=["deterministic"]).rows == tuple(row.name for row in SAMPLERS)


def test_every_kernel_has_a_check_of_its_law_and_every_check_a_kernel():
    found: dict[str, set[str]] = {}
    for case in plan().cases:
        found.setdefault(case.subject.row.name, set()).add(case.statement.name)
    assert all(names & {LAW, LIMIT} for names in found.values())
    assert set.union(*found.values()) == {LAW, LIMIT, MEAN, JOINT}


def test_a_result_names_numbers_and_reproduces_itself():
    result = run_check("dp/gibbs", LAW, "dp-tiny-fixed", seed=4, chains=0.05)
    assert (result.unit, result.n, result.step_size) == ("probability", 150, 1.0)
    assert result.reproduction is not None
    assert "--sampler dp/gibbs --target dp-tiny-fixed --tier workload --seed 4 --chains 0.05" in result.reproduction
    assert run_check("dp/gibbs", LAW, "dp-tiny-fixed", seed=4, chains=0.05).effect == result.effect


def test_a_kernel_that_is_too_blunt_for_its_promise_is_inconclusive():
    class Blunt:
        backend = "host"

    @trials.register
    def blunt_trials(kernel: Blunt, step_size: float) -> dict[str, Trial]:
        del kernel, step_size
        real = trials_of(WORKLOADS[0].build(None), 1.0)[LAW]
        return {LAW: Trial(real.run, 500, 1e-3, real.unit, real.source, real.steps)}

    row = type(WORKLOADS[0])("blunt", lambda posterior: Blunt(), (WORKLOAD,), targets=("lda-tiny",))
    result = execute(find_statement(LAW), Subject(row), "lda-tiny", 2)
    assert result.verdict == "inconclusive"
    assert "could be seen" in result.reason


def test_moments_that_are_off_by_more_than_their_error_are_refused():
    values = np.random.default_rng(3).standard_normal((4000, 1)) + 0.2
    exact = lambda error: Moments(["x"], np.zeros(1), np.ones(1), np.array([error])).law(values)[0]
    assert exact(0.0).rejects(1e-10)
    assert not exact(0.2).rejects(1e-2)
