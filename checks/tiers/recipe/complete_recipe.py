"""The recipe tier: Q skew, D positive semidefinite, Gamma, drift, and a Fokker-Planck residual that is zero.

Proved in SymPy for the traced program on small instances, decided by autodiff in float64 elsewhere; and the same for a
drift that comes from anywhere.
"""

# SymPy and tuple sums are typed too widely for these rules to say anything here.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportCallIssue=false, reportIndexIssue=false

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import and_plane, informative, last
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import within
from sgmcmc_verification.checks.numerics.drift_terms import (
    DRIFT,
    diagnose_drift,
    drift_terms,
    explain_drift,
    gamma_terms,
    without_term,
)
from sgmcmc_verification.checks.tiers.recipe.uniqueness import ROUND_OFF, NotStationary, construct_q, residual_at
from sgmcmc_verification.checks.tracing.recipe_equations import (
    CONSTANTS,
    EQUATIONS,
    LARGEST_EXPRESSION,
    RATIONAL_POINTS,
    EquationCheck,
    worst_of,
)
from sgmcmc_verification.samplers.dynamics.charts import Chart
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, MatrixField, ScalarField, VectorField
from sgmcmc_verification.samplers.interface.claims import Diffusion, EmbeddedDiffusion, StochasticEquation
from sgmcmc_verification.targets.target import Target

if TYPE_CHECKING:
    from sgmcmc_verification.checks.tracing.sympy_proof import Symbolic

__all__ = [
    "agree",
    "autodiff_findings",
    "autodiff_recipe",
    "broad_points",
    "completeness",
    "diagnose_drift",
    "explain_drift",
    "gamma_terms",
    "given_drift",
    "symbolic_recipe",
    "without_term",
]

EPS = float(np.finfo(float).eps)
AUTODIFF_POINTS = 12
"""Random points at which autodiff decides."""
LARGEST_IN_CHARTS = 150
"""Operations up to which an expression in a chart is simplified: rational functions there take minutes beyond."""
LARGEST_SYMBOLIC = 6
"""Largest dimension of z that is proved in SymPy; autodiff decides the others."""


