"""The order tier: local weak order, and the defect series of the invariant law."""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import of_target, reaches_boundary
from sgmcmc_verification.checks.core.selection import and_plane, informative
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points, law_rule
from sgmcmc_verification.checks.numerics.convergence_rate import slope
from sgmcmc_verification.checks.numerics.geodesic_dynamics import generator_of
from sgmcmc_verification.checks.numerics.observables import observable_names, observables
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tracing.kinds import dynamics_in_z
from sgmcmc_verification.checks.tracing.one_step_moments import step_sizes
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import Composite, EmbeddedDiffusion, ExactLaw, StochasticEquation
from sgmcmc_verification.targets.target import Target

MAX_EVALUATIONS = 1_200_000
"""Largest number of (point, noise node, step size) triples of a defect series."""
SENSITIVITY = 1e-5
"""Relative change of an expectation by one step that is seen."""
COARSER = (-1, -2)
"""Refinements of a rule that are tried where the usual one is too large a grid; its error tells whether they do."""
MAX_HOST_POINTS = 2000
"""Largest number of (point, step size) pairs of it for a host sampler, whose paths are run in Python."""
LASTING = 1.5
"""Factor by which a rate that does not go to 0 falls at most where h falls by 16."""
KINK_POINTS, KINK_REFINE = 20, 3
"""Nodes for a draw, and refinement of the rule for the law, for a host sampler that accepts and rejects."""


Rule = tuple[np.ndarray, np.ndarray]
"""Points and weights."""


def taylor_terms(dynamics, points: np.ndarray, order: int) -> list[np.ndarray]:
    """[phi, L phi, .., L^order phi] at `points` for the observables, each (P, K), by automatic differentiation."""

    generator = generator_of(dynamics)
    terms, phi = [], observables
    for _ in range(order + 1):
        terms.append(phi)
        phi = generator(phi)
    compiled = jax.jit(jax.vmap(lambda z: [term(z) for term in terms]))
    return [np.asarray(t) for t in compiled(jnp.asarray(points))]


def local_errors(subject: Subject, target: Target, order: int, levels: int = 9):
    """Step sizes and |E phi(z') - sum_{j <= order} h^j L^j phi / j!|, scaled, over a vector of points and functions."""
    step = step_map(subject, target)
    dynamics = dynamics_in_z(step)
    points, hs = generic_points(step), step_sizes(subject, target, levels)
    terms = taylor_terms(dynamics, points, order)
    scale = 1 + np.abs(terms[0])
    errors, factorial = [], np.cumprod([1.0, *range(1, order + 1)])
    for h in hs:
        series = sum(h**j * t / factorial[j] for j, t in enumerate(terms))
        errors.append(np.linalg.norm((step.moments(points, h).variable - series) / scale))
    return hs, np.array(errors)


def _has_kinks(step: JaxStep, h: float, rate: float) -> bool:
    """True if a rule with fewer nodes for the noise changes an expectation after a small step by more than rate * h.

    A smooth step is a polynomial in the noise up to high powers of h, which both rules integrate.
    """
    (points, weights), *_ = _two_rules(step, 1)
    scale = 1 + weights @ np.abs(observables(points))
    usual, other = (weights @ step.moments(points, h, fewer).variable for fewer in (0, 1))
    return not np.max(np.abs(usual - other) / scale) <= rate * h


