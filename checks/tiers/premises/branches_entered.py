"""Branches of a step: both sides of each are entered by the states and draws that are looked at, or it is named.

A step is a different function on each side of a comparison. The laws rest on states in the bulk and on the nodes of
quadrature rules; a side that none of these takes has been searched for, and where it is found the step there is held to
what it is elsewhere.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import BRANCHES
from sgmcmc_verification.checks.core.selection import informative
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.tracing.branches import Branch, branches, walkable
from sgmcmc_verification.checks.tracing.noise_tape import Noise, Program
from sgmcmc_verification.checks.tracing.probe import Ends, ends_of
from sgmcmc_verification.checks.tracing.step_map import JaxStep, fit_affine, require_traced, step_map
from sgmcmc_verification.targets.target import Target

BULK, BOX = 3.0, 8.0
"""Standard deviations within which nodes lie, and within which a side is searched for."""
SIGMA = 4.9
"""Largest normal of the search: single precision draws none above 5.42."""
POINTS = 4096
"""States, draws and step sizes of a search, a Latin hypercube."""
SMALL = 16.0
"""Factor of a second, smaller step size at which a side that does something else has to do so too."""
TOLERANCE = 1e-8
"""Relative gap of an affine map beyond round-off, solvers included."""
DEGREES, MOST = (2, 4), 500
"""Degrees of polynomials that a step is held to where it is no affine map, and the most coefficients of one."""
SAME = 1e-13
"""Relative residual of a polynomial through points near by: what is only nearly one tells nothing far away."""
ROUNDS = 14
"""Rounds around the states that came nearest to an untaken side, each closer than the one before: down to 2e-4 standard
deviations, where a step that is another one on flat ground shows it."""


class Search(NamedTuple):
    """The fate of the branches of a step.

    Attributes:
        branches: of the code of the sampler.
        bulk: whether each has both sides taken in the bulk.
        entered: branch -> (z, normals, h) where the other side was found, within the box.
        untaken: branches of which one side was not found.
        states: (P, n), in the bulk and in the box, those that enter rare sides included.
        normals: (P, k), the draws there.
        margins: (z, normals, h) -> smallest and largest margin of each branch, (k, 2).
    """

    branches: tuple[Branch, ...]
    bulk: np.ndarray
    entered: tuple[Branch, ...]
    untaken: tuple[Branch, ...]
    states: np.ndarray
    normals: np.ndarray
    margins: Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def search(step: JaxStep, target: Target, h: float) -> Search:
    """The branches of a step, and the states that enter their sides."""
    assert isinstance(step.program, Program)
    found, margins = branches(step.program, jnp.asarray(step.template.flat), jnp.asarray(h))
    d, n, k = target.size, step.size, step.noise_size
    uniforms, ranges = step.program.count("uniform"), np.array(step.program.ranges, int)
    centre, spread = _bulk(step, target)
    at = jax.jit(jax.vmap(lambda z, e, u, b, h: margins(Noise(e, u, b), z, h)))

    def run(cube: np.ndarray, width: float, sigma: float) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Margins (P, branches, 2) at points of the unit cube, and the states, draws and step sizes there."""
        z, e, u, b, t = np.split(cube, np.cumsum([n, k, uniforms, len(ranges)]), axis=1)
        z = centre + width * spread * (2 * z - 1)
        z[:, :d] = _inside(target, centre[:d], z[:, :d])
        e = sigma * (2 * e - 1)
        b = np.minimum((b * ranges).astype(int), np.maximum(ranges - 1, 0))
        sizes = h / 128.0 ** t[:, 0]
        return np.asarray(at(z, e, u, b, sizes)), (z, e, sizes)

    size = n + k + uniforms + len(ranges) + 1
    generator = np.random.default_rng(0)
    # a Latin hypercube: each coordinate meets each of as many intervals once
    cube = (
        generator.permuted(np.tile(np.arange(POINTS), (size, 1)), axis=1).T + generator.random((POINTS, size))
    ) / POINTS
    bulk, (states, normals, _) = run(cube, BULK, BULK)
    seen = [(states, normals)]
    both = (bulk[..., 0].min(axis=0) < 0) & (bulk[..., 1].max(axis=0) > 0)
    open_branches = [i for i in range(len(found)) if not both[i]]
    entered: list[Branch] = []
    above = bulk[..., 1].max(axis=0) > 0
    trial, values = cube, bulk
    for radius in (None, *(0.25 / 2.0**r for r in range(ROUNDS))):
        if not open_branches:
            break
        if radius is not None:
            nearest = np.concatenate([trial[_nearest(values[:, i], above[i])] for i in open_branches])
            noise = radius * (2 * generator.random((POINTS, size)) - 1)
            trial = np.clip(nearest[np.arange(POINTS) % len(nearest)] + noise, 0, 1 - 1e-9)
        values, (z, e, _) = run(trial, BOX, SIGMA)
        seen.append((z, e))
        for i in list(open_branches):
            low, high = values[:, i, 0], values[:, i, 1]
            hit = np.flatnonzero(low < 0 if above[i] else high > 0)
            if hit.size:
                entered.append(found[i])
                open_branches.remove(i)
    untaken = tuple(dict.fromkeys(found[i] for i in open_branches if found[i] not in entered))
    fixed = jnp.zeros(uniforms), jnp.zeros(len(ranges), int)
    one = lambda z, e, h: np.asarray(at(*(jnp.asarray(a)[None] for a in (z, e, *fixed, h))))[0]
    states, normals = (np.concatenate(column) for column in zip(*seen, strict=True))
    return Search(tuple(found), both, tuple(entered), untaken, states, normals, one)


