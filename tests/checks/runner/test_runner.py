"""The machinery of `pytest checks`: order of the cases, overall verdicts, expected failures, execution, reports."""

import dataclasses
import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Inconclusive, NotApplicable, OutOfReach, Statement
from sgmcmc_verification.checks.core.obligations import LINE
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.registry import STATEMENTS, check_of, find_statement
from sgmcmc_verification.checks.runner.execute import default_seed, execute, run_check
from sgmcmc_verification.checks.runner.expected_failures import ExpectedFailure
from sgmcmc_verification.checks.runner.plan import make_plan
from sgmcmc_verification.checks.tiers.contract.interface import (
    chains_and_leaves_independent,
    every_input_matters,
    key_discipline,
    movement,
)
from sgmcmc_verification.checks.tiers.invariance.end_points import MOVING
from sgmcmc_verification.samplers.entry import TIERS, Row
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.targets.registry import FINITE, TARGETS, target

ROOT = Path(__file__).resolve().parents[3]


def statement_of(run, tier="law"):
    return Statement("planted", tier, "1 = 1", run, lambda subject: subject.row.targets, cost=0.1, decides="law")


def subject_of(sampler, name="planted"):
    return Subject(Row(name, lambda target, **options: sampler, targets=("gaussian-1d-scaled",)))


def test_names_are_unique_and_targets_exist():
    for names in ([row.name for row in SAMPLERS], [check.name for check in STATEMENTS]):
        assert len(names) == len(set(names))
    known = {row.name for row in TARGETS + FINITE}
    assert {name for row in SAMPLERS for name in row.targets} <= known
    assert {tier for row in SAMPLERS for tier in (*row.tiers, *row.unsupported)} <= set(TIERS)


def test_a_statement_whose_claim_is_not_made_is_not_planned_and_the_claim_is_named():
    plan = make_plan(["sgld"], tiers=["generator"])
    names = {case.statement.name for case in plan.cases}
    assert "ExactLaw" in plan.claims["sgld"]
    assert "proposal_generator" not in names
    assert {"generator_of_code", "published_diffusion"} <= names
    claims = claims_of(plan.cases[0].subject)
    assert not any(case.statement.missing(claims) for case in plan.cases)


def test_what_was_not_asked_for_is_not_named_among_the_claims():
    """Only the claims that statements of the chosen tiers ask for."""
    every, few = (make_plan(["sgld"], tiers=tiers).claims["sgld"] for tiers in ([], ["generator"]))
    assert set(few) < set(every)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ""),
        ({"tiers": ["all"]}, ""),
        ({"tiers": ["law"]}, "--tier law"),
        ({"tiers": ["statistical"]}, "--tier invariance, noise"),
        ({"targets": ["anharmonic"]}, "--target anharmonic"),
        ({"options": ["temperature=2.0"]}, "--option temperature=2.0"),
        ({"targets": ["anharmonic"], "tiers": ["law"]}, "--target anharmonic; --tier law"),
    ],
    ids=str,
)
def test_a_plan_knows_whether_it_is_a_part_and_why(arguments, words):
    part = make_plan(["sgld"], **arguments).records["sgld"].part
    assert part.startswith(words)
    assert bool(part) == bool(words)


def test_a_record_counts_the_statements_and_says_what_the_law_has_to_meet():
    plan = make_plan(["sgld", "hmc"])
    for name, record in plan.records.items():
        assert record.cases == sum(case.subject.row.name == name for case in plan.cases)
        assert {"gaussian", "line", "plane", "closed-state", "known-draws", "branches"} <= set(record.due)
    assert "gradient-noise" in plan.records["sgld"].due
    assert "gradient-noise" not in plan.records["hmc"].due
    assert (plan.records["sgld"].order, plan.records["hmc"].order) == (1, None)


