"""The generator of the code: limits of drift and diffusion of a step as its size goes to 0."""

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tracing.one_step_moments import moments_of, step_sizes
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.interface.sampler import Estimator
from sgmcmc_verification.targets.target import Target

EXTRAPOLATED = 9
"""Factor by which extrapolation to h = 0 from halvings of h raises round-off: prod_k (2^k + 1) / (2^k - 1)."""


def code_generator(subject: Subject, target: Target, points: np.ndarray, estimator: Estimator | None = None):
    """Drift (P, n) and diffusion D (P, n, n) of the code at `points`, each with an error estimate, and the jump.

    (E[z'] - z) / h -> f and E[(z' - z)(z' - z)^T] / h -> 2 D as h -> 0, extrapolated polynomially in h (the
    expectation over the noise removes the half powers). The jump (P, n) is the limit of E[z'] - z itself, less its
    error and round-off: zero, unless the step of size 0 is not the identity and no drift exists. `estimator` takes the
    place of the row's own.
    """
    hs = step_sizes(subject, target)
    step = step_map(subject, target, estimator)
    increments, squares = moments_of(step, points, hs)
    drift, drift_error = neville(hs, increments / hs[:, None, None])
    square, square_error = neville(hs, squares / hs[:, None, None, None])
    jump, jump_error = neville(hs, increments)
    # a sum over the nodes of a rule of degree 5 (`one_step_moments`) loses up to a unit in the last place a node
    nodes = 1 + 2 * step.noise_size**2 if isinstance(step, JaxStep) else 1
    roundoff = max(100, EXTRAPOLATED * nodes) * np.finfo(float).eps * (1 + np.abs(points).max())
    return drift, drift_error, square / 2, square_error / 2, np.maximum(np.abs(jump) - 10 * jump_error - roundoff, 0)
