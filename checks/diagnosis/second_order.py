"""The error of a step whose drift and diffusion are right: the h^2 terms, and the leading bias of its law."""

import numpy as np

from sgmcmc_verification.checks.diagnosis.cause import CLOSE, Diagnosis, factor
from sgmcmc_verification.checks.diagnosis.evidence import Evidence
from sgmcmc_verification.checks.exact_laws.lyapunov import position_law
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.samplers.interface.claims import StationaryMoments, StochasticEquation

STAGES = {
    "the move of the position and the kick": ("A", "B"),
    "the move of the position and the friction": ("A", "O"),
    "the kick and the friction": ("B", "O"),
}
"""Pairs of stages of a splitting by what they do, in the letters of leimkuhler2013rational."""


def order_of_stages(evidence: Evidence) -> Diagnosis | None:
    """The commutators of stages that a step of order 2 should not have, on a Gaussian target.

    The mean map of a step is A = I + h J + h^2 A_2 + .., with A_2 = J^2 / 2 for weak order 2. A splitting whose stages
    do not stand symmetrically, or one that uses the gradient of another place, is off by multiples of the commutators
    [J_A, J_B] / 2, [J_A, J_O] / 2 and [J_B, J_O] / 2 (leimkuhler2013rational, section 2).
    """
    claim = evidence.step.sampler.claims.get(StochasticEquation)
    d, n = evidence.target.size, evidence.step.size
    if claim is None or (claim.weak_order or 0) < 2 or evidence.target.gaussian is None or n != 2 * d:
        return None
    maps = np.array([evidence.step.pair(float(h)).matrix[:n, :n] for h in evidence.hs])
    hs = evidence.hs[:, None, None]
    J = neville(evidence.hs, (maps - np.eye(n)) / hs)[0]
    second = neville(evidence.hs, (maps - np.eye(n) - hs * J) / hs**2)[0]
    parts = {"A": np.zeros((n, n)), "B": np.zeros((n, n)), "O": np.zeros((n, n))}
    parts["A"][:d], parts["B"][d:, :d], parts["O"][d:, d:] = J[:d], J[d:, :d], J[d:, d:]
    off = second - J @ J / 2
    if np.abs(off).max() <= 1e-3 * (1 + np.abs(J @ J).max()):
        return None
    brackets = {name: parts[a] @ parts[b] - parts[b] @ parts[a] for name, (a, b) in STAGES.items()}
    basis = np.stack([b.ravel() / 2 for b in brackets.values()], axis=1)
    found = np.linalg.lstsq(basis, off.ravel(), rcond=None)[0]
    if np.abs(off.ravel() - basis @ found).max() > 1e-3 * (1 + np.abs(off).max()):
        i, j = np.unravel_index(np.argmax(np.abs(off)), off.shape)
        given = 0.0 if abs(second[i, j]) < CLOSE else second[i, j]
        term = f"the h^2 term of {evidence.names[i]} from {evidence.names[j]}"
        due = (J @ J / 2)[i, j]
        return Diagnosis("stages", f"of order 1: {term} is {given:.4g}, for order 2 it is {due:.4g}")
    wrong = [name for name, c in zip(brackets, found, strict=True) if abs(c) > 1e-2]
    return Diagnosis("stages", f"of order 1: {', '.join(wrong)} do not stand symmetrically, or one uses a stale value")


def leading_bias(evidence: Evidence) -> Diagnosis | None:
    """The h term of the bias of the position's variance against that of the published closed form."""
    claim, gaussian = evidence.step.sampler.claims.get(StationaryMoments), evidence.target.gaussian
    if claim is None or gaussian is None or evidence.target.size != 1:
        return None
    curvature, T = float(gaussian.precision[0, 0]), evidence.temperature
    hs = evidence.hs[2:6]
    found = np.array([position_law(evidence.step, float(h))[1][0, 0] for h in hs]) * curvature / T - 1
    due = np.array([claim.values(float(h), curvature)["position"] for h in hs]) * curvature / T - 1
    if not np.all(np.isfinite(found)) or np.abs(found - due).max() <= CLOSE * np.abs(due).max() + 1e-9:
        return None
    if np.abs(due).max() < 1e-2 * np.abs(found).max():
        text = f"the variance has a bias of {found[0]:.3g} at h = {hs[0]:.3g}, it should have one of {due[0]:.1g}"
        return Diagnosis("second order", text)
    ratio = factor(float(neville(hs, found / due)[0]), evidence.known)
    return Diagnosis("second order", f"the leading bias of the variance is {ratio} times the published one")