def test_statements_of_one_check_on_one_target_are_one_item_and_nothing_is_lost():
    plan = make_plan(["sgld"])
    items = [item for item in plan.checks if item.cases]
    assert sum(len(item.cases) for item in items) == len(plan.cases)
    for item in items:
        assert len({(c.subject.name, c.target, c.statement.tier) for c in item.cases}) == 1
        assert {check_of(c.statement.name) for c in item.cases} == {item.check}
    # each tier is a file of its own, in which an item is found by its name
    assert len({(item.tier, item.id) for item in plan.checks}) == len(plan.checks)


def test_runs_come_last_and_in_whole_plans_alone():
    whole = make_plan(["sgld", "hmc"])
    last = [item for item in whole.checks if not item.cases]
    assert [item.id for item in last] == ["sgld-sampling", "hmc-sampling"]
    of_sgld = [item for item in whole.checks if item.subject.row.name == "sgld"]
    assert of_sgld[-1] is last[0]
    assert all(item.cases for item in make_plan(["sgld"], tiers=["law"]).checks)


def test_every_option_is_exercised_at_values_that_are_not_the_default():
    seen: dict[type, dict[str, set]] = {}
    for row in SAMPLERS:
        sampler = row.build(target(row.targets[0]))
        if type(sampler) is not SGLD:
            continue
        for variant in ({}, *row.variants):
            built = row.build(target(row.targets[0]), **variant)
            for field in dataclasses.fields(built):
                if field.default is not dataclasses.MISSING and getattr(built, field.name) != field.default:
                    seen.setdefault(type(sampler), {}).setdefault(field.name, set()).add(getattr(built, field.name))
    assert seen[SGLD]["temperature"] >= {0.5, 2.0}
    assert seen[SGLD]["compensate"] == {True}


def test_cases_of_one_subject_are_contiguous():
    names = [case.subject.name for case in make_plan(["sgld", "sghmc"], tiers=["contract", "law"]).cases]
    assert len(set(names)) == 1 + sum(a != b for a, b in itertools.pairwise(names))


def test_default_seed_depends_on_the_sampler_only():
    assert default_seed("sgld") == default_seed("sgld") != default_seed("sghmc")


def test_exceptions_become_verdicts_and_name_the_place():
    def fails(case):
        raise Inconclusive("too blunt")

    def odd(case):
        raise NotApplicable("no such thing")

    def far(case):
        raise OutOfReach("too many normals")

    def broken(case):
        return case.subject.row.build(case.target, nonsense=1)

    subject = Subject(sampler_row("sgld"))
    results = [execute(statement_of(run), subject, "gaussian-1d-scaled", 3) for run in (fails, odd, far, broken)]
    assert [r.verdict for r in results] == ["inconclusive", "not-applicable", "out-of-reach", "error"]
    assert [r.reason for r in results[:3]] == ["too blunt", "no such thing", "too many normals"]
    assert "test_runner.py:" in results[3].reason
    assert "\n" not in results[3].reason
    assert all(r.seconds is not None and r.versions["jax"] and r.reproduction and r.seed == 3 for r in results)
    assert json.loads(results[3].to_json())["verdict"] == "error"


def test_every_tier_with_checks_is_collected_from_a_file_of_its_own():
    files = {path.stem.removeprefix("test_") for path in (ROOT / "checks").glob("test_*.py")}
    assert files == {check.tier for check in STATEMENTS}


def test_a_fraction_of_the_chains_is_run_and_reproduced():
    subject, check = Subject(sampler_row("sgld")), find_statement("chains_move")
    with fraction_of_chains(0.01):
        result = execute(check, subject, "double-well", 3)
    assert result.n == pytest.approx(0.01 * MOVING, rel=0.01)
    assert result.reproduction is not None
    assert "--chains 0.01" in result.reproduction
    again = run_check("sgld", "chains_move", "double-well", seed=3, chains=0.01)
    assert (again.n, again.effect) == (result.n, result.effect)


class Frozen(SGLD):
    def step(self, key, state, step_size, estimator):
        return state


class SameNoise(SGLD):
    """One draw for all leaves."""

    def step(self, key, state, step_size, estimator):
        move = lambda x: x + (2 * step_size) ** 0.5 * jax.random.normal(key, x.shape, x.dtype)
        return state._replace(position=jax.tree.map(move, state.position))


