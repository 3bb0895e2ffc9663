"""Drift and diffusion of a step whose author declared no dynamics, against the plainest ones of its shape.

Overdamped: f = -G grad U with D = T G. With a momentum: dx = r / m dt, dr = (-grad U - C r) dt + sqrt(2 C m T) dW.
"""

import numpy as np

from sgmcmc_verification.checks.diagnosis.cause import CLOSE, Diagnosis, factor
from sgmcmc_verification.checks.diagnosis.evidence import Evidence


def from_the_code_alone(evidence: Evidence) -> Diagnosis | None:
    """Factors of gradient, noise and friction, as far as one of the plain forms fits."""
    d, n = evidence.target.size, evidence.step.size
    if evidence.dynamics is not None or evidence.target.manifold.dim < d:
        return None
    if n == d:
        return _overdamped(evidence)
    return _underdamped(evidence) if n == 2 * d else None


def _fit(values: np.ndarray, basis: np.ndarray) -> np.ndarray | None:
    """M with values = basis M, or None: (P, a) from (P, b) -> (b, a)."""
    if len(values) < basis.shape[1] or np.linalg.matrix_rank(basis) < basis.shape[1]:
        return None
    M = np.linalg.lstsq(basis, values, rcond=None)[0]
    return M if np.abs(values - basis @ M).max() <= 10 * CLOSE * (1 + np.abs(values).max()) else None


def _constant(D: np.ndarray) -> np.ndarray | None:
    return D[0] if np.abs(D - D[0]).max() <= 10 * CLOSE * (1 + np.abs(D).max()) else None


def _scalar(M: np.ndarray) -> float | None:
    """c with M = c I, or None."""
    c = float(np.trace(M)) / len(M)
    return c if np.abs(M - c * np.eye(len(M))).max() <= 10 * CLOSE * (1 + abs(c)) else None


def _overdamped(evidence: Evidence) -> Diagnosis | None:
    T, known = evidence.temperature, evidence.known
    M, D = _fit(-evidence.drift, evidence.gradient), _constant(evidence.diffusion)
    if D is None:
        return _preconditioned(evidence)
    if M is None:
        return None
    G, d = M.T, len(D)
    c = _scalar(G)
    rank = int(np.linalg.matrix_rank(D, tol=CLOSE * np.abs(D).max()))
    if rank < d:
        return Diagnosis("shared draws", f"the noise has rank {rank} in {d} coordinates: draws are shared")
    if c is None:
        return _uneven(evidence, G, D)
    noise = _scalar(D)
    if noise is None:
        share = D / np.sqrt(np.outer(np.diag(D), np.diag(D)))
        i, j = np.unravel_index(np.argmax(np.abs(share - np.eye(d))), share.shape)
        if abs(share[i, j]) > CLOSE and i != j:
            where = f"{evidence.names[i]} and {evidence.names[j]}"
            return Diagnosis("shared draws", f"the noise of {where} has the correlation {share[i, j]:.3g}")
        worst = int(np.argmax(np.abs(np.diag(D) / (c * T) - 1)))
        ratio = factor(float(D[worst, worst] / (c * T)), known)
        return Diagnosis("noise", f"the variance of the noise in {evidence.names[worst]} has the factor {ratio}")
    if abs(noise - c * T) <= CLOSE * (1 + abs(c * T)):
        return None
    if c < 0:
        return Diagnosis("drift", f"the drift is {-c:.4g} grad U, uphill: the sign of the gradient is wrong")
    heat = f"a temperature of {noise / c:.4g} for {T:.4g}" if c else "no law"
    if abs(c - 1) < CLOSE:
        ratio = factor(noise / T, known)
        return Diagnosis(
            "noise", f"the variance of the noise is {2 * noise:.4g} h for {2 * T:.4g} h, {ratio} times: {heat}"
        )
    if abs(noise - T) < CLOSE * T:
        return Diagnosis("drift", f"the drift is -{factor(c, known)} grad U: {heat}")
    return Diagnosis("noise", f"the drift is -{c:.4g} grad U, the noise has the variance {2 * noise:.4g} h: {heat}")


def _uneven(evidence: Evidence, G: np.ndarray, D: np.ndarray) -> Diagnosis | None:
    """A drift -G grad U of coordinates that are not treated alike."""
    drawn, T = np.diag(G), evidence.temperature
    without = np.flatnonzero((np.abs(drawn) <= CLOSE * np.abs(G).max()) & (np.diag(D) > CLOSE * np.abs(D).max()))
    if without.size:
        return Diagnosis("drift", f"{evidence.names[without[0]]} gets noise, and its gradient does not move it")
    ratios = np.diag(D) / (T * drawn)
    worst = int(np.argmax(np.abs(ratios - 1)))
    if abs(ratios[worst] - 1) <= CLOSE or np.ptp(ratios) <= CLOSE:
        return None
    ratio = factor(float(ratios[worst]), evidence.known)
    return Diagnosis("noise", f"in {evidence.names[worst]} the noise has {ratio} of the variance of its drift")


