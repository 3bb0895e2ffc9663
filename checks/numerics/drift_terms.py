"""Terms of a drift, and the diagnosis of a wrong one.

f_i = -sum_j (D_ij + Q_ij) d_j H + Gamma_i,   Gamma_i = sum_j d_j (D_ij + Q_ij)      [ma2015complete, equation (3)]
"""

# SymPy and tuple sums are typed too widely for these rules to say anything here.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportCallIssue=false, reportIndexIssue=false

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics

GAMMA = "Gamma_i = sum_j d_j (D_ij + Q_ij)"
DRIFT = "f = -(D + Q) grad H + Gamma"


class Terms(NamedTuple):
    """The terms of the drift at points: what f is a sum of.

    Attributes:
        slope_D: (m, n, n), -D_ij d_j H.
        slope_Q: (m, n, n), -Q_ij d_j H.
        gamma_D: (m, n, n), d_j D_ij.
        gamma_Q: (m, n, n), d_j Q_ij.
    """

    slope_D: np.ndarray
    slope_Q: np.ndarray
    gamma_D: np.ndarray
    gamma_Q: np.ndarray

    @property
    def drift(self) -> np.ndarray:
        """f, (m, n): the sum of all terms."""
        return sum(t.sum(-1) for t in self)  # type: ignore[return-value]

    @property
    def scale(self) -> np.ndarray:
        """(m, n), sum of the magnitudes of the terms."""
        return sum(np.abs(t).sum(-1) for t in self)  # type: ignore[return-value]


class GammaTerm(NamedTuple):
    """One term d_j M_ij of Gamma_i, with M either `"D"` or `"Q"`."""

    matrix: str
    i: int
    j: int

    def name(self, names: tuple[str, ...]) -> str:
        """`d/dtheta[0] Q[r[0],theta[0]]`."""
        return f"d/d{names[self.j]} {self.matrix}[{names[self.i]},{names[self.j]}]"


def drift_terms(dynamics: Dynamics, points: np.ndarray) -> Terms:
    """All terms of the drift derived from H, D and Q (never from `dynamics.drift` or `dynamics.gamma`).

    Args:
        dynamics: H, D and Q.
        points: (m, n).
    """

    with jax.enable_x64(True):
        return Terms(*(np.asarray(a) for a in _compiled_terms(dynamics)(jnp.asarray(points, jnp.float64))))


@functools.lru_cache(maxsize=8)
def _compiled_terms(dynamics: Dynamics) -> Callable[[jax.Array], tuple[jax.Array, ...]]:
    """Compiled once a `Dynamics`: a diagnosis needs the terms that the verdict has just used."""

    def at(z: jax.Array):
        slope = jax.grad(dynamics.H)(z)
        diagonal = lambda matrix: jnp.einsum("ijj->ij", jax.jacfwd(matrix)(z))
        return -dynamics.D(z) * slope, -dynamics.Q(z) * slope, diagonal(dynamics.D), diagonal(dynamics.Q)

    return jax.jit(jax.vmap(at))


def gamma_terms(dynamics: Dynamics, points: np.ndarray) -> list[GammaTerm]:
    """The terms of Gamma that do not vanish at every one of the points."""
    terms = drift_terms(dynamics, points)
    found = []
    for label, values in (("D", terms.gamma_D), ("Q", terms.gamma_Q)):
        found += [GammaTerm(label, int(i), int(j)) for i, j in np.argwhere(np.abs(values).max(0) > 0)]
    return found


def without_term(dynamics: Dynamics, term: GammaTerm, factor: float = 1.0) -> Callable[[jax.Array], jax.Array]:
    """The derived drift with `factor` times one term of Gamma taken away (1: deleted, 2: of the wrong sign)."""
    matrix = dynamics.D if term.matrix == "D" else dynamics.Q

    def drift(z: jax.Array):
        value = jax.jacfwd(lambda y: matrix(y)[term.i, term.j])(z)[term.j]
        return derived_drift(dynamics, z).at[term.i].add(-factor * value)

    return drift


def derived_drift(dynamics: Dynamics, z: jax.Array) -> jax.Array:
    """-(D + Q) grad H + Gamma from H, D and Q alone, whatever `dynamics.drift` does."""
    return Dynamics(dynamics.H, dynamics.D, dynamics.Q, dynamics.names, dynamics.size).drift(z)


def explain_drift(
    dynamics: Dynamics, points: np.ndarray, values: np.ndarray, tolerance: np.ndarray | float
) -> list[str]:
    """Name the term of a component that is missing, of the wrong sign or counted twice.

    Each component of the deviation is compared with every term of that component of the drift; the simplest
    explanation is named: one term of Gamma, then sums of terms, then combinations of the sums.

    Args:
        dynamics: what the drift should follow from.
        points: (m, n), at least as many as there are sums of terms (4).
        values: (m, n), the drift at the points.
        tolerance: deviations up to this are none; a scalar or (m, n).

    Returns:
        One sentence a wrong component, empty if the drift is the derived one.
    """
    terms = drift_terms(dynamics, points)
    deviation = np.asarray(values) - terms.drift
    bound = np.broadcast_to(np.asarray(tolerance, float), deviation.shape)
    found = []
    for i, name in enumerate(dynamics.names):
        if np.any(~np.isfinite(deviation[:, i])):
            found.append(f"drift of {name}: not finite")
        elif np.any(np.abs(deviation[:, i]) > bound[:, i]):
            # A coefficient is only as sure as the deviation; naming may be lenient, the verdict does not rest on it.
            slack = 10 * bound[:, i] + np.sqrt(np.finfo(float).eps) * terms.scale[:, i]
            found.append(f"drift of {name}: {_explain(dynamics.names, i, terms, deviation[:, i], slack)}")
    return found