@statement(
    tier="order",
    equation="E phi(z_h) = sum_{j <= p} h^j L^j phi / j! + O(h^(p+1))",
    targets=informative,
    cost=1.0,
    decides="order",
    screening=7,
    charted="errors",
)
def local_weak_order(case: Case, equation: StochasticEquation) -> Finding:
    """|E phi(z_h) - sum_{j <= p} h^j L^j phi / j!| = O(h^(p+1)) over a vector of points and test functions.

    Source: talay1990expansion; milstein2004stochastic, theorem 2.2.1 (local order p + 1 gives global order p).
    """
    step = step_map(case.subject, case.target)
    claims = step.sampler.claims
    p = equation.weak_order
    if p is None or Composite in claims:
        raise NotApplicable("no weak order of one step is claimed")
    hs, errors = local_errors(case.subject, case.target, p)
    # Expectations of size 1 carry a few hundred eps; below 1e4 of that floor a slope means nothing.
    floor = 1e4 * np.finfo(float).eps * np.sqrt(errors.size)
    exponent, error = slope(hs, errors, floor)
    measured = exponent - 1
    effect = max(0.0, p - measured) if np.isfinite(measured) else 0.0  # no error above round-off: every order holds
    if not np.all(np.isfinite(errors)):
        effect = np.nan
    return Finding(
        effect=effect,
        tolerance=Tolerance(0.1, "orders are integers: a slope extrapolated to h = 0 within 0.1 of one decides"),
        reason=f"measured local weak order {measured:.3f}, claimed {p}",
        statistic="claimed minus measured weak order",
        unit="power of h",
        minimum_detectable_effect=0.1 + error,
        required_sensitivity=0.5,
        step_size=float(hs[0]),
        measurements={"measured_order": measured, "errors": errors.tolist(), "step_sizes": hs.tolist()},
    )


class Defect(NamedTuple):
    """delta_f(h) = E_{z ~ p} f(z_h) - p(f), relative to 1 + E|f|, for the claimed law p and the noise of the step.

    Attributes:
        hs: step sizes, each half of the one before.
        coefficients: c_1, c_2, .. of its series in h, and their errors.
        quadrature: error of delta at the largest step size.
        coarse: whether the rules are coarser than usual.
        lasting: f by number, whose rate delta_f(h) / h does not go to 0, and that rate at the smallest h; or None.
    """

    hs: np.ndarray
    coefficients: list[tuple[np.ndarray, np.ndarray]]
    quadrature: float
    coarse: bool
    lasting: tuple[int, float] | None


def defect_series(subject: Subject, target: Target, count: int, levels: int = 8) -> Defect:
    """The defect of a step, with the coefficients c_1 .. c_count, by quadrature."""
    step = step_map(subject, target)
    (points, weights), finer, coarse = _two_rules(step, levels)
    hs = step_sizes(subject, target, levels)
    if isinstance(step, HostStep):
        step.require_few_paths(points[0], hs[0], levels * len(points) + 2 * len(finer[0]))
    delta = lambda x, w, h: w @ (step.moments(x, h).variable - observables(x))
    scale = 1 + weights @ np.abs(observables(points))
    remainder = np.array([delta(points, weights, h) / scale for h in hs])
    # A finer rule for the law changes every delta by its quadrature error, which shrinks with h as delta does.
    quadrature = np.abs(delta(*finer, hs[0]) / scale - remainder[0]).max()
    rates, coefficients = remainder / hs[:, None], []
    k = _lasting(rates)
    if k is not None:
        error = np.abs(delta(*finer, hs[-1])[k] / scale[k] - remainder[-1, k]) + 1e3 * np.finfo(float).eps
        k = k if abs(remainder[-1, k]) > 100 * error else None
    for _ in range(count):
        remainder = remainder / hs[:, None]
        value, error = neville(hs, remainder)
        coefficients.append((value, error))
        remainder = remainder - value
    lasting = None if k is None else (k, float(rates[-1, k]))
    return Defect(hs, coefficients, float(quadrature), coarse, lasting)


def _lasting(rates: np.ndarray) -> int | None:
    """The number k of the largest of the rates (n, K), at halved step sizes, that do not go to 0; None if all do.

    A power h^a of the defect with a <= 1 leaves no series: noise of a mean that is not 0 has a = 1/2. A right sampler
    has a >= 3/2, so that a rate falls by 4 or more where h falls by 16.
    """
    last = np.abs(rates[-5:])
    stays = (last[-1] > last[0] / LASTING) & (last[1:] > last[:-1] / LASTING).all(axis=0) & (last[-1] > 0)
    return int(np.argmax(last[-1] * stays)) if stays.any() else None


