"""Mean and covariance of one step, by quadrature over its draws."""

import numpy as np

from checks.core.candidate import Subject
from checks.tracing.step_map import step_map
from targets.target import Target

LEVELS = 8
"""Step sizes h0 / 2^k, k = 0 .. LEVELS - 1."""


def step_sizes(subject: Subject, target: Target, levels: int = LEVELS) -> np.ndarray:
    """The usual step size and its halvings."""
    return subject.step_size(target) / 2.0 ** np.arange(levels)


def one_step_moments(subject: Subject, target: Target, points: np.ndarray):
    """The step sizes (k,), E[z'] - z (k, P, n) and E[(z' - z)(z' - z)^T] (k, P, n, n) of one step from `points`."""
    step, hs = step_map(subject, target), step_sizes(subject, target)
    moments = [step.moments(points, h) for h in hs]
    return hs, np.array([m.increment for m in moments]), np.array([m.square for m in moments])