class KeyTwice(SGLD):
    def step(self, key, state, step_size, estimator):
        state = super().step(key, state, step_size, estimator)
        again = jax.random.uniform(key)
        return state._replace(position=jax.tree.map(lambda x: x + 0 * again, state.position))


@pytest.mark.parametrize(
    ("sampler", "run", "where", "words"),
    [
        (Frozen(), movement, "gaussian-1d-scaled", "frozen"),
        (Frozen(), every_input_matters, "gaussian-1d-scaled", "the key does not change"),
        (SameNoise(), chains_and_leaves_independent, "gaussian-pytree", "identical draws"),
        (SameNoise(), every_input_matters, "gaussian-1d-scaled", "the gradient of the estimator does not change"),
        (KeyTwice(), key_discipline, "gaussian-1d-scaled", "consumes a key twice"),
    ],
)
def test_contract_sees_the_planted_defect(sampler, run, where, words):
    result = execute(run, subject_of(sampler), where, 1)
    assert result.verdict == "fail"
    assert words in result.reason


def moves_rarely(key, x, step_size, estimator):
    move, test = jax.random.split(key)
    return x + jnp.where(jax.random.uniform(test) < 0.01, 0.1, 0.0) * jax.random.normal(move, x.shape)


def test_of_few_moves_it_is_not_said_in_which_directions_they_go():
    rare = simple_sampler(moves_rarely, claims=Claims(Source("", "own"), ExactLaw()))
    result = execute(movement, subject_of(rare), "gaussian-50d", 1)
    assert result.verdict == "inconclusive"
    assert "steps move the position: too few for 50 directions" in result.reason


class OwnSize:
    """A Metropolis-adjusted Langevin step, or a plain one, whose step size is 0.1 whatever it is given."""

    def __init__(self, tested):
        self.tested = tested
        self.claims = Claims(Source("", "own"), ExactLaw() if tested else StationaryLaw())

    def step(self, key, x, step_size, estimator):
        noise, test = jax.random.split(key)
        at = lambda z: estimator.estimate(key, (), z)[0]
        proposal = lambda a, b: jnp.sum((b - a + 0.1 * at(a).gradient) ** 2) / 0.4
        y = x - 0.1 * at(x).gradient + jnp.sqrt(0.2) * jax.random.normal(noise, x.shape)
        log_ratio = at(x).potential - at(y).potential + proposal(x, y) - proposal(y, x)
        return jnp.where(jnp.log(jax.random.uniform(test)) < log_ratio, y, x) if self.tested else y


@pytest.mark.parametrize(("tested", "minor"), [(True, True), (False, False)])
def test_an_exact_kernel_may_choose_its_step_size_by_itself(tested, minor):
    own = Subject(Row("planted", builder("planted", OwnSize(tested)), targets=("gaussian-1d-scaled",)))
    result = execute(every_input_matters, own, "gaussian-1d-scaled", 1)
    assert "the step size does not change the result" in result.reason
    assert (result.severity == "minor") == minor


def test_what_is_out_of_reach_says_which_obligations_stay_open():
    def far(case):
        raise OutOfReach("too many normals")

    planted = dataclasses.replace(statement_of(far), meets=lambda target: (LINE,))
    result = execute(planted, Subject(sampler_row("sgld")), "anharmonic", 3)
    assert result.detail == {"would meet": ["line"]}
    assert result.meets == []


def test_a_pass_says_which_obligations_it_meets_and_what_it_decides():
    result = execute(find_statement("transfer_operator"), Subject(sampler_row("sgld")), "anharmonic", 3)
    assert (result.verdict, result.decides, result.check) == ("pass", "law", "nonlinear_law")
    assert "line" in result.meets
    assert result.severity is None


def test_a_deviation_can_be_of_the_default_options_alone():
    entry = ExpectedFailure("a/b[]", "stability", "reason", "issue")
    assert entry.matches("a/b", "a/b", "stability", "any")
    assert not entry.matches("a/b[alpha=2.0]", "a/b", "stability", "any")
