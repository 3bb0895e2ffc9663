"""Numerical statements that need not run, because a proof stands for them.

A proof covers targets whose potentials are among those that it is about. Its witnesses run all the same, at the default
options on one Gaussian target and one other: numbers by code that shares nothing with the reader of programs. If they
contradict a proof, the suite is wrong, and says so.
"""

import functools
from collections.abc import Mapping

from checks.core.candidate import Subject
from checks.core.check import Statement
from checks.core.conclusion import CONTRADICTS, SHOWN
from checks.core.result import Result
from checks.proof.of_subject import setting_of
from checks.registry import STATEMENTS
from checks.runner.execute import cached_target, execute

WITNESSES = ("gaussian_limit", "defect")
"""Statements that a proof does not stand for on the first Gaussian and the first other target, at default options."""


@functools.lru_cache(maxsize=512)
def settled(subject: Subject) -> Mapping[tuple[str, str], str]:
    """(Statement for which a proof stands, setting in which it does) -> the statement of the proof."""
    found: dict[tuple[str, str], str] = {}
    for proof in STATEMENTS:
        if not proof.stands_for or proof.tier not in subject.row.tiers:
            continue
        result = execute(proof, subject, proof.targets(subject)[0], 0)
        if result.verdict == "pass":
            found |= {(name, setting): proof.name for name in proof.stands_for for setting in result.detail[SHOWN]}
    return found


def is_witness(statement: Statement, subject: Subject, target: str) -> bool:
    """True for a statement that runs on this target whatever is proved."""
    if statement.name not in WITNESSES or subject.options:
        return False
    names = statement.targets(subject)
    gaussian = cached_target(target).gaussian is not None
    return target == next(name for name in names if (cached_target(name).gaussian is not None) == gaussian)


def proof_for(statement: Statement, subject: Subject, target: str) -> str:
    """Name of the proof that says what this statement says on this target, and more; empty if there is none."""
    if not any(statement.name in each.stands_for for each in STATEMENTS):
        return ""
    setting = setting_of(subject, cached_target(target))
    return "" if setting is None else settled(subject).get((statement.name, setting), "")


def decide(
    statement: Statement,
    subject: Subject,
    target: str,
    seed: int,
    step_size: float | None = None,
    numerics: bool = False,
) -> Result:
    """`execute`, unless a proof stands for the statement.

    Args:
        statement: one of `STATEMENTS`.
        subject: a sampler at given options.
        target: name of the target.
        seed: of everything random.
        step_size: a step size that the caller forced.
        numerics: run the statement all the same.
    """
    proof = proof_for(statement, subject, target)
    stands = proof if not numerics and not is_witness(statement, subject, target) else ""
    result = execute(statement, subject, target, seed, step_size, stands)
    if proof and result.verdict == "fail":
        result.detail[CONTRADICTS] = proof
    return result
