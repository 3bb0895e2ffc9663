"""Shards of a plan: every sampler is in one, whole, and loads are as even as whole samplers allow."""

import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.runner.plan import make_plan
from sgmcmc_verification.checks.runner.shard import Shard, cut, deal, parse_shard

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

NAMES = ["sgld", "sghmc", "mala", "baoab", "sgnht"]


@pytest.fixture(scope="module")
def plan():
    return make_plan(NAMES, tiers=["recipe", "order"])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_shards_are_a_partition_by_whole_samplers(plan, count):
    parts = [cut(plan, Shard(i, count)) for i in range(1, count + 1)]
    assert sorted(name for part in parts for name in part.records) == sorted(plan.records)
    assert sum(len(part.cases) for part in parts) == len(plan.cases)
    for part in parts:
        assert set(part.rows) == set(part.records) != set()
        assert all(part.records[name] == plan.records[name] for name in part.records)
        assert all(
            part.records[name].cases == sum(c.subject.row.name == name for c in part.cases) for name in part.rows
        )


def test_no_shard_has_more_than_an_even_share_and_the_costliest_sampler(plan):
    """Graham's bound for greedy lists: the largest load is at most total / n + (1 - 1 / n) max cost."""
    costs = {name: sum(c.statement.cost for c in plan.cases if c.subject.row.name == name) for name in plan.records}
    for count in (2, 3):
        dealt = deal(plan, count)
        loads = [sum(costs[name] for name in costs if dealt[name] == i) for i in range(1, count + 1)]
        bound = sum(costs.values()) / count + (1 - 1 / count) * max(costs.values())
        assert max(loads) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "a/b", "1/2/3", "-1/2", "1/0", "1.0/2"])
def test_a_shard_that_there_is_not_is_bad_input(text):
    with pytest.raises(BadInput, match="must be i/n"):
        parse_shard(text)
    assert parse_shard("2/3") == (2, 3)


def test_more_shards_than_samplers_are_bad_input(plan):
    with pytest.raises(BadInput, match=r"--shard 1/6: a shard holds whole samplers, and the run has 5"):
        cut(plan, Shard(1, 6))
