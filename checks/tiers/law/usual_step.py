"""Bias at the usual step size: a law that is right as h -> 0 may be of no use at the step size that people run.

The variance of the position on a Gaussian with precision P errs in some direction by the eigenvalue of largest size of
P^(1/2) cov P^(1/2) / T - I. Beside it is what the reference sampler of the same dynamics does at this step size, by the
closed form of its law on each eigenvalue of P.
"""

import functools
from typing import Any

import numpy as np

from sgmcmc_verification.samplers.interface.claims import StationaryMoments
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target as find_target
from sgmcmc_verification.targets.target import Target

REFERENCES = {1: "sgld", 2: "sghmc-symmetric"}
"""Variables to a coordinate: a position; with a momentum -> the reference sampler."""
ROUNDOFF = 1e-9
"""Relative error of a variance that the condition of the Lyapunov equation explains."""


def error_of_variance(whitened: np.ndarray) -> float:
    """The eigenvalue of largest size of P^(1/2) cov P^(1/2) / T - I (d, d)."""
    found = np.linalg.eigvalsh((whitened + whitened.T) / 2)
    return float(found[np.argmax(np.abs(found))])


def at_usual_step(whitened: np.ndarray, h: float, target: Target, variables: int) -> dict[str, Any]:
    """Error of a variance, with the words for it, beside that of the reference sampler where there is one.

    Args:
        whitened: P^(1/2) cov P^(1/2) / T - I, (d, d), at step size h.
        h: step size.
        target: a Gaussian.
        variables: numbers of z to a coordinate of the position.
    """
    assert target.gaussian is not None
    error = error_of_variance(whitened)
    text = f"at the usual step size {h:.3g} a variance on {target.name} errs by {_percent(error)}"
    found: dict[str, Any] = {"error": error, "step_size": h}
    if variables in REFERENCES:
        curvatures = np.linalg.eigvalsh(np.asarray(target.gaussian.precision))
        other = max((_error(REFERENCES[variables], h, float(k)) for k in curvatures), key=abs)
        text += f"; that of {REFERENCES[variables]} would by {_percent(other)}"
        found |= {"reference": REFERENCES[variables], "reference_error": other}
    return found | {"text": text}


def _percent(error: float) -> str:
    if not np.isfinite(error):
        return "any amount (unstable)"
    size = 100 * abs(error)
    return "nothing" if abs(error) < ROUNDOFF else f"{size:.0f}%" if size >= 10 else f"{size:.2g}%"


@functools.cache
def _error(reference: str, h: float, curvature: float) -> float:
    """Relative error of the variance of a reference sampler on U = curvature x^2 / 2; infinite where it is unstable."""
    moments = sampler_row(reference).build(find_target("gaussian-1d-scaled")).claims[StationaryMoments]
    try:
        variance = moments.values(h, curvature)["position"]
    except ZeroDivisionError:  # where it begins to be unstable
        return np.inf
    return variance * curvature - 1 if 0 < variance < np.inf else np.inf
