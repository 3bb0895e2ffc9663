"""Numerical statements that need not run, because a proof stands for them.

A proof covers targets whose potentials are among those that it is about. Its witnesses run all the same, at the default
options on one Gaussian target and one other: numbers by code that shares nothing with the reader of programs. If they
contradict a proof, the suite is wrong, and says so. On a Gaussian the closed form of the law is a witness for a step
that is linear there, quadrature for any other step.
"""

import dataclasses
import functools
from collections.abc import Mapping

import jax

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NOT_TRACED, Case, Statement
from sgmcmc_verification.checks.core.conclusion import CONTRADICTS, SHOWN
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.core.obligations import MANY
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.checks.proof.of_subject import proved_for_vectors, setting_of, tree_of
from sgmcmc_verification.checks.proof.settings import PLANE
from sgmcmc_verification.checks.registry import PROOFS
from sgmcmc_verification.checks.runner.execute import cached_target, execute
from sgmcmc_verification.checks.runner.read_programs import as_program, as_read
from sgmcmc_verification.checks.tiers.premises.coordinates import same_for_fifty
from sgmcmc_verification.checks.tiers.premises.data import knows_of_potential_alone
from sgmcmc_verification.checks.tracing.step_map import is_affine
from sgmcmc_verification.samplers.interface.claims import ExactLaw
from sgmcmc_verification.targets.target import Target

CLOSED_FORM, QUADRATURE = "gaussian_limit", "defect"
WITNESSES = (CLOSED_FORM, QUADRATURE)
"""Statements that a proof does not stand for on the first Gaussian and the first other target, at default options."""

FEW = 2
"""Coordinates up to which statements about programs are made of what was read of a sampler in Python."""

REPLACEABLE = frozenset(name for proof in PROOFS for name in proof.stands_for)


@functools.lru_cache(maxsize=64)
def settled(subject: Subject) -> Mapping[tuple[str, str], str]:
    """(Statement for which a proof stands, setting in which it does) -> the statement of the proof."""
    found: dict[tuple[str, str], str] = {}
    for proof in PROOFS:
        if proof.tier not in subject.row.tiers:
            continue
        try:
            finding = proof(Case(subject, cached_target(proof.targets(subject)[0])), 0)
        except RAISED:  # whatever it is, nothing is proved; the statement itself reports it when it runs
            continue
        if finding.verdict == "pass":
            shown = finding.measurements[SHOWN]
            found |= {(name, setting): proof.name for name in proof.stands_for for setting in shown}
    return found


def is_witness(statement: Statement, subject: Subject, target: str) -> bool:
    """True for a statement that runs on this target whatever is proved."""
    if statement.name not in WITNESSES or subject.options:
        return False
    names = statement.applies_to(subject)
    gaussian = cached_target(target).gaussian is not None
    if target != next((name for name in names if (cached_target(name).gaussian is not None) == gaussian), None):
        return False
    return not gaussian or (statement.name == CLOSED_FORM) == is_affine(subject, cached_target(target))


def proof_for(statement: Statement, subject: Subject, target: str) -> str:
    """Name of the proof that says what this statement says on this target, and more; empty if there is none."""
    if statement.name not in REPLACEABLE:
        return ""
    law = cached_target(target)
    setting = setting_of(subject, law)
    if setting is not None:
        return settled(subject).get((statement.name, setting), "")
    if subject.options and len(jax.tree.leaves(law.example)) > 1 and law.terms is None:
        return settled(subject).get((statement.name, tree_of(subject).name), "")
    found = settled(subject).get((statement.name, PLANE.name), "")
    return found if found and _is_program_of_two(subject, law) else ""


def _is_program_of_two(subject: Subject, law: Target) -> bool:
    """True if a step on a target of more coordinates, or with data, is the program of a step in two that is proved."""
    leaves = jax.tree.leaves(law.example)
    if subject.options or len(leaves) != 1 or leaves[0].ndim != 1 or not law.manifold.is_linear:
        return False
    try:
        if law.terms is not None and not knows_of_potential_alone(subject):
            return False
        return proved_for_vectors(subject) and (law.size <= 2 or (law.size <= MANY and same_for_fifty(subject)))
    except RAISED:
        return False


def _program_of_exact(subject: Subject, target: str) -> Subject | None:
    """The program that was read of an exact kernel in Python; None in many coordinates, where sampling costs less."""
    few = cached_target(target).size <= FEW
    return as_program(subject, target) if few and ExactLaw in claims_of(subject) else None


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
    if result.reason == NOT_TRACED and (read := _program_of_exact(subject, target)) is not None:
        found = execute(statement, read, target, seed, step_size)
        result = as_read(found) if found.verdict in ("pass", "fail") else result
    if proof and result.verdict == "fail":
        result.detail[CONTRADICTS] = proof
    if proof and result.verdict == "inconclusive":  # a witness that sees too little leaves nothing open
        return dataclasses.replace(result, verdict="out-of-reach")
    return result
