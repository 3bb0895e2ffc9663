"""Refusal of a step size that a sampler cannot take, before anything is judged at it."""

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.exact_laws.lyapunov import stability_limit
from sgmcmc_verification.checks.tracing.step_map import step_map

LARGEST = 3.0
"""Largest multiple of the usual step size at which a law on a Gaussian is computed."""


def refuse_unstable(subject: Subject) -> None:
    """Raise BadInput if `LARGEST` times the step size that was asked for is unstable on a Gaussian of the row.

    Second moments of the recursion have to contract: for SGLD h curvature < 2. A step that is no linear recursion there
    is not refused.
    """
    for name in subject.row.targets:
        target = find_target(name)
        if target.gaussian is None or target.terms is not None:
            continue
        try:
            limit = stability_limit(step_map(subject, target), subject.step_size(target))
        except RAISED:  # no linear recursion, or what the preflight speaks of
            return
        most = limit * target.curvature**subject.row.step_power
        if subject.row.step_size * LARGEST > most:
            raise BadInput(
                f"--step-size {subject.row.step_size:g}: {subject.name} is unstable on {name} beyond {most:.3g}; "
                f"the checks take up to {LARGEST:g} times the usual step size: at most {most / LARGEST:.3g}"
            )
