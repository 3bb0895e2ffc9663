"""All that is proved of particles that move each other, on every path through their branches."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.reader.calls import Call
from sgmcmc_verification.checks.proof.reader.paths import Path, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.statements.closure import LONGEST, finite_space
from sgmcmc_verification.checks.proof.statements.cloud import Cloud, cloud_of
from sgmcmc_verification.checks.proof.statements.flow import Flow
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.checks.proof.statements.velocity import Velocity
from sgmcmc_verification.checks.proof.traced import Traced
from sgmcmc_verification.samplers.interface.claims import DensityEstimate
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target

C = TypeVar("C", bound=Cloud)
MOST_REGIONS = 4
"""Regions that are read: each costs as much as a proof without branches."""


def particle_statements(
    sampler: Sampler, target: Target, estimator: Estimator
) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """The results for particles with a declared velocity that is a mean over them, and notes.

    Raises:
        Unreadable: if the step or the velocity cannot be read.
    """
    traced, notes, results = Traced(sampler, estimator, cloud_of(target)), set[str](), list[Result]()

    def read(build: type[C], statements: Callable[[C], Iterator[Result]], longest: int | None, path: Path) -> None:
        reader = new_reader(finite_space(longest), path, finite=True)
        reader.keeps_calls = True
        found = list(statements(build(sampler, target, estimator, traced, reader)))
        if any(isinstance(g, Call) for g in reader.ring.generators):
            # what is nonzero for any number may be zero for the one that was not read
            found = [replace(r, outcome="undecided") if r.outcome == "violated" else r for r in found]
        if path.outcomes or path.intervals or path.acceptances:
            raise Unreadable("interacting particles that depend on draws")
        notes.update(reader.notes)
        results.extend(replace(r, region=tuple(path.region)) for r in found)

    if DensityEstimate in sampler.claims:
        parts = [functools.partial(read, Flow, Flow.results, LONGEST)]
    else:  # gradients are looked for in a velocity, and would be lost in names; the work is counted by ring
        parts = [functools.partial(read, Velocity, part, None) for part in (Velocity.moves, Velocity.identities)]
    for part in parts:
        for count, _ in enumerate(every_path(part), 1):
            if count > MOST_REGIONS:
                raise Unreadable(f"interacting particles with more than {MOST_REGIONS} regions")
    return tuple(results), tuple(sorted(notes))
