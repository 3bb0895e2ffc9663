"""Kinds of steps, told by tracing one: affine on a Gaussian, or with a proposal that is accepted or rejected."""

from functools import lru_cache

from checks.core.candidate import Subject
from checks.core.catalogue import find_target
from checks.core.check import Inconclusive, NotApplicable
from checks.tracing.step_map import JaxStep, step_map


@lru_cache(maxsize=256)
def is_affine(subject: Subject) -> bool:
    """True if a step is an affine map of state and noise on the first Gaussian target of the row."""
    for name in subject.row.targets:
        target = find_target(name)
        if target.gaussian is not None and target.terms is None:
            try:
                step_map(subject, target).affine(subject.step_size(target))
            except (NotApplicable, Inconclusive):
                return False
            return True
    return False


@lru_cache(maxsize=256)
def accepts(subject: Subject) -> bool:
    """True if a step draws one uniform, all else it draws being known: a proposal is accepted or rejected by it."""
    try:
        step = step_map(subject, find_target(subject.row.targets[0]))
    except NotApplicable:
        return False
    if not isinstance(step, JaxStep) or step.program.unintercepted or step.exchanging:
        return False
    return step.program.count("uniform") == 1 and all(number == 1 for number in step.program.ranges)
