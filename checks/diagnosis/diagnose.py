"""The diagnosis of a sampler whose law or dynamics was found wrong."""

import functools

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.diagnosis.cause import Diagnosis
from sgmcmc_verification.checks.diagnosis.data import factors_of_data
from sgmcmc_verification.checks.diagnosis.declared import against_declared
from sgmcmc_verification.checks.diagnosis.evidence import gather
from sgmcmc_verification.checks.diagnosis.powers import power_of_h
from sgmcmc_verification.checks.diagnosis.second_order import leading_bias, order_of_stages
from sgmcmc_verification.checks.diagnosis.undeclared import from_the_code_alone
from sgmcmc_verification.checks.tracing.kinds import accepts
from sgmcmc_verification.samplers.interface.claims import ExactLaw
from sgmcmc_verification.targets.target import Target

HYPOTHESES = (power_of_h, factors_of_data, against_declared, from_the_code_alone, order_of_stages, leading_bias)
"""Evidence -> a diagnosis or None, the simplest explanation first."""
MOST = 6
"""Coordinates of a target on which a step is diagnosed: a mistake shows in few of them."""


@functools.lru_cache(maxsize=64)
def diagnose(subject: Subject, target: Target) -> Diagnosis | None:
    """The simplest explanation that the step on a target bears out, or on the first Gaussian of the row; or None.

    Kernels that accept and reject are left to the check of their balance: they have no drift. A verdict stands without
    a diagnosis: whatever a sampler raises where the evidence is gathered leaves it without one.
    """
    if subject.row.is_kernel:
        return None
    found = _diagnose(subject, target)
    if found is None and target.gaussian is None:
        others = (find_target(name) for name in subject.row.targets)
        plain = next((t for t in others if t.gaussian is not None and t.size <= MOST), None)
        found = None if plain is None else _diagnose(subject, plain)
    return found


def _diagnose(subject: Subject, target: Target) -> Diagnosis | None:
    if target.size > MOST:
        return None
    try:
        if ExactLaw in subject.sampler(target).claims or accepts(subject):
            return None
        evidence = gather(subject, target)
        return next((found for hypothesis in HYPOTHESES if (found := hypothesis(evidence)) is not None), None)
    except Exception:
        return None