def broad_points(target: Target, dim: int, count: int, seed: int) -> np.ndarray:
    """Points (count, dim) of the full variable, spread twice as wide as the law, on the target's space.

    Args:
        target: its example is the centre and 1 / sqrt(curvature) the unit of length; on a positive space the spread
            is multiplicative.
        dim: of z; the coordinates beyond the position are N(0, 1).
        count: how many.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    centre = np.asarray(target.ravel(target.example), float)
    normal = rng.standard_normal((count, dim))
    if target.manifold.is_positive:
        position = np.maximum(centre, 1e-3) * np.exp(0.7 * normal[:, : centre.size])
    else:
        position = within(target, centre, centre + 2 / np.sqrt(target.curvature) * normal[:, : centre.size])
    return np.concatenate([position, normal[:, centre.size :]], axis=1)


class Instance(NamedTuple):
    """Dynamics that the recipe is decided for.

    Attributes:
        label: name of the chart of a manifold; empty on a flat space.
        dynamics: H, D and Q.
        points: (count, seed) -> (count, dim), where to decide.
    """

    label: str
    dynamics: Dynamics
    points: Callable[[int, int], np.ndarray]


def chart_points(chart: Chart, dim: int, count: int, seed: int) -> np.ndarray:
    """Points (count, dim) of z = (q, p, ..): q spread over the chart, the other coordinates N(0, 1)."""
    normal = np.random.default_rng(seed).standard_normal((count, dim))
    normal[:, : chart.dim] = np.asarray(chart.centre) + chart.spread * normal[:, : chart.dim]
    return normal


def instances(subject: Subject, target: Target) -> list[Instance]:
    """The dynamics of a sampler; on a curved manifold those in its charts, as the recipe is one for Euclidean spaces.

    Raises:
        NotApplicable: if neither is declared.
    """
    claims = subject.sampler(target).claims
    if Diffusion in claims:
        dynamics = claims[Diffusion].dynamics(target)
        return [Instance("", dynamics, partial(broad_points, target, dynamics.dim))]
    embedded = claims.get(EmbeddedDiffusion)
    charts = embedded.charts(target) if embedded is not None and embedded.charts is not None else None
    if charts:
        return [Instance(c.name, dynamics, partial(chart_points, c, dynamics.dim)) for c, dynamics in charts]
    if charts is None:
        raise NotApplicable("the sampler declares no dynamics (H, D, Q)")
    raise OutOfReach(f"no charts of {target.manifold.name}: the dynamics are decided in those of spheres")


def _merge(parts: list[tuple[str, dict[str, EquationCheck]]]) -> dict[str, EquationCheck]:
    """The worst finding for each equation, its words with the name of the chart."""

    def named(label: str, finding: EquationCheck) -> EquationCheck:
        return (
            finding._replace(words=f"in {label} coordinates, {finding.words}") if label and finding.words else finding
        )

    return {key: worst_of([named(label, found[key]) for label, found in parts]) for key in EQUATIONS}


# Any drift -------------------------------------------------------------------------------------------------------


def given_drift(
    drift: VectorField,
    D: MatrixField,
    H: ScalarField,
    dynamics: Dynamics | None = None,
    *,
    points: np.ndarray,
    error: float = 0.0,
) -> Finding:
    """Decide if exp(-H) is stationary for dz = f dt + sqrt(2 D) dW, and if not, which term of f is wrong.

    Decided by the Fokker-Planck residual (ma2015complete, theorem 2). With `dynamics`, the drift also has to be the
    derived one; the reason names the term that is missing, doubled or of the wrong sign.

    Args:
        drift: z (n,) -> (n,), jax-traceable; derived, written by hand, or extracted from code.
        D: z -> (n, n).
        H: z -> scalar.
        dynamics: what the drift is said to follow from.
        points: (m, n), where to decide; 8 or more in general position.
        error: bound on the numerical error of every component of the drift and of its gradient, beyond round-off.
    """
    points = np.asarray(points, float)
    n = points.shape[1]
    residual = residual_at(drift, D, H, points)
    bound = ROUND_OFF * n * EPS * residual.scale + error * residual.sensitivity
    finite = bool(np.all(np.isfinite(residual.value)))
    stationary = finite and bool(np.all(np.abs(residual.value) <= bound))
    reasons, gap = [], 0.0
    if dynamics is not None:
        with jax.enable_x64(True):
            values = np.asarray(jax.jit(jax.vmap(drift))(jnp.asarray(points)))
        terms = drift_terms(dynamics, points)
        tolerance = ROUND_OFF * n * EPS * terms.scale + error
        reasons = explain_drift(dynamics, points, values, tolerance)
        gap = float(np.max(np.abs(values - terms.drift) / (terms.scale + np.finfo(float).tiny)))
    if not finite:
        reasons.append("the Fokker-Planck residual is not finite")
    elif not stationary:
        worst = int(np.argmax(np.abs(residual.value) / np.maximum(bound, np.finfo(float).tiny)))
        reasons.append(
            f"exp(-H) is not stationary: Fokker-Planck residual {residual.value[worst]:.6g} "
            f"at z = {np.round(points[worst], 4).tolist()} (round-off {bound[worst]:.2g})"
        )
    elif reasons:
        reasons.append("exp(-H) is stationary all the same")
    allowance = float(np.max(bound / np.maximum(residual.scale, np.finfo(float).tiny)))
    return Finding(
        effect=residual.relative,
        tolerance=Tolerance(allowance, "round-off, k n eps, and the stated error of the drift"),
        minimum_detectable_effect=allowance,
        required_sensitivity=np.inf,
        reason="; ".join(reasons) or "the drift leaves exp(-H) invariant up to round-off",
        statistic="largest Fokker-Planck residual",
        unit="relative to the sum of the magnitudes of its terms",
        samples=len(points),
        dtype="float64",
        equation=f"{EQUATIONS['residual']}, {DRIFT}",
        violated=bool(reasons),
        measurements={"stationary": stationary, "drift_gap": gap},
    )


# Autodiff ----------------------------------------------------------------------------------------------------------


@statement(
    tier="recipe",
    equation="Q = -Q^T, D >= 0, f = -(D + Q) grad H + Gamma, div J = J . grad H",
    targets=and_plane(informative),
    cost=0.8,
    decides="dynamics",
)
def autodiff_recipe(case: Case, seed: int, equation: StochasticEquation) -> Finding:
    """The recipe's equations in float64 at random points, by autodiff, up to round-off.

    Q + Q^T = 0, D = D^T, D >= 0, f = -(D + Q) grad H + Gamma, and the Fokker-Planck residual of the program's drift.
    """
    found = instances(case.subject, case.target)
    parts = [(i.label, autodiff_findings(i.dynamics, i.points(AUTODIFF_POINTS, seed))) for i in found]
    allowance = ROUND_OFF * max(i.dynamics.dim for i in found) * EPS
    how = f"autodiff in float64 at {AUTODIFF_POINTS} points{_where(found)}"
    return _result(_merge(parts), allowance, how)


def _where(found: list[Instance]) -> str:
    labels = [i.label for i in found if i.label]
    return f" in {' and '.join(labels)} coordinates" if labels else ""


def autodiff_findings(dynamics: Dynamics, points: np.ndarray) -> dict[str, EquationCheck]:
    """Every equation of the recipe at points (m, n), the residual being that of `dynamics.drift`."""
    n = points.shape[1]
    with jax.enable_x64(True):
        D, Q, drift, gamma = (
            np.asarray(a)
            for a in jax.jit(jax.vmap(lambda z: (dynamics.D(z), dynamics.Q(z), dynamics.drift(z), dynamics.gamma(z))))(
                jnp.asarray(points, jnp.float64)
            )
        )
    unit = ROUND_OFF * n * EPS
    names = dynamics.names
    found: dict[str, EquationCheck] = {}

    def entry(array, label):
        if not np.all(np.isfinite(array)):
            return EquationCheck("violated", float("inf"), "not finite")
        scale = np.max(np.abs(D if label == "D" else Q), axis=(1, 2), keepdims=True)
        gap = np.abs(array) / np.maximum(scale, np.finfo(float).tiny)
        _, i, j = np.unravel_index(np.argmax(gap), gap.shape)
        effect = float(gap.max())
        words = f"{label}[{names[i]},{names[j]}] and {label}[{names[j]},{names[i]}] differ by {np.max(gap):.3g}"
        return EquationCheck("violated" if effect > unit else "round-off", effect, words if effect > unit else "")

    found["skew"] = entry(Q + Q.transpose(0, 2, 1), "Q")
    if found["skew"].status == "violated" and found["skew"].words != "not finite":
        i, j = np.unravel_index(np.argmax(np.abs(Q + Q.transpose(0, 2, 1)).max(0)), (n, n))
        found["skew"] = found["skew"]._replace(words=f"Q[{names[i]},{names[j]}] is not -Q[{names[j]},{names[i]}]")
    found["symmetric"] = entry(D - D.transpose(0, 2, 1), "D")
    size = np.abs(D).max(axis=(1, 2))
    least = np.linalg.eigvalsh((D + D.transpose(0, 2, 1)) / 2)[:, 0] if np.all(np.isfinite(D)) else np.array([-np.inf])
    shortfall = float(np.max(-least / np.maximum(size, np.finfo(float).tiny)))
    found["semidefinite"] = EquationCheck(
        "violated" if shortfall > unit else "round-off",
        max(shortfall, 0.0),
        f"least eigenvalue {least.min():.6g}" if shortfall > unit else "",
    )
    terms = drift_terms(dynamics, points)
    true_gamma, gamma_scale = (terms.gamma_D + terms.gamma_Q).sum(-1), np.abs(terms.gamma_D + terms.gamma_Q).sum(-1)
    gap = np.abs(gamma - true_gamma)
    bad = ~(gap <= unit * np.maximum(gamma_scale, gap * 0 + gamma_scale.max(1, keepdims=True)))
    if np.any(bad):
        p, i = np.argwhere(bad)[0]
        sign = np.all(np.abs(gamma + true_gamma) <= unit * gamma_scale.max()) and " (the sign is wrong)"
        words = f"Gamma of {names[i]} is {gamma[p, i]:.6g}, its derivatives give {true_gamma[p, i]:.6g}{sign or ''}"
        found["gamma"] = EquationCheck("violated", float(np.max(gap)), words)
    else:
        found["gamma"] = EquationCheck("round-off", float(np.max(gap / np.maximum(gamma_scale, np.finfo(float).tiny))))
    reasons = explain_drift(dynamics, points, drift, unit * terms.scale)
    relative = float(np.max(np.abs(drift - terms.drift) / np.maximum(terms.scale, np.finfo(float).tiny)))
    found["drift"] = EquationCheck("violated" if reasons else "round-off", relative, "; ".join(reasons))
    residual = residual_at(dynamics.drift, dynamics.D, dynamics.H, points)
    ok = residual.relative <= unit  # False for NaN
    words = "" if ok else f"residual up to {np.max(np.abs(residual.value)):.6g}"
    found["residual"] = EquationCheck("round-off" if ok else "violated", residual.relative, words)
    return found


def _result(findings: dict[str, EquationCheck], allowance: float, how: str) -> Finding:
    violated = [key for key, finding in findings.items() if finding.status == "violated"]
    reason = (
        "; ".join(f"violated: {EQUATIONS[key]}: {findings[key].words}" for key in violated)
        if violated
        else f"all equations of the recipe hold ({how})"
    )
    effect = max((f.effect for f in findings.values()), default=0.0)
    return Finding(
        effect=effect,
        tolerance=Tolerance(
            allowance, "round-off, k n eps" if allowance > CONSTANTS else "round-off of the program's constants"
        ),
        minimum_detectable_effect=allowance,
        required_sensitivity=np.inf,
        reason=reason,
        statistic="largest violation of an equation",
        unit="relative to the magnitudes of its terms",
        dtype="float64",
        equation="; ".join(EQUATIONS[key] for key in violated) or None,
        violated=bool(violated),
        measurements={EQUATIONS[key]: finding.status for key, finding in findings.items()},
    )


# SymPy ------------------------------------------------------------------------------------------------------------


@statement(
    tier="recipe",
    equation="f = -(D + Q) grad H + Gamma and div J = J . grad H, proved",
    targets=informative,
    cost=0.1,
    decides="dynamics",
    once=True,
)
def symbolic_recipe(case: Case, seed: int, equation: StochasticEquation) -> Finding:
    """The recipe's equations proved in SymPy for the traced programs of H, D, Q, Gamma and drift.

    What SymPy cannot decide is evaluated to 50 digits at 20 random rational points and reported as verified, not as
    proved. A primitive that cannot be translated is an error.

    Raises:
        NotApplicable: if no dynamics are declared or z has more than `LARGEST_SYMBOLIC` coordinates.
        Untranslatable: naming the primitive.
    """
    from sgmcmc_verification.checks.tracing.sympy_proof import prove  # SymPy takes a third of a second to load

    found = instances(case.subject, case.target)
    dim = max(i.dynamics.dim for i in found)
    if dim > LARGEST_SYMBOLIC:
        raise NotApplicable(f"z has {dim} coordinates, more than {LARGEST_SYMBOLIC}: decided by autodiff")
    parts = []
    for label, dynamics, points_of in found:
        points = points_of(RATIONAL_POINTS, seed)
        findings, _ = prove(
            dynamics, points, _positive(case.target, dynamics), LARGEST_IN_CHARTS if label else LARGEST_EXPRESSION
        )
        if findings["drift"].status == "violated":
            with jax.enable_x64(True):
                values = np.asarray(jax.jit(jax.vmap(dynamics.drift))(jnp.asarray(points)))
            tolerance = ROUND_OFF * dynamics.dim * EPS * drift_terms(dynamics, points).scale
            words = "; ".join([findings["drift"].words, *explain_drift(dynamics, points, values, tolerance)])
            findings["drift"] = findings["drift"]._replace(words=words)
        parts.append((label, findings))
    findings = _merge(parts)
    unproved = [EQUATIONS[key] for key, f in findings.items() if f.status in ("verified", "round-off")]
    how = f"proved in SymPy for the traced program{_where(found)}"
    if unproved:
        how += f", except to 50 digits at {RATIONAL_POINTS} rational points or to round-off: {'; '.join(unproved)}"
    return _result(findings, CONSTANTS, how)


def _positive(target: Target, dynamics: Dynamics) -> tuple[bool, ...]:
    return tuple(target.manifold.is_positive and i < dynamics.size for i in range(dynamics.dim))


def agree(dynamics: Dynamics, symbolic: "Symbolic", points: np.ndarray) -> float:
    """Largest disagreement between the SymPy expressions and autodiff: drift, Gamma, residual, in round-off units.

    Args:
        dynamics: evaluated by autodiff in float64.
        symbolic: its translation, evaluated to 50 digits.
        points: (m, n).

    Returns:
        max |difference| / (k n eps times the magnitudes of the terms); at most 1 if they agree.
    """
    import mpmath

    from sgmcmc_verification.checks.tracing.sympy_proof import evaluator

    n, terms = dynamics.dim, drift_terms(dynamics, points)
    with jax.enable_x64(True):
        drift, gamma = (
            np.asarray(a)
            for a in jax.jit(jax.vmap(lambda z: (dynamics.drift(z), dynamics.gamma(z))))(jnp.asarray(points))
        )
    residual = residual_at(dynamics.drift, dynamics.D, dynamics.H, points)
    evaluate = evaluator(
        symbolic.symbols, [*symbolic.derived_drift, *symbolic.derived_gamma, sum(symbolic.residual_terms)]
    )
    with mpmath.workdps(50):
        exact = np.array([[float(v) for v in evaluate([mpmath.mpf(float(x)) for x in z])] for z in points])
    ours = np.concatenate([drift, gamma, residual.value[:, None]], axis=1)
    whole = terms.scale.max(axis=1, keepdims=True) + np.zeros((1, n))
    scale = np.concatenate([whole, whole, residual.scale[:, None]], axis=1)
    return float(np.max(np.abs(ours - exact) / (ROUND_OFF * n * EPS * scale)))


# Theorem 2 ---------------------------------------------------------------------------------------------------------


@statement(
    tier="recipe",
    equation="the Q that (f, D, H) determine is the declared one",
    targets=last(informative),
    cost=0.4,
    decides="dynamics",
    once=True,
)
def completeness(case: Case, equation: StochasticEquation) -> Finding:
    """Q constructed from drift, diffusion and H alone is the declared Q, where it is unique (z in R^2).

    Source: ma2015complete, theorem 2.

    Raises:
        NotApplicable: if z is not in R^2, no dynamics are declared, or the space has a boundary.
    """
    label, dynamics, _ = instances(case.subject, case.target)[0]
    if label:
        raise NotApplicable("a chart leaves out part of the manifold, and the flux does not vanish at its edge")
    if dynamics.dim != 2:
        raise NotApplicable(f"Q is unique in two dimensions only; z has {dynamics.dim}")
    if not case.target.manifold.is_linear:
        raise NotApplicable("the space has a boundary, where the flux need not vanish smoothly")
    centre = np.zeros(2)
    centre[: case.target.size] = np.asarray(case.target.ravel(case.target.example))
    detail: dict[str, float] = {}
    effect, reason = 0.0, "Q constructed from the drift is the declared one"
    try:
        found = construct_q(dynamics.drift, dynamics.D, dynamics.H, centre=centre)
    except NotStationary as refusal:
        effect, reason, allowance = float("inf"), str(refusal), 0.0
    except ValueError as refusal:
        raise NotApplicable(str(refusal)) from refusal
    else:
        bulk = found.density > BULK
        grid = np.stack(np.meshgrid(*found.axes, indexing="ij"), -1)[bulk]
        with jax.enable_x64(True):
            both = jax.jit(jax.vmap(lambda z: (dynamics.Q(z), dynamics.D(z))))(jnp.asarray(grid))
        declared = np.asarray(both[0])[:, 0, 1]
        gap = np.abs(found.Q[bulk] - declared)
        unit = max(float(np.max(np.abs(m))) for m in both)
        effect, allowance = float(np.max(gap)) / unit, 10 * float(np.max(found.error[bulk])) / unit
        detail = {"bulk": BULK, "mismatch": float(np.max(found.mismatch[bulk]))}
        if effect > allowance:
            worst = int(np.argmax(gap))
            reason = (
                f"Q[{dynamics.names[0]},{dynamics.names[1]}] at z = {np.round(grid[worst], 4).tolist()}: "
                f"the drift needs {found.Q[bulk][worst]:.8g}, declared is {declared[worst]:.8g}"
            )
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "ten times the error estimate of the stream function, over the density"),
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=2 * PROMISED,
        reason=reason,
        statistic="largest gap between constructed and declared Q",
        unit="relative to the largest entry of D and Q",
        dtype="float64",
        measurements=detail,
    )


BULK = 1e-6
"""Fraction of the maximum of the density above which Q = psi / p is compared."""
PROMISED = 1e-4
"""A gap in Q of this relative size is promised to be seen."""
