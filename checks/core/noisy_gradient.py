"""A sampler whose gradients have noise: what an exact gradient leaves idle, such as its key, matters then."""

import dataclasses

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.targets.target import Target


def with_noise(subject: Subject, target: Target) -> Subject:
    """The subject with a noisy estimator, where its sampler can run on one."""
    sampler = subject.sampler(target)
    exact = target.terms is not None or target.finite is not None
    keep = sampler.needs & {"potential", "statistics"} or sampler.backend == "host" or exact
    row = subject.row if keep else dataclasses.replace(subject.row, estimator=_noisy)
    return Subject(row, subject.options, subject.reference)


def _noisy(target: Target) -> KnownNoise:
    """Exact gradients with noise of a known covariance, reported."""
    return KnownNoise(target, target.curvature * np.eye(target.size))