def diagnose_drift(
    dynamics: Dynamics, points: np.ndarray, values: np.ndarray, tolerance: np.ndarray | float = 0.0
) -> str:
    """`explain_drift` as text to append to a reason: `"; drift of r[0]: ..."`, or nothing."""
    found = explain_drift(dynamics, points, values, tolerance)
    return "; " + "; ".join(found) if found else ""


_KINDS = {-1.0: "is missing", -2.0: "has the wrong sign", 1.0: "is counted twice", -0.5: "is halved"}


def _kind(coefficient: float) -> str | None:
    for value, words in _KINDS.items():
        if abs(coefficient - value) < 1e-4:
            return words
    return None


def _explain(names: Sequence[str], i: int, terms: Terms, deviation: np.ndarray, slack: np.ndarray) -> str:
    def fits(candidate: np.ndarray) -> float | None:
        weight = np.sum(candidate**2)
        if weight == 0:
            return None
        coefficient = float(np.sum(candidate * deviation) / weight)
        return coefficient if np.all(np.abs(deviation - coefficient * candidate) <= slack) else None

    singles, total_gamma = [], terms.gamma_D[:, i] + terms.gamma_Q[:, i]
    for label, values in (("D", terms.gamma_D), ("Q", terms.gamma_Q)):
        for j in range(len(names)):
            singles.append((f"Gamma term {GammaTerm(label, i, j).name(names)}", values[:, i, j], GAMMA))
    sums = [
        (f"Gamma (all of sum_j d_j D[{names[i]},j])", terms.gamma_D[:, i].sum(-1), GAMMA),
        (f"Gamma (all of sum_j d_j Q[{names[i]},j])", terms.gamma_Q[:, i].sum(-1), GAMMA),
        ("Gamma (all of its terms)", total_gamma.sum(-1), GAMMA),
        (
            f"{'friction' if np.any(terms.slope_Q[:, i]) else 'gradient'} term -(D grad H)_i",
            terms.slope_D[:, i].sum(-1),
            DRIFT,
        ),
        ("term -(Q grad H)_i", terms.slope_Q[:, i].sum(-1), f"{DRIFT}; its sign turns with that of Q"),
        ("Q part -(Q grad H)_i + sum_j d_j Q_ij", (terms.slope_Q + terms.gamma_Q)[:, i].sum(-1), f"{DRIFT}; (D + Q)^T"),
        ("D part -(D grad H)_i + sum_j d_j D_ij", (terms.slope_D + terms.gamma_D)[:, i].sum(-1), DRIFT),
        ("term -((D + Q) grad H)_i", (terms.slope_D + terms.slope_Q)[:, i].sum(-1), DRIFT),
    ]
    products = []
    for label, values in (("D", terms.slope_D), ("Q", terms.slope_Q)):
        for j in range(len(names)):
            products.append((f"term -{label}[{names[i]},{names[j]}] dH/d{names[j]}", values[:, i, j], DRIFT))
    whole = [("the whole component", sum(t[:, i].sum(-1) for t in terms), DRIFT)]
    candidates = [(n, v, e, fits(v)) for n, v, e in (*singles, *sums, *products, *whole)]
    for words in _KINDS.values():
        same = [(n, e) for n, _, e, c in candidates if c is not None and _kind(c) == words]
        gammas = [entry for entry in same if entry[0].startswith("Gamma term")]
        # Terms that are equal as functions cannot be told apart: name them all.
        if gammas:
            return f"{' or '.join(n for n, _ in gammas)} {words} ({GAMMA})"
        if same:
            return f"{same[0][0]} {words} ({same[0][1]})"
    for name, _, equation, coefficient in candidates:
        if coefficient is not None:
            return f"{name} has the factor {1 + coefficient:.6g} ({equation})"
    return _combination(sums[:2] + sums[3:5], terms.drift[:, i], deviation, slack)


def _combination(
    sums: Sequence[tuple[str, np.ndarray, str]], drift: np.ndarray, deviation: np.ndarray, slack: np.ndarray
) -> str:
    present = [(n, v, e) for n, v, e in sums if np.any(v != 0)]
    if present and len(deviation) > len(present):
        matrix = np.stack([v for _, v, _ in present], axis=1)
        coefficients = np.linalg.lstsq(matrix, deviation, rcond=None)[0]
        if np.all(np.abs(deviation - matrix @ coefficients) <= slack):
            parts = []
            for (name, _, _), c in zip(present, coefficients, strict=True):
                if np.abs(c) > 1e-6:
                    parts.append(f"{name} {_kind(c) or f'has the factor {1 + c:.6g}'}")
            return f"{' and '.join(parts)} ({DRIFT}, {GAMMA})"
    worst = int(np.argmax(np.abs(deviation)))
    return (
        f"is {drift[worst] + deviation[worst]:.6g} where {DRIFT} gives {drift[worst]:.6g}; no single term explains it"
    )
