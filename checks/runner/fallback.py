"""Sampling where the deterministic statements leave the law open, in the same command.

Each obligation that is not met has a target on which runs of the sampler meet it. Nothing is sampled where the law is
decided, where it is violated, or where a premise fails that no run can mend.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.core import obligations as o
from sgmcmc_verification.checks.core.accept_step import tests_proposals
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Statement
from sgmcmc_verification.checks.core.conclusion import Judged, Plan, conclude, unmet
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.core.selection import (
    BANANA,
    FACES,
    HIGH,
    MATRIX,
    NETWORK,
    NUMBERS,
    PYTREE,
    WIDTHS,
    claims_of,
    runs_on,
)
from sgmcmc_verification.checks.end_points.budget import share
from sgmcmc_verification.checks.end_points.runs import example_state
from sgmcmc_verification.checks.end_points.walkers import laws_of_walkers
from sgmcmc_verification.checks.runner.due import high_on_spaces
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.runner.read_programs import as_program, as_read
from sgmcmc_verification.checks.tiers.invariance import (
    law_of_runs,
    law_of_several_steps,
    law_of_states,
    law_of_steps,
)
from sgmcmc_verification.checks.tiers.invariance.law_of_steps import UNKNOWN
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ExactLaw
from sgmcmc_verification.targets.target import Target

TARGETS = {
    o.GAUSSIAN: ("gaussian-correlated-2d",),
    o.HIGH_DIMENSION: (HIGH,),
    o.LINE: ("anharmonic", "half-gaussian", "truncated-interval"),
    o.PLANE: (BANANA,),
    o.PYTREE: (NETWORK, PYTREE, MATRIX),
    o.DATA: ("tiny-gaussian-data",),
    o.GRADIENT_NOISE: ("tiny-gaussian-data",),
    o.MANIFOLD: (),
    o.BOUNDARY: ("half-gaussian",),
    o.FINITE: (),
    o.REACHED: (),
}
"""Targets on which runs meet an obligation, the first that suits the sampler; its own first one where there is none."""
FIRST = (o.GRADIENT_NOISE, o.HIGH_DIMENSION, o.PYTREE, o.DATA)
ARRAY = "gaussian-correlated-3d"
"""The law of `NUMBERS` of one array."""
WIDEST = (*FIRST, *(each for each in TARGETS if each not in FIRST))
"""The obligations in the order in which runs are chosen: those first whose runs meet others as well."""
NOT_BY_STEPS = "not by steps"
"""Key of the reason why runs had to decide."""
ALWAYS = (o.GAUSSIAN, o.PLANE)
"""Obligations that are sampled where draws are not known or branches cannot be followed, although others were met."""


def pending(subject: Subject, results: Sequence[Judged], plan: Plan) -> list[tuple[Subject, str]]:
    """The subjects and targets whose runs could decide what is open; none if nothing is, or if no run could."""
    conclusion = conclude(subject.row.name, results, plan)
    if conclusion.law != "undecided" or plan.part:
        return []
    if any(j.kind == "error" or (j.kind == "fail" and j.result.decides == "premise") for j in results):
        return []
    names = unmet(results, plan)
    wanted = [each for each in TARGETS if each.name in names]
    if not wanted or {o.KNOWN_DRAWS.name, o.BRANCHES.name} & set(names):
        due = [each for each in ALWAYS if each.name in plan.due and each not in wanted]
        wanted += due or [
            each for each in (o.LINE, o.MANIFOLD, o.FINITE) if each.name in plan.due and each not in wanted
        ]
    found: dict[tuple[Subject, str], None] = {}
    covered: set[o.Obligation] = set()
    for each in sorted(wanted, key=WIDEST.index):
        if each in covered:
            continue
        for pair in _runs(subject, each):
            found[pair] = None
            covered |= set(o.of_target(find_target(pair[1])))
    return list(found)


def _runs(subject: Subject, obligation: o.Obligation) -> Iterator[tuple[Subject, str]]:
    # a sampler on another space may take a step on R^n without belonging there
    mine = [name for name in TARGETS[obligation] if name in subject.row.targets]
    mine += [*high_on_spaces(subject)] if obligation is o.HIGH_DIMENSION else []
    own = [name for name in subject.row.targets if obligation in o.of_target(find_target(name))]
    names = mine or [name for name in TARGETS[obligation] if runs_on(subject, name)] or own or list(subject.row.targets)
    if obligation is o.GRADIENT_NOISE:
        subject = dataclasses.replace(subject, row=dataclasses.replace(subject.row, estimator=_minibatches(subject)))
    if obligation is o.PYTREE and _tests_proposals(subject, names[0], host=False):
        # rows of a matrix that share their noise show in the network, a decision for each leaf where they correlate
        number = 2
    else:
        number = len(names) if obligation is o.FINITE else 1
    for name in names[:number]:
        yield subject, name
    if obligation is o.PYTREE and _counts_leaves(subject):
        yield subject, NUMBERS
    if ExactLaw in claims_of(subject) and (harder := _harder(subject, obligation)):
        yield subject, harder


def _harder(subject: Subject, obligation: o.Obligation) -> str:
    """A target on which a kernel that is exact at each step size is sampled as well; empty if there is none."""
    name = {o.LINE: WIDTHS, o.MANIFOLD: FACES}.get(obligation, "")
    kinds = {type(find_target(each).manifold) for each in subject.row.targets}
    # a step that stays in a box can be taken on the line, whose law it does not keep
    suits = bool(name) and type(find_target(name).manifold) in kinds
    return name if suits and (name == FACES or runs_on(subject, WIDTHS)) else ""


def _counts_leaves(subject: Subject) -> bool:
    """True for a state that holds another number of numbers for a tree than for an array of as many coordinates."""
    if not all(runs_on(subject, name) for name in (NUMBERS, ARRAY)):
        return False
    laws = (find_target(name) for name in (NUMBERS, ARRAY))
    states = (example_state(subject.sampler(law), law, subject.estimator(law)) for law in laws)
    tree, array = (sum(np.size(leaf) for leaf in jax.tree.leaves(state)) for state in states)
    return tree != array


def _minibatches(subject: Subject) -> Any:
    """target -> an estimator with minibatches of two data; host samplers keep exact gradients."""
    own = subject.row.estimator

    def estimator(target: Target) -> Any:
        exact = own(target)
        if target.terms is None or on_host(exact) or isinstance(exact, HostExact):
            return exact
        return Minibatch(target.terms, 2, replace=False)

    return estimator


def sample(subject: Subject, results: Sequence[Judged], plan: Plan, seed: int) -> list[Result]:
    """The results of what is pending, each as `by_sampling` has it."""
    found = []
    chosen = pending(subject, results, plan)
    several = bool(chosen) and bool({o.KNOWN_DRAWS.name, o.BRANCHES.name} & set(unmet(results, plan)))
    # what is cheap first: the law that is violated is seen there, and the rest of the budget is for what is not
    chosen.sort(key=lambda pair: find_target(pair[1]).size)
    steps: Statement | None = law_of_several_steps if several else law_of_steps
    for left, (each, name) in zip(range(len(chosen), 0, -1), chosen, strict=True):
        with share(left):
            result = by_sampling(each, name, seed, steps)
        if str(result.detail.get(NOT_BY_STEPS, "")).startswith(UNKNOWN):
            steps = None  # nor is it known on the next target
        if each is not subject and result.verdict == "pass":
            result = dataclasses.replace(result, meets=[*result.meets, o.GRADIENT_NOISE.name])
        found.append(result)
        if result.verdict == "fail":
            break  # a law that is violated on one target is violated
    return found


def by_sampling(subject: Subject, target: str, seed: int, steps: Statement | None = law_of_steps) -> Result:
    """The law on one target by `steps`, or by runs if those cannot decide, see less, or are None."""
    if find_target(target).finite is not None:
        return execute(law_of_states, subject, target, seed)
    if (read := as_program(subject, target)) is not None:
        return as_read(by_sampling(read, target, seed, steps))
    if steps is None or _sooner_by_runs(subject, target):
        return execute(law_of_runs, subject, target, seed)
    result = execute(steps, subject, target, seed)
    if result.verdict in ("pass", "fail", "error"):
        return result
    found = execute(law_of_runs, subject, target, seed)
    return dataclasses.replace(found, detail={**found.detail, NOT_BY_STEPS: result.reason})


def _tests_proposals(subject: Subject, target: str, host: bool) -> bool:
    """True for a kernel that tests its proposals and runs in Python (`host`), or in JAX."""
    try:
        sampler = subject.sampler(find_target(target))
        return on_host(sampler) == host and tests_proposals(subject, sampler.claims)
    except Exception:
        return False


def _sooner_by_runs(subject: Subject, target: str) -> bool:
    """True for a kernel that tests its proposals whose runs, at one step size, take no longer than its steps.

    They see more, but for several walkers; in Python those for which several walkers are run at once.
    """
    return _tests_proposals(subject, target, host=bool(laws_of_walkers(subject, find_target(target))))
