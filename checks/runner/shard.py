"""Shards of a run: the samplers of a plan, dealt out to several machines by the stored costs of their statements.

A sampler is in one shard with all its options, so that its conclusion is drawn once, from all of its results.
"""

import dataclasses
from typing import NamedTuple

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.runner.plan import Plan


class Shard(NamedTuple):
    """One of several shards, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        """The form of the command line, `2/3`."""
        return f"{self.number}/{self.of}"


def parse_shard(text: str) -> Shard:
    """The shard of `i/n`. Raises BadInput."""
    index, _, count = text.partition("/")
    numbers = [int(part) for part in (index, count) if part.isascii() and part.isdigit()]
    if len(numbers) != 2 or not 1 <= numbers[0] <= numbers[1]:
        raise BadInput(f"--shard {text}: must be i/n with 1 <= i <= n, as in --shard 2/3")
    return Shard(*numbers)


def deal(plan: Plan, count: int) -> dict[str, int]:
    """The shard of each sampler, 1 .. count: the costliest first, each to the shard with the least to do so far."""
    costs = dict.fromkeys(plan.records, 0.0)
    for case in plan.cases:
        costs[case.subject.row.name] += case.statement.cost
    loads, dealt = [0.0] * count, {}
    for name in sorted(costs, key=lambda name: (-costs[name], name)):
        least = loads.index(min(loads))
        dealt[name] = least + 1
        loads[least] += costs[name]
    return dealt


def cut(plan: Plan, shard: Shard) -> Plan:
    """The part of a plan that belongs to a shard. Raises BadInput for more shards than samplers."""
    if shard.of > len(plan.records):
        raise BadInput(f"--shard {shard}: a shard holds whole samplers, and the run has {len(plan.records)}")
    dealt = deal(plan, shard.of)
    mine = lambda name: dealt[name] == shard.number
    return dataclasses.replace(
        plan,
        cases=tuple(case for case in plan.cases if mine(case.subject.row.name)),
        records={name: record for name, record in plan.records.items() if mine(name)},
        strangers=tuple(subject for subject in plan.strangers if mine(subject.row.name)),
        shard=str(shard),
    )
