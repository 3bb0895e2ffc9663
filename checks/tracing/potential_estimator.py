"""Estimators that return the potential too, for samplers that ask for it."""

import dataclasses

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.samplers.estimators.basic import FullEnergy
from sgmcmc_verification.targets.target import Target


def with_energy(subject: Subject, target: Target, estimator):
    """`estimator`, with the potential as the row's own estimator has it where the sampler needs one."""
    own = subject.estimator(target)
    if isinstance(own, FullEnergy):
        return dataclasses.replace(own, inner=estimator)
    return FullEnergy(estimator, target) if "potential" in subject.sampler(target).needs else estimator