def _invariance(subject: Subject, target: Target, labels: tuple[str, ...]) -> Finding:
    """An exact kernel: delta_f(h) = 0 at every step size, no series needed."""
    step = step_map(subject, target)
    host, base = isinstance(step, HostStep), 0
    if isinstance(step, HostStep) and "potential" in step.sampler.needs:
        # an acceptance has a kink, which the few nodes for a host sampler resolve badly
        step, base = replace(step, points=KINK_POINTS), KINK_REFINE
    hs = subject.step_size(target) * np.array([0.5, 2.0])
    points, weights = _affordable_rule(step, len(hs), refine=base)
    finer = _affordable_rule(step, len(hs), refine=base + 1)
    delta = lambda x, w, h, step=step: w @ (step.moments(x, h).variable - observables(x))
    scale = 1 + weights @ np.abs(observables(points))
    gaps = np.abs(np.array([delta(points, weights, h) for h in hs])) / scale
    sharper = replace(step, points=step.points + 1) if isinstance(step, HostStep) else step
    last = hs[-1]
    quadrature = float((np.abs(delta(*finer, last, sharper) - delta(points, weights, last)) / scale).max())
    i, k = np.unravel_index(np.argmax(gaps), gaps.shape)
    allowance = 10 * quadrature + 1e4 * np.finfo(float).eps
    return Finding(
        effect=float(gaps[i, k]),
        tolerance=Tolerance(allowance, "error of the quadrature and round-off"),
        reason=f"one step from the target at h = {hs[i]:.4g} moves E f by {gaps[i, k]:.3g} for f = {labels[k]}",
        statistic="largest |E f(z_h) - pi(f)|",
        unit="relative to 1 + E|f|",
        minimum_detectable_effect=2 * allowance,
        # A host step is run once a path in Python, so its rules are coarse.
        required_sensitivity=1e-3 if host else 1e-5,
        step_size=float(hs[i]),
    )


