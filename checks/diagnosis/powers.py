"""Powers of the step size with which noise and drift of a step go to 0."""

import numpy as np

from sgmcmc_verification.checks.diagnosis.cause import Diagnosis
from sgmcmc_verification.checks.diagnosis.evidence import Evidence
from sgmcmc_verification.checks.numerics.convergence_rate import slope

EPS = np.finfo(float).eps
HALF = 0.2
"""Powers of h are multiples of one half; what is farther than this from 1 is another one."""


def power_of_h(evidence: Evidence) -> Diagnosis | None:
    """Noise that is absent, and noise or drift that does not go like h."""
    variance = np.abs(evidence.covariances).max(axis=(1, 2, 3))
    floor = 1e3 * EPS * (1 + np.abs(evidence.points).max()) ** 2
    if variance.max() <= floor:
        return Diagnosis("noise", "no noise reaches the state: a step is deterministic")
    found = []
    p, _ = slope(evidence.hs, variance, floor)
    if np.isfinite(p) and abs(p - 1) > HALF:
        found.append(f"the variance of the noise goes like h^{p:.2f}, it should go like h")
    size = np.abs(evidence.increments).max(axis=(1, 2))
    q, _ = slope(evidence.hs, size, 1e3 * EPS * (1 + np.abs(evidence.points).max()))
    if np.isfinite(q) and abs(q - 1) > HALF:
        worst = evidence.names[int(np.argmax(np.abs(evidence.increments[-1]).max(axis=0)))]
        found.append(f"the mean move of {worst} in a step goes like h^{q:.2f}, it should go like h")
    return Diagnosis("power of h", "; ".join(found)) if found else None
