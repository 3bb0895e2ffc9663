"""The law of auxiliary variables of which nothing is declared, as it is on Gaussians: a hypothesis for other targets.

A momentum of an undeclared mass has a law that the affine step on a Gaussian target shows: its covariance as h -> 0. If
that does not depend on the target, and the momentum not on the position, N(m, S) is the natural hypothesis for every
target. That exp(-U) N(m, S) is invariant there is then a statement that can be decided; where it is not, it says
nothing.
"""

from functools import lru_cache

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.exact_laws.lyapunov import variable_moments
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tracing.one_step_moments import step_sizes
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.target import Target

SAME = 1e-5
"""Relative gap of two limits h -> 0 that count as one."""


@lru_cache(maxsize=8)
def _two_gaussians(size: int) -> tuple[Target, Target]:
    """Two targets with different scales."""
    k = np.arange(size)
    correlated = 0.4 ** np.abs(k[:, None] - k)
    return (
        gaussian(0.3 * np.ones(size), 0.5 * correlated, f"assumed-a-{size}"),
        gaussian(-0.2 * np.ones(size), np.diag(2.0 + k), f"assumed-b-{size}"),
    )


@lru_cache(maxsize=64)
def assumed_auxiliary(subject: Subject, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (m,) and covariance (m, m) of the auxiliary variables of a sampler on targets of `size` coordinates.

    Raises:
        OutOfReach: if the step is not affine on Gaussians, or their law depends on the target or on the position.
    """
    found = []
    for target in _two_gaussians(size):
        try:
            step = step_map(subject, target)
            hs = step_sizes(subject, target)
            moments = [variable_moments(step, h) for h in hs]
        except NotApplicable as reason:
            raise OutOfReach(f"the law of the auxiliary variables is not declared, and {reason}") from None
        if step.size <= size:
            raise OutOfReach("the law of the auxiliary variables is not declared, and there are none without data")
        limits = [neville(hs, np.array(column)) for column in zip(*moments, strict=True)]
        (mean, mean_error), (covariance, error) = limits
        numerical = max(error.max(), mean_error.max()) / np.abs(covariance).max()
        if not numerical < SAME:
            raise OutOfReach("the law of the auxiliary variables is not declared, and has no limit as h -> 0")
        if np.abs(covariance[:size, size:]).max() > 10 * SAME * np.abs(covariance).max():
            raise OutOfReach("the auxiliary variables depend on the position")
        found.append((mean[size:], covariance[size:, size:]))
    (mean, covariance), (other_mean, other) = found
    gap = max(np.abs(covariance - other).max(), np.abs(mean - other_mean).max())
    if gap > 10 * SAME * (1 + np.abs(covariance).max()):
        raise OutOfReach("the law of the auxiliary variables depends on the target")
    if np.linalg.eigvalsh(covariance).min() <= SAME:
        raise OutOfReach("the auxiliary variables do not move")
    return mean, covariance