def _affordable_rule(step: JaxStep | HostStep, levels: int, refine: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`law_rule` without its negligible nodes. Raises OutOfReach if stepping from all of them is too much."""
    points, weights = law_rule(step, step.sampler.claims, refine, assume=True)
    keep = weights > 1e-18
    points, weights = points[keep], weights[keep]
    host = isinstance(step, HostStep)
    nodes = 1 if host else 4**step.noise_size
    if len(points) * nodes * levels > (MAX_HOST_POINTS if host else MAX_EVALUATIONS):
        raise OutOfReach(f"{len(points)} points times {nodes} noise nodes is too large a grid")
    return points, weights


def _two_rules(step: JaxStep | HostStep, levels: int) -> tuple[Rule, Rule, bool]:
    """A rule for the law and a finer one, and whether they are coarser than usual. Raises OutOfReach."""
    for refine in (0, *COARSER):
        try:
            return _affordable_rule(step, levels, refine), _affordable_rule(step, 1, refine + 1), refine < 0
        except OutOfReach:
            if refine == COARSER[-1] or isinstance(step, HostStep):
                raise
    raise AssertionError


def _reads_all(step: JaxStep | HostStep, h: float) -> bool:
    """True if the position is the full variable, which a post-processed scheme's is not."""
    if step.size != step.target.size:
        return False
    found = step.moments(generic_points(step), h)
    return np.allclose(found.variable, found.readout, rtol=1e-10, atol=0)


@statement(
    tier="order",
    equation="E_{z ~ pi} f(z_h) - pi(f) = c_1 h + c_2 h^2 + .., c_1 = .. = c_p = 0",
    targets=and_plane(informative),
    cost=1.2,
    decides="order",
    screening=8,
    meets=of_target,
)
def defect(case: Case) -> Finding:
    """c_1 = .. = c_p = 0: started from the claimed law, one step moves no expectation by less than O(h^(p+1)).

    c_1 = 0 for every f iff the SDE of the code leaves the claimed law invariant; a scheme of weak order p has
    c_1 = .. = c_p = 0, because p(L^j f) = 0. The law that the scheme keeps is that of the claim up to O(h^q) iff
    c_1 = .. = c_q = 0, because (pi - pi_h)(P_h - 1) f = pi(P_h f) - pi(f); p is the larger of the two orders. An
    exact kernel has c_j = 0 for every j.
    """
    step = step_map(case.subject, case.target)
    claims = step.sampler.claims
    if Composite in claims:
        raise NotApplicable("a composite step is judged by its limit h -> 0")
    if EmbeddedDiffusion in claims and case.target.manifold.has_boundary:
        raise OutOfReach("reflections at a boundary have kinks: no series in h under the law")
    equation = claims.get(StochasticEquation)
    names = dynamics_in_z(step).names if equation else tuple(f"z[{i}]" for i in range(step.size))
    if ExactLaw in claims:
        return _invariance(case.subject, case.target, observable_names(names))
    if reaches_boundary(case.target):
        raise OutOfReach("the density does not vanish at a boundary where a step is mirrored or leaves: no series in h")
    assumed = step.size > case.target.size and StochasticEquation not in claims and case.target.manifold.is_linear
    # pi_h - pi = O(h^q) for the law of z iff c_1 = .. = c_q = 0; an order of the position alone says less of z
    p = max(1, claims.weak_order or 1, (claims.invariant_order or 1) if _reads_all(step, case.step_size) else 1)
    hs, coefficients, quadrature, coarse, lasting = defect_series(case.subject, case.target, p + 1)
    labels = observable_names(names)
    effect, worst, numerical = 0.0, "", 0.0
    for j, (value, error) in enumerate(coefficients[:p], start=1):
        # A coefficient is in units of h0^-j: made dimensionless by the usual step size.
        size = np.abs(value) * hs[0] ** j
        k = int(np.argmax(size))
        numerical = max(numerical, float((error * hs[0] ** j).max()))
        if not size[k] <= effect:  # also where it is not a number
            effect, worst = float(size[k]), f"c_{j} = {value[k]:.3g} for f = {labels[k]}"
    roundoff = 1e3 * np.finfo(float).eps * 2.0 ** (len(hs) * p)
    allowance = 10 * (numerical + quadrature) + roundoff
    lead = coefficients[p][0]
    k = int(np.argmax(np.abs(lead)))
    reason = f"largest of c_1 .. c_{p}: {worst}; leading c_{p + 1} = {lead[k]:.4g} for f = {labels[k]}"
    if lasting is not None and effect <= allowance:
        # no series in h, whose extrapolation says nothing; the rate itself needs none
        effect, allowance = abs(lasting[1]) * hs[0], 10 * quadrature + roundoff
        worst = f"(E f(z_h) - pi(f)) / h = {lasting[1]:.3g} at h = {hs[-1]:.3g} for f = {labels[lasting[0]]}"
        reason = f"{worst}, and does not go to 0 with h: there is no c_1"
    if coarse and not 2 * allowance <= SENSITIVITY:
        raise OutOfReach("the grid that can be afforded is too coarse")
    if assumed and not effect <= allowance:
        raise OutOfReach(f"the law of the auxiliary variables is not declared, and not that on Gaussians ({worst})")
    if (
        allowance < effect < np.inf
        and isinstance(step, JaxStep)
        and _has_kinks(step, float(hs[-1]), effect / 10 / hs[0])
    ):
        raise OutOfReach("the noise enters by a function with kinks or jumps, which no quadrature resolves")
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "errors of the quadrature and of the extrapolation to h = 0, and round-off"),
        reason=reason,
        statistic=f"largest of |c_j| h^j, j <= {p}",
        unit="relative to 1 + E|f|, at the usual step size",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=SENSITIVITY,
        step_size=float(hs[0]),
        measurements={"leading_coefficient": float(np.abs(lead).max()), "leading_order": p + 1},
    )
