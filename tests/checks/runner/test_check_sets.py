"""Check sets: an older one keeps a repository as green as it was, and says what a newer one would add."""

import dataclasses
import json

import pytest

from sgmcmc_verification import checks
from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.obligations import OBLIGATIONS
from sgmcmc_verification.checks.pytest_plugin.terminal import header
from sgmcmc_verification.checks.registry import STATEMENTS, find_statement
from sgmcmc_verification.checks.runner import check_sets
from sgmcmc_verification.checks.runner.plan import make_plan
from sgmcmc_verification.checks.runner.record import record_of

NEWEST = check_sets.newest()
LATER = ("gaussian_limit", "stationary_covariance")
"""Statements that a set of the year before has not."""
FEW = {"tiers": ["law"], "targets": ["gaussian-1d-scaled"]}


class HalfNoise:
    """Noise of half of the variance."""

    def step(self, key, x, h, estimator):
        import jax

        draw, batch = jax.random.split(key)
        return x - h * estimator.estimate(batch, (), x)[0].gradient + h**0.5 * jax.random.normal(draw, x.shape)


@pytest.fixture
def two_sets(monkeypatch):
    """The newest set, and one of the year before."""
    names, due = NEWEST.statements - set(LATER), NEWEST.obligations - {"pytree"}
    before = dataclasses.replace(NEWEST, name="2025", statements=names, obligations=due)
    monkeypatch.setattr(check_sets, "CHECK_SETS", (before, NEWEST))


def test_the_newest_set_has_each_statement_and_obligation_and_no_set_another():
    assert {s.name for s in STATEMENTS if not NEWEST.has(s.name)} == set()
    assert NEWEST.obligations == {o.name for o in OBLIGATIONS}
    for each in check_sets.CHECK_SETS:
        assert all(find_statement(name) for name in each.statements)
        assert each.obligations <= {o.name for o in OBLIGATIONS}
    names = [each.name for each in check_sets.CHECK_SETS]
    assert names == sorted(set(names))


def test_a_statement_of_a_later_set_is_not_run_and_does_not_turn_a_repository_red(two_sets):
    new = checks.check_sampler(HalfNoise, **FEW)
    old = checks.check_sampler(HalfNoise, check_set="2025", **FEW)
    assert {name for name, _ in new.conclusion.violated} & set(LATER)
    assert not {r.statement for r in old.results} & set(LATER)
    assert {r.statement for r in new.results} - {r.statement for r in old.results} <= set(LATER)


def test_an_obligation_of_a_later_set_is_not_due(two_sets):
    old, new = (make_plan(["sgld"], check_set=name).records["sgld"] for name in ("2025", "2026"))
    assert set(new.due) - set(old.due) == {"pytree"}


def test_an_older_set_says_what_the_newest_would_add_and_the_newest_says_nothing(two_sets):
    old, new = (checks.check_sampler(HalfNoise, check_set=name, **FEW) for name in ("2025", None))
    assert "check set   2025; 2026 would add gaussian_limit, stationary_covariance" in str(old)
    assert "would add" not in str(new)
    assert "check set 2026 would add: gaussian_limit, stationary_covariance" in "\n".join(header(old.plan, 1))
    assert len(header(new.plan, 1)) == 1


def test_the_set_is_in_the_plan_and_in_the_result(two_sets):
    plan = make_plan(["sgld"], tiers=["recipe"], check_set="2025")
    assert plan.check_set.name == "2025"
    assert record_of(plan, "command")["check_set"] == "2025"
    report = checks.check_sampler("sgld", ["double-well"], ["recipe"], check_set="2025")
    assert json.loads(report.to_json())["check_set"] == "2025"


def test_a_statement_that_was_renamed_stays_in_its_set(monkeypatch):
    monkeypatch.setattr(check_sets, "SUCCESSORS", {"former": "stability"})
    named = dataclasses.replace(NEWEST, statements=frozenset({"former"}))
    assert named.has("stability")
    assert not named.has("gaussian_limit")


def test_a_set_that_there_is_not_is_bad_input():
    with pytest.raises(BadInput, match=r"--check-set 2062: no such set; did you mean '2026'"):
        make_plan(["sgld"], check_set="2062")