def _nearest(margins: np.ndarray, above: bool, count: int = 8) -> np.ndarray:
    """Places of the states that come nearest to the side that is not taken."""
    distance = margins[:, 0] if above else -margins[:, 1]
    return np.argsort(np.where(np.isfinite(distance), distance, np.inf))[:count]


def _bulk(step: JaxStep, target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale (n,) of z."""
    points = generic_points(step, 8)
    centre, spread = points.mean(axis=0), np.maximum(points.std(axis=0), 1e-3)
    if target.gaussian is not None:
        d = target.size
        centre[:d], spread[:d] = target.gaussian.mean, np.sqrt(np.diag(np.linalg.inv(target.gaussian.precision)))
    return centre, spread


def _inside(target: Target, centre: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points of the space: those of a curved one by its projection, those out of a bounded one left at the centre."""
    manifold = target.manifold
    if manifold.is_linear:
        return points
    projected = jax.vmap(lambda x: target.ravel(manifold.project_roundoff(target.unravel(x))))(jnp.asarray(points))
    fine = np.asarray(jax.vmap(lambda x: manifold.contains(target.unravel(x)))(projected))
    return np.where(fine[:, None], np.asarray(projected), centre)


def _targets(subject: Subject) -> tuple[str, ...]:
    return informative(subject)[:1]


@statement(
    tier="contract",
    equation="each side of each branch of a step is entered within 8 standard deviations, or named",
    targets=_targets,
    cost=0.5,
    decides="dynamics",
    once=True,
    meets=lambda target: (BRANCHES,),
)
def branches_entered(case: Case) -> Finding:
    """The sides of a branch that only states beyond the bulk enter do what the others do, where that can be told.

    On a Gaussian a step that is an affine map, or a polynomial, is held to it at each such state. Sides that no state,
    draw and step size within reach enters are listed beside the verdict.
    """
    step = require_traced(step_map(case.subject, case.target))
    if not isinstance(step.program, Program):
        raise OutOfReach("the step is a map that another process evaluates")
    if not walkable(step.program.jaxpr.jaxpr):
        return _finding(case, 0.0, "the step has no branch", ())
    step.require_known_draws()
    found = search(step, case.target, case.step_size)
    worst, where = _deviation(case, step, found)
    fine = f"{len(found.branches)} branches, {int(found.bulk.sum())} of them with both sides in the bulk"
    if found.entered:
        fine += f", {len(set(found.entered))} farther out"
    return _finding(case, worst, where or fine, tuple(b.text for b in found.untaken))


def _finding(case: Case, effect: float, reason: str, untaken: tuple[str, ...]) -> Finding:
    return Finding(
        effect=effect,
        tolerance=Tolerance(TOLERANCE, "round-off of a polynomial, solvers included"),
        required_sensitivity=1e-6,
        reason=reason,
        statistic="step within the box less the map of its middle",
        unit="relative to the terms of the step",
        step_size=case.step_size,
        measurements={"not entered": list(untaken)} if untaken else {},
    )


Map = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""States (P, n) and normals (P, k) -> the ends of steps, and the sum of the sizes of their terms."""


def _fitted(ends: Ends, base: np.ndarray, spread: np.ndarray, normals: int) -> Map | None:
    """The affine map, or the polynomial of degree 2 or 4, that a step is within a standard deviation; None if none."""
    scale = np.concatenate([spread, np.ones(normals)])
    try:
        bulk = fit_affine(ends, base, normals, 1.0)
    except NotApplicable:
        found = (_polynomial(ends, base, scale, degree) for degree in DEGREES)
        return next((each for each in found if each is not None), None)

    def affine(z: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        terms = np.abs(bulk.offset) + np.abs(z) @ np.abs(bulk.matrix).T + np.abs(e) @ np.abs(bulk.noise).T
        return bulk.offset + z @ bulk.matrix.T + e @ bulk.noise.T, terms

    return affine


def _polynomial(ends: Ends, base: np.ndarray, scale: np.ndarray, degree: int) -> Map | None:
    """The polynomial of a degree in state and noise, in units of `scale`, through twice as many points as it needs."""
    size = len(scale)
    if math.comb(size + degree, degree) > MOST:
        return None
    powers = [c for n in range(degree + 1) for c in itertools.combinations_with_replacement(range(size), n)]
    monomials = lambda v: np.stack([np.prod(v[:, list(p)], axis=1) for p in powers], axis=1)
    v = 2 * np.random.default_rng(0).random((2 * len(powers), size)) - 1
    apart = v * scale
    values, rows = ends(base + apart[:, : len(base)], apart[:, len(base) :]), monomials(v)
    if not np.all(np.isfinite(values)):
        return None
    coefficients = np.linalg.lstsq(rows, values, rcond=None)[0]
    if np.abs(rows @ coefficients - values).max() > SAME * np.abs(values).max():
        return None

    def polynomial(z: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = []
        for at in np.array_split(np.concatenate([z - base, e], axis=1) / scale, 1 + len(z) // POINTS):
            rows = monomials(at)
            found.append((rows @ coefficients, np.abs(rows) @ np.abs(coefficients)))
        predicted, terms = (np.concatenate(part) for part in zip(*found, strict=True))
        return predicted, terms

    return polynomial


def _deviation(case: Case, step: JaxStep, found: Search) -> tuple[float, str]:
    """Largest deviation within the box from the polynomial at its centre, at a small step size too, and where.

    A clip that gives way as h -> 0, as tamed schemes have it, is none, nor is what no branch does. A proposal that is
    accepted or rejected may be another one anywhere, as balance asks.
    """
    if case.target.gaussian is None or step.program.count("uniform"):
        return 0.0, ""
    base, spread = np.asarray(step.template.flat, float), _bulk(step, case.target)[1]
    worst, where = 0.0, ""
    for h in (case.step_size, case.step_size / SMALL):
        ends = ends_of(step, h)
        bulk = _fitted(ends, base, spread, step.noise_size)
        if bulk is None:
            return 0.0, ""
        there = ends(found.states, found.normals)
        predicted, terms = bulk(found.states, found.normals)
        gaps = np.max(np.abs(there - predicted) / np.maximum(terms, 1e-300), axis=1)
        k = int(np.argmax(np.where(np.isfinite(gaps), gaps, np.inf)))
        worst = float(gaps[k])
        if worst <= TOLERANCE:
            return worst, ""
        where = f"at z = {np.round(found.states[k], 3).tolist()} the step is not the map of the middle"
        margins = found.margins(base, 0 * found.normals[k], h), found.margins(found.states[k], found.normals[k], h)
        sides = [np.sign(m).astype(int) for m in margins]
        turned = [b.text for b, a, c in zip(found.branches, *sides, strict=True) if np.any(a != c)]
        if not turned:
            return 0.0, ""
        where += f": {', '.join(dict.fromkeys(turned))}"
    return worst, where
