"""Sampling fills in what the deterministic statements leave open, and nothing else is sampled."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.accept_step import potential_decides
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.conclusion import Judged, Plan, conclude
from sgmcmc_verification.checks.core.lookup import DEFAULT_TARGETS
from sgmcmc_verification.checks.core.obligations import OBLIGATIONS, obligation
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.core.selection import BANANA
from sgmcmc_verification.checks.runner import fallback
from sgmcmc_verification.checks.runner.due import due
from sgmcmc_verification.checks.runner.fallback import TARGETS, pending, sample
from sgmcmc_verification.checks.tiers.invariance import law_of_runs
from sgmcmc_verification.checks.tiers.invariance.law_of_steps import UNKNOWN
from sgmcmc_verification.samplers.estimators.basic import Exact, Minibatch
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import MALA, Langevin, normal, potential, subject

SGLD, HMC = Subject(sampler_row("sgld")), Subject(sampler_row("hmc"))
DUE = tuple(o.name for o in due(SGLD))


def judged(verdict="pass", decides="law", name="gaussian_limit", meets=(), **facts):
    line = Result(name, "a_check", "law", "an equation", "sgld", verdict, "because", decides=decides, meets=list(meets))
    return Judged(dataclasses.replace(line, **facts), verdict)


def without(*names):
    """Results that meet all but these obligations, and their plan."""
    return [judged(meets=[n for n in DUE if n not in names])], Plan(1, DUE, order=1)


def test_nothing_is_sampled_where_the_law_is_decided():
    results, plan = without()
    assert conclude("sgld", results, plan).law == "holds"
    assert pending(SGLD, results, plan) == []


def test_trees_are_sampled_on_one_that_has_matrices_and_leaves_of_equal_shape():
    """Rows that share their noise show in a matrix alone."""
    results, plan = without("pytree")
    ((_, name),) = pending(SGLD, results, plan)
    shapes = [leaf.shape for leaf in jax.tree.leaves(target(name).example)]
    assert any(len(shape) > 1 for shape in shapes)
    assert len(set(shapes)) < len(shapes)


@pytest.mark.parametrize(
    "other",
    [
        judged("fail", "law", "other"),
        judged("fail", "premise", "closed_state"),
        judged("error", "law", "other"),
        judged("error", "conduct", "other"),
    ],
    ids=lambda j: f"{j.result.decides} {j.kind}",
)
def test_nothing_is_sampled_where_a_law_is_violated_a_premise_fails_or_something_raises(other):
    results, plan = without("plane")
    assert pending(SGLD, results, plan)
    assert pending(SGLD, [*results, other], dataclasses.replace(plan, cases=2)) == []


def test_nothing_is_sampled_in_a_part_of_a_run():
    results, plan = without("plane")
    assert pending(SGLD, results, dataclasses.replace(plan, part="--tier law")) == []
    assert pending(SGLD, results, dataclasses.replace(plan, cases=2)) == []


@pytest.mark.parametrize("each", [o for o in TARGETS if o.name in DUE], ids=lambda o: o.name)
def test_an_open_obligation_is_sampled_on_a_target_that_meets_it(each):
    results, plan = without(each.name)
    ((_, name),) = pending(SGLD, results, plan)
    assert name in TARGETS[each]
    if each.name != "gradient-noise":
        assert each in law_of_runs.meets(target(name))


@pytest.mark.parametrize("name", ["known-draws", "branches"])
def test_draws_and_branches_that_are_not_known_are_sampled_on_a_gaussian_and_in_the_plane(name):
    results, plan = without(name)
    assert [where for _, where in pending(SGLD, results, plan)] == ["gaussian-correlated-2d", BANANA]


def test_a_statement_that_could_not_decide_is_decided_by_runs_although_all_is_met():
    results, plan = without()
    blunt = [*results, judged("inconclusive", "law", "transfer_operator")]
    found = pending(SGLD, blunt, dataclasses.replace(plan, cases=2))
    assert [where for _, where in found] == ["gaussian-correlated-2d", BANANA]


def test_noise_of_the_gradient_is_sampled_with_minibatches_of_the_row_and_meets_its_obligation(monkeypatch):
    seen = []

    def run(statement, subject, name, seed):
        seen.append((subject, name, seed))
        return judged("pass", name=statement.name, meets=["data"]).result

    monkeypatch.setattr(fallback, "execute", run)
    results, plan = without("gradient-noise", "plane")
    noisy, plane = sample(SGLD, results, plan, 17)
    assert [(name, seed) for _, name, seed in seen] == [("tiny-gaussian-data", 17), (BANANA, 17)]
    assert "gradient-noise" not in plane.meets
    assert "gradient-noise" in noisy.meets
    data = target("tiny-gaussian-data")
    assert isinstance(seen[0][0].estimator(data), Minibatch)
    assert isinstance(seen[1][0].estimator(data), Exact)
    # a target without data keeps exact gradients
    assert isinstance(seen[0][0].estimator(target("anharmonic")), Exact)


def test_a_run_that_meets_several_obligations_is_made_once():
    results, plan = without("gradient-noise", "data", "gaussian", "high-dimension", "line")
    names = [name for _, name in pending(SGLD, results, plan)]
    assert names == ["tiny-gaussian-data", "gaussian-50d", "anharmonic"]


def test_targets_of_few_coordinates_come_first_and_steps_are_tried_no_more_where_the_rest_has_no_known_law(monkeypatch):
    ran = []

    def run(statement, subject, name, seed):
        ran.append((statement.name, name))
        if statement.name == "law_of_steps":
            return dataclasses.replace(judged("out-of-reach", name=statement.name).result, reason=UNKNOWN)
        return judged("pass", name=statement.name).result

    monkeypatch.setattr(fallback, "execute", run)
    results, plan = without("high-dimension", "line", "plane")
    found = sample(SGLD, results, plan, 1)
    names = ["anharmonic", BANANA, "gaussian-50d"]
    assert ran == [("law_of_steps", names[0]), *(("law_of_runs", name) for name in names)]
    assert [r.detail.get(fallback.NOT_BY_STEPS) for r in found] == [UNKNOWN, None, None]


def test_runs_that_fail_meet_nothing(monkeypatch):
    run = lambda statement, subject, name, seed: judged("fail", name=statement.name).result
    monkeypatch.setattr(fallback, "execute", run)
    results, plan = without("gradient-noise")
    (result,) = sample(SGLD, results, plan, 1)
    assert result.meets == []


class Logs(Langevin):
    """SGLD that keeps the potential, and makes nothing of it."""

    def __init__(self):
        super().__init__(lambda key, x, kept, g: (normal(key, x), kept), lambda x: jnp.zeros(()))

    def step(self, key, state, step_size, estimator):
        return super().step(key, state, step_size, estimator)._replace(kept=potential(estimator, state.position))


# What is due ----------------------------------------------------------------------------------------------------------


def test_what_is_due_depends_on_claims_and_spaces():
    names = lambda row: {o.name for o in due(Subject(sampler_row(row)))}
    flat = {"gaussian", "high-dimension", "line", "plane", "pytree", "data", "closed-state", "known-draws", "branches"}
    assert names("sgld") == flat | {"gradient-noise"}
    assert names("hmc") == flat
    assert names("svgd") == {"closed-state", "known-draws", "particles"}  # branches of particles are not followed
    assert "manifold" in names("gsgnht")
    assert not names("gsgnht") & {"line", "plane", "pytree", "data"}
    assert not names("host-sgld") & {"known-draws", "branches"}


@pytest.mark.parametrize(("claims", "logs"), [(MALA(), False), (Logs(), True)], ids=["tests", "logs"])
def test_noise_is_due_unless_the_potential_decides(claims, logs):
    mine = subject(claims, *DEFAULT_TARGETS["euclidean"])
    assert potential_decides(mine) is not logs
    assert ("gradient-noise" in {o.name for o in due(mine)}) is logs


def test_every_reference_sampler_has_something_due_and_every_due_obligation_can_be_met():
    known = {o.name for o in OBLIGATIONS}
    for row in SAMPLERS:
        names = [o.name for o in due(Subject(row))]
        assert len(set(names)) == len(names)
        assert set(names) <= known
    assert obligation("plane") in TARGETS


def test_a_law_of_runs_that_passes_decides_in_the_conclusion():
    results, plan = without("plane")
    runs = judged("pass", name="law_of_runs", meets=["plane"])
    assert conclude("sgld", [*results, runs], plan).law == "holds"


@dataclass
class Folded:
    """A walk that is folded back into the unit interval, accepted by the potential: exact on a box."""

    claims: ClassVar = Claims(Source("", "own"), ExactLaw(), spaces=("box",))

    def step(self, key, x, step_size, estimator):
        walk, coin = jax.random.split(key)
        moved = jnp.mod(x + jnp.sqrt(2 * step_size) * normal(walk, x), 2)
        proposal = 1 - jnp.abs(1 - moved)
        gain = potential(estimator, x) - potential(estimator, proposal)
        return jnp.where(jnp.log(jax.random.uniform(coin)) < gain, proposal, x)


class ExactMALA(MALA):
    """MALA that says what it is."""

    claims = Claims(Source("", "own"), ExactLaw())


@pytest.mark.parametrize(
    ("kernel", "names", "sampled"),
    [
        (Folded(), ("truncated-interval", "truncated-box"), {"truncated-interval"}),
        (ExactMALA(), ("gaussian-1d-scaled", "gaussian-correlated-2d", "anharmonic"), {"anharmonic", "three-widths"}),
    ],
    ids=["in a box", "on the line"],
)
def test_an_exact_kernel_is_sampled_on_harder_laws_of_its_own_space(kernel, names, sampled):
    """A step that stays in a box can be taken on R^n, whose laws it has nothing to do with."""
    found = pending(subject(kernel, *names), *without("line"))
    assert {name for _, name in found} == sampled