def _preconditioned(evidence: Evidence) -> Diagnosis | None:
    """A diffusion D that depends on the position: f = -D grad U / T + Gamma, Gamma_i = sum_j d_j D_ij."""
    T, d = evidence.temperature, evidence.target.size
    tolerance = 10 * CLOSE * evidence.scale
    slope = -np.einsum("pij,pj->pi", evidence.diffusion, evidence.gradient) / T
    if np.abs(evidence.drift - slope).max() <= tolerance:
        text = "the noise depends on the position, and Gamma_i = sum_j d_j D_ij is missing in the drift"
        return Diagnosis("drift", text)
    gamma = np.zeros_like(slope)
    for j, step in enumerate(1e-3 * np.eye(d) / np.sqrt(evidence.target.curvature)):
        ahead, behind = (evidence.at(evidence.points + sign * step).diffusion for sign in (1, -1))
        gamma += (ahead - behind)[:, :, j] / (2 * step[j])
    if np.abs(evidence.drift - slope - gamma).max() <= tolerance:
        return None
    if np.abs(evidence.drift - slope + gamma).max() <= tolerance:
        return Diagnosis("drift", "Gamma_i = sum_j d_j D_ij has the wrong sign in the drift")
    p = int(np.argmax(np.abs(evidence.drift - slope - gamma).max(axis=1)))
    where = f"z = {np.round(evidence.points[p], 3).tolist()}"
    needed = f"{np.round((slope + gamma)[p], 4).tolist()}"
    return Diagnosis(
        "noise",
        f"the noise depends on the position and belongs to another drift: at {where} the drift is "
        f"{np.round(evidence.drift[p], 4).tolist()}, -D grad U / T + Gamma is {needed}",
    )


def _underdamped(evidence: Evidence) -> Diagnosis | None:
    d, T, known = evidence.target.size, evidence.temperature, evidence.known
    r = evidence.points[:, d:]
    move = _fit(evidence.drift[:, :d], r)
    push = _fit(evidence.drift[:, d:], np.concatenate([evidence.gradient, r], axis=1))
    D = _constant(evidence.diffusion)
    if move is None or push is None or D is None:
        return None
    speed, force, friction, heat = _scalar(move), _scalar(-push[:d]), _scalar(-push[d:]), _scalar(D[d:, d:])
    if np.abs(D[:d, :d]).max() > 10 * CLOSE * (1 + np.abs(D).max()):
        return Diagnosis("noise", "noise enters the position itself at first order")
    if heat is None and friction is not None:
        rank = int(np.linalg.matrix_rank(D[d:, d:], tol=CLOSE * (1e-300 + np.abs(D).max())))
        return (
            Diagnosis("shared draws", f"the noise of the momenta has rank {rank} in {d} coordinates")
            if rank < d
            else None
        )
    if speed is None or force is None or friction is None or heat is None:
        return None
    if speed * force <= 0:
        return Diagnosis(
            "drift", f"the position moves by {speed:.4g} r, the force is {-force:.4g} grad U: signs differ"
        )
    # exp(-(U / T' + r^2 / (2 s))): the flow keeps it with s / T' = force / speed, friction and noise give s
    if friction <= CLOSE:
        if heat <= CLOSE:
            return None
        return Diagnosis(
            "drift", f"noise of variance {2 * heat:.4g} h without friction: the energy grows without bound"
        )
    if heat <= CLOSE:
        return Diagnosis("noise", f"friction {friction:.4g} without noise: the chain falls into the mode")
    spread = heat / friction
    found = spread * speed / force
    if abs(found / T - 1) < CLOSE:
        return None
    if abs(force - 1) > CLOSE and abs(spread * speed / T - 1) < CLOSE:
        return Diagnosis(
            "drift", f"the force is -{factor(force, known)} grad U: a temperature of {found:.4g} for {T:.4g}"
        )
    need = friction * T * force / speed
    return Diagnosis(
        "noise",
        f"the noise of the momentum has the variance {2 * heat:.4g} h, a friction of {friction:.4g} needs "
        f"{2 * need:.4g} h ({factor(heat / need, known)} times): a temperature of {found:.4g} for {T:.4g}",
    )
