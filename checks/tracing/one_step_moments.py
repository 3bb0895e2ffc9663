"""Mean and covariance of one step, by quadrature over its draws."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.numerics.quadrature import symmetric_rule
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.targets.target import Target

FEW = 2
"""Points at which moments are taken where there are many normals."""
LEVELS = 8
"""Step sizes h0 / 2^k, k = 0 .. LEVELS - 1."""


def step_sizes(subject: Subject, target: Target, levels: int = LEVELS) -> np.ndarray:
    """The usual step size and its halvings."""
    return subject.step_size(target) / 2.0 ** np.arange(levels)


def one_step_moments(subject: Subject, target: Target, points: np.ndarray):
    """The step sizes (k,), E[z'] - z (k, P, n) and E[(z' - z)(z' - z)^T] (k, P, n, n) of one step from `points`."""
    hs = step_sizes(subject, target)
    return hs, *moments_of(step_map(subject, target), points, hs)


def moments_of(step: JaxStep | HostStep, points: np.ndarray, hs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[z'] - z (k, P, n) and E[(z' - z)(z' - z)^T] (k, P, n, n) of one step of each size from `points`."""
    # A step of a host is a call in Python, of which a rule with the nodes of several normals makes thousands.
    if isinstance(step, HostStep):
        try:
            return _of_quadratic_steps(
                step.normals(points[0], hs[0]), lambda z, xi, h: step.ends(itertools.repeat(z), xi, h)[0], points, hs
            )
        except OutOfReach:
            step.require_few_paths(points[0], hs[0], len(points) * len(hs))
    try:
        moments = [step.moments(points, h) for h in hs]
    except OutOfReach:
        if not isinstance(step, JaxStep):
            raise
        step.require_gaussian()
        ends = jax.jit(jax.vmap(lambda z, xi, h: step.run(z, xi, h)[0], in_axes=(None, 0, None)))
        return _of_quadratic_steps(step.noise_size, ends, points[:FEW], hs)
    return np.array([m.increment for m in moments]), np.array([m.square for m in moments])


def _of_quadratic_steps(
    normals: int, ends: Callable[..., Any], points: np.ndarray, hs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same moments by the rule of degree 5, exact for steps that are quadratic in their noise.

    Args:
        normals: k, of one step.
        ends: z (n,), draws (M, k) and a step size -> z' (M, n).
        points: (P, n).
        hs: step sizes.

    Raises:
        OutOfReach: if the steps are not quadratic in their noise, or have too many normals.
    """
    if normals == 0:
        raise OutOfReach("the step draws nothing")
    try:
        nodes, weights = symmetric_rule(normals, 5)
    except ValueError:
        raise OutOfReach(f"{normals} normals a step are too many for quadrature") from None
    # Along a generic direction the third differences of a quadratic map are zero, and on both sides of 0: signs of
    # normals are no polynomial.
    e = np.cos(2.3 * np.arange(normals) + 0.9)
    along = np.arange(-1, 4)[:, None] * e
    mean, square = [], []
    for h in hs:
        for z in points:
            moves = np.asarray(ends(z, np.concatenate([nodes, along]), h)) - z
            line = moves[len(nodes) :]
            if not np.abs(np.diff(line, 3, axis=0)).max() <= 1e-9 * (1e-300 + np.abs(line[2]).max()):
                raise OutOfReach(f"{normals} normals a step, in which it is not quadratic, are too many for quadrature")
            moves = moves[: len(nodes)]
            mean.append(weights @ moves)
            square.append((weights[:, None] * moves).T @ moves)
    shape = (len(hs), len(points))
    return np.reshape(mean, (*shape, -1)), np.reshape(square, (*shape, *square[0].shape))
