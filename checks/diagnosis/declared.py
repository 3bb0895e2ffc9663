"""Drift and diffusion of the code against those of the dynamics that are declared."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.diagnosis.cause import CLOSE, Diagnosis, factor
from sgmcmc_verification.checks.diagnosis.evidence import Evidence
from sgmcmc_verification.checks.numerics.drift_terms import explain_drift
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics


def against_declared(evidence: Evidence) -> Diagnosis | None:
    """The factor, the term or the coordinate in which the code differs from the declared dynamics."""
    dynamics = evidence.dynamics
    if dynamics is None or evidence.declared_drift.shape != evidence.drift.shape:
        return None
    f, D = evidence.declared_drift, evidence.declared_diffusion
    off = float(np.abs(evidence.drift - f).max()) > CLOSE * evidence.scale
    loud = float(np.abs(evidence.diffusion - D).max()) > CLOSE * (1 + np.abs(D).max())
    c = _multiple(evidence.drift, f)
    if off and loud and c is not None and c > 0 and _multiple(evidence.diffusion, D, c) is not None:
        return Diagnosis("time", f"the law is right, the time is not: a step moves {factor(c, evidence.known)} h of it")
    if off and not loud and c is not None and c > 0 and evidence.step.size == evidence.target.size:
        T = evidence.temperature
        heat = f"a temperature of {T / c:.4g} for {T:.4g}"
        return Diagnosis("drift", f"the drift has the factor {factor(c, evidence.known)}: {heat}")
    noise = _noise(evidence, D) if loud else None
    drift = _drift(evidence, dynamics, c if loud else None) if off else ""
    if noise is None:
        return Diagnosis("drift", drift) if drift else None
    return Diagnosis(noise.cause, "; ".join(text for text in (noise.text, drift) if text))


def _drift(evidence: Evidence, dynamics: Dynamics | EmbeddedDynamics, c: float | None) -> str:
    """The difference of the drift of the code, as a multiple c or by its terms."""
    if c is not None:
        return f"the whole drift has the factor {factor(c, evidence.known)}"
    gap = evidence.drift - evidence.declared_drift
    bound = max(10 * evidence.drift_error, 1e-8 * evidence.scale)
    if np.abs(gap - gap.mean(axis=0)).max() <= CLOSE * np.abs(gap).max():
        shift = {name: float(c) for name, c in zip(evidence.names, gap.mean(axis=0), strict=True) if abs(c) > bound}
        constants = ", ".join(f"{c:.4g}" for c in shift.values())
        return f"a constant is added to the drift of {' and '.join(shift)}: {constants}"
    if isinstance(dynamics, Dynamics):
        if (again := _metric_again(evidence, dynamics)) is not None:
            return again
        return _joined(explain_drift(dynamics, evidence.points, evidence.drift, bound))
    p, i = np.unravel_index(np.argmax(np.abs(gap)), gap.shape)
    return (
        f"drift of {evidence.names[i]} at z = {np.round(evidence.points[p], 3).tolist()}: the code has "
        f"{evidence.drift[p, i]:.4g}, the dynamics {evidence.declared_drift[p, i]:.4g}"
    )


def _metric_again(evidence: Evidence, dynamics: Dynamics) -> str | None:
    """True if the gradient is multiplied by D twice."""
    slope = np.asarray(jax.vmap(jax.grad(dynamics.H))(jnp.asarray(evidence.points)))
    D = evidence.declared_diffusion
    once = np.einsum("pij,pj->pi", D, slope)
    twice = evidence.declared_drift + once - np.einsum("pij,pj->pi", D, once)
    if np.abs(evidence.drift - twice).max() <= CLOSE * evidence.scale < np.abs(twice - evidence.declared_drift).max():
        return "the gradient is multiplied by D twice: -D^2 grad H for -D grad H"
    return None


def _joined(terms: Sequence[str]) -> str:
    """Identical findings in one sentence: `drift of r[0] and r[1]: ...`."""
    groups: dict[str, list[str]] = {}
    for term in terms:
        head, _, rest = term.partition(": ")
        name = head.removeprefix("drift of ")
        groups.setdefault(rest.replace(name, "z_i"), []).append(term)
    more = lambda group: f" (and {len(group) - 1} more)" if len(group) > 1 else ""
    return "; ".join([group[0] + more(group) for group in groups.values()][:2])


def _multiple(found: np.ndarray, declared: np.ndarray, at: float | None = None) -> float | None:
    """c with found = c declared, or None; `at` is the only c that counts."""
    weight = float(np.sum(declared * declared))
    if weight == 0:
        return None
    c = float(np.sum(found * declared)) / weight
    fits = np.abs(found - c * declared).max() <= 10 * CLOSE * (1 + np.abs(found).max())
    return c if fits and (at is None or abs(c - at) <= 10 * CLOSE * max(1.0, abs(at))) else None


def _noise(evidence: Evidence, D: np.ndarray) -> Diagnosis:
    """The difference of the diffusion of the code from D, the simplest kind first."""
    found, names, T = evidence.diffusion, evidence.names, evidence.temperature
    c = _multiple(found, D)
    if c is not None:
        if abs(c) < CLOSE:
            return Diagnosis("noise", "no noise is injected that lasts as h -> 0")
        heat = f": a temperature of {c * T:.4g} for {T:.4g}" if c > 0 else ""
        return Diagnosis("noise", f"the variance of the noise has the factor {factor(c, evidence.known)}{heat}")
    free = np.abs(D).max(axis=(0, 2)) <= CLOSE * (1 + np.abs(D).max())
    if np.any(np.abs(found[:, free]) > 10 * CLOSE * (1 + np.abs(D).max())):
        worst = int(np.argmax(np.where(free, np.abs(found).max(axis=(0, 2)), 0)))
        return Diagnosis("noise", f"noise enters {names[worst]}, which should have none")
    ranks = [int(np.linalg.matrix_rank(A[0], tol=CLOSE * np.abs(A[0]).max())) for A in (found, D)]
    if ranks[0] < ranks[1]:
        return Diagnosis("shared draws", f"the noise has rank {ranks[0]} in {ranks[1]} coordinates: draws are shared")
    diagonal = np.einsum("pii->pi", found) / np.where(np.einsum("pii->pi", D) == 0, np.inf, np.einsum("pii->pi", D))
    wrong = [i for i in np.flatnonzero(~free) if np.abs(diagonal[:, i] - 1).max() > CLOSE]
    alike = len(wrong) > 0 and np.ptp(diagonal[:, wrong[0]]) < 10 * CLOSE * np.abs(diagonal).max()
    if len(wrong) == 1 and alike and np.count_nonzero(~free) > 1:
        ratio = factor(float(diagonal[0, wrong[0]]), evidence.known)
        return Diagnosis("noise", f"the variance of the noise in {names[wrong[0]]} has the factor {ratio}")
    for text, form in _forms(D, "metric" if isinstance(evidence.dynamics, Dynamics) else "projection"):
        c = _multiple(found, form)
        if c is not None and c > CLOSE:
            times = "" if abs(c - 1) < 10 * CLOSE else f", times {factor(c, evidence.known)}"
            return Diagnosis("noise", f"the noise has the variance {text}{times}, it should be 2 h D")
    if wrong:
        i = wrong[0]
        p = int(np.argmax(np.abs(diagonal[:, i] - 1)))
        where = f"in {names[i]} at z = {np.round(evidence.points[p], 3).tolist()}"
        numbers = f"{2 * found[p, i, i]:.4g} h, it should be {2 * D[p, i, i]:.4g} h"
        text = f"the variance of the noise {where} is {numbers}"
        return Diagnosis("noise", text if alike else f"{text}, and depends on z")
    return Diagnosis("shared draws", "the noise of different coordinates has the wrong correlation")


def _forms(D: np.ndarray, structure: str) -> list[tuple[str, np.ndarray]]:
    """Forms that a diffusion takes by mistake, with their names."""
    active = np.abs(D).max(axis=(0, 2)) > 0
    identity = np.broadcast_to(np.diag(active.astype(float)), D.shape)
    forms = [
        (f"2 h I, without the {structure}", identity),
        ("2 h D^2 (as where a factor stands for its square root)", D @ D),
        ("2 h diag(D), without its correlations", D * np.eye(D.shape[1])),
    ]
    values, vectors = np.linalg.eigh(D)
    root = (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return [*forms, ("2 h D^(1/2) (as where a root is taken twice)", root)]
