"""Proofs of a sampler under test: made once, and asked by every statement that they decide or stand for."""

import dataclasses
import functools
from collections.abc import Mapping

import jax

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.core.start_position import program_of_first_step
from sgmcmc_verification.checks.programs.operations import operation_names
from sgmcmc_verification.checks.proof.potential import target_of_few_leaves, target_of_tree
from sgmcmc_verification.checks.proof.prove import Proof, prove
from sgmcmc_verification.checks.proof.ring import rings_limited
from sgmcmc_verification.checks.proof.settings import FEW_LEAVES, FIFTY, LINE, MATRIX, NOISY, PLANE, TREE, Setting
from sgmcmc_verification.checks.tracing.whole_numbers import words_of_step
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.capabilities import MinibatchEstimator, on_host
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.interface.opened_state import step_of
from sgmcmc_verification.samplers.interface.sampler import Estimator
from sgmcmc_verification.targets.target import Target

ASKED = (LINE, PLANE, NOISY, TREE)
"""Positions that a run reads a step for. Fifty coordinates take longer, and are read where their program is another."""
BATCH = 2
"""Data in a batch, of the three of the uninterpreted sum: neither one nor all of them."""
BY_SIZE = {1: LINE.name, 2: PLANE.name}


MOST_WORK = 100_000
"""Products of terms in one proof, about a second: what takes longer is decided by numbers, as fast as that."""
MUCH_WORK = 300_000
"""The same for fifty coordinates, in which numbers take longer."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """A subject by what makes it the same: subjects are made anew, rows are not."""

    row: Row
    options: str
    subject: Subject = dataclasses.field(compare=False)


def asked(subject: Subject) -> Asked:
    """A subject as the key of a cache."""
    return Asked(subject.row, repr(sorted(subject.options.items())), subject)


def proofs_of(subject: Subject) -> Mapping[str, Proof]:
    """Name of a setting -> the proof for positions of that kind, up to the first one that fails."""
    return _proofs(asked(subject))


def proved_for_vectors(subject: Subject) -> bool:
    """True if the law is proved for one and for two coordinates, without a limit on the step size."""
    found = proofs_of(subject)
    proofs = [found.get(setting.name) for setting in (LINE, PLANE)]
    return all(proof is not None and proof.verdict == "pass" and not proof.limits for proof in proofs)


def proof_for_fifty(subject: Subject) -> Proof | None:
    """The proof of the law for fifty coordinates as h -> 0; None if it is not proved for one and for two."""
    return _of_fifty(asked(subject)) if proved_for_vectors(subject) else None


@functools.lru_cache(maxsize=64)
def _of_fifty(key: Asked) -> Proof:
    return _proof(key.subject, FIFTY, MUCH_WORK)


def in_batches(estimator: Estimator) -> Estimator:
    """An estimator with `BATCH` data in a batch: with all of them, as in noise-free checks, no factor N/n shows."""
    if not isinstance(estimator, MinibatchEstimator) or not dataclasses.is_dataclass(estimator):
        return estimator
    return dataclasses.replace(estimator, batch_size=BATCH)


@functools.lru_cache(maxsize=64)
def _proofs(key: Asked) -> Mapping[str, Proof]:
    found: dict[str, Proof] = {}
    tree = tree_of(key.subject)
    for setting in (tree if setting is TREE else setting for setting in ASKED):
        found[setting.name] = _proof(key.subject, _with_words(key.subject, tree) if setting is tree else setting)
        if found[setting.name].verdict == "fail":
            return found
    if found[tree.name].left_out:
        found[MATRIX.name] = _proof(key.subject, MATRIX)
    if _has_another_program(key.subject):
        found[FIFTY.name] = _of_fifty(key)
    return found


def tree_of(subject: Subject) -> Setting:
    """The pytree that a run reads a step for."""
    return FEW_LEAVES if subject.options else TREE


def _with_words(subject: Subject, tree: Setting) -> Setting:
    """The pytree with leaves of the names that stand in the code of a step, which may treat them in its own way."""
    try:
        words = words_of_step(step_of(subject.sampler(PLANE.target(False))))
    except RAISED:  # what cannot be built for two coordinates, or has no step, is for the proof to name
        return tree
    made = target_of_few_leaves if tree is FEW_LEAVES else target_of_tree
    return dataclasses.replace(tree, target=lambda positive: made(positive, words)) if words else tree


def _has_another_program(subject: Subject) -> bool:
    """True if the operations of a step in fifty coordinates are not those in two."""

    def operations(setting: Setting) -> list[str]:
        target = setting.target(False)
        sampler, estimator = subject.sampler(target), in_batches(subject.estimator(target))
        return list(operation_names(program_of_first_step(sampler, estimator, target.example, 0.1).jaxpr))

    try:
        built = subject.sampler(PLANE.target(False))
        if subject.options or on_host(built) or "euclidean" not in built.claims.spaces:
            return False
        return not isinstance(built.claims.law, ParticleLaw) and operations(PLANE) != operations(FIFTY)
    except RAISED:
        return False


def _proof(subject: Subject, setting: Setting, work: int = MOST_WORK) -> Proof:
    with rings_limited(work):
        return prove(subject.sampler, setting, lambda target: in_batches(subject.estimator(target)))


def setting_of(subject: Subject, target: Target) -> str | None:
    """Name of the setting whose potentials include that of a target; None where there is none.

    Those are vectors of one or two numbers, without data: R^n, or positive ones for samplers that know no others.
    """
    leaves = jax.tree.leaves(target.example)
    if target.terms is not None or len(leaves) != 1 or leaves[0].ndim != 1:
        return None
    flat = "euclidean" in subject.sampler(target).claims.spaces
    fits = target.manifold.is_linear if flat else target.manifold.is_positive
    return BY_SIZE.get(target.size) if fits else None
